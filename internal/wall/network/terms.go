package network

import (
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/estate"
)

// terms are what one tenant's pods let in and where they may connect to, in no
// API at all: each dialect writes these, so that no two of them drift apart.
// Whatever they do not name is denied, both ways. Within the tenant everything is
// let through.
type terms struct {
	tenant string
	// services are the platform's namespaces that are let in.
	services []string
	// resolvers are addresses at which names are resolved beside the cluster's DNS
	// pods: node-local caches are no pods that a selector could find.
	resolvers []string
	// everywhere says that pods may connect to wherever they like. It reaches other
	// tenants' addresses too: it is they who let nobody in.
	everywhere bool
	// networks are where they may connect to otherwise.
	networks []string
	// never is where no pod may connect to, whoever lets it.
	never []string
}

// everyAddress are all addresses, of each family.
var everyAddress = []string{"0.0.0.0/0", "::/0"}

// metadata are the platform's metadata addresses as networks of one address.
func metadata(p *estate.Platform) []string {
	var all []string
	for _, address := range estate.Metadata(&p.Network) {
		all = append(all, netip.PrefixFrom(address, address.BitLen()).String())
	}
	return all
}

// within are the networks of the same family of addresses.
func within(all string, networks []string) []string {
	var same []string
	for _, n := range networks {
		if strings.Contains(n, ":") == strings.Contains(all, ":") {
			same = append(same, n)
		}
	}
	return same
}

const (
	namespaceName = corev1.LabelMetadataName
	// dnsPort is where names are resolved, by UDP and TCP.
	dnsPort = 53
)

// dnsLabels are those of the cluster's DNS pods, which are in kube-system.
var dnsLabels = map[string]string{"k8s-app": "kube-dns"}

func termsOf(p *estate.Platform, t *estate.Tenant) terms {
	all := terms{
		tenant:     t.Name,
		services:   p.Network.PlatformNamespaces,
		everywhere: t.Egress == v1alpha1.EgressOpen,
		never:      metadata(p),
	}
	for _, address := range p.ClusterDNS {
		if ip, err := netip.ParseAddr(address); err == nil {
			all.resolvers = append(all.resolvers, netip.PrefixFrom(ip, ip.BitLen()).String())
		}
	}
	if !all.everywhere {
		all.networks = t.AllowCIDRs
	}
	return all
}

// strangers selects every namespace that is neither the tenant's nor one of the
// platform's services: other tenants' and nobody's.
func (t terms) strangers() *metav1.LabelSelector {
	selector := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: v1alpha1.TenantLabel, Operator: metav1.LabelSelectorOpNotIn, Values: []string{t.tenant}},
	}}
	if len(t.services) > 0 {
		selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: namespaceName, Operator: metav1.LabelSelectorOpNotIn, Values: t.services,
		})
	}
	return selector
}
