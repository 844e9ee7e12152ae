package nodenetworks

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/secondary"
)

// seen is all that is known of a node.
type seen struct {
	node *corev1.Node
	// claim is nil if the cluster shows none for the node.
	claim *karpenterv1.NodeClaim
	// attached are the claim's interfaces; empty unless it has all of them.
	attached []secondary.NodeNetwork
	// gaveUp says that the node's pool is there, and waits for networks no more.
	gaveUp bool
}

// decide returns the list of interfaces that the Node is to carry, and whether pods may
// come: the claim is registered, so that Karpenter does not put the taint back, all
// interfaces are attached, and the agent has set up those that the Node lists already.
func decide(s *seen) (annotation string, release bool) {
	listed := s.node.Annotations[v1alpha1.NodeNetworksAnnotation]
	annotation = listed
	if len(s.attached) > 0 {
		annotation = secondary.WriteNodeNetworks(s.attached)
	}
	if !tainted(s.node) || !registered(s.claim) {
		return annotation, false
	}
	set := len(s.attached) > 0 && listed == annotation && ready(s.node)
	return annotation, set || s.gaveUp
}

func isOurs(t *corev1.Taint) bool {
	return t.Key == v1alpha1.NetworksTaint && t.Effect == corev1.TaintEffectNoSchedule
}

func tainted(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return isOurs(&t) })
}

func ready(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == v1alpha1.ConditionNetworksReady && c.Status == corev1.ConditionTrue
	})
}

func registered(claim *karpenterv1.NodeClaim) bool {
	if claim == nil {
		return false
	}
	for _, c := range claim.Status.Conditions {
		if c.Type == karpenterv1.ConditionTypeRegistered {
			return c.Status == metav1.ConditionTrue
		}
	}
	return false
}

// changed is a Node with the list of its interfaces, and without the taint if pods may come.
func changed(n *corev1.Node, annotation string, release bool) *corev1.Node {
	after := n.DeepCopy()
	if annotation != "" {
		if after.Annotations == nil {
			after.Annotations = map[string]string{}
		}
		after.Annotations[v1alpha1.NodeNetworksAnnotation] = annotation
	}
	if release {
		after.Spec.Taints = slices.DeleteFunc(after.Spec.Taints, func(t corev1.Taint) bool { return isOurs(&t) })
	}
	return after
}
