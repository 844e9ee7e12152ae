package watch

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
)

// NamespacesByTenant is the cache's index of namespaces by tenant. With thousands of
// tenants, listing all namespaces for each would be too slow.
const NamespacesByTenant = "tenant"

// IndexNamespaces adds the index NamespacesByTenant to a cache.
func IndexNamespaces(ctx context.Context, indexer client.FieldIndexer) error {
	return indexer.IndexField(ctx, &corev1.Namespace{}, NamespacesByTenant, func(o client.Object) []string {
		if tenant := o.GetLabels()[v1alpha1.TenantLabel]; tenant != "" {
			return []string{tenant}
		}
		return nil
	})
}
