// Package move finds pods on nodes of other pools than their tenant's, and restarts them, so
// that they are placed again. A pod is placed once, when it is created: it stays on its node
// when its tenant's pool changes.
package move

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// MisplacedPod is a pod that runs on a wrong pool.
type MisplacedPod struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	Node      string `json:"node"`
	// Pool is the pool of its node, or "" if the node has none.
	Pool string `json:"pool"`

	owner *metav1.OwnerReference
}

// Nodes maps nodes' names to their pools, or to "" for a node without a pool.
type Nodes map[string]string

// MapNodes returns the pools of nodes. key is the Platform's nodePoolKey.
func MapNodes(key string, nodes []corev1.Node) Nodes {
	all := Nodes{}
	for i := range nodes {
		all[nodes[i].Name] = nodes[i].Labels[key]
	}
	return all
}

// ReadNodes reads the pools of all nodes of a cluster. It only requests their metadata.
func ReadNodes(ctx context.Context, c client.Reader, key string) (Nodes, error) {
	var nodes metav1.PartialObjectMetadataList
	nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := c.List(ctx, &nodes); err != nil {
		return nil, err
	}
	all := Nodes{}
	for i := range nodes.Items {
		all[nodes.Items[i].Name] = nodes.Items[i].Labels[key]
	}
	return all, nil
}

// findPool returns the pool of a running pod, and whether it is known. If its node cannot be
// read, it is the pool that the pod selects: the scheduler has placed it there.
func (n Nodes) findPool(key string, pod *corev1.Pod) (string, bool) {
	if pool, ok := n[pod.Spec.NodeName]; ok {
		return pool, true
	}
	pool, ok := pod.Spec.NodeSelector[key]
	return pool, ok
}

// FindMisplaced returns the tenant's pods on nodes of other pools. It ignores pods that have ended or
// are being deleted.
func FindMisplaced(key string, pools []string, pods []corev1.Pod, nodes Nodes) []MisplacedPod {
	var all []MisplacedPod
	for i := range pods {
		pod := &pods[i]
		if pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		if pool, ok := nodes.findPool(key, pod); ok && !slices.Contains(pools, pool) {
			all = append(all, MisplacedPod{pod.Namespace, pod.Name, pod.Spec.NodeName, pool, metav1.GetControllerOf(pod)})
		}
	}
	return all
}

// DescribeNode describes the node or pool of a misplaced pod.
func (s *MisplacedPod) DescribeNode() string {
	if s.Pool == "" {
		return fmt.Sprintf("node %s, which belongs to no pool", s.Node)
	}
	return fmt.Sprintf("node %s of pool %s", s.Node, s.Pool)
}
