package latency

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/internal/network/boot"
	"croft.dev/croft/internal/observe/events"
)

// index finds objects without a search, since a cluster may have many.
type index struct {
	nodesByID, nodesByName map[string]*corev1.Node
	pods                   map[podKey]*corev1.Pod
	podsByNode             map[string][]*corev1.Pod
	// nominations are events by the NodeClaim in their message, and networks are events by the
	// name of their NodeClaim.
	nominations, networks map[string][]*corev1.Event
	boots                 map[string]boot.Times
}

// podKey includes the UID, which distinguishes later pods of the same name.
type podKey struct {
	namespace, name string
	uid             types.UID
}

func newIndex(o Objects) *index {
	x := &index{
		nodesByID: map[string]*corev1.Node{}, nodesByName: map[string]*corev1.Node{},
		pods: map[podKey]*corev1.Pod{}, podsByNode: map[string][]*corev1.Pod{},
		nominations: map[string][]*corev1.Event{}, networks: map[string][]*corev1.Event{}, boots: o.Boots,
	}
	for i := range o.Nodes {
		node := &o.Nodes[i]
		x.nodesByName[node.Name] = node
		if node.Spec.ProviderID != "" {
			x.nodesByID[node.Spec.ProviderID] = node
		}
	}
	for i := range o.Pods {
		pod := &o.Pods[i]
		x.pods[podKey{pod.Namespace, pod.Name, pod.UID}] = pod
		if pod.Spec.NodeName != "" {
			x.podsByNode[pod.Spec.NodeName] = append(x.podsByNode[pod.Spec.NodeName], pod)
		}
	}
	for i := range o.Events {
		e := &o.Events[i]
		for _, claim := range parseNominees(e) {
			x.nominations[claim] = append(x.nominations[claim], e)
		}
		if e.InvolvedObject.Kind == "NodeClaim" && events.IsWrittenBy(e, "croft") {
			x.networks[e.InvolvedObject.Name] = append(x.networks[e.InvolvedObject.Name], e)
		}
	}
	return x
}

// parseNominees returns the NodeClaims for a pod in Karpenter's event: "Pod should schedule on:
// nodeclaim/NAME, node/NAME".
func parseNominees(e *corev1.Event) []string {
	if e.Reason != Nominated || e.InvolvedObject.Kind != "Pod" || !events.IsWrittenBy(e, "karpenter") {
		return nil
	}
	var claims []string
	_, targets, _ := strings.Cut(e.Message, ": ")
	for _, target := range strings.Split(targets, ", ") {
		if claim, ok := strings.CutPrefix(target, "nodeclaim/"); ok {
			claims = append(claims, claim)
		}
	}
	return claims
}

// findPod returns the pod of an event, or nil if it was deleted.
func (x *index) findPod(e *corev1.Event) *corev1.Pod {
	return x.pods[podKey{e.InvolvedObject.Namespace, e.InvolvedObject.Name, e.InvolvedObject.UID}]
}

// findNode returns the node of a NodeClaim by its instance. The name is used only if the claim or
// the node has no provider ID yet, since another instance may have the same node name.
func (x *index) findNode(claim *karpenterv1.NodeClaim) *corev1.Node {
	id := claim.Status.ProviderID
	if node := x.nodesByID[id]; node != nil {
		return node
	}
	node := x.nodesByName[claim.Status.NodeName]
	if node == nil || id != "" && node.Spec.ProviderID != "" {
		return nil
	}
	return node
}
