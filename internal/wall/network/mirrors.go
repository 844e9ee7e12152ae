package network

import (
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/attack"
	"croft.dev/croft/internal/estate"
)

// mirrors are traffic and policies that look like attacks, and that tenants need.
func mirrors(p *estate.Platform, by *estate.Tenant) []attack.Attack {
	own := by.Namespaces[0]
	all := ownMirrors(by)
	for _, cidr := range by.AllowCIDRs[:min(1, len(by.AllowCIDRs))] {
		all = append(all,
			flow("call-allowed-network", "connect to a network that the tenant is allowed", attack.Flow{FromNamespace: own, ToIP: address(cidr), Port: 443}),
			letOut(own, "let-allowed-network-out", "write a NetworkPolicy that lets traffic out to a network that the tenant is allowed", "", block(cidr)))
	}
	switch by.Egress {
	case v1alpha1.EgressOpen:
		all = append(all, openMirrors(p, by)...)
	case v1alpha1.EgressRestricted:
		all = append(all, restrictedMirrors(by)...)
	}
	all = slices.Concat(all, platformMirrors(p, own), calicoMirrors(p, by), secondaryMirrors(p, by), []attack.Attack{
		attack.ByPlatform(letIn(own, "let-everybody-in-as-platform", "write a NetworkPolicy that lets everybody in")),
		attack.InNobodys(own, letIn(own, "free-networkpolicy", "write a NetworkPolicy that lets everybody in"), writing(networkingv1.GroupName)),
	})
	for i := range all {
		all[i].Kind, all[i].StoppedBy = attack.Mirror, attack.Stopper{}
	}
	return all
}

// ownMirrors are traffic among a tenant's own pods and to DNS, and policies for it.
func ownMirrors(by *estate.Tenant) []attack.Attack {
	own := by.Namespaces[0]
	return []attack.Attack{
		flow("call-own-pods", "connect to a pod of one's own tenant", attack.Flow{FromNamespace: own, ToNamespace: by.Namespaces[len(by.Namespaces)-1], Port: 8080}),
		flow("call-own-namespace", "connect to a pod of the same namespace", attack.Flow{FromNamespace: own, ToNamespace: own, Port: 8080}),
		flow("resolve-names", "ask the cluster's DNS", attack.Flow{
			FromNamespace: own, ToNamespace: metav1.NamespaceSystem, ToLabels: map[string]string{"k8s-app": "kube-dns"}, Port: 53, Protocol: "UDP",
		}),
		flow("resolve-names-over-tcp", "ask the cluster's DNS over TCP", attack.Flow{
			FromNamespace: own, ToNamespace: metav1.NamespaceSystem, ToLabels: map[string]string{"k8s-app": "kube-dns"}, Port: 53,
		}),
		letIn(own, "let-own-pods-in", "write a NetworkPolicy among one's own pods",
			networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
			networkingv1.NetworkPolicyPeer{NamespaceSelector: named(own)}),
		letIn(own, "let-own-tenant-in", "write a NetworkPolicy that lets all of one's own tenant in",
			networkingv1.NetworkPolicyPeer{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.TenantLabel: by.Name}}}),
		attack.Creating("let-nobody-in", "write a NetworkPolicy that lets nobody in", attack.Nobody, written(own, "let-nobody-in", []networkingv1.NetworkPolicyIngressRule{}, nil)),
		letOut(own, "let-own-pods-out", "write a NetworkPolicy that lets traffic out to one's own pods", "", networkingv1.NetworkPolicyPeer{PodSelector: matchAll()}),
	}
}

// openMirrors are ways out for a tenant whose egress is open.
func openMirrors(p *estate.Platform, by *estate.Tenant) []attack.Attack {
	own := by.Namespaces[0]
	mirrors := []attack.Attack{
		attack.Creating("let-names-be-resolved", "write a NetworkPolicy that lets names be resolved by pods of any namespace", attack.Nobody, written(own, "let-names-be-resolved", nil,
			[]networkingv1.NetworkPolicyEgressRule{{Ports: dnsPorts(), To: []networkingv1.NetworkPolicyPeer{{NamespaceSelector: matchAll()}}}})),
		flow("call-the-internet", "connect to an address outside the cluster", attack.Flow{FromNamespace: own, ToIP: "203.0.113.10", Port: 443}),
		flow("call-the-internet-ipv6", "connect to an address outside the cluster over IPv6", attack.Flow{FromNamespace: own, ToIP: "2001:db8::10", Port: 443}),
		letOut(own, "let-the-internet-out", "write a NetworkPolicy that lets traffic out everywhere but to the metadata address", "", block(everyAddress[0], within(everyAddress[0], metadata(p))...)),
	}
	return append(mirrors, metadataMirrors(p, by)...)
}

// restrictedMirrors are what a tenant can reach whose egress is restricted.
func restrictedMirrors(by *estate.Tenant) []attack.Attack {
	own := by.Namespaces[0]
	dns := attack.Flow{FromNamespace: own, ToNamespace: metav1.NamespaceSystem, ToLabels: dnsLabels, Port: dnsPort, Protocol: "UDP"}
	overTCP := dns
	overTCP.Protocol = "TCP"
	return []attack.Attack{
		flow("resolve-names-although-restricted", "ask the cluster's DNS, with Restricted egress", dns),
		flow("resolve-names-over-tcp-although-restricted", "ask the cluster's DNS over TCP, with Restricted egress", overTCP),
		flow("call-own-pods-although-restricted", "connect to a pod of one's own tenant, with Restricted egress",
			attack.Flow{FromNamespace: own, ToNamespace: by.Namespaces[len(by.Namespaces)-1], Port: 8080}),
	}
}

// platformMirrors are connections from the platform's services.
func platformMirrors(p *estate.Platform, own string) []attack.Attack {
	var mirrors []attack.Attack
	if services := p.Network.PlatformNamespaces; len(services) > 0 {
		mirrors = append(mirrors, attack.Attack{
			Name: "serve-every-tenant", Summary: "connect from the platform's services to every tenant of the cluster",
			Pairs: &attack.Pairs{From: services, Port: 8080, Protocol: "TCP"},
		})
	}
	for _, namespace := range p.Network.PlatformNamespaces {
		mirrors = append(mirrors, flow("be-called-by-"+namespace, "be connected to by the platform's services in "+namespace,
			attack.Flow{FromNamespace: namespace, ToNamespace: own, Port: 8080}))
	}
	return mirrors
}
