package tenant

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/walls/gitops"
	"croft.dev/croft/internal/walls/wall/network"
)

// checkFlux returns an error if a tenant has sources and the cluster does not serve all
// kinds that they need.
func checkFlux(p *estate.Platform, t *estate.Tenant, served []schema.GroupVersionKind) error {
	for _, kind := range gitops.Kinds(p, t) {
		if !slices.Contains(served, kind) {
			return fmt.Errorf("sources: this cluster does not know the kind %s (%s): install Flux, or remove the tenant's sources",
				kind.Kind, kind.GroupVersion())
		}
	}
	return nil
}

// checkNetworkKinds returns an error if the cluster does not serve the kinds that a tenant's
// networks and connections need.
func checkNetworkKinds(t *estate.Tenant, served []schema.GroupVersionKind) error {
	for _, kind := range network.ListTenantKinds(t) {
		switch {
		case slices.Contains(served, kind):
		case kind == network.GrantKind:
			return fmt.Errorf("network.callers: this cluster does not know the kind %s (%s): install the Gateway API, or remove services from the tenant's callers",
				kind.Kind, kind.GroupVersion())
		default:
			return fmt.Errorf("networks: this cluster does not know the kind %s (%s): install Multus, or remove the tenant's networks",
				kind.Kind, kind.GroupVersion())
		}
	}
	return nil
}

// omitUnserved omits objects of Flux and Multus that the cluster does not serve.
func omitUnserved(objects []client.Object, served []schema.GroupVersionKind) []client.Object {
	return slices.DeleteFunc(slices.Clone(objects), func(o client.Object) bool {
		kind := o.GetObjectKind().GroupVersionKind()
		return slices.Contains(apply.OptionalKinds, kind) && !slices.Contains(served, kind)
	})
}
