package network

import (
	"net/netip"

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

// metadata are the addresses at which a cloud hands its credentials to whoever
// asks from an instance. Amazon's serves IPv6 too; the others share the first.
var metadata = []string{"169.254.169.254/32", "fd00:ec2::254/128"}

// everyAddress is what the addresses of metadata are left out of, in their order.
var everyAddress = []string{"0.0.0.0/0", "::/0"}

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
		never:      metadata,
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
