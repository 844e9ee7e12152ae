package selfservice

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/operate/controller/declared"
)

// readFacts reads the facts about a request from the API server. Declared objects are read from
// the estate.
func (c *Controller) readFacts(ctx context.Context, s *declared.Snapshot, tenant *estate.Tenant, request *v1alpha1.TenantNamespace) (facts, error) {
	f := facts{
		anchor: request.Namespace, name: request.Name, platform: &s.Platform.PlatformSpec, tenant: tenant,
		claimant: s.Claimant(request.Name), used: map[string]bool{}, existing: &corev1.Namespace{},
		known: func(name string) bool { _, ok := s.Tenant(name); return ok },
	}
	err := c.live.Get(ctx, client.ObjectKey{Name: f.name}, f.existing)
	if apierrors.IsNotFound(err) {
		f.existing, err = nil, nil
	}
	if err != nil {
		return f, fmt.Errorf("read Namespace %s: %w", f.name, err)
	}
	var namespaces corev1.NamespaceList
	if err := c.live.List(ctx, &namespaces, client.MatchingLabels{v1alpha1.TenantLabel: tenant.Name}); err != nil {
		return f, fmt.Errorf("list namespaces of tenant %s: %w", tenant.Name, err)
	}
	for i := range namespaces.Items {
		f.countNamespace(namespaces.Items[i].Name)
	}
	for _, anchor := range tenant.Namespaces {
		var requests v1alpha1.TenantNamespaceList
		if err := c.live.List(ctx, &requests, client.InNamespace(anchor)); err != nil {
			return f, fmt.Errorf("list TenantNamespaces in %s: %w", anchor, err)
		}
		for _, r := range requests.Items {
			if r.Status.Tenant == tenant.Name && r.DeletionTimestamp.IsZero() {
				f.countNamespace(r.Name)
			}
		}
	}
	return f, nil
}

// countNamespace counts a namespace towards the limit, unless it is declared or the requested one.
func (f facts) countNamespace(name string) {
	if name != f.name && !f.tenant.Declares(name) {
		f.used[name] = true
	}
}

// listRequests returns all requests of a tenant. The object is the Tenant, or has its label.
func (c *Controller) listRequests(ctx context.Context, o client.Object) []reconcile.Request {
	name := o.GetLabels()[v1alpha1.TenantLabel]
	if _, ok := o.(*v1alpha1.Tenant); ok {
		name = o.GetName()
	}
	snapshot := c.declared.Current()
	if snapshot == nil {
		return nil
	}
	entry, _ := snapshot.Tenant(name)
	if entry.Value == nil {
		return nil
	}
	var all []reconcile.Request
	for _, anchor := range entry.Value.Namespaces {
		var requests v1alpha1.TenantNamespaceList
		if err := c.client.List(ctx, &requests, client.InNamespace(anchor)); err != nil {
			return all // the cache is stopping
		}
		for i := range requests.Items {
			all = append(all, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&requests.Items[i])})
		}
	}
	return all
}

// newTenantPredicate passes changes of a Tenant that affect requests.
func newTenantPredicate() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e ctrlevent.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1alpha1.Tenant)
		after, ok2 := e.ObjectNew.(*v1alpha1.Tenant)
		ready := func(t *v1alpha1.Tenant) bool {
			return meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionReady)
		}
		return ok && ok2 && (before.Status.ObservedGeneration != after.Status.ObservedGeneration ||
			ready(before) != ready(after) || !slices.Equal(before.Status.Namespaces, after.Status.Namespaces))
	}}
}
