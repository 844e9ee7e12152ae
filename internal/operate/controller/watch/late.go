package watch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
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

// Absence is how long a missing optional kind is not looked up again. Otherwise look-ups
// for each tenant would be most of croft's requests.
const Absence = 10 * time.Second

// Late watches kinds that a cluster may not serve, or only after croft has started. A watch
// starts at the first Look at which the cluster serves the kind. Look may be called
// concurrently.
type Late struct {
	cache      cache.Cache
	mapper     meta.RESTMapper
	scheme     *runtime.Scheme
	controller controller.Controller
	handler    handler.EventHandler
	predicates []predicate.Predicate
	kinds      []schema.GroupVersionKind

	lookups singleflight.Group
	mu      sync.Mutex
	watched []schema.GroupVersionKind
	absent  map[schema.GroupVersionKind]time.Time
}

// NewLate returns a Late that adds watches to a controller of the manager.
func NewLate(m manager.Manager, c controller.Controller, h handler.EventHandler, kinds []schema.GroupVersionKind, predicates ...predicate.Predicate) *Late {
	return &Late{
		cache: m.GetCache(), mapper: m.GetRESTMapper(), scheme: m.GetScheme(),
		controller: c, handler: h, predicates: predicates, kinds: kinds,
		absent: map[schema.GroupVersionKind]time.Time{},
	}
}

// Look starts a watch for each kind that the cluster now serves, and returns all watched
// kinds. Needed kinds are looked up even if the last lookup was a moment ago. The error
// contains the kinds that could not be looked up; the other kinds are returned. When ctx
// ends, Look stops: discovery itself takes no context, and a stopping operator must not
// wait for the lookups of twenty kinds.
func (l *Late) Look(ctx context.Context, needed ...schema.GroupVersionKind) ([]schema.GroupVersionKind, error) {
	var errs []error
	for _, kind := range l.listDueKinds(needed) {
		if err := ctx.Err(); err != nil {
			errs = append(errs, err)
			break
		}
		// Discovery may take seconds: callers that need the same kind share one request,
		// and other callers do not wait for it.
		_, err, _ := l.lookups.Do(kind.String(), func() (any, error) { return nil, l.startWatch(kind) })
		errs = append(errs, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.watched), errors.Join(errs...)
}

// listDueKinds returns the kinds to look up.
func (l *Late) listDueKinds(needed []schema.GroupVersionKind) []schema.GroupVersionKind {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.kinds), func(kind schema.GroupVersionKind) bool {
		return slices.Contains(l.watched, kind) || time.Since(l.absent[kind]) < Absence && !slices.Contains(needed, kind)
	})
}

func (l *Late) startWatch(kind schema.GroupVersionKind) error {
	_, err := l.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case slices.Contains(l.watched, kind):
		return nil
	case meta.IsNoMatchError(err):
		l.absent[kind] = time.Now()
		return nil
	case err != nil:
		return fmt.Errorf("look up %s: %w", kind.Kind, err)
	}
	if err := l.controller.Watch(source.Kind(l.cache, l.newObject(kind), l.handler, l.predicates...)); err != nil {
		return fmt.Errorf("watch %s: %w", kind.Kind, err)
	}
	l.watched = append(l.watched, kind)
	return nil
}

// newObject returns an empty object of a kind. It has the Go type that the scheme registers, so
// that the cache stores each object once.
func (l *Late) newObject(kind schema.GroupVersionKind) client.Object {
	if made, err := l.scheme.New(kind); err == nil {
		if o, ok := made.(client.Object); ok {
			return o
		}
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	return u
}

// Intersect returns the kinds that are also in others.
func Intersect(kinds, others []schema.GroupVersionKind) []schema.GroupVersionKind {
	return slices.DeleteFunc(slices.Clone(kinds), func(k schema.GroupVersionKind) bool { return !slices.Contains(others, k) })
}
