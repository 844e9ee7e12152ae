package network

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/estate"
)

// The names of the NetworkPolicies in every tenant namespace. They add up, as
// NetworkPolicies do: what none of them lets through is denied.
const (
	// IsolationPolicy selects every pod for both directions, which denies
	// everything, and lets through what stays within the tenant.
	IsolationPolicy = "croft-isolation"
	// DNSPolicy lets pods resolve names.
	DNSPolicy = "croft-dns"
	// PlatformPolicy lets platform services, such as ingress controllers, in.
	PlatformPolicy = "croft-platform"
	// EgressPolicy lets pods out: everywhere but to the metadata address, or to
	// the networks that a restricted tenant is granted.
	EgressPolicy = "croft-egress"
)

// metadata are the addresses at which a cloud hands its credentials to whoever
// asks from an instance. Amazon's serves IPv6 too; the others share the first.
var metadata = []string{"169.254.169.254/32", "fd00:ec2::254/128"}

const namespaceName = corev1.LabelMetadataName

func policies(p *estate.Platform, t *estate.Tenant) []*networkingv1.NetworkPolicy {
	tenant := []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{
		MatchLabels: map[string]string{v1alpha1.TenantLabel: t.Name},
	}}}
	all := []*networkingv1.NetworkPolicy{
		policy(IsolationPolicy,
			[]networkingv1.NetworkPolicyIngressRule{{From: tenant}},
			[]networkingv1.NetworkPolicyEgressRule{{To: tenant}}),
		policy(DNSPolicy, nil, []networkingv1.NetworkPolicyEgressRule{{To: dns(p), Ports: dnsPorts()}}),
	}
	if len(p.Network.PlatformNamespaces) > 0 {
		all = append(all, policy(PlatformPolicy, []networkingv1.NetworkPolicyIngressRule{{
			From: []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{
					Key: namespaceName, Operator: metav1.LabelSelectorOpIn, Values: p.Network.PlatformNamespaces,
				}},
			}}},
		}}, nil))
	}
	if to := outside(t); len(to) > 0 {
		all = append(all, policy(EgressPolicy, nil, []networkingv1.NetworkPolicyEgressRule{{To: to}}))
	}
	return all
}

// policy selects every pod for the directions that it has rules for.
func policy(name string, in []networkingv1.NetworkPolicyIngressRule, out []networkingv1.NetworkPolicyEgressRule) *networkingv1.NetworkPolicy {
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

// dns are the cluster's DNS pods and, for node-local caches, which are no pods
// that a selector could find, the addresses that pods ask.
func dns(p *estate.Platform) []networkingv1.NetworkPolicyPeer {
	peers := []networkingv1.NetworkPolicyPeer{{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{namespaceName: metav1.NamespaceSystem}},
		PodSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"k8s-app": "kube-dns"}},
	}}
	for _, address := range p.ClusterDNS {
		if ip, err := netip.ParseAddr(address); err == nil {
			peers = append(peers, block(netip.PrefixFrom(ip, ip.BitLen()).String()))
		}
	}
	return peers
}

func dnsPorts() []networkingv1.NetworkPolicyPort {
	port := intstr.FromInt32(53)
	return []networkingv1.NetworkPolicyPort{
		{Protocol: ptr.To(corev1.ProtocolUDP), Port: &port},
		{Protocol: ptr.To(corev1.ProtocolTCP), Port: &port},
	}
}

// outside is where pods may connect to beyond the tenant. Open egress reaches
// other tenants' addresses too: it is they who let nobody in.
func outside(t *estate.Tenant) []networkingv1.NetworkPolicyPeer {
	if t.Egress == v1alpha1.EgressOpen {
		return []networkingv1.NetworkPolicyPeer{block("0.0.0.0/0", metadata[0]), block("::/0", metadata[1])}
	}
	var peers []networkingv1.NetworkPolicyPeer
	for _, cidr := range t.AllowCIDRs {
		peers = append(peers, block(cidr))
	}
	return peers
}

func block(cidr string, except ...string) networkingv1.NetworkPolicyPeer {
	return networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: cidr, Except: except}}
}
