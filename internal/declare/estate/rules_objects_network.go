package estate

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
)

// networkFloor is the limit of a tenant's NetworkPolicies. The policy croft-network-floor enforces it
// for policies that tenants write, and the operator is exempt from that policy. These checks refuse
// at least as much: a test compares them.
type networkFloor struct {
	tenant string
	// near are the namespaces of the tenant and of the platform.
	near       []string
	restricted bool
	allowed    []netip.Prefix
	metadata   []netip.Addr
}

func (w *checker) buildNetworkFloor(t *v1alpha1.Tenant) networkFloor {
	egress := t.Spec.Network.Egress
	if egress == "" {
		egress = w.platform.TenantDefaults.Egress
	}
	f := networkFloor{
		tenant:     t.Name,
		near:       slices.Concat(listNamespaces(t), w.platform.Network.PlatformNamespaces),
		restricted: egress == v1alpha1.EgressRestricted,
		metadata:   ListMetadataAddresses(&w.platform.Network),
	}
	for _, cidr := range t.Spec.Network.AllowCIDRs {
		if prefix, err := netip.ParsePrefix(cidr); err == nil {
			f.allowed = append(f.allowed, prefix)
		}
	}
	return f
}

// explainRefused returns why a policy allows more than the tenant's own may, or "".
func (f *networkFloor) explainRefused(p *networkingv1.NetworkPolicy) string {
	for _, rule := range p.Spec.Ingress {
		if len(rule.From) == 0 {
			return "spec.ingress: a rule without from lets every tenant in; name the tenant's namespaces or the platform's"
		}
		for _, peer := range rule.From {
			if peer.IPBlock != nil || !f.isNear(peer.NamespaceSelector) {
				return fmt.Sprintf("spec.ingress: only the tenant's namespaces and the platform's may be let in; select them by %s: $(tenant), or by %s",
					v1alpha1.TenantLabel, corev1.LabelMetadataName)
			}
		}
	}
	for _, rule := range p.Spec.Egress {
		if len(rule.To) == 0 {
			return "spec.egress: a rule without to reaches the instance metadata addresses too; name the destinations"
		}
		for _, peer := range rule.To {
			if why := f.explainRefusedDestination(peer); why != "" {
				return "spec.egress: " + why
			}
		}
	}
	return ""
}

func (f *networkFloor) explainRefusedDestination(peer networkingv1.NetworkPolicyPeer) string {
	if peer.IPBlock == nil {
		if f.restricted && !f.isNear(peer.NamespaceSelector) {
			return fmt.Sprintf("the tenant has Restricted egress, so only its namespaces and the platform's may be reached; select them by %s: $(tenant), or by %s",
				v1alpha1.TenantLabel, corev1.LabelMetadataName)
		}
		return ""
	}
	block, err := netip.ParsePrefix(peer.IPBlock.CIDR)
	if err != nil || !isNetwork(block) {
		return fmt.Sprintf("%q is not a network; write one such as 10.0.0.0/8", peer.IPBlock.CIDR)
	}
	if f.restricted {
		if !slices.ContainsFunc(f.allowed, func(a netip.Prefix) bool { return a.Bits() <= block.Bits() && a.Contains(block.Addr()) }) {
			return fmt.Sprintf("the tenant has Restricted egress, and %s is not within its allowCIDRs", block)
		}
		return ""
	}
	for _, address := range f.metadata {
		if block.Contains(address) && !slices.ContainsFunc(peer.IPBlock.Except, func(except string) bool {
			prefix, err := netip.ParsePrefix(except)
			return err == nil && isNetwork(prefix) && prefix.Contains(address)
		}) {
			return fmt.Sprintf("%s contains the instance metadata address %s; add it to except", block, address)
		}
	}
	return ""
}

// isNear reports whether a peer's namespace selector matches only namespaces of the tenant and of the
// platform. Without one, the peer is in the namespace of the policy.
func (f *networkFloor) isNear(s *metav1.LabelSelector) bool {
	if s == nil {
		return true
	}
	if s.MatchLabels[v1alpha1.TenantLabel] == f.tenant || slices.Contains(f.near, s.MatchLabels[corev1.LabelMetadataName]) {
		return true
	}
	return slices.ContainsFunc(s.MatchExpressions, func(e metav1.LabelSelectorRequirement) bool {
		return e.Key == corev1.LabelMetadataName && e.Operator == metav1.LabelSelectorOpIn && len(e.Values) > 0 &&
			!slices.ContainsFunc(e.Values, func(v string) bool { return !slices.Contains(f.near, v) })
	})
}

// isNetwork reports whether a prefix is a network in the form that the API server accepts.
func isNetwork(prefix netip.Prefix) bool { return prefix == prefix.Masked() && !prefix.Addr().Is4In6() }
