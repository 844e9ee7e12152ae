// Package kubernetes converts NetworkPolicies of networking.k8s.io into the form of package
// tier.
package kubernetes

import (
	"fmt"
	"net"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"croft.dev/croft/internal/observe/netpol/tier"
)

// Policy is a NetworkPolicy. It never denies, since NetworkPolicies are additive: a
// connection is allowed if any of them allows it. They have no order.
type Policy struct {
	*tier.Policy
	// Pods and Peers select pods that the policy distinguishes, at the near and at the far
	// end. Ports are the ports that it names.
	Pods, Peers []*metav1.LabelSelector
	Ports       []tier.Ports
}

// FormatName returns a policy's name in the form namespace/name.
func FormatName(p *networkingv1.NetworkPolicy) string { return p.Namespace + "/" + p.Name }

// NewPolicy reads a policy. The error names the unreadable fields, which an API server would
// refuse, as in a policy from a file.
//
// Fields that an API server fills in may be absent. Without policyTypes, a policy applies to
// ingress, and to egress if it has egress rules. A port without a protocol uses TCP.
func NewPolicy(of *networkingv1.NetworkPolicy) (*Policy, error) {
	p := &Policy{Policy: &tier.Policy{Name: FormatName(of)}, Pods: []*metav1.LabelSelector{&of.Spec.PodSelector}}
	r := reader{policy: p, namespace: of.Namespace}
	spec := field.NewPath("spec")
	pods := r.readSelector(spec.Child("podSelector"), &of.Spec.PodSelector)
	rules := map[tier.Direction][]rule{}
	for i, in := range of.Spec.Ingress {
		at := spec.Child("ingress").Index(i)
		rules[tier.Ingress] = append(rules[tier.Ingress], rule{r.readPeers(at.Child("from"), in.From), r.readPorts(at.Child("ports"), in.Ports)})
	}
	for i, out := range of.Spec.Egress {
		at := spec.Child("egress").Index(i)
		rules[tier.Egress] = append(rules[tier.Egress], rule{r.readPeers(at.Child("to"), out.To), r.readPorts(at.Child("ports"), out.Ports)})
	}
	if err := r.errs.ToAggregate(); err != nil {
		return nil, fmt.Errorf("NetworkPolicy %s: %w", p.Name, err)
	}
	types := of.Spec.PolicyTypes
	isolates := map[tier.Direction]bool{
		tier.Ingress: len(types) == 0 || slices.Contains(types, networkingv1.PolicyTypeIngress),
		tier.Egress:  len(types) == 0 && len(of.Spec.Egress) > 0 || slices.Contains(types, networkingv1.PolicyTypeEgress),
	}
	p.Evaluate = func(c *tier.Connection, d tier.Direction) (tier.Match, tier.Action) {
		near := c.NearPod(d)
		if !isolates[d] || near == nil || near.Namespace != of.Namespace || !pods.Matches(labels.Set(near.Labels)) {
			return tier.No, ""
		}
		return tier.Yes, tier.FirstMatching(rules[d], func(rule) tier.Action { return tier.Allow }, func(r rule) tier.Match { return r.matches(c, d) })
	}
	return p, nil
}

// rule allows connections of its peers, or all connections if it has no peers, on its ports.
type rule struct {
	peers []peer
	ports []tier.Ports
}

func (r rule) matches(c *tier.Connection, d tier.Direction) tier.Match {
	far := c.FarEnd(d)
	return tier.MatchAll(
		tier.FromBool(len(r.peers) == 0 || slices.ContainsFunc(r.peers, func(p peer) bool { return p(far) })),
		tier.MatchPorts(r.ports, c))
}

// peer reports whether an end of a connection matches a peer of a rule.
type peer func(tier.End) bool

// reader reads the parts of a policy, and collects the errors.
type reader struct {
	policy    *Policy
	namespace string
	errs      field.ErrorList
}

func (r *reader) readPeers(at *field.Path, of []networkingv1.NetworkPolicyPeer) []peer {
	var peers []peer
	for i := range of {
		p, at := &of[i], at.Index(i)
		switch {
		case p.IPBlock == nil && p.PodSelector == nil && p.NamespaceSelector == nil:
			r.errs = append(r.errs, field.Required(at, "name an ipBlock, or a podSelector, a namespaceSelector or both"))
		case p.IPBlock != nil && (p.PodSelector != nil || p.NamespaceSelector != nil):
			r.errs = append(r.errs, field.Forbidden(at, "an ipBlock cannot be combined with selectors: write these as a separate peer"))
		case p.IPBlock != nil:
			peers = append(peers, r.readBlock(at.Child("ipBlock"), p.IPBlock))
		default:
			peers = append(peers, r.readPodPeer(at, p))
		}
	}
	return peers
}

// readPodPeer returns a peer that matches the selected pods. Without a pod selector it matches
// all pods, and without a namespace selector the pods in the policy's namespace.
func (r *reader) readPodPeer(at *field.Path, of *networkingv1.NetworkPolicyPeer) peer {
	pods, namespaces := labels.Everything(), labels.Everything()
	if of.PodSelector != nil {
		pods = r.readSelector(at.Child("podSelector"), of.PodSelector)
		r.policy.Peers = append(r.policy.Peers, of.PodSelector)
	}
	if of.NamespaceSelector != nil {
		namespaces = r.readSelector(at.Child("namespaceSelector"), of.NamespaceSelector)
	}
	return func(end tier.End) bool {
		return end.Pod != nil && (of.NamespaceSelector != nil || end.Pod.Namespace == r.namespace) &&
			namespaces.Matches(labels.Set(end.Pod.NamespaceLabels)) && pods.Matches(labels.Set(end.Pod.Labels))
	}
}

func (r *reader) readSelector(at *field.Path, of *metav1.LabelSelector) labels.Selector {
	s, err := metav1.LabelSelectorAsSelector(of)
	if err != nil {
		r.errs = append(r.errs, field.Invalid(at, metav1.FormatLabelSelector(of), err.Error()))
	}
	return s
}

// readBlock returns a peer that matches a range of addresses with exceptions. It also matches
// addresses of pods, as in most network plugins.
func (r *reader) readBlock(at *field.Path, of *networkingv1.IPBlock) peer {
	within := r.readAddresses(at.Child("cidr"), of.CIDR)
	var except []*net.IPNet
	for i, text := range of.Except {
		except = append(except, r.readAddresses(at.Child("except").Index(i), text))
	}
	return func(end tier.End) bool {
		address := net.IP(end.Address.AsSlice())
		return within.Contains(address) && !slices.ContainsFunc(except, func(n *net.IPNet) bool { return n.Contains(address) })
	}
}

// readAddresses reads a range as the API server does, which accepts leading zeros in numbers.
func (r *reader) readAddresses(at *field.Path, text string) *net.IPNet {
	_, all, err := netutils.ParseCIDRSloppy(text)
	if err != nil {
		r.errs = append(r.errs, field.Invalid(at, text, "write a range of addresses, such as 10.0.0.0/8"))
	}
	return all
}

func (r *reader) readPorts(at *field.Path, of []networkingv1.NetworkPolicyPort) []tier.Ports {
	var ports []tier.Ports
	for i, p := range of {
		one, at := tier.Ports{Protocol: string(corev1.ProtocolTCP)}, at.Index(i).Child("endPort")
		if p.Protocol != nil {
			one.Protocol = string(*p.Protocol)
		}
		numeric := p.Port != nil && p.Port.Type == intstr.Int
		switch {
		case numeric:
			one.From, one.To = p.Port.IntValue(), p.Port.IntValue()
		case p.Port != nil:
			one.Name = p.Port.StrVal
		}
		switch {
		case p.EndPort == nil:
		case !numeric:
			r.errs = append(r.errs, field.Forbidden(at, "a range begins at a port number, not at a port name"))
		case int(*p.EndPort) < one.From:
			r.errs = append(r.errs, field.Invalid(at, *p.EndPort, "a range must not end before its beginning"))
		default:
			one.To = int(*p.EndPort)
		}
		ports = append(ports, one)
	}
	r.policy.Ports = append(r.policy.Ports, ports...)
	return ports
}
