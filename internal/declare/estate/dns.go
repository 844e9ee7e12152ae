package estate

import (
	"cmp"
	"net/netip"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
)

// DNSPort is the port of name servers at an address, and of most DNS pods.
const DNSPort = 53

// NodeLocalDNS is the usual address of NodeLocal DNSCache on each node.
var NodeLocalDNS = netip.MustParseAddr("169.254.20.10")

// usualDNSPods are the DNS pods of the platforms that croft supports. Network plugins compare
// the port of the pod, which is not always 53. With Cilium and GKE's Dataplane V2,
// node-local-dns runs in the pod network, as separate pods.
var usualDNSPods = []v1alpha1.DNSPods{
	{Namespace: metav1.NamespaceSystem, Labels: map[string]string{"k8s-app": "kube-dns"}, Port: DNSPort},
	{Namespace: metav1.NamespaceSystem, Labels: map[string]string{"k8s-app": "node-local-dns"}, Port: DNSPort},
	{Namespace: metav1.NamespaceSystem, Labels: map[string]string{"k8s-app": "kube-dns"}, Port: 8053}, // Gardener
	{Namespace: "openshift-dns", Labels: map[string]string{"dns.operator.openshift.io/daemonset-dns": "default"}, Port: 5353},
}

// ListDNSPods returns the pods that resolve names: the usual ones and the platform's own, ordered
// by port.
func ListDNSPods(n *v1alpha1.PlatformNetwork) []v1alpha1.DNSPods {
	all := slices.Clone(usualDNSPods)
	for _, pods := range n.DNSPods {
		pods.Port = cmp.Or(pods.Port, DNSPort)
		all = append(all, pods)
	}
	slices.SortStableFunc(all, func(a, b v1alpha1.DNSPods) int { return cmp.Compare(a.Port, b.Port) })
	return all
}

// ListResolvers returns the addresses that resolve names in addition to the DNS pods: the
// platform's clusterDNS and the address of NodeLocal DNSCache. It skips invalid addresses.
func ListResolvers(p *v1alpha1.PlatformSpec) []netip.Addr {
	var all []netip.Addr
	add := func(address netip.Addr) {
		if !slices.Contains(all, address) {
			all = append(all, address)
		}
	}
	for _, name := range p.ClusterDNS {
		if address, err := netip.ParseAddr(name); err == nil {
			add(address.Unmap())
		}
	}
	add(NodeLocalDNS)
	return all
}
