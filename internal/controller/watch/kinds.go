package watch

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Kinds watches kinds that a cluster may not have, or get after croft: each from
// the first look on at which the cluster knows it. Several may look at once.
type Kinds struct {
	Cache      cache.Cache
	Mapper     meta.RESTMapper
	Controller controller.Controller
	// Label names whom an object is something to.
	Label string
	Kinds []schema.GroupVersionKind
	// Typed returns an empty object of a kind, as the walls make it; unstructured
	// if nil.
	Typed func(schema.GroupVersionKind) client.Object
	// Every is how long the answer holds that a kind is not served: each question
	// costs a request.
	Every time.Duration

	mu      sync.Mutex
	watched []schema.GroupVersionKind
	looked  time.Time
}

// Look begins to watch what the cluster has come to know, and returns all that is
// watched. Of what is needed it asks however short the last time is ago. What
// could not be asked about is in the error, and the rest is returned.
func (k *Kinds) Look(needed ...schema.GroupVersionKind) ([]schema.GroupVersionKind, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := k.Every == 0 || time.Since(k.looked) > k.Every
	if all {
		k.looked = time.Now()
	}
	var errs []error
	for _, kind := range k.Kinds {
		if !slices.Contains(k.watched, kind) && (all || slices.Contains(needed, kind)) {
			errs = append(errs, k.look(kind))
		}
	}
	return slices.Clone(k.watched), errors.Join(errs...)
}

func (k *Kinds) look(kind schema.GroupVersionKind) error {
	switch _, err := k.Mapper.RESTMapping(kind.GroupKind(), kind.Version); {
	case meta.IsNoMatchError(err):
		return nil
	case err != nil:
		return fmt.Errorf("look up %s: %w", kind.Kind, err)
	}
	if err := k.Controller.Watch(source.Kind(k.Cache, k.object(kind), ByLabel(k.Label))); err != nil {
		return fmt.Errorf("watch %s: %w", kind.Kind, err)
	}
	k.watched = append(k.watched, kind)
	return nil
}

func (k *Kinds) object(kind schema.GroupVersionKind) client.Object {
	if k.Typed != nil {
		return k.Typed(kind)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	return u
}
