package network

import (
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/estate"
)

// The names of the policies in every tenant namespace. NetworkPolicies are additive: traffic
// that none of them allows is denied.
const (
	// IsolationPolicy selects every pod for both directions, which denies all traffic, and
	// allows traffic within the tenant.
	IsolationPolicy = "croft-isolation"
	// DNSPolicy allows DNS.
	DNSPolicy = "croft-dns"
	// PlatformPolicy allows ingress from platform services, such as ingress controllers.
	PlatformPolicy = "croft-platform"
	// EgressPolicy allows egress to all addresses except the metadata addresses, or, for a
	// tenant with Restricted egress, to the granted networks.
	EgressPolicy = "croft-egress"
)

// buildNetworkPolicies writes the terms as NetworkPolicies.
func (t terms) buildNetworkPolicies(namespace string) []client.Object {
	own := []networkingv1.NetworkPolicyPeer{makeTenantPeer(t.tenant, nil)}
	all := []*networkingv1.NetworkPolicy{
		buildNetworkPolicy(IsolationPolicy,
			[]networkingv1.NetworkPolicyIngressRule{{From: own}},
			[]networkingv1.NetworkPolicyEgressRule{{To: own}}),
		buildNetworkPolicy(DNSPolicy, nil, t.buildDNSRules()),
	}
	if len(t.services) > 0 {
		all = append(all, buildNetworkPolicy(PlatformPolicy, []networkingv1.NetworkPolicyIngressRule{{
			From: []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{
					Key: namespaceName, Operator: metav1.LabelSelectorOpIn, Values: t.services,
				}},
			}}},
		}}, nil))
	}
	if to := t.listOutsidePeers(); len(to) > 0 {
		all = append(all, buildNetworkPolicy(EgressPolicy, nil, []networkingv1.NetworkPolicyEgressRule{{To: to}}))
	}
	all = append(all, t.buildAgreedPolicies(namespace)...)
	objects := make([]client.Object, len(all))
	for i, np := range all {
		np.Namespace = namespace
		objects[i] = np
	}
	return objects
}

// buildNetworkPolicy selects every pod, for the directions that it has rules for.
func buildNetworkPolicy(
	name string, in []networkingv1.NetworkPolicyIngressRule, out []networkingv1.NetworkPolicyEgressRule,
) *networkingv1.NetworkPolicy {
	np := &networkingv1.NetworkPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: "NetworkPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       networkingv1.NetworkPolicySpec{Ingress: in, Egress: out},
	}
	if in != nil {
		np.Spec.PolicyTypes = append(np.Spec.PolicyTypes, networkingv1.PolicyTypeIngress)
	}
	if out != nil {
		np.Spec.PolicyTypes = append(np.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
	}
	return np
}

// buildDNSRules returns a rule for each port of DNS pods. The rule for the port of DNS has the
// resolvers, too.
func (t terms) buildDNSRules() []networkingv1.NetworkPolicyEgressRule {
	var rules []networkingv1.NetworkPolicyEgressRule
	for _, port := range listDNSPorts(t.dnsPods) {
		rule := networkingv1.NetworkPolicyEgressRule{Ports: makeDNSPorts(port)}
		for _, pods := range filterByPort(port, t.dnsPods) {
			rule.To = append(rule.To, networkingv1.NetworkPolicyPeer{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{namespaceName: pods.Namespace}},
				PodSelector:       &metav1.LabelSelector{MatchLabels: pods.Labels},
			})
		}
		if port == estate.DNSPort {
			for _, cidr := range t.resolvers {
				rule.To = append(rule.To, makeBlock(cidr))
			}
		}
		rules = append(rules, rule)
	}
	return rules
}

// makeDNSPorts returns a port with each protocol of DNS.
func makeDNSPorts(number int32) []networkingv1.NetworkPolicyPort {
	port := intstr.FromInt32(number)
	var ports []networkingv1.NetworkPolicyPort
	for _, protocol := range dnsProtocols {
		ports = append(ports, networkingv1.NetworkPolicyPort{Protocol: ptr.To(protocol), Port: &port})
	}
	return ports
}

// listOutsidePeers returns the destinations of pods outside of the tenant.
func (t terms) listOutsidePeers() []networkingv1.NetworkPolicyPeer {
	var peers []networkingv1.NetworkPolicyPeer
	if t.everywhere {
		for _, all := range everyAddress {
			peers = append(peers, makeBlock(all, filterByFamily(all, t.never)...))
		}
	}
	for _, cidr := range t.networks {
		peers = append(peers, makeBlock(cidr))
	}
	return peers
}

func makeBlock(cidr string, except ...string) networkingv1.NetworkPolicyPeer {
	return networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: cidr, Except: except}}
}
