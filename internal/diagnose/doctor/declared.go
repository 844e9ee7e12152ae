package doctor

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/operate/apply"
)

// gatherDeclared reads the tenants' namespaces, and the declared objects unless they come from a
// file.
func (g *gatherer) gatherDeclared(ctx context.Context) {
	if !g.Rendered {
		g.gatherDeclarations(ctx)
	}
	g.buildEstate()
	var namespaces corev1.NamespaceList
	g.ReadList(ctx, readNamespaces, &namespaces, client.HasLabels{v1alpha1.TenantLabel})
	g.Namespaces = namespaces.Items
	g.checkNamespaces(ctx)
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
func (g *gatherer) gatherDeclarations(ctx context.Context) {
	var (
		platforms v1alpha1.PlatformList
		pools     v1alpha1.PoolList
		tenants   v1alpha1.TenantList
		networks  v1alpha1.SecondaryNetworkList
	)
	var requests v1alpha1.TenantNamespaceList
	var callers v1alpha1.TenantCallerList
	for _, list := range []client.ObjectList{&platforms, &pools, &tenants, &networks, &requests} {
		g.ReadList(ctx, readDeclared, list)
	}
	// An older installation of croft does not have this kind.
	kind := v1alpha1.GroupVersion.WithKind("TenantCaller")
	if _, err := g.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version); !meta.IsNoMatchError(err) {
		g.ReadList(ctx, readDeclared, &callers)
	}
	if _, unread := g.Unreadable[readDeclared]; !unread {
		g.Declared = &manifest.Declaration{
			Platforms: platforms.Items, Pools: pools.Items, Tenants: tenants.Items, Networks: networks.Items,
			Requests: requests.Items, Callers: callers.Items,
		}
	}
}

// checkNamespaces finds the tenants' namespaces that croft does not write to, with the
// reasons.
func (g *gatherer) checkNamespaces(ctx context.Context) {
	if _, unread := g.Unreadable[readNamespaces]; unread || g.Estate == nil {
		return
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
				if !g.ReadObject(ctx, readNamespaces, client.ObjectKey{Name: name}, live) {
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
}
