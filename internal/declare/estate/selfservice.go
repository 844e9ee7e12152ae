package estate

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/manifest"
)

// CheckRequest returns why a tenant may not request a namespace by a TenantNamespace, and the
// reason for its condition. Both are empty if it may. known reports whether a Tenant of a name
// exists, valid or not.
//
// A name belongs to the tenant with the longest name that it begins with: shop-ci-x belongs to
// shop-ci and not to shop. A namespace that was granted before keeps its tenant when a tenant
// with a longer name is created.
func CheckRequest(platform *v1alpha1.PlatformSpec, tenant, name string, known func(tenant string) bool) (reason, why string) {
	if len(name) <= len(tenant)+1 || !strings.HasPrefix(name, tenant+"-") {
		return v1alpha1.ReasonNameNotAllowed, "the name must begin with " + tenant + "-: name it " + tenant + "-" + name
	}
	w := &checker{platform: *platform}
	if whose := w.findSystemOwner(name); whose != "" {
		return v1alpha1.ReasonNameNotAllowed, name + " is a namespace of " + whose + ": choose another name"
	}
	if w.isTopLevel(name) {
		return v1alpha1.ReasonNameNotAllowed, explainTopLevel(name)
	}
	for i := len(tenant) + 1; i <= len(name); i++ {
		if (i == len(name) || name[i] == '-') && known(name[:i]) {
			// The message must not reveal the names of other tenants.
			return v1alpha1.ReasonNameNotAllowed, "the platform reserves this name: choose another"
		}
	}
	return "", ""
}

// listRequested maps the names of the namespaces that were granted to a tenant to the declared
// namespaces of their TenantNamespaces. It is nil if there are none. Declared namespaces are
// not included.
func (w *checker) listRequested(t *v1alpha1.Tenant) map[string]string {
	var all map[string]string
	declared := listNamespaces(t)
	for _, anchor := range declared {
		for _, name := range w.granted[grant{t.Name, anchor}] {
			if slices.Contains(declared, name) {
				continue
			}
			if all == nil {
				all = map[string]string{}
			}
			all[name] = anchor
		}
	}
	return all
}

// mostNamespaces is the maximum number of namespaces in a tenant's rules.
const mostNamespaces = 64

// checkRequests refuses a declaration that conflicts with granted namespaces: if one of them has
// become a namespace of the platform, or if the tenant has too many namespaces in total.
func checkRequests(w *checker, t *v1alpha1.Tenant) []finding {
	requested := w.listRequested(t)
	var all []finding
	at := field.NewPath("spec", "selfService")
	for _, name := range slices.Sorted(maps.Keys(requested)) {
		if whose := w.findSystemOwner(name); whose != "" {
			all = append(all, makeFinding(at, "%s was granted to the tenant by TenantNamespace %s/%s, and is a namespace of %s now; delete one of them",
				name, requested[name], name, whose)...)
		}
	}
	if n := len(listNamespaces(t)); n+len(requested) > mostNamespaces {
		all = append(all, makeFinding(at, "the tenant declares %d namespaces and was granted %d by TenantNamespaces; together they are at most %d",
			n, len(requested), mostNamespaces)...)
	}
	return all
}

// grant identifies a request by its tenant and its namespace.
type grant struct{ tenant, anchor string }

// indexGranted returns the names of granted namespaces. An object that is being deleted grants
// nothing, even while a finalizer keeps it.
func indexGranted(d *manifest.Declaration) map[grant][]string {
	all := map[grant][]string{}
	for i := range d.Requests {
		r := &d.Requests[i]
		if r.Status.Tenant != "" && r.DeletionTimestamp.IsZero() {
			g := grant{r.Status.Tenant, r.Namespace}
			all[g] = append(all[g], r.Name)
		}
	}
	return all
}

// request identifies a TenantNamespace by its own namespace and its name.
type request struct{ anchor, name string }

func indexRequestLabels(d *manifest.Declaration) map[request]map[string]string {
	all := map[request]map[string]string{}
	for i := range d.Requests {
		r := &d.Requests[i]
		all[request{r.Namespace, r.Name}] = r.Labels
	}
	return all
}
