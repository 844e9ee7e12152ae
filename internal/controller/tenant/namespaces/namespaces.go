// Package namespaces takes from a tenant the namespaces that it declares no
// longer, as the tenant's deletion policy has it.
package namespaces

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/apply"
	"croft.dev/croft/internal/estate"
)

// Index is the name under which the cache finds namespaces by their tenant:
// looking through all namespaces for each tenant would not do for thousands.
const Index = "tenant"

// IndexFunc returns the tenant of a namespace.
func IndexFunc(o client.Object) []string {
	if tenant := o.GetLabels()[v1alpha1.TenantLabel]; tenant != "" {
		return []string{tenant}
	}
	return nil
}

// Namespaces withdraws namespaces.
type Namespaces struct {
	reader  client.Reader
	applier *apply.Applier
}

// New returns Namespaces that read from an indexed cache.
func New(reader client.Reader, a *apply.Applier) *Namespaces { return &Namespaces{reader, a} }

// Reconcile withdraws the tenant's namespaces that are not declared.
func (n *Namespaces) Reconcile(ctx context.Context, tenant *estate.Tenant) ([]apply.Change, error) {
	var mine corev1.NamespaceList
	if err := n.reader.List(ctx, &mine, client.MatchingFields{Index: tenant.Name}); err != nil {
		return nil, fmt.Errorf("list namespaces of tenant %s: %w", tenant.Name, err)
	}
	var changes []apply.Change
	var errs []error
	for i := range mine.Items {
		if namespace := &mine.Items[i]; !slices.Contains(tenant.Namespaces, namespace.Name) {
			withdrawn, err := n.applier.Withdraw(ctx, namespace, tenant.Name, tenant.Deletion)
			changes = append(changes, withdrawn...)
			errs = append(errs, err)
		}
	}
	return changes, errors.Join(errs...)
}
