package network

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
)

// terms describe the ingress and egress of a tenant's pods independently of any API. Every
// dialect is written from them, so that the dialects do not diverge. Traffic within the
// tenant is allowed. All other traffic that the terms do not name is denied, in both
// directions.
type terms struct {
	tenant string
	// services are the platform's namespaces with access to the tenant's pods.
	services []string
	// dnsPods are the pods that serve DNS, in the order of their ports.
	dnsPods []v1alpha1.DNSPods
	// resolvers are networks of one address each, of name servers that no selector matches:
	// node-local caches, and servers outside of the cluster.
	resolvers []string
	// everywhere is set if pods may connect to all addresses. These include the addresses of
	// other tenants' pods, whose own policies deny the connection.
	everywhere bool
	// networks are the addresses that pods may connect to if everywhere is not set.
	networks []string
	// never are networks of one address each that no pod may connect to, regardless of other
	// policies. The exception is the port of DNS at addresses that are also in resolvers.
	never []string
	// connections are the connections with other tenants to which both have agreed.
	connections []estate.Connection
}

// everyAddress has all addresses of each family.
var everyAddress = []string{"0.0.0.0/0", "::/0"}

// listMetadata returns the platform's metadata addresses as networks of one address each.
func listMetadata(p *estate.Platform) []string {
	return toNetworks(estate.ListMetadataAddresses(&p.Network))
}

// listResolvers returns the addresses of the platform's name servers as networks of one address
// each.
func listResolvers(p *estate.Platform) []string {
	return toNetworks(estate.ListResolvers(&p.PlatformSpec))
}

func toNetworks(addresses []netip.Addr) []string {
	var all []string
	for _, address := range addresses {
		all = append(all, netip.PrefixFrom(address, address.BitLen()).String())
	}
	return all
}

// filterByFamily returns the networks of the same address family.
func filterByFamily(all string, networks []string) []string {
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

func newTerms(p *estate.Platform, t *estate.Tenant) terms {
	all := terms{
		tenant:     t.Name,
		services:   p.Network.PlatformNamespaces,
		everywhere: t.Egress == v1alpha1.EgressOpen,
		dnsPods:    estate.ListDNSPods(&p.Network),
		resolvers:  listResolvers(p),
		never:      listMetadata(p),

		connections: t.Connections,
	}
	if !all.everywhere {
		all.networks = t.AllowCIDRs
	}
	return all
}

// filterByPort returns the DNS pods with the given port.
func filterByPort(port int32, pods []v1alpha1.DNSPods) []v1alpha1.DNSPods {
	return slices.DeleteFunc(slices.Clone(pods), func(p v1alpha1.DNSPods) bool { return p.Port != port })
}

// listDNSPorts returns the distinct ports of DNS pods.
func listDNSPorts(pods []v1alpha1.DNSPods) []int32 {
	var all []int32
	for _, p := range pods {
		all = append(all, p.Port)
	}
	return slices.Compact(all)
}

// findDNSAtMetadata returns the metadata addresses at which the platform serves DNS.
func (t terms) findDNSAtMetadata() []string {
	return slices.DeleteFunc(slices.Clone(t.never), func(n string) bool { return !slices.Contains(t.resolvers, n) })
}

// selectStrangers selects every namespace that belongs neither to the tenant nor to the platform's
// services: the namespaces of other tenants, and those outside of all tenants.
func (t terms) selectStrangers() *metav1.LabelSelector {
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
