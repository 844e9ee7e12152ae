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

// matters lets through changes of Nodes and NodeClaims that decide looks at: the rest of
// their status changes all the time.
func matters() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return differ(e.ObjectOld, e.ObjectNew) }}
}

func differ(before, after client.Object) bool {
	switch after := after.(type) {
	case *corev1.Node:
		before, ok := before.(*corev1.Node)
		return !ok || ready(before) != ready(after) || before.Spec.ProviderID != after.Spec.ProviderID ||
			before.Annotations[v1alpha1.NodeNetworksAnnotation] != after.Annotations[v1alpha1.NodeNetworksAnnotation] ||
			!equality.Semantic.DeepEqual(before.Spec.Taints, after.Spec.Taints)
	case *karpenterv1.NodeClaim:
		before, ok := before.(*karpenterv1.NodeClaim)
		return !ok || registered(before) != registered(after) || before.Status.ProviderID != after.Status.ProviderID ||
			!maps.Equal(before.Labels, after.Labels)
	default:
		return true
	}
}
