package network

import (
	"net/netip"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/attack"
)

// opens is the reason for the rules on tenants' own NetworkPolicies.
const opens = "NetworkPolicies add up: one that allows a connection overrides all that do not"

// Attacks try to send traffic to forbidden destinations, and to write policies that would
// allow it.
func (Wall) Attacks(p *estate.Platform, by, on *estate.Tenant) []attack.Attack {
	attacks := slices.Concat(
		buildStrangerAttacks(by, on),
		attack.WithReason("the address gives the node's own credentials to every client", []string{
			"https://docs.aws.amazon.com/eks/latest/best-practices/identity-and-access-management.html",
		}, buildMetadataAttacks(p, by)...),
		buildOpeningAttacks(by, on),
		buildWideOpeningAttacks(by.Namespaces[0]),
	)
	if by.Egress == v1alpha1.EgressRestricted {
		attacks = append(attacks, buildRestrictionAttacks(by.Namespaces[0])...)
	}
	attacks = append(attacks, attack.Attack{
		Name: "call-any-tenant", Kind: attack.Breach, Summary: "connect from any tenant of the cluster to any other, on any port",
		Pairs: &attack.Pairs{Protocol: "TCP", Agreed: ListAgreements(p)}, StoppedBy: attack.ByNetworkPolicy,
	})
	attacks = append(attacks, buildDialectAttacks(p, by, on)...)
	attacks = append(attacks, buildBoundsAttacks(p, by)...)
	attacks = append(attacks, buildAgreedAttacks(by, on)...)
	attacks = append(attacks, buildAcceptedAttacks(by, on)...)
	attacks = append(attacks, buildSecondaryAttacks(by, on)...)
	return append(attacks, buildMirrors(p, by)...)
}

// buildStrangerAttacks are connections between tenants, and from outside of the cluster.
func buildStrangerAttacks(by, on *estate.Tenant) []attack.Attack {
	own, other := by.Namespaces[0], on.Namespaces[0]
	return attack.WithReason("one tenant's pods could attack another tenant's pods", nil, dropWithoutPort([]attack.Attack{
		makeFlow("call-other-tenant", "connect to a pod of another tenant", attack.Flow{FromNamespace: own, ToNamespace: other, Port: findClosedPort(listOpen(by, by.Name, on.Name, other))}),
		makeFlow("be-called-by-other-tenant", "receive a connection from another tenant", attack.Flow{FromNamespace: other, ToNamespace: own, Port: findClosedPort(listOpen(by, on.Name, by.Name, own))}),
		makeFlow("be-called-from-unmanaged-namespace", "receive a connection from a namespace without a tenant", attack.Flow{FromNamespace: metav1.NamespaceDefault, ToNamespace: own, Port: 8080}),
		makeFlow("be-called-from-outside", "receive a connection from an address outside the cluster", attack.Flow{FromIP: "203.0.113.10", ToNamespace: own, Port: 8080}),
	})...)
}

// dropWithoutPort leaves out connections for which there is no port, since two tenants agreed on
// all of them.
func dropWithoutPort(all []attack.Attack) []attack.Attack {
	return slices.DeleteFunc(all, func(a attack.Attack) bool { return a.Flow != nil && a.Flow.Port == 0 })
}

// buildOpeningAttacks are NetworkPolicies that allow ingress from, or egress to, others.
func buildOpeningAttacks(by, on *estate.Tenant) []attack.Attack {
	own, other := by.Namespaces[0], on.Namespaces[0]
	letIn := func(name, summary string, from ...networkingv1.NetworkPolicyPeer) attack.Attack {
		return allowIngress(own, name, summary, from...)
	}
	return attack.WithReason(opens, nil,
		letIn("let-everybody-in", "write a NetworkPolicy that lets everybody in"),
		letIn("let-every-namespace-in", "write a NetworkPolicy that lets every namespace in", networkingv1.NetworkPolicyPeer{NamespaceSelector: selectAll()}),
		letIn("let-every-pod-in", "write a NetworkPolicy that lets some pods of every namespace in", networkingv1.NetworkPolicyPeer{
			NamespaceSelector: selectAll(), PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}),
		letIn("let-other-tenant-in", "write a NetworkPolicy that lets another tenant in", networkingv1.NetworkPolicyPeer{NamespaceSelector: selectNamespace(other)}),
		letIn("let-other-tenant-in-by-label", "write a NetworkPolicy that lets another tenant in, by its tenant label", networkingv1.NetworkPolicyPeer{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.TenantLabel: on.Name}}}),
		letIn("let-other-tenant-in-among-own", "write a NetworkPolicy that lets another tenant in, together with one's own namespace", makeSelectorPeer(namespaceName, metav1.LabelSelectorOpIn, own, other)),
		letIn("let-all-but-one-in", "write a NetworkPolicy that lets every namespace but one in", makeSelectorPeer(namespaceName, metav1.LabelSelectorOpNotIn, "kube-system")),
		letIn("let-every-tenant-in", "write a NetworkPolicy that lets in every namespace of a tenant", makeSelectorPeer(v1alpha1.TenantLabel, metav1.LabelSelectorOpExists)),
		letIn("let-every-address-in", "write a NetworkPolicy that lets every address in", makeBlock("0.0.0.0/0")),
		letIn("let-one-address-in", "write a NetworkPolicy that lets one address in, which may be another tenant's pod", makeBlock(podAddress)),
		attack.NewUpdate("open-own-policy", "let everybody in by changing a NetworkPolicy of one's own", attack.ByPolicy(FloorPolicy, IngressRule),
			makeOwnPolicy(own, "open-own-policy", []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{NamespaceSelector: selectNamespace(own)}}}}, nil),
			func(np *networkingv1.NetworkPolicy) { np.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{}} }),
		attack.NewUpdate("open-own-policy-out", "let traffic out to the metadata address by changing a NetworkPolicy of one's own", attack.ByPolicy(FloorPolicy, EgressAddressesRule),
			makeOwnPolicy(own, "open-own-policy-out", nil, []networkingv1.NetworkPolicyEgressRule{{To: []networkingv1.NetworkPolicyPeer{{NamespaceSelector: selectNamespace(own)}}}}),
			func(np *networkingv1.NetworkPolicy) {
				np.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{To: []networkingv1.NetworkPolicyPeer{makeBlock("0.0.0.0/0")}}}
			}),
	)
}

// buildWideOpeningAttacks are NetworkPolicies that allow egress to every destination.
func buildWideOpeningAttacks(own string) []attack.Attack {
	toPorts := func(ports ...networkingv1.NetworkPolicyPort) []networkingv1.NetworkPolicyEgressRule {
		return []networkingv1.NetworkPolicyEgressRule{{Ports: ports}}
	}
	dnsOrMore := makeDNSPorts(estate.DNSPort)[0]
	dnsOrMore.EndPort = ptr.To[int32](80)
	return attack.WithReason(opens, nil,
		attack.NewCreate("let-ports-out", "write a NetworkPolicy that lets traffic out everywhere on a range of ports that begins with the port of DNS", attack.ByPolicy(FloorPolicy, EgressNamespacesRule),
			makeOwnPolicy(own, "let-ports-out", nil, toPorts(dnsOrMore))))
}

// buildRestrictionAttacks are connections and policies of a tenant with Restricted egress.
func buildRestrictionAttacks(own string) []attack.Attack {
	return attack.WithReason("a tenant that handles data of others may send it only to allowed destinations", nil,
		makeFlow("call-the-internet-although-restricted", "connect to an address outside the cluster that is not allowed", attack.Flow{FromNamespace: own, ToIP: "203.0.113.10", Port: 443}),
		allowEgress(own, "let-unlisted-network-out", "write a NetworkPolicy that lets traffic out to a network that is not allowed", EgressAddressesRule, makeBlock("203.0.113.0/24")),
		allowEgress(own, "let-every-namespace-out", "write a NetworkPolicy that lets traffic out to every namespace", EgressNamespacesRule, networkingv1.NetworkPolicyPeer{NamespaceSelector: selectAll()}),
		allowResolving(own, "let-dns-pods-of-every-namespace-out", "write a NetworkPolicy for DNS that names DNS pods of every namespace", EgressNamespacesRule,
			makeDNSPorts(estate.DNSPort), selectDNSPods(selectAll())),
		allowResolving(own, "let-every-system-pod-out", "write a NetworkPolicy for DNS that names every pod of kube-system", EgressNamespacesRule,
			makeDNSPorts(estate.DNSPort), networkingv1.NetworkPolicyPeer{NamespaceSelector: selectNamespace(metav1.NamespaceSystem)}),
		allowResolving(own, "let-dns-pods-out-on-every-port", "write a NetworkPolicy that lets traffic out to DNS pods on every port", EgressNamespacesRule,
			nil, selectDNSPods(selectNamespace(metav1.NamespaceSystem))),
		allowResolving(own, "let-dns-pods-out-on-another-port", "write a NetworkPolicy that lets traffic out to DNS pods on another port", EgressNamespacesRule,
			append(makeDNSPorts(estate.DNSPort), makeDNSPorts(9153)...), selectDNSPods(selectNamespace(metav1.NamespaceSystem))),
		allowResolving(own, "let-unknown-name-server-out", "write a NetworkPolicy for DNS at an address that is no name server of the platform", EgressAddressesRule,
			makeDNSPorts(estate.DNSPort), makeBlock("203.0.113.53/32")),
		allowResolving(own, "let-name-server-out-on-every-port", "write a NetworkPolicy that lets traffic out to a name server on every port", EgressAddressesRule,
			nil, makeBlock(formatPrefix(estate.NodeLocalDNS.String()))),
	)
}

// selectAll matches every namespace, or every pod.
func selectAll() *metav1.LabelSelector { return &metav1.LabelSelector{} }

// selectNamespace matches a namespace by its name.
func selectNamespace(namespace string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{namespaceName: namespace}}
}

// makeSelectorPeer returns a peer whose namespaces match one requirement.
func makeSelectorPeer(key string, op metav1.LabelSelectorOperator, values ...string) networkingv1.NetworkPolicyPeer {
	return networkingv1.NetworkPolicyPeer{NamespaceSelector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: op, Values: values}},
	}}
}

// allowIngress writes a NetworkPolicy that allows ingress from peers.
func allowIngress(own, name, summary string, from ...networkingv1.NetworkPolicyPeer) attack.Attack {
	return attack.NewCreate(name, summary, attack.ByPolicy(FloorPolicy, IngressRule),
		makeOwnPolicy(own, name, []networkingv1.NetworkPolicyIngressRule{{From: from}}, nil))
}

// allowEgress writes a NetworkPolicy that allows egress to peers.
func allowEgress(own, name, summary, rule string, to ...networkingv1.NetworkPolicyPeer) attack.Attack {
	return attack.NewCreate(name, summary, attack.ByPolicy(FloorPolicy, rule),
		makeOwnPolicy(own, name, nil, []networkingv1.NetworkPolicyEgressRule{{To: to}}))
}

func makeFlow(name, summary string, f attack.Flow) attack.Attack {
	if f.Protocol == "" {
		f.Protocol = "TCP"
	}
	return attack.Attack{Name: name, Kind: attack.Breach, Summary: summary, Flow: &f, StoppedBy: attack.ByNetworkPolicy}
}

// permitWriting returns permission to write network policies of an API group.
func permitWriting(group string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{"networkpolicies"}, Verbs: []string{"create"}}
}

func makeOwnPolicy(namespace, name string, in []networkingv1.NetworkPolicyIngressRule, out []networkingv1.NetworkPolicyEgressRule) *networkingv1.NetworkPolicy {
	np := buildNetworkPolicy("croft-"+name, in, out)
	np.Namespace = namespace
	return np
}

// podAddress is in a range that clusters assign to pods.
const podAddress = "10.244.7.7/32"

func formatAddress(cidr string) string { return netip.MustParsePrefix(cidr).Addr().String() }

// formatPrefix returns the network that contains only the given address.
func formatPrefix(ip string) string {
	address := netip.MustParseAddr(ip)
	return netip.PrefixFrom(address, address.BitLen()).String()
}
