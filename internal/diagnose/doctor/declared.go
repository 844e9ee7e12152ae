package doctor

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/operate/apply"
)

// gatherDeclared reads the tenants' namespaces, and the declared objects unless they come from a
// file.
func (g *gatherer) gatherDeclared(ctx context.Context) error {
	if !g.Rendered {
		if err := g.gatherDeclarations(ctx); err != nil {
			return err
		}
	}
	g.buildEstate()
	var namespaces corev1.NamespaceList
	if err := g.listObjects(ctx, readNamespaces, &namespaces, client.HasLabels{v1alpha1.TenantLabel}); err != nil {
		return err
	}
	g.Namespaces = namespaces.Items
	return g.checkNamespaces(ctx)
}

// buildEstate builds the estate. Problems of invalid objects are reported by the objects'
// own conditions.
func (g *gatherer) buildEstate() {
	if reason, unread := g.Unreadable[readDeclared]; unread {
		g.Unreadable[readPlatform] = reason
		return
	}
	g.Declared.Now = g.Now
	for _, o := range g.listOwners() {
		if o.GetDeletionTimestamp() != nil {
			g.Deleting[o.name] = true
		}
	}
	if g.Estate, _ = estate.Build(g.Declared); g.Estate == nil {
		g.Unreadable[readPlatform] = "no valid Platform exists: see the check platform"
	}
}

// gatherDeclarations reads the cluster's declared objects.
func (g *gatherer) gatherDeclarations(ctx context.Context) error {
	var (
		platforms v1alpha1.PlatformList
		pools     v1alpha1.PoolList
		tenants   v1alpha1.TenantList
		networks  v1alpha1.SecondaryNetworkList
	)
	var requests v1alpha1.TenantNamespaceList
	for _, list := range []client.ObjectList{&platforms, &pools, &tenants, &networks, &requests} {
		if err := g.listObjects(ctx, readDeclared, list); err != nil {
			return err
		}
	}
	if _, unread := g.Unreadable[readDeclared]; !unread {
		g.Declared = &manifest.Declaration{
			Platforms: platforms.Items, Pools: pools.Items, Tenants: tenants.Items, Networks: networks.Items, Requests: requests.Items,
		}
	}
	return nil
}

// checkNamespaces finds the tenants' namespaces that croft does not write to, with the
// reasons.
func (g *gatherer) checkNamespaces(ctx context.Context) error {
	if _, unread := g.Unreadable[readNamespaces]; unread || g.Estate == nil {
		return nil
	}
	labelled := map[string]*corev1.Namespace{}
	for i := range g.Namespaces {
		labelled[g.Namespaces[i].Name] = &g.Namespaces[i]
	}
	for _, tenant := range g.Estate.Tenants {
		for _, name := range tenant.Namespaces {
			live := labelled[name]
			if live == nil && !g.Rendered {
				live = &corev1.Namespace{}
				err := g.Get(ctx, client.ObjectKey{Name: name}, live)
				if err := g.recordUnread(readNamespaces, err); err != nil {
					return err
				}
				if err != nil {
					continue
				}
			}
			if live == nil {
				continue
			}
			if err := apply.CheckClaim(live, tenant.Name); err != nil {
				g.RefusedNamespaces[name] = err
			}
		}
	}
	return nil
}
