package doctor

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/estate"
	"croft.dev/croft/internal/manifest"
)

// declared reads the declared objects, unless they are a file's, and the tenants'
// namespaces.
func (g *gatherer) declared(ctx context.Context) error {
	if !g.Rendered {
		if err := g.declarations(ctx); err != nil || g.Declared == nil {
			return err
		}
	}
	// Invalid objects say so in their own conditions.
	g.Estate, _ = estate.Build(g.Declared)

	var namespaces corev1.NamespaceList
	err := g.list(ctx, readDeclared, &namespaces, client.HasLabels{v1alpha1.TenantLabel})
	g.Namespaces = namespaces.Items
	return err
}

// declarations reads the cluster's declared objects.
func (g *gatherer) declarations(ctx context.Context) error {
	var (
		platforms v1alpha1.PlatformList
		pools     v1alpha1.PoolList
		tenants   v1alpha1.TenantList
		networks  v1alpha1.SecondaryNetworkList
	)
	var requests v1alpha1.TenantNamespaceList
	for _, list := range []client.ObjectList{&platforms, &pools, &tenants, &networks, &requests} {
		if err := g.list(ctx, readDeclared, list); err != nil {
			return err
		}
	}
	if _, unread := g.Unread[readDeclared]; !unread {
		g.Declared = &manifest.Declaration{
			Platforms: platforms.Items, Pools: pools.Items, Tenants: tenants.Items, Networks: networks.Items, Requests: requests.Items,
		}
	}
	return nil
}
