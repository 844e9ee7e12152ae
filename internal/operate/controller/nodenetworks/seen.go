package nodenetworks

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/secondary"
)

// observation is the observed state of a node.
type observation struct {
	node *corev1.Node
	pool string
	// claim is nil if the cluster has no claim for the node.
	claim *karpenterv1.NodeClaim
	// attached are the claim's interfaces. It is empty unless the claim has all of them.
	attached []secondary.NodeNetwork
	// gaveUp reports whether the node's pool exists and no longer waits for networks.
	gaveUp bool
	// hasReadinessRule reports whether the node readiness controller removes the taint.
	hasReadinessRule bool
	// plugins are the DaemonSets to wait for.
	plugins *plugins
	// unreadableReason is the reason why the DaemonSets cannot be read, or "".
	unreadableReason string
}

// getAnnotation returns the desired list of interfaces for the Node. While not all are attached,
// this is the existing list.
func (s *observation) getAnnotation() string {
	if len(s.attached) > 0 {
		return secondary.WriteNodeNetworks(s.attached)
	}
	return s.node.Annotations[v1alpha1.NodeNetworksAnnotation]
}

func isNetworksTaint(t *corev1.Taint) bool {
	return t.Key == v1alpha1.NetworksTaint && t.Effect == corev1.TaintEffectNoSchedule
}

func hasNetworksTaint(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return isNetworksTaint(&t) })
}

func hasReadyNetworks(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == v1alpha1.ConditionNetworksReady && c.Status == corev1.ConditionTrue
	})
}

// isRegistered reports whether Karpenter has set the node's labels and taints. Karpenter does
// not restore the taint afterwards.
func isRegistered(claim *karpenterv1.NodeClaim) bool {
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

// buildNode returns a copy of a Node with the list of its interfaces, and without the taint
// if release is set.
func buildNode(n *corev1.Node, annotation string, release bool) *corev1.Node {
	after := n.DeepCopy()
	if annotation != "" {
		if after.Annotations == nil {
			after.Annotations = map[string]string{}
		}
		after.Annotations[v1alpha1.NodeNetworksAnnotation] = annotation
	}
	if release {
		after.Spec.Taints = slices.DeleteFunc(after.Spec.Taints, func(t corev1.Taint) bool { return isNetworksTaint(&t) })
	}
	return after
}
