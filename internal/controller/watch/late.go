package watch

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Absence is for how long a kind that the cluster does not have is not asked for
// again.
const Absence = 10 * time.Second

// Late watches kinds that a cluster may not have, or may get after croft: each
// from the first time on that it is asked for and the cluster knows it.
type Late struct {
	cache      cache.Cache
	mapper     meta.RESTMapper
	scheme     *runtime.Scheme
	controller controller.Controller

	mu      sync.Mutex
	watched map[schema.GroupVersionKind]bool
	absent  map[schema.GroupVersionKind]time.Time
}

// NewLate returns a Late that tells a controller of the manager's.
func NewLate(m manager.Manager, c controller.Controller) *Late {
	return &Late{
		cache: m.GetCache(), mapper: m.GetRESTMapper(), scheme: m.GetScheme(), controller: c,
		watched: map[schema.GroupVersionKind]bool{}, absent: map[schema.GroupVersionKind]time.Time{},
	}
}

// Watch watches those of the kinds that the cluster has, and returns these.
func (l *Late) Watch(h handler.EventHandler, kinds []schema.GroupVersionKind, predicates ...predicate.Predicate) ([]schema.GroupVersionKind, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var served []schema.GroupVersionKind
	for _, kind := range kinds {
		if !l.watched[kind] {
			if time.Since(l.absent[kind]) < Absence {
				continue
			}
			switch _, err := l.mapper.RESTMapping(kind.GroupKind(), kind.Version); {
			case meta.IsNoMatchError(err):
				l.absent[kind] = time.Now()
				continue
			case err != nil:
				return nil, fmt.Errorf("look up %s: %w", kind.Kind, err)
			}
			if err := l.controller.Watch(source.Kind(l.cache, l.typed(kind), h, predicates...)); err != nil {
				return nil, fmt.Errorf("watch %s: %w", kind.Kind, err)
			}
			l.watched[kind] = true
		}
		served = append(served, kind)
	}
	return served, nil
}

// typed returns an empty object of a kind, of the Go type that the scheme has for
// it, so that the cache holds each object once.
func (l *Late) typed(kind schema.GroupVersionKind) client.Object {
	if made, err := l.scheme.New(kind); err == nil {
		if o, ok := made.(client.Object); ok {
			return o
		}
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	return u
}
