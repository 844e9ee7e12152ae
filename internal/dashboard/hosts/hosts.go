// Package hosts lists the hosts that the objects of a namespace use, and compares them with the
// domains of its tenant. Gather reads the objects with the caller's rights; List does no I/O.
package hosts

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/observe/certmanager"
)

// kind is a kind with hosts.
type kind struct {
	gvk  schema.GroupVersionKind
	list func(o map[string]any) []string
}

var gateways = schema.GroupVersion{Group: "gateway.networking.k8s.io", Version: "v1"}

// kinds are the kinds in which the wall checks hosts of their own fields.
var kinds = []kind{
	{schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"}, listIngressHosts},
	{gateways.WithKind("Gateway"), listGatewayHosts},
	{gateways.WithKind("HTTPRoute"), listRouteHosts},
	{gateways.WithKind("GRPCRoute"), listRouteHosts},
	{gateways.WithKind("TLSRoute"), listRouteHosts},
	{certmanager.Certificate, listCertificateHosts},
}

// Group is a group of kinds. An API server lists only one kind with each request, so a page shows only one
// group.
type Group struct {
	// Path is the last segment of the path of the group's page; empty for the first group.
	Path  string
	Kinds []string
}

// Groups are all groups. Together they have all kinds.
var Groups = []Group{
	{"", []string{"Ingress", "Certificate"}}, {"gateways", []string{"Gateway", "HTTPRoute"}}, {"routes", []string{"GRPCRoute", "TLSRoute"}},
}

// ListNames returns the names of the kinds in the plural.
func (g Group) ListNames() []string {
	names := make([]string, len(g.Kinds))
	for i, name := range g.Kinds {
		names[i] = formatPlural(name)
	}
	return names
}

func formatPlural(kind string) string {
	if strings.HasSuffix(kind, "s") {
		return kind + "es"
	}
	return kind + "s"
}

// Use is a host in an object.
type Use struct {
	// Host is the host; empty if the object serves every host.
	Host, Kind, Name string
	// Allowed means that the host is below the tenant's domains.
	Allowed bool
}

// Snapshot contains the objects with hosts.
type Snapshot struct {
	// Group is the group of the objects' kinds.
	Group   Group
	Objects []unstructured.Unstructured
	// Hidden are the kinds that the caller may not list.
	Hidden []string
}

// Gather reads a Snapshot, with one request for each kind of the group. A cluster may lack the kinds of
// add-ons.
func Gather(ctx context.Context, c client.Reader, namespace string, of Group) (*Snapshot, error) {
	chosen := slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool { return !slices.Contains(of.Kinds, k.gvk.Kind) })
	lists, refusals := make([]unstructured.UnstructuredList, len(chosen)), make([]error, len(chosen))
	group, ctx := errgroup.WithContext(ctx)
	for i, k := range chosen {
		lists[i].SetGroupVersionKind(k.gvk.GroupVersion().WithKind(k.gvk.Kind + "List"))
		group.Go(func() error {
			err := c.List(ctx, &lists[i], client.InNamespace(namespace))
			if apierrors.IsForbidden(err) {
				refusals[i] = err
				return nil
			}
			if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	s := &Snapshot{Group: of}
	for i, k := range chosen {
		if refusals[i] != nil {
			s.Hidden = append(s.Hidden, formatPlural(k.gvk.Kind))
		}
		for j := range lists[i].Items {
			// A list leaves the kind out.
			lists[i].Items[j].SetGroupVersionKind(k.gvk)
		}
		s.Objects = append(s.Objects, lists[i].Items...)
	}
	return s, nil
}

// List returns the hosts of the objects: those outside of the domains first.
func List(objects []unstructured.Unstructured, domains []string) []Use {
	var all []Use
	for i := range objects {
		o := &objects[i]
		at := slices.IndexFunc(kinds, func(k kind) bool { return k.gvk == o.GroupVersionKind() })
		if at < 0 {
			continue
		}
		for _, host := range kinds[at].list(o.Object) {
			all = append(all, Use{Host: host, Kind: o.GetKind(), Name: o.GetName(), Allowed: IsGranted(host, domains)})
		}
	}
	slices.SortFunc(all, func(a, b Use) int {
		rank := map[bool]int{false: 0, true: 1}
		return cmp.Or(cmp.Compare(rank[a.Allowed], rank[b.Allowed]), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return slices.Compact(all)
}

// IsGranted reports whether a host is one of the domains, or below a wildcard: "*.example.org"
// grants every host below example.org, and not example.org itself.
func IsGranted(host string, domains []string) bool {
	return slices.ContainsFunc(domains, func(domain string) bool {
		base, wildcard := strings.CutPrefix(domain, "*")
		return host == domain || wildcard && strings.HasSuffix(host, base) && len(host) > len(base)
	})
}

// listIngressHosts returns "" for a rule without a host, which serves every host.
func listIngressHosts(o map[string]any) []string {
	var all []string
	for _, rule := range listMaps(o, "spec", "rules") {
		host, _ := rule["host"].(string)
		all = append(all, host)
	}
	if _, found, _ := unstructured.NestedMap(o, "spec", "defaultBackend"); found {
		all = append(all, "")
	}
	for _, tls := range listMaps(o, "spec", "tls") {
		hosts, _, _ := unstructured.NestedStringSlice(tls, "hosts")
		all = append(all, hosts...)
	}
	return all
}

func listGatewayHosts(o map[string]any) []string {
	var all []string
	for _, listener := range listMaps(o, "spec", "listeners") {
		host, _ := listener["hostname"].(string)
		all = append(all, host)
	}
	return all
}

// listRouteHosts returns none for a route without hosts, which has the hosts of its Gateway.
func listRouteHosts(o map[string]any) []string {
	hosts, _, _ := unstructured.NestedStringSlice(o, "spec", "hostnames")
	return hosts
}

func listCertificateHosts(o map[string]any) []string {
	hosts, _, _ := unstructured.NestedStringSlice(o, "spec", "dnsNames")
	if name, _, _ := unstructured.NestedString(o, "spec", "commonName"); name != "" {
		hosts = append(hosts, name)
	}
	return hosts
}

func listMaps(o map[string]any, path ...string) []map[string]any {
	list, _, _ := unstructured.NestedSlice(o, path...)
	var all []map[string]any
	for _, one := range list {
		if m, ok := one.(map[string]any); ok {
			all = append(all, m)
		}
	}
	return all
}
