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
	pool string
	// claim is nil if the cluster shows none for the node.
	claim *karpenterv1.NodeClaim
	// attached are the claim's interfaces; empty unless it has all of them.
	attached []secondary.NodeNetwork
	// gaveUp says that the node's pool is there, and waits for networks no more.
	gaveUp bool
	// ruled says that the node readiness controller removes the taint.
	ruled bool
	// plugins are the DaemonSets to wait for.
	plugins *plugins
	// unread says why the DaemonSets are not known; "" if they are.
	unread string
}

// list is the list of interfaces that the Node is to carry: the one that it carries while
// not all are attached.
func (s *seen) list() string {
	if len(s.attached) > 0 {
		return secondary.WriteNodeNetworks(s.attached)
	}
	return s.node.Annotations[v1alpha1.NodeNetworksAnnotation]
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

// registered reports whether Karpenter has set a node's labels and taints: it does not put
// the taint back afterwards.
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
