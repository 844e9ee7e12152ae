// Package kubernetes converts NetworkPolicies of networking.k8s.io into the form of package
// tier.
package kubernetes

import (
	"net"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	netutils "k8s.io/utils/net"

	"croft.dev/croft/internal/netpol/tier"
)

// Policy is a NetworkPolicy. It knows nothing of the order of policies: NetworkPolicies
// are additive, and what any of them allows is allowed.
type Policy struct {
	// Name is its namespace and name, as namespace/name.
	Name      string
	namespace string
	pods      selector
	// isolates are the directions in which pods that it selects accept only what rules allow.
	isolates map[tier.Direction]bool
	rules    map[tier.Direction][]rule
}

// NewPolicy reads a policy. What the API server would have refused, such as a range of
// addresses that is none, is unknown, and no wall: a peer of that kind may be anybody, and
// such a policy selects no pods.
//
// Fields that the API server fills in may be absent: without policyTypes, a policy is one of
// ingress, and of egress if it has rules of it; a port without a protocol is one of TCP.
func NewPolicy(p *networkingv1.NetworkPolicy) *Policy {
	isolates := map[tier.Direction]bool{
		tier.Ingress: len(p.Spec.PolicyTypes) == 0 || slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeIngress),
		tier.Egress:  len(p.Spec.PolicyTypes) == 0 && len(p.Spec.Egress) > 0 || slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress),
	}
	policy := &Policy{
		Name: p.Namespace + "/" + p.Name, namespace: p.Namespace, pods: newSelector(&p.Spec.PodSelector),
		isolates: isolates, rules: map[tier.Direction][]rule{},
	}
	for _, r := range p.Spec.Ingress {
		policy.rules[tier.Ingress] = append(policy.rules[tier.Ingress], policy.rule(r.From, r.Ports))
	}
	for _, r := range p.Spec.Egress {
		policy.rules[tier.Egress] = append(policy.rules[tier.Egress], policy.rule(r.To, r.Ports))
	}
	return policy
}

// Judge returns whether the policy isolates the near pod in a direction, and Allow if it
// allows the connection, or may do so. It never denies: another policy may allow.
func (p *Policy) Judge(c *tier.Connection, d tier.Direction) (tier.Match, tier.Action) {
	near := c.Near(d)
	if !p.isolates[d] || near == nil || near.Namespace != p.namespace || p.pods.matches(near.Labels) != tier.Yes {
		return tier.No, ""
	}
	for _, r := range p.rules[d] {
		if r.matches(c, d) != tier.No {
			return tier.Yes, tier.Allow
		}
	}
	return tier.Yes, ""
}

// rule allows connections of its peers, or of everybody if it names none, on its ports, or on
// all if it names none.
type rule struct {
	peers []peer
	ports []ports
}

func (p *Policy) rule(peers []networkingv1.NetworkPolicyPeer, named []networkingv1.NetworkPolicyPort) rule {
	var r rule
	for i := range peers {
		r.peers = append(r.peers, p.peer(&peers[i]))
	}
	for i := range named {
		r.ports = append(r.ports, newPorts(&named[i]))
	}
	return r
}

func (r rule) matches(c *tier.Connection, d tier.Direction) tier.Match {
	far, on := tier.Is(len(r.peers) == 0), tier.Is(len(r.ports) == 0)
	for _, peer := range r.peers {
		far = tier.Any(far, peer(c.Far(d)))
	}
	for _, ports := range r.ports {
		on = tier.Any(on, ports.match(c))
	}
	return tier.All(far, on)
}

// peer says whether an end of a connection is one of those that a rule names.
type peer func(tier.End) tier.Match

func (p *Policy) peer(of *networkingv1.NetworkPolicyPeer) peer {
	switch {
	case of.IPBlock != nil:
		return block(of.IPBlock)
	case of.PodSelector == nil && of.NamespaceSelector == nil:
		return unknown
	}
	pods, namespaces := everything, everything
	if of.PodSelector != nil {
		pods = newSelector(of.PodSelector)
	}
	if of.NamespaceSelector != nil {
		namespaces = newSelector(of.NamespaceSelector)
	}
	return func(end tier.End) tier.Match {
		if end.Pod == nil || of.NamespaceSelector == nil && end.Pod.Namespace != p.namespace {
			return tier.No
		}
		return tier.All(namespaces.matches(end.Pod.NamespaceLabels), pods.matches(end.Pod.Labels))
	}
}

func unknown(tier.End) tier.Match { return tier.Maybe }

// block is a range of addresses without others. Addresses of pods are among them too, as
// most network plug-ins have it.
func block(of *networkingv1.IPBlock) peer {
	_, within, err := netutils.ParseCIDRSloppy(of.CIDR) // as the API server reads it
	if err != nil {
		return unknown
	}
	var except []*net.IPNet
	for _, text := range of.Except {
		// Without an exception that cannot be read, more is allowed.
		if _, one, err := netutils.ParseCIDRSloppy(text); err == nil {
			except = append(except, one)
		}
	}
	return func(end tier.End) tier.Match {
		address := net.IP(end.Address.AsSlice())
		return tier.Is(within.Contains(address) && !slices.ContainsFunc(except, func(n *net.IPNet) bool { return n.Contains(address) }))
	}
}

// selector selects labels. It is nil if it cannot be read.
type selector struct{ labels.Selector }

var everything = selector{labels.Everything()}

func newSelector(of *metav1.LabelSelector) selector {
	s, err := metav1.LabelSelectorAsSelector(of)
	if err != nil {
		return selector{}
	}
	return selector{s}
}

func (s selector) matches(of map[string]string) tier.Match {
	if s.Selector == nil {
		return tier.Maybe
	}
	return tier.Is(s.Matches(labels.Set(of)))
}

// ports are those from one number to another, the one of a name, or, without either, all of a
// protocol.
type ports struct {
	protocol string
	name     string
	from, to int
}

func newPorts(of *networkingv1.NetworkPolicyPort) ports {
	p := ports{protocol: string(corev1.ProtocolTCP)}
	if of.Protocol != nil {
		p.protocol = string(*of.Protocol)
	}
	switch {
	case of.Port == nil:
	case of.Port.Type == intstr.String:
		p.name = of.Port.StrVal
	default:
		p.from, p.to = int(of.Port.IntVal), int(of.Port.IntVal)
		if of.EndPort != nil {
			p.to = int(*of.EndPort)
		}
	}
	return p
}

// match may match where the one is a name and the other is a number: which port of a pod has
// a name is for the pod to say.
func (p ports) match(c *tier.Connection) tier.Match {
	switch {
	case p.protocol != c.Protocol:
		return tier.No
	case p.name == "" && p.from == 0:
		return tier.Yes
	case p.name != "" && c.PortName != "":
		return tier.Is(p.name == c.PortName)
	case p.name != "" || c.PortName != "":
		return tier.Maybe
	default:
		return tier.Is(c.Port >= p.from && c.Port <= p.to)
	}
}
