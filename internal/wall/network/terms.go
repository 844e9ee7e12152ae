package network

import (
	"net/netip"
	"slices"
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
	// dnsPods are the pods that resolve names, in the order of their ports.
	dnsPods []v1alpha1.DNSPods
	// resolvers are networks of one address at which names are resolved, where a
	// selector finds no pods: node-local caches, and servers outside of the cluster.
	resolvers []string
	// everywhere says that pods may connect to wherever they like. It reaches other
	// tenants' addresses too: it is they who let nobody in.
	everywhere bool
	// networks are where they may connect to otherwise.
	networks []string
	// never are networks of one address that no pod may connect to, regardless of other policies;
	// but to the port of DNS of those that are resolvers, too.
	never []string
}

// everyAddress are all addresses, of each family.
var everyAddress = []string{"0.0.0.0/0", "::/0"}

// metadata are the platform's metadata addresses as networks of one address.
func metadata(p *estate.Platform) []string { return networksOf(estate.Metadata(&p.Network)) }

// resolvers are the addresses of the platform's name servers as networks of one address.
func resolvers(p *estate.Platform) []string { return networksOf(estate.Resolvers(&p.PlatformSpec)) }

func networksOf(addresses []netip.Addr) []string {
	var all []string
	for _, address := range addresses {
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

const namespaceName = corev1.LabelMetadataName

// dnsProtocols are the protocols of DNS.
var dnsProtocols = []corev1.Protocol{corev1.ProtocolUDP, corev1.ProtocolTCP}

func termsOf(p *estate.Platform, t *estate.Tenant) terms {
	all := terms{
		tenant:     t.Name,
		services:   p.Network.PlatformNamespaces,
		everywhere: t.Egress == v1alpha1.EgressOpen,
		dnsPods:    estate.DNSPods(&p.Network),
		resolvers:  resolvers(p),
		never:      metadata(p),
	}
	if !all.everywhere {
		all.networks = t.AllowCIDRs
	}
	return all
}

// dnsOn are the DNS pods of one port.
func dnsOn(port int32, pods []v1alpha1.DNSPods) []v1alpha1.DNSPods {
	return slices.DeleteFunc(slices.Clone(pods), func(p v1alpha1.DNSPods) bool { return p.Port != port })
}

// dnsPorts are the ports of DNS pods, each once.
func dnsPorts(pods []v1alpha1.DNSPods) []int32 {
	var all []int32
	for _, p := range pods {
		all = append(all, p.Port)
	}
	return slices.Compact(all)
}

// dnsAtMetadata are the metadata addresses at which the platform resolves names.
func (t terms) dnsAtMetadata() []string {
	return slices.DeleteFunc(slices.Clone(t.never), func(n string) bool { return !slices.Contains(t.resolvers, n) })
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
