package nodenetworks

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
)

// newChangePredicate passes changes that affect judge's result. The rest of the objects' status
// changes constantly.
func newChangePredicate() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return isRelevantChange(e.ObjectOld, e.ObjectNew) }}
}

func isRelevantChange(before, after client.Object) bool {
	switch after := after.(type) {
	case *corev1.Node:
		before, ok := before.(*corev1.Node)
		return !ok || getConditions(before) != getConditions(after) || before.Spec.ProviderID != after.Spec.ProviderID ||
			before.Labels[karpenterv1.NodeRegisteredLabelKey] != after.Labels[karpenterv1.NodeRegisteredLabelKey] ||
			before.Annotations[v1alpha1.NodeNetworksAnnotation] != after.Annotations[v1alpha1.NodeNetworksAnnotation] ||
			!equality.Semantic.DeepEqual(before.Spec.Taints, after.Spec.Taints)
	case *karpenterv1.NodeClaim:
		before, ok := before.(*karpenterv1.NodeClaim)
		return !ok || isRegistered(before) != isRegistered(after) || before.Status.ProviderID != after.Status.ProviderID ||
			!maps.Equal(before.Labels, after.Labels)
	case *corev1.Pod:
		before, ok := before.(*corev1.Pod)
		return !ok || isPodReady(before) != isPodReady(after) || before.Spec.NodeName != after.Spec.NodeName ||
			before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero()
	default: // a DaemonSet or a rule: nodes do not depend on its status
		return before.GetGeneration() != after.GetGeneration() || before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero()
	}
}

// getConditions returns the conditions that the agent and the operator have written to a Node.
func getConditions(n *corev1.Node) [2]nodeCondition {
	all := [2]nodeCondition{1: readCondition(n)}
	if c := findCondition(n, v1alpha1.ConditionNetworksReady); c != nil {
		all[0] = nodeCondition{c.Status, c.Reason, c.Message}
	}
	return all
}
