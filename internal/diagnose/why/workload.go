package why

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// gatherWorkload reads the pods of a workload, and the creators of its current pods.
func (g *gatherer) gatherWorkload(ctx context.Context, o client.Object) {
	g.Makers = []Maker{{kindNames[g.Target.Kind], o.GetName()}}
	owners := map[types.UID]bool{o.GetUID(): true}
	var selector *metav1.LabelSelector
	switch o := o.(type) {
	case *appsv1.Deployment:
		selector = o.Spec.Selector
		g.gatherReplicaSets(ctx, o, owners)
	case *appsv1.ReplicaSet:
		selector = o.Spec.Selector
	case *corev1.ReplicationController:
		selector = &metav1.LabelSelector{MatchLabels: o.Spec.Selector}
	case *appsv1.StatefulSet:
		selector = o.Spec.Selector
	case *appsv1.DaemonSet:
		selector = o.Spec.Selector
	case *batchv1.Job:
		g.Makers = []Maker{{"Job", o.Name}}
		selector = o.Spec.Selector
	}
	g.gatherPods(ctx, selector, owners)
}

// kindNames maps workloads to their kinds as written in events and owner references.
var kindNames = map[string]string{
	"replicaset": "ReplicaSet", "replicationcontroller": "ReplicationController", "statefulset": "StatefulSet", "daemonset": "DaemonSet", "job": "Job",
}

// gatherReplicaSets reads a Deployment's ReplicaSets. The ReplicaSets of its current revision
// become the Makers.
func (g *gatherer) gatherReplicaSets(ctx context.Context, d *appsv1.Deployment, owners map[types.UID]bool) {
	const revision = "deployment.kubernetes.io/revision"
	g.Makers = nil
	var sets appsv1.ReplicaSetList
	g.listObjects(ctx, "replicaset", &sets, client.InNamespace(d.Namespace))
	for _, set := range sets.Items {
		if metav1.IsControlledBy(&set, d) {
			owners[set.UID] = true
			if set.Annotations[revision] == d.Annotations[revision] {
				g.Makers = append(g.Makers, Maker{"ReplicaSet", set.Name})
			}
		}
	}
}

func (g *gatherer) gatherPods(ctx context.Context, selector *metav1.LabelSelector, owners map[types.UID]bool) {
	matches, err := metav1.LabelSelectorAsSelector(selector)
	g.Fail(err)
	var pods corev1.PodList
	g.listObjects(ctx, "pod", &pods, client.InNamespace(g.Target.Namespace), client.MatchingLabelsSelector{Selector: matches})
	for _, pod := range pods.Items {
		if owner := metav1.GetControllerOf(&pod); owner != nil && owners[owner.UID] {
			g.Pods = append(g.Pods, pod)
		}
	}
}
