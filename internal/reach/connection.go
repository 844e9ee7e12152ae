package reach

import (
	"fmt"

	"github.com/mattfenwick/cyclonus/pkg/matcher"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// podIP stands for the address of any pod: a private one, as clusters use. A
// policy that lets addresses in by range is judged by it.
const podIP = "10.244.1.1"

// somePort is asked about where policies name no port.
const somePort = 8080

type port struct {
	number   int
	name     string
	protocol corev1.Protocol
}

func (p port) String() string {
	if p.name != "" {
		return p.name + "/" + string(p.protocol)
	}
	return fmt.Sprintf("%d/%s", p.number, p.protocol)
}

// connection is one from a pod, or from an address where from is nil, to a pod or
// an address likewise.
type connection struct {
	from, to             *namespace
	fromLabels, toLabels map[string]string
	fromIP, toIP         string
	port                 port
}

func (c *connection) String() string {
	from, to := c.fromIP, c.toIP
	if c.from != nil {
		from = podName(c.from, c.fromLabels)
	}
	if c.to != nil {
		to = podName(c.to, c.toLabels)
	}
	return fmt.Sprintf("%s to %s, %s", from, to, c.port)
}

func podName(n *namespace, pod map[string]string) string {
	if len(pod) == 0 {
		return n.name
	}
	return n.name + "[" + labels.Set(pod).String() + "]"
}

func (c *connection) traffic() *matcher.Traffic {
	t := &matcher.Traffic{
		Source: &matcher.TrafficPeer{IP: c.fromIP}, Destination: &matcher.TrafficPeer{IP: c.toIP},
		ResolvedPort: c.port.number, ResolvedPortName: c.port.name, Protocol: c.port.protocol,
	}
	if c.from != nil {
		t.Source = peer(c.from, c.fromLabels)
	}
	if c.to != nil {
		t.Destination = peer(c.to, c.toLabels)
	}
	return t
}

func peer(n *namespace, pod map[string]string) *matcher.TrafficPeer {
	return &matcher.TrafficPeer{IP: podIP, Internal: &matcher.InternalPeer{Namespace: n.name, NamespaceLabels: n.labels, PodLabels: pod}}
}

// allowed asks the destination first: between tenants it is mostly that which
// lets nobody in.
func (c *connection) allowed() bool {
	t := c.traffic()
	return (c.to == nil || c.to.judge.IsIngressOrEgressAllowed(t, true).IsAllowed()) &&
		(c.from == nil || c.from.judge.IsIngressOrEgressAllowed(t, false).IsAllowed())
}

func (c *connection) verdict() Verdict {
	t := c.traffic()
	v := Verdict{Connection: c.String(), Egress: Direction{Allowed: true}, Ingress: Direction{Allowed: true}}
	if c.from != nil {
		v.Egress = c.from.direction(t, false)
	}
	if c.to != nil {
		v.Ingress = c.to.direction(t, true)
	}
	v.Allowed = v.Egress.Allowed && v.Ingress.Allowed
	return v
}

// direction asks which policies decide. A verdict on all of them is made up of
// verdicts on each, since policies only add up.
func (n *namespace) direction(t *matcher.Traffic, ingress bool) Direction {
	d := Direction{Allowed: n.judge.IsIngressOrEgressAllowed(t, ingress).IsAllowed()}
	for _, policy := range n.policies {
		alone := matcher.BuildNetworkPolicies(false, []*networkingv1.NetworkPolicy{policy}).IsIngressOrEgressAllowed(t, ingress)
		name := policy.Namespace + "/" + policy.Name
		if len(alone.AllowingTargets)+len(alone.DenyingTargets) > 0 {
			d.Selecting = append(d.Selecting, name)
		}
		if len(alone.AllowingTargets) > 0 {
			d.Allowing = append(d.Allowing, name)
		}
	}
	return d
}

// connections are all between two namespaces that their policies tell apart.
func connections(from, to *namespace, number int, protocol corev1.Protocol) []connection {
	ports := []port{{number: number, protocol: protocol}}
	if number == 0 {
		ports = distinct([]port{{number: somePort, protocol: corev1.ProtocolTCP}}, from.ports, to.ports)
	}
	var all []connection
	for _, source := range distinct(from.pods, to.peers) {
		for _, destination := range distinct(to.pods, from.peers) {
			for _, p := range ports {
				all = append(all, connection{from: from, to: to, fromLabels: source, toLabels: destination, port: p})
			}
		}
	}
	return all
}

// distinct are the values of several lists, each once.
func distinct[T any](lists ...[]T) []T {
	var all []T
	seen := map[string]bool{}
	for _, list := range lists {
		for _, v := range list {
			if id := fmt.Sprint(v); !seen[id] {
				seen[id] = true
				all = append(all, v)
			}
		}
	}
	return all
}

// tellApart finds the pods and ports that the namespace's policies treat
// differently: one without labels, and one of each kind that a selector names.
func (n *namespace) tellApart() {
	n.pods = []map[string]string{{}}
	for _, policy := range n.policies {
		n.pods = append(n.pods, selected(&policy.Spec.PodSelector)...)
		for _, rule := range policy.Spec.Ingress {
			n.peersAndPorts(rule.From, rule.Ports)
		}
		for _, rule := range policy.Spec.Egress {
			n.peersAndPorts(rule.To, rule.Ports)
		}
	}
	n.pods, n.peers, n.ports = distinct(n.pods), distinct(n.peers), distinct(n.ports)
}

func (n *namespace) peersAndPorts(peers []networkingv1.NetworkPolicyPeer, ports []networkingv1.NetworkPolicyPort) {
	for _, p := range peers {
		if p.PodSelector != nil {
			n.peers = append(n.peers, selected(p.PodSelector)...)
		}
	}
	for _, p := range ports {
		named := port{number: somePort, protocol: corev1.ProtocolTCP}
		if p.Protocol != nil {
			named.protocol = *p.Protocol
		}
		switch {
		case p.Port == nil:
		case p.Port.Type == intstr.String:
			named = port{name: p.Port.StrVal, protocol: named.protocol}
		default:
			named.number = p.Port.IntValue()
		}
		n.ports = append(n.ports, named)
	}
}

// selected are pods that a selector tells from one without labels.
func selected(s *metav1.LabelSelector) []map[string]string {
	pod := map[string]string{}
	for key, value := range s.MatchLabels {
		pod[key] = value
	}
	for _, e := range s.MatchExpressions {
		pod[e.Key] = "any"
		if len(e.Values) > 0 {
			pod[e.Key] = e.Values[0]
		}
	}
	if len(pod) == 0 {
		return nil
	}
	return []map[string]string{pod}
}
