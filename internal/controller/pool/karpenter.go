package pool

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kwokv1alpha1 "sigs.k8s.io/karpenter/kwok/apis/v1alpha1"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// typed returns an empty object of a kind, as the walls make it.
func typed(kind schema.GroupVersionKind) client.Object {
	switch kind.Kind {
	case "NodePool":
		return &karpenterv1.NodePool{}
	case "KWOKNodeClass":
		return &kwokv1alpha1.KWOKNodeClass{}
	default:
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(kind)
		return u
	}
}
