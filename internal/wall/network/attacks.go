package network

import (
	"net/netip"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/attack"
	"croft.dev/croft/internal/estate"
)

// Attacks try to send traffic where it must not go, and to write policies that
// would let it.
func (Wall) Attacks(p *estate.Platform, by, on *estate.Tenant) []attack.Attack {
	own, other := by.Namespaces[0], on.Namespaces[0]
	everybody := &metav1.LabelSelector{}
	named := func(namespace string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{namespaceName: namespace}}
	}
	letIn := func(name, summary string, from ...networkingv1.NetworkPolicyPeer) attack.Attack {
		a := write(own, name, summary, []networkingv1.NetworkPolicyIngressRule{{From: from}}, nil)
		a.StoppedBy = attack.ByPolicy(FloorPolicy, IngressRule)
		return a
	}
	letOut := func(name, summary, rule string, to ...networkingv1.NetworkPolicyPeer) attack.Attack {
		a := write(own, name, summary, nil, []networkingv1.NetworkPolicyEgressRule{{To: to}})
		a.StoppedBy = attack.ByPolicy(FloorPolicy, rule)
		return a
	}
	attacks := []attack.Attack{
		flow("call-other-tenant", "connect to a pod of another tenant", attack.Flow{FromNamespace: own, ToNamespace: other, Port: 8080}),
		flow("be-called-by-other-tenant", "be connected to from another tenant", attack.Flow{FromNamespace: other, ToNamespace: own, Port: 8080}),
		flow("ask-instance-metadata", "ask the instance metadata address for credentials", attack.Flow{FromNamespace: own, ToIP: address(metadata[0]), Port: 80}),
		flow("ask-instance-metadata-ipv6", "ask the instance metadata address over IPv6", attack.Flow{FromNamespace: own, ToIP: address(metadata[1]), Port: 80}),
		letIn("let-everybody-in", "write a NetworkPolicy that lets everybody in"),
		letIn("let-every-namespace-in", "write a NetworkPolicy that lets every namespace in", networkingv1.NetworkPolicyPeer{NamespaceSelector: everybody}),
		letIn("let-other-tenant-in", "write a NetworkPolicy that lets another tenant in", networkingv1.NetworkPolicyPeer{NamespaceSelector: named(other)}),
		letIn("let-every-address-in", "write a NetworkPolicy that lets every address in", block("0.0.0.0/0")),
		letOut("let-everything-out", "write a NetworkPolicy that lets traffic out everywhere", EgressNamespacesRule),
		letOut("let-metadata-out", "write a NetworkPolicy that lets traffic out to the metadata address", EgressAddressesRule, block("0.0.0.0/0")),
		letOut("let-metadata-out-ipv6", "write a NetworkPolicy that lets traffic out to the metadata address over IPv6", EgressAddressesRule, block(metadata[1])),
	}
	attacks = append(attacks, attack.Attack{
		Name: "call-any-tenant", Kind: attack.Breach, Summary: "connect from any tenant of the cluster to any other, on any port",
		Pairs: &attack.Pairs{Protocol: "TCP"}, StoppedBy: attack.ByNetworkPolicy,
	})
	mirrors := []attack.Attack{
		flow("call-own-pods", "connect to a pod of one's own tenant", attack.Flow{FromNamespace: own, ToNamespace: by.Namespaces[len(by.Namespaces)-1], Port: 8080}),
		flow("resolve-names", "ask the cluster's DNS", attack.Flow{
			FromNamespace: own, ToNamespace: metav1.NamespaceSystem, ToLabels: map[string]string{"k8s-app": "kube-dns"}, Port: 53, Protocol: "UDP",
		}),
		letIn("let-own-pods-in", "write a NetworkPolicy among one's own pods",
			networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
			networkingv1.NetworkPolicyPeer{NamespaceSelector: named(own)}),
	}
	if by.Egress == v1alpha1.EgressOpen {
		mirrors = append(mirrors,
			flow("call-the-internet", "connect to an address outside the cluster", attack.Flow{FromNamespace: own, ToIP: "203.0.113.10", Port: 443}),
			letOut("let-the-internet-out", "write a NetworkPolicy that lets traffic out everywhere but to the metadata address", "", block("0.0.0.0/0", metadata[0])))
	}
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
	for i := range mirrors {
		mirrors[i].Kind, mirrors[i].StoppedBy = attack.Mirror, attack.Stopper{}
	}
	return append(attacks, mirrors...)
}

func flow(name, summary string, f attack.Flow) attack.Attack {
	if f.Protocol == "" {
		f.Protocol = "TCP"
	}
	return attack.Attack{Name: name, Kind: attack.Breach, Summary: summary, Flow: &f, StoppedBy: attack.ByNetworkPolicy}
}

func write(namespace, name, summary string, in []networkingv1.NetworkPolicyIngressRule, out []networkingv1.NetworkPolicyEgressRule) attack.Attack {
	np := policy("croft-"+name, in, out)
	np.Namespace = namespace
	return attack.Attack{
		Name: name, Kind: attack.Breach, Summary: summary,
		Request: &attack.Request{Verb: attack.Create, Object: np},
	}
}

func address(cidr string) string { return netip.MustParsePrefix(cidr).Addr().String() }
