package tenant

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/controller/watch"
)

// withdrawNamespaces withdraws the namespaces that a tenant no longer declares, as its
// deletion policy specifies. It closes their connections with other tenants in any case: a
// namespace that is retained keeps its other policies, and nothing closes them at their end.
func (c *Controller) withdrawNamespaces(ctx context.Context, tenant *estate.Tenant, served []schema.GroupVersionKind) ([]apply.Change, error) {
	var mine corev1.NamespaceList
	if err := c.client.List(ctx, &mine, client.MatchingFields{watch.NamespacesByTenant: tenant.Name}); err != nil {
		return nil, fmt.Errorf("list namespaces of tenant %s: %w", tenant.Name, err)
	}
	var changes []apply.Change
	var errs []error
	for i := range mine.Items {
		namespace := &mine.Items[i]
		if slices.Contains(tenant.Namespaces, namespace.Name) {
			continue
		}
		if granted, err := c.isGranted(ctx, namespace, tenant); err != nil || granted {
			errs = append(errs, err)
			continue
		}
		policy := tenant.Deletion
		if to := namespace.Annotations[v1alpha1.AdoptAnnotation]; to != "" && to != tenant.Name {
			// It is offered to another tenant: only access is removed.
			policy = v1alpha1.DeletionRetain
		}
		closed, closeErr := c.applier.Prune(ctx, apply.OfAgreements(tenant.Name), namespace.Name, nil,
			slices.Concat(apply.NetworkPolicyKinds, watch.Intersect(slices.Concat(apply.DialectKinds, apply.GrantKinds), served))...)
		labels, labelsErr := c.applier.CloseReferences(ctx, namespace)
		withdrawn, err := c.applier.Withdraw(ctx, namespace, tenant.Name, policy)
		changes = slices.Concat(changes, closed, labels, withdrawn)
		errs = append(errs, closeErr, labelsErr, err)
	}
	return changes, errors.Join(errs...)
}

// isGranted checks with the API server whether a TenantNamespace that is not yet in the
// estate grants a namespace to the tenant. Another operator may have granted it a moment
// ago.
func (c *Controller) isGranted(ctx context.Context, namespace *corev1.Namespace, tenant *estate.Tenant) (bool, error) {
	anchor := namespace.Annotations[v1alpha1.RequestedAnnotation]
	if !tenant.Declares(anchor) {
		return false, nil
	}
	request := &v1alpha1.TenantNamespace{}
	if err := c.live.Get(ctx, client.ObjectKey{Namespace: anchor, Name: namespace.Name}, request); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return request.DeletionTimestamp.IsZero() && request.Status.Tenant == tenant.Name, nil
}
