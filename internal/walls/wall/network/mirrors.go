package network

import (
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/attack"
)

// buildMirrors are traffic and policies that resemble attacks but that tenants need.
func buildMirrors(p *estate.Platform, by *estate.Tenant) []attack.Attack {
	own := by.Namespaces[0]
	all := append(buildOwnMirrors(by), buildResolvingMirrors(p, own, "", "")...)
	for _, cidr := range by.AllowCIDRs[:min(1, len(by.AllowCIDRs))] {
		all = append(all,
			makeFlow("call-allowed-network", "connect to a network that the tenant is allowed", attack.Flow{FromNamespace: own, ToIP: formatAddress(cidr), Port: 443}),
			allowEgress(own, "let-allowed-network-out", "write a NetworkPolicy that lets traffic out to a network that the tenant is allowed", "", makeBlock(cidr)))
	}
	switch by.Egress {
	case v1alpha1.EgressOpen:
		all = append(all, buildOpenMirrors(p, by)...)
	case v1alpha1.EgressRestricted:
		all = append(all, buildRestrictedMirrors(p, by)...)
	}
	all = slices.Concat(all, buildPlatformMirrors(p, own), buildCalicoMirrors(p, by), buildSecondaryMirrors(p, by), []attack.Attack{
		attack.SendAsAdmin(allowIngress(own, "let-everybody-in-as-platform", "write a NetworkPolicy that lets everybody in")),
		attack.SendOutsideTenants(own, allowIngress(own, "free-networkpolicy", "write a NetworkPolicy that lets everybody in"), permitWriting(networkingv1.GroupName)),
	})
	for i := range all {
		all[i].Kind, all[i].StoppedBy = attack.Mirror, attack.Stopper{}
	}
	return all
}

// buildOwnMirrors are traffic among a tenant's own pods, and policies for it.
func buildOwnMirrors(by *estate.Tenant) []attack.Attack {
	own := by.Namespaces[0]
	return []attack.Attack{
		makeFlow("call-own-pods", "connect to a pod of one's own tenant", attack.Flow{FromNamespace: own, ToNamespace: by.Namespaces[len(by.Namespaces)-1], Port: 8080}),
		makeFlow("call-own-namespace", "connect to a pod of the same namespace", attack.Flow{FromNamespace: own, ToNamespace: own, Port: 8080}),
		allowIngress(own, "let-own-pods-in", "write a NetworkPolicy among one's own pods",
			networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
			networkingv1.NetworkPolicyPeer{NamespaceSelector: selectNamespace(own)}),
		allowIngress(own, "let-own-tenant-in", "write a NetworkPolicy that lets all of one's own tenant in",
			networkingv1.NetworkPolicyPeer{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.TenantLabel: by.Name}}}),
		attack.NewCreate("let-nobody-in", "write a NetworkPolicy that lets nobody in", attack.Nobody, makeOwnPolicy(own, "let-nobody-in", []networkingv1.NetworkPolicyIngressRule{}, nil)),
		allowEgress(own, "let-own-pods-out", "write a NetworkPolicy that lets traffic out to one's own pods", "", networkingv1.NetworkPolicyPeer{PodSelector: selectAll()}),
	}
}

// buildOpenMirrors are connections and policies of a tenant with Open egress.
func buildOpenMirrors(p *estate.Platform, by *estate.Tenant) []attack.Attack {
	own := by.Namespaces[0]
	mirrors := []attack.Attack{
		attack.NewCreate("let-names-be-resolved", "write a NetworkPolicy that lets names be resolved by pods of any namespace", attack.Nobody, makeOwnPolicy(own, "let-names-be-resolved", nil,
			[]networkingv1.NetworkPolicyEgressRule{{Ports: makeDNSPorts(estate.DNSPort), To: []networkingv1.NetworkPolicyPeer{{NamespaceSelector: selectAll()}}}})),
		makeFlow("call-the-internet", "connect to an address outside the cluster", attack.Flow{FromNamespace: own, ToIP: "203.0.113.10", Port: 443}),
		makeFlow("call-the-internet-ipv6", "connect to an address outside the cluster over IPv6", attack.Flow{FromNamespace: own, ToIP: "2001:db8::10", Port: 443}),
		allowEgress(own, "let-the-internet-out", "write a NetworkPolicy that lets traffic out everywhere but to the metadata address", "", makeBlock(everyAddress[0], filterByFamily(everyAddress[0], listMetadata(p))...)),
	}
	return append(mirrors, buildMetadataMirrors(p, by)...)
}

// buildResolvingMirrors queries each DNS pod and each name server of the platform, over both protocols.
// suffix and though are appended to the names and summaries.
func buildResolvingMirrors(p *estate.Platform, own, suffix, though string) []attack.Attack {
	var all []attack.Attack
	ask := func(name, whom string, f attack.Flow) {
		f.FromNamespace = own
		for _, protocol := range dnsProtocols {
			f.Protocol = string(protocol)
			over := strings.ToLower(f.Protocol)
			all = append(all, makeFlow(name+"-over-"+over+suffix, "ask "+whom+" for names over "+f.Protocol+though, f))
		}
	}
	for i, pods := range estate.ListDNSPods(&p.Network) {
		ask(fmt.Sprintf("resolve-names-at-dns-pods-%d", i+1), fmt.Sprintf("the DNS pods of %s on port %d", pods.Namespace, pods.Port),
			attack.Flow{ToNamespace: pods.Namespace, ToLabels: pods.Labels, Port: int(pods.Port)})
	}
	for _, cidr := range listResolvers(p) {
		ip := formatAddress(cidr)
		ask("resolve-names-at-"+hyphens.Replace(ip), "the name server "+ip, attack.Flow{ToIP: ip, Port: estate.DNSPort})
	}
	return all
}

// allowResolving writes a NetworkPolicy with a rule for DNS in the form that charts use.
func allowResolving(own, name, summary, rule string, ports []networkingv1.NetworkPolicyPort, to ...networkingv1.NetworkPolicyPeer) attack.Attack {
	return attack.NewCreate(name, summary, attack.ByPolicy(FloorPolicy, rule),
		makeOwnPolicy(own, name, nil, []networkingv1.NetworkPolicyEgressRule{{Ports: ports, To: to}}))
}

// selectDNSPods returns the peer by which charts select DNS pods.
func selectDNSPods(namespaces *metav1.LabelSelector) networkingv1.NetworkPolicyPeer {
	return networkingv1.NetworkPolicyPeer{NamespaceSelector: namespaces, PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"k8s-app": "kube-dns"}}}
}

// buildRestrictedMirrors are connections and policies of a tenant with Restricted egress.
func buildRestrictedMirrors(p *estate.Platform, by *estate.Tenant) []attack.Attack {
	own := by.Namespaces[0]
	all := []attack.Attack{
		makeFlow("call-own-pods-although-restricted", "connect to a pod of one's own tenant, with Restricted egress",
			attack.Flow{FromNamespace: own, ToNamespace: by.Namespaces[len(by.Namespaces)-1], Port: 8080}),
		allowResolving(own, "let-names-be-resolved-although-restricted", "write a NetworkPolicy for DNS as charts have it, with Restricted egress", "",
			makeDNSPorts(estate.DNSPort), selectDNSPods(selectNamespace(metav1.NamespaceSystem))),
	}
	for _, cidr := range listResolvers(p) {
		name := "let-names-be-resolved-at-" + hyphens.Replace(formatAddress(cidr))
		all = append(all, allowResolving(own, name, "write a NetworkPolicy for DNS at "+formatAddress(cidr)+", with Restricted egress", "", makeDNSPorts(estate.DNSPort), makeBlock(cidr)))
	}
	return append(all, buildResolvingMirrors(p, own, "-although-restricted", ", with Restricted egress")...)
}

// buildPlatformMirrors are connections from the platform's services.
func buildPlatformMirrors(p *estate.Platform, own string) []attack.Attack {
	var mirrors []attack.Attack
	if services := p.Network.PlatformNamespaces; len(services) > 0 {
		mirrors = append(mirrors, attack.Attack{
			Name: "serve-every-tenant", Summary: "connect from the platform's services to every tenant of the cluster",
			Pairs: &attack.Pairs{From: services, Port: 8080, Protocol: "TCP"},
		})
	}
	for _, namespace := range p.Network.PlatformNamespaces {
		mirrors = append(mirrors, makeFlow("be-called-by-"+namespace, "receive a connection from the platform's services in "+namespace,
			attack.Flow{FromNamespace: namespace, ToNamespace: own, Port: 8080}))
	}
	return mirrors
}
