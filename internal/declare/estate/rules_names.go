package estate

import (
	"slices"

	"golang.org/x/net/publicsuffix"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"croft.dev/croft/api/v1alpha1"
)

// clusterLabels are the last labels of names that are resolved within clusters and local
// networks.
var clusterLabels = []string{"cluster", "home", "internal", "intranet", "lan", "local", "localhost", "pod", "svc"}

// busyDomains are the top-level domains, except for countries', with the hosts that
// pods call most. The thousand others (shop, bank, team) are common names of teams, so a
// namespace of that name is the platform's choice.
var busyDomains = []string{"app", "arpa", "biz", "cloud", "com", "dev", "edu", "gov", "info", "int", "mil", "net", "org"}

// checkTopLevelNames refuses namespaces whose Services would answer for hosts outside of the
// cluster. A pod's search path ends in svc.cluster.local and its ndots are 5 (see
// dns-pod-service in Kubernetes' documentation): google.com is first resolved as
// google.com.svc.cluster.local, which is the Service google of the namespace com.
func checkTopLevelNames(w *checker, t *v1alpha1.Tenant) []finding {
	if len(t.Spec.Namespaces) == 0 {
		if w.isTopLevel(t.Name) {
			return makeFinding(field.NewPath("metadata", "name"), "%s", explainTopLevel(t.Name))
		}
		return nil
	}
	var all []finding
	for i, ns := range t.Spec.Namespaces {
		if w.isTopLevel(ns) {
			all = append(all, makeFinding(field.NewPath("spec", "namespaces").Index(i), "%s", explainTopLevel(ns))...)
		}
	}
	return all
}

func explainTopLevel(namespace string) string {
	return "a Service NAME of a namespace " + namespace + " would answer for the host NAME." + namespace +
		" in every pod of the cluster; choose another name, or list it in platform.topLevelNamespaces"
}

// isTopLevel reports whether a name is the last label of hosts that pods call, unless the
// platform allows it.
func (w *checker) isTopLevel(namespace string) bool {
	if slices.Contains(w.platform.TopLevelNamespaces, namespace) {
		return false
	}
	_, delegated := publicsuffix.PublicSuffix(namespace)
	country := len(namespace) == 2 && delegated
	return country || slices.Contains(busyDomains, namespace) || slices.Contains(clusterLabels, namespace)
}

// clusterDomains contain the names of Services and pods in the cluster's DNS.
var clusterDomains = []string{"cluster.local", "svc"}

// isInCluster reports whether a domain overlaps with the cluster's DNS domains, and so contains
// names of any owner's Services.
func (c claim) isInCluster() bool {
	return slices.ContainsFunc(clusterDomains, func(domain string) bool {
		return c.baseDomain() == domain || isSubdomain(c.baseDomain(), domain) || c.isWildcard() && isSubdomain(domain, c.baseDomain())
	})
}
