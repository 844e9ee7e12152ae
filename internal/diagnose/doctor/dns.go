package doctor

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// dnsLabels select the cluster's DNS Service, whose name varies.
var dnsLabels = client.MatchingLabels{"k8s-app": "kube-dns"}

// mapResolvers maps the DNS addresses that nodes of croft's pools give to pods to the pools.
// Link-local addresses belong to a cache on the node, which has no Service.
func (s *Snapshot) mapResolvers() map[string][]string {
	all := map[string][]string{}
	if s.Estate == nil {
		return all
	}
	for _, pool := range s.Estate.Pools {
		if pool.Class.AWS == nil || pool.Class.AWS.Kubelet == nil {
			continue
		}
		for _, address := range pool.Class.AWS.Kubelet.ClusterDNS {
			if ip, err := netip.ParseAddr(address); err == nil && !ip.IsLinkLocalUnicast() {
				all[address] = append(all[address], pool.Name)
			}
		}
	}
	return all
}

// gatherDNS reads the Services at the addresses of the nodes' resolvers, and the cluster's own
// DNS Services.
func (g *gatherer) gatherDNS(ctx context.Context) {
	addresses := g.mapResolvers()
	if len(addresses) == 0 {
		return
	}
	reads := [][]client.ListOption{{client.InNamespace(metav1.NamespaceSystem), dnsLabels}}
	for _, address := range sortKeys(addresses) {
		reads = append(reads, []client.ListOption{client.MatchingFields{"spec.clusterIP": address}})
	}
	for _, options := range reads {
		var services corev1.ServiceList
		g.ReadList(ctx, readServices, &services, options...)
		g.DNS = append(g.DNS, dropDeleted(services.Items)...)
	}
}

// checkDNS reports resolvers that are not the address of a DNS Service.
func checkDNS(s *Snapshot) []Finding {
	var all []Finding
	addresses := s.mapResolvers()
	for _, address := range sortKeys(addresses) {
		if slices.ContainsFunc(s.DNS, func(service corev1.Service) bool { return answersDNS(&service, address) }) {
			continue
		}
		f := Finding{
			Severity: Warning, Object: "Platform/default",
			Message: fmt.Sprintf("nodes of %s point pods to %s for DNS, and no Service with port 53 has that address", formatSome(addresses[address]), address),
			Cause:   "pods there cannot resolve names, unless a server outside of the cluster responds at that address",
			Fix:     "set `platform.clusterDNS` to the address of the cluster's DNS Service, or remove it: Karpenter finds the address",
			Run:     "kubectl -n kube-system get services -l k8s-app=kube-dns",
		}
		if addresses := s.listDNSAddresses(); len(addresses) > 0 {
			f.Severity = Problem
			f.Message += "; the cluster's own is at " + formatSome(addresses)
		}
		all = append(all, f)
	}
	return all
}

// answersDNS reports whether a Service accepts DNS requests at an address.
func answersDNS(service *corev1.Service, address string) bool {
	return slices.Contains(append(service.Spec.ClusterIPs, service.Spec.ClusterIP), address) &&
		slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == 53 })
}

// listDNSAddresses returns the addresses of the cluster's own DNS Services.
func (s *Snapshot) listDNSAddresses() []string {
	var all []string
	for i := range s.DNS {
		if s.DNS[i].Labels["k8s-app"] == dnsLabels["k8s-app"] && s.DNS[i].Spec.ClusterIP != corev1.ClusterIPNone {
			all = append(all, s.DNS[i].Spec.ClusterIP)
		}
	}
	return sortUnique(all)
}
