package tenant

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/apply"
	"croft.dev/croft/internal/controller/watch"
	"croft.dev/croft/internal/estate"
)

// withdrawNamespaces takes from a tenant the namespaces that it declares no longer, as
// its deletion policy has it.
func (c *Controller) withdrawNamespaces(ctx context.Context, tenant *estate.Tenant) ([]apply.Change, error) {
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
		policy := tenant.Deletion
		if to := namespace.Annotations[v1alpha1.AdoptAnnotation]; to != "" && to != tenant.Name {
			// It is offered to another tenant: nothing goes but access.
			policy = v1alpha1.DeletionRetain
		}
		withdrawn, err := c.applier.Withdraw(ctx, namespace, tenant.Name, policy)
		changes = append(changes, withdrawn...)
		errs = append(errs, err)
	}
	return changes, errors.Join(errs...)
}
