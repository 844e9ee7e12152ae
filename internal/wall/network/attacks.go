package network

import (
	"net/netip"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/attack"
	"croft.dev/croft/internal/estate"
)

// opens is the reason for the rules on tenants' own NetworkPolicies.
const opens = "NetworkPolicies only ever add up: one that opens undoes all that close"

// Attacks try to send traffic to forbidden destinations, and to write policies that would
// allow it.
func (Wall) Attacks(p *estate.Platform, by, on *estate.Tenant) []attack.Attack {
	attacks := slices.Concat(
		strangers(by.Namespaces[0], on.Namespaces[0]),
		attack.Because("the address hands the node's own credentials to whoever asks", []string{
			"https://docs.aws.amazon.com/eks/latest/best-practices/identity-and-access-management.html",
		}, metadataAttacks(p, by)...),
		openings(by, on),
		wideOpenings(by.Namespaces[0]),
	)
	if by.Egress == v1alpha1.EgressRestricted {
		attacks = append(attacks, pastRestriction(by.Namespaces[0])...)
	}
	attacks = append(attacks, attack.Attack{
		Name: "call-any-tenant", Kind: attack.Breach, Summary: "connect from any tenant of the cluster to any other, on any port",
		Pairs: &attack.Pairs{Protocol: "TCP"}, StoppedBy: attack.ByNetworkPolicy,
	})
	attacks = append(attacks, inDialect(p, by, on)...)
	attacks = append(attacks, bounds(p, by)...)
	attacks = append(attacks, secondaryAttacks(by, on)...)
	return append(attacks, mirrors(p, by)...)
}

// strangers are connections between tenants, and from outside of the cluster.
func strangers(own, other string) []attack.Attack {
	return attack.Because("one tenant's pods would be at the mercy of another's", nil,
		flow("call-other-tenant", "connect to a pod of another tenant", attack.Flow{FromNamespace: own, ToNamespace: other, Port: 8080}),
		flow("be-called-by-other-tenant", "be connected to from another tenant", attack.Flow{FromNamespace: other, ToNamespace: own, Port: 8080}),
		flow("be-called-from-unmanaged-namespace", "be connected to from a namespace that is nobody's", attack.Flow{FromNamespace: metav1.NamespaceDefault, ToNamespace: own, Port: 8080}),
		flow("be-called-from-outside", "be connected to from an address outside the cluster", attack.Flow{FromIP: "203.0.113.10", ToNamespace: own, Port: 8080}),
	)
}

// openings are NetworkPolicies that allow ingress from, or egress to, others.
func openings(by, on *estate.Tenant) []attack.Attack {
	own, other := by.Namespaces[0], on.Namespaces[0]
	letIn := func(name, summary string, from ...networkingv1.NetworkPolicyPeer) attack.Attack {
		return letIn(own, name, summary, from...)
	}
	return attack.Because(opens, nil,
		letIn("let-everybody-in", "write a NetworkPolicy that lets everybody in"),
		letIn("let-every-namespace-in", "write a NetworkPolicy that lets every namespace in", networkingv1.NetworkPolicyPeer{NamespaceSelector: matchAll()}),
		letIn("let-every-pod-in", "write a NetworkPolicy that lets some pods of every namespace in", networkingv1.NetworkPolicyPeer{
			NamespaceSelector: matchAll(), PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}),
		letIn("let-other-tenant-in", "write a NetworkPolicy that lets another tenant in", networkingv1.NetworkPolicyPeer{NamespaceSelector: named(other)}),
		letIn("let-other-tenant-in-by-label", "write a NetworkPolicy that lets another tenant in, by its tenant label", networkingv1.NetworkPolicyPeer{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.TenantLabel: on.Name}}}),
		letIn("let-other-tenant-in-among-own", "write a NetworkPolicy that lets another tenant in beside one's own namespace", expression(namespaceName, metav1.LabelSelectorOpIn, own, other)),
		letIn("let-all-but-one-in", "write a NetworkPolicy that lets every namespace but one in", expression(namespaceName, metav1.LabelSelectorOpNotIn, "kube-system")),
		letIn("let-every-tenant-in", "write a NetworkPolicy that lets in whatever is some tenant's", expression(v1alpha1.TenantLabel, metav1.LabelSelectorOpExists)),
		letIn("let-every-address-in", "write a NetworkPolicy that lets every address in", block("0.0.0.0/0")),
		letIn("let-one-address-in", "write a NetworkPolicy that lets one address in, which may be another tenant's pod", block(podAddress)),
		attack.Changing("open-own-policy", "let everybody in by changing a NetworkPolicy of one's own", attack.ByPolicy(FloorPolicy, IngressRule),
			written(own, "open-own-policy", []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{NamespaceSelector: named(own)}}}}, nil),
			func(np *networkingv1.NetworkPolicy) { np.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{}} }),
		attack.Changing("open-own-policy-out", "let traffic out to the metadata address by changing a NetworkPolicy of one's own", attack.ByPolicy(FloorPolicy, EgressAddressesRule),
			written(own, "open-own-policy-out", nil, []networkingv1.NetworkPolicyEgressRule{{To: []networkingv1.NetworkPolicyPeer{{NamespaceSelector: named(own)}}}}),
			func(np *networkingv1.NetworkPolicy) {
				np.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{To: []networkingv1.NetworkPolicyPeer{block("0.0.0.0/0")}}}
			}),
	)
}

// wideOpenings are NetworkPolicies that allow egress to every destination.
func wideOpenings(own string) []attack.Attack {
	toPorts := func(ports ...networkingv1.NetworkPolicyPort) []networkingv1.NetworkPolicyEgressRule {
		return []networkingv1.NetworkPolicyEgressRule{{Ports: ports}}
	}
	dnsOrMore := overDNS(estate.DNSPort)[0]
	dnsOrMore.EndPort = ptr.To[int32](80)
	return attack.Because(opens, nil,
		attack.Creating("let-ports-out", "write a NetworkPolicy that lets traffic out everywhere on a range of ports, from that of DNS on", attack.ByPolicy(FloorPolicy, EgressNamespacesRule),
			written(own, "let-ports-out", nil, toPorts(dnsOrMore))))
}

// pastRestriction are connections and policies of a tenant with Restricted egress.
func pastRestriction(own string) []attack.Attack {
	return attack.Because("a tenant that handles others' data sends it only where it was allowed to", nil,
		flow("call-the-internet-although-restricted", "connect to an address outside that was not allowed", attack.Flow{FromNamespace: own, ToIP: "203.0.113.10", Port: 443}),
		letOut(own, "let-unlisted-network-out", "write a NetworkPolicy that lets traffic out to a network that was not allowed", EgressAddressesRule, block("203.0.113.0/24")),
		letOut(own, "let-every-namespace-out", "write a NetworkPolicy that lets traffic out to every namespace", EgressNamespacesRule, networkingv1.NetworkPolicyPeer{NamespaceSelector: matchAll()}),
		letNamesBeResolved(own, "let-dns-pods-of-every-namespace-out", "write a NetworkPolicy for DNS that names DNS pods of every namespace", EgressNamespacesRule,
			overDNS(estate.DNSPort), dnsPeers(matchAll())),
		letNamesBeResolved(own, "let-every-system-pod-out", "write a NetworkPolicy for DNS that names every pod of kube-system", EgressNamespacesRule,
			overDNS(estate.DNSPort), networkingv1.NetworkPolicyPeer{NamespaceSelector: named(metav1.NamespaceSystem)}),
		letNamesBeResolved(own, "let-dns-pods-out-on-every-port", "write a NetworkPolicy that lets traffic out to DNS pods on every port", EgressNamespacesRule,
			nil, dnsPeers(named(metav1.NamespaceSystem))),
		letNamesBeResolved(own, "let-dns-pods-out-on-another-port", "write a NetworkPolicy that lets traffic out to DNS pods on another port", EgressNamespacesRule,
			append(overDNS(estate.DNSPort), overDNS(9153)...), dnsPeers(named(metav1.NamespaceSystem))),
		letNamesBeResolved(own, "let-unknown-name-server-out", "write a NetworkPolicy for DNS at an address that is no name server of the platform", EgressAddressesRule,
			overDNS(estate.DNSPort), block("203.0.113.53/32")),
		letNamesBeResolved(own, "let-name-server-out-on-every-port", "write a NetworkPolicy that lets traffic out to a name server on every port", EgressAddressesRule,
			nil, block(prefixOf(estate.NodeLocalDNS.String()))),
	)
}

// matchAll matches every namespace, or every pod.
func matchAll() *metav1.LabelSelector { return &metav1.LabelSelector{} }

// named matches a namespace by its name.
func named(namespace string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{namespaceName: namespace}}
}

// expression returns a peer whose namespaces match one requirement.
func expression(key string, op metav1.LabelSelectorOperator, values ...string) networkingv1.NetworkPolicyPeer {
	return networkingv1.NetworkPolicyPeer{NamespaceSelector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: op, Values: values}},
	}}
}

// letIn writes a NetworkPolicy that allows ingress from peers.
func letIn(own, name, summary string, from ...networkingv1.NetworkPolicyPeer) attack.Attack {
	return attack.Creating(name, summary, attack.ByPolicy(FloorPolicy, IngressRule),
		written(own, name, []networkingv1.NetworkPolicyIngressRule{{From: from}}, nil))
}

// letOut writes a NetworkPolicy that allows egress to peers.
func letOut(own, name, summary, rule string, to ...networkingv1.NetworkPolicyPeer) attack.Attack {
	return attack.Creating(name, summary, attack.ByPolicy(FloorPolicy, rule),
		written(own, name, nil, []networkingv1.NetworkPolicyEgressRule{{To: to}}))
}

func flow(name, summary string, f attack.Flow) attack.Attack {
	if f.Protocol == "" {
		f.Protocol = "TCP"
	}
	return attack.Attack{Name: name, Kind: attack.Breach, Summary: summary, Flow: &f, StoppedBy: attack.ByNetworkPolicy}
}

// writing returns permission to write network policies of an API group.
func writing(group string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{"networkpolicies"}, Verbs: []string{"create"}}
}

func written(namespace, name string, in []networkingv1.NetworkPolicyIngressRule, out []networkingv1.NetworkPolicyEgressRule) *networkingv1.NetworkPolicy {
	np := policy("croft-"+name, in, out)
	np.Namespace = namespace
	return np
}

// podAddress is in a range that clusters assign to pods.
const podAddress = "10.244.7.7/32"

func address(cidr string) string { return netip.MustParsePrefix(cidr).Addr().String() }

// prefixOf returns the network that contains only the given address.
func prefixOf(ip string) string {
	address := netip.MustParseAddr(ip)
	return netip.PrefixFrom(address, address.BitLen()).String()
}
