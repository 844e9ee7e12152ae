// Package adopt adopts existing namespaces for a tenant, step by step, and can restore their
// previous state. Running pods are not changed.
package adopt

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/walls/wall"
)

// Adoption adopts the namespaces of one tenant.
type Adoption struct {
	client   client.Client
	applier  *apply.Applier
	estate   *estate.Estate
	tenant   *estate.Tenant
	declared []client.Object
}

// New returns the Adoption of a tenant of an estate. declared are the objects in the file. The
// Adoption applies the Platform, the tenant, and the tenant's pools with their dependencies, so
// that other tenants can follow in their own runs.
func New(c client.Client, e *estate.Estate, tenant string, declared []client.Object) (*Adoption, error) {
	t := e.FindTenant(tenant)
	if t == nil {
		return nil, fmt.Errorf("there is no tenant %s in the file or in the cluster", tenant)
	}
	return &Adoption{client: c, applier: apply.New(c), estate: e, tenant: t, declared: declared}, nil
}

// Platform returns the Platform in the file, if there is one.
func (a *Adoption) Platform() []client.Object {
	return a.filterDeclared(func(kind, _ string) bool { return kind == "Platform" })
}

// Declared returns the objects in the file that the tenant needs, in the order in which they
// are applied.
func (a *Adoption) Declared() []client.Object {
	pools := map[string]bool{}
	for _, name := range a.tenant.Pools {
		pools[name] = true
	}
	return a.filterDeclared(func(kind, name string) bool {
		return kind == "Platform" || kind == "SecondaryNetwork" || kind == "Pool" && pools[name] || kind == "Tenant" && name == a.tenant.Name
	})
}

func (a *Adoption) filterDeclared(picked func(kind, name string) bool) []client.Object {
	var some []client.Object
	for _, o := range a.declared {
		if picked(o.GetObjectKind().GroupVersionKind().Kind, o.GetName()) {
			some = append(some, o)
		}
	}
	return some
}

// arePoliciesCurrent reports whether the cluster-wide policies match the estate's Platform, so that
// dry runs show the policies' decisions.
func (a *Adoption) arePoliciesCurrent(ctx context.Context) (bool, error) {
	var live v1alpha1.PlatformList
	if err := a.client.List(ctx, &live); err != nil || len(live.Items) == 0 {
		return false, err
	}
	diff, err := a.applier.Diff(ctx, wall.PlatformObjects(&a.estate.Platform)...)
	var object *apply.ObjectError
	if errors.As(err, &object) {
		return false, nil // for example a kind that is installed with the Platform
	}
	return len(diff) == 0 && err == nil, err
}

// readNamespaces reads the existing namespaces of the tenant.
func (a *Adoption) readNamespaces(ctx context.Context) (map[string]*corev1.Namespace, error) {
	all := map[string]*corev1.Namespace{}
	for _, name := range a.tenant.Namespaces {
		var live corev1.Namespace
		err := a.client.Get(ctx, client.ObjectKey{Name: name}, &live)
		if client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		if err == nil {
			all[name] = &live
		}
	}
	return all, nil
}

// buildWalls returns the desired walls of the tenant.
func (a *Adoption) buildWalls() []client.Object {
	return wall.TenantObjects(&a.estate.Platform, a.tenant)
}
