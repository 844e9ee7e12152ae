package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/prove/scratch"
)

// longest is the maximum duration of a run whose context has no deadline.
const longest = time.Hour

// markObjects returns the tenants' objects. Cluster-scoped objects are marked with an expiry: if
// this run is killed, a later one deletes them after that time.
func (s *Scratch) markObjects(ctx context.Context) []client.Object {
	end, ok := ctx.Deadline()
	if !ok {
		end = time.Now().Add(longest)
	}
	objects := s.Objects()
	for _, o := range objects {
		if o.GetNamespace() == "" {
			scratch.Mark(o, end.Add(removal))
		}
	}
	return objects
}

// Sweep deletes the objects of killed runs, and returns their references. declared are the
// names of the cluster's Tenants.
func (s *Scratch) Sweep(ctx context.Context, c client.Client, declared []string) ([]apply.Ref, error) {
	var found []client.Object
	var errs []error
	for _, kind := range s.listKinds() {
		var list metav1.PartialObjectMetadataList
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := c.List(ctx, &list)
		if err != nil && !meta.IsNoMatchError(err) {
			errs = append(errs, fmt.Errorf("find objects that an earlier run left: list %s: %w", kind.Kind, err))
		}
		for i := range list.Items {
			o := &list.Items[i]
			o.SetGroupVersionKind(kind)
			if o.DeletionTimestamp == nil {
				found = append(found, o)
			}
		}
	}
	var removed []apply.Ref
	for _, run := range scratch.FindExpired(found, declared, time.Now()) {
		if err := apply.New(c).Discard(ctx, run.Objects...); err != nil {
			errs = append(errs, err)
			continue
		}
		for _, o := range run.Objects {
			removed = append(removed, apply.RefOf(o))
		}
	}
	return removed, errors.Join(errs...)
}

// listKinds returns the cluster-scoped kinds of a run's objects: objects in a namespace are deleted
// with it.
func (s *Scratch) listKinds() []schema.GroupVersionKind {
	objects := s.Objects()
	for _, a := range s.Attacks() {
		objects = append(objects, a.Setup...)
	}
	var kinds []schema.GroupVersionKind
	for _, o := range objects {
		kind := o.GetObjectKind().GroupVersionKind()
		if o.GetNamespace() == "" && scratch.RunOf(o.GetName()) != "" && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// Needs returns the rights needed to try attacks on scratch tenants, in addition to the rights
// of a platform admin. They are checked before anything is created.
func (*Scratch) Needs() []Right {
	needs := listImpersonationRights("", "")
	for _, verb := range []string{"create", "delete"} {
		needs = append(needs, Right{Verb: verb, Resource: "namespaces"})
	}
	return append(needs,
		Right{Verb: "create", Resource: "pods"},
		Right{Verb: "patch", Resource: "resourcequotas"},
		Right{Verb: "patch", Group: "node.k8s.io", Resource: "runtimeclasses"},
		Right{Verb: "patch", Group: "scheduling.k8s.io", Resource: "priorityclasses"},
		Right{Verb: "patch", Group: "networking.k8s.io", Resource: "networkpolicies"},
		Right{Verb: "patch", Group: "rbac.authorization.k8s.io", Resource: "rolebindings"},
		Right{Verb: "patch", Group: v1alpha1.GroupVersion.Group, Resource: "tenantrules"},
	)
}
