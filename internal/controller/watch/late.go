package watch

import (
	"errors"
	"fmt"
	"slices"
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

// Absence is for how long a kind that the cluster does not have, and nothing
// needs, is not asked for again: asking for each tenant would be most of what
// croft asks.
const Absence = 10 * time.Second

// Late watches kinds that a cluster may not have, or may get after croft: each
// from the first look on at which the cluster knows it. Several may look at once.
type Late struct {
	cache      cache.Cache
	mapper     meta.RESTMapper
	scheme     *runtime.Scheme
	controller controller.Controller
	handler    handler.EventHandler
	predicates []predicate.Predicate
	kinds      []schema.GroupVersionKind

	mu      sync.Mutex
	watched []schema.GroupVersionKind
	absent  map[schema.GroupVersionKind]time.Time
}

// NewLate returns a Late that tells a controller of the manager's.
func NewLate(m manager.Manager, c controller.Controller, h handler.EventHandler, kinds []schema.GroupVersionKind, predicates ...predicate.Predicate) *Late {
	return &Late{
		cache: m.GetCache(), mapper: m.GetRESTMapper(), scheme: m.GetScheme(),
		controller: c, handler: h, predicates: predicates, kinds: kinds,
		absent: map[schema.GroupVersionKind]time.Time{},
	}
}

// Look begins to watch what the cluster has come to know, and returns all that is
// watched. What is needed is asked for however short the last time is ago. What
// could not be asked about is in the error, and the rest is returned.
func (l *Late) Look(needed ...schema.GroupVersionKind) ([]schema.GroupVersionKind, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, kind := range l.kinds {
		if slices.Contains(l.watched, kind) || time.Since(l.absent[kind]) < Absence && !slices.Contains(needed, kind) {
			continue
		}
		errs = append(errs, l.look(kind))
	}
	return slices.Clone(l.watched), errors.Join(errs...)
}

func (l *Late) look(kind schema.GroupVersionKind) error {
	switch _, err := l.mapper.RESTMapping(kind.GroupKind(), kind.Version); {
	case meta.IsNoMatchError(err):
		l.absent[kind] = time.Now()
		return nil
	case err != nil:
		return fmt.Errorf("look up %s: %w", kind.Kind, err)
	}
	if err := l.controller.Watch(source.Kind(l.cache, l.typed(kind), l.handler, l.predicates...)); err != nil {
		return fmt.Errorf("watch %s: %w", kind.Kind, err)
	}
	l.watched = append(l.watched, kind)
	return nil
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

// Among are those of some kinds that others have, too.
func Among(kinds, others []schema.GroupVersionKind) []schema.GroupVersionKind {
	return slices.DeleteFunc(slices.Clone(kinds), func(k schema.GroupVersionKind) bool { return !slices.Contains(others, k) })
}
