package pool

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/source"
	kwokv1alpha1 "sigs.k8s.io/karpenter/kwok/apis/v1alpha1"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/apply"
	"croft.dev/croft/internal/controller/watch"
)

// karpenter watches Karpenter's kinds. A cluster has the node classes of one
// cloud only, and may get Karpenter itself after croft: so a kind is watched from
// the first reconcile on at which the cluster knows it. Until then pools say that
// it is missing, and are looked at again every half minute.
type karpenter struct {
	cache      cache.Cache
	mapper     meta.RESTMapper
	controller controller.Controller
	// watched needs no lock: there is one worker.
	watched map[schema.GroupVersionKind]bool
}

func (k *karpenter) watch() error {
	for _, kind := range apply.PoolKinds {
		if k.watched[kind] {
			continue
		}
		switch _, err := k.mapper.RESTMapping(kind.GroupKind(), kind.Version); {
		case meta.IsNoMatchError(err):
			continue
		case err != nil:
			return fmt.Errorf("look up %s: %w", kind.Kind, err)
		}
		if err := k.controller.Watch(source.Kind(k.cache, typed(kind), watch.ByLabel(v1alpha1.PoolLabel))); err != nil {
			return fmt.Errorf("watch %s: %w", kind.Kind, err)
		}
		if k.watched == nil {
			k.watched = map[schema.GroupVersionKind]bool{}
		}
		k.watched[kind] = true
	}
	return nil
}

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
