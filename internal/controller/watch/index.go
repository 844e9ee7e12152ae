package watch

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
)

// NamespacesByTenant is the name under which the cache finds namespaces by their tenant:
// looking through all namespaces for each tenant would not do for thousands.
const NamespacesByTenant = "tenant"

// IndexNamespaces makes a cache find namespaces by their tenant.
func IndexNamespaces(ctx context.Context, indexer client.FieldIndexer) error {
	return indexer.IndexField(ctx, &corev1.Namespace{}, NamespacesByTenant, func(o client.Object) []string {
		if tenant := o.GetLabels()[v1alpha1.TenantLabel]; tenant != "" {
			return []string{tenant}
		}
		return nil
	})
}
