package cli

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/manifest"
)

// confirmOwnership drops tenants whose refused namespace is permitted by now, and marks the
// others as confirmed. The operator may have refused the namespace before it was permitted,
// and may not have reconciled since.
func confirmOwnership(ctx context.Context, c client.Reader, live *manifest.Declaration, all []stuckObject) []stuckObject {
	var kept []stuckObject
	for _, s := range all {
		if s.reason == v1alpha1.ReasonNamespaceNotOwned {
			i := slices.IndexFunc(live.Tenants, func(t v1alpha1.Tenant) bool { return "Tenant/"+t.Name == s.id })
			if i >= 0 && isPermitted(ctx, c, &live.Tenants[i]) {
				continue
			}
			s.confirmed = true
		}
		kept = append(kept, s)
	}
	return kept
}

// isPermitted reports whether a tenant may have every namespace that it declares.
func isPermitted(ctx context.Context, c client.Reader, tenant *v1alpha1.Tenant) bool {
	names := tenant.Spec.Namespaces
	if len(names) == 0 {
		names = []string{tenant.Name}
	}
	for _, name := range names {
		var namespace corev1.Namespace
		err := c.Get(ctx, client.ObjectKey{Name: name}, &namespace)
		if client.IgnoreNotFound(err) != nil {
			return false
		}
		if err == nil && namespace.Labels[v1alpha1.TenantLabel] != tenant.Name && namespace.Annotations[v1alpha1.AdoptAnnotation] != tenant.Name {
			return false
		}
	}
	return true
}
