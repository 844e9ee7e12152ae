package netpol

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"croft.dev/croft/internal/observe/netpol/calico"
	"croft.dev/croft/internal/observe/netpol/cluster"
	"croft.dev/croft/internal/observe/netpol/tier"
	"croft.dev/croft/internal/rules/attack"
)

// podIP represents the address of every pod. It is in a private range that clusters use.
// Policies that allow ranges of addresses are evaluated with it.
var podIP = netip.MustParseAddr("10.244.1.1")

// somePort is used if policies name no port.
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

// connection is a connection between two ends. from and to are the namespaces of pods, and
// nil for an end that is an address.
type connection struct {
	from, to             *namespace
	fromLabels, toLabels map[string]string
	fromIP, toIP         string
	port                 port
}

func (c *connection) String() string {
	from, to := c.fromIP, c.toIP
	if c.from != nil {
		from = formatPodName(c.from, c.fromLabels)
	}
	if c.to != nil {
		to = formatPodName(c.to, c.toLabels)
	}
	return fmt.Sprintf("%s to %s, %s", from, to, c.port)
}

func formatPodName(n *namespace, pod map[string]string) string {
	if len(pod) == 0 {
		return n.name
	}
	return n.name + "[" + labels.Set(pod).String() + "]"
}

// toTierConnection returns the connection in the form of package tier.
func (c *connection) toTierConnection() *tier.Connection {
	return &tier.Connection{
		From: makeEnd(c.from, c.fromLabels, c.fromIP), To: makeEnd(c.to, c.toLabels, c.toIP),
		Port: c.port.number, PortName: c.port.name, Protocol: string(c.port.protocol),
	}
}

func makeEnd(n *namespace, pod map[string]string, address string) tier.End {
	if n == nil {
		ip, _ := netip.ParseAddr(address)
		return tier.End{Address: ip}
	}
	return tier.End{Pod: &tier.Pod{Namespace: n.name, NamespaceLabels: n.labels, Labels: pod}, Address: podIP}
}

// isAllowed evaluates the destination first, because between tenants it is usually the
// destination that denies.
func (c *connection) isAllowed() bool {
	t := c.toTierConnection()
	return (c.to == nil || tier.Decide(c.to.tiers, t, tier.Ingress).Allowed) &&
		(c.from == nil || tier.Decide(c.from.tiers, t, tier.Egress).Allowed)
}

// isAgreed reports whether one of the agreements includes the connection. A port by its name is
// in none: each pod decides which port has which name.
func (c *connection) isAgreed(agreed []attack.Agreement) bool {
	return slices.ContainsFunc(agreed, func(a attack.Agreement) bool {
		return (a.ToNamespace == "" || c.to != nil && c.to.name == a.ToNamespace) &&
			hasLabels(c.fromLabels, a.FromLabels) && hasLabels(c.toLabels, a.ToLabels) &&
			c.port.name == "" && slices.ContainsFunc(a.Ports, func(p attack.Ports) bool {
			return p.Protocol == string(c.port.protocol) && p.First <= c.port.number && c.port.number <= p.Last
		})
	})
}

func hasLabels(pod, want map[string]string) bool {
	for key, value := range want {
		if pod[key] != value {
			return false
		}
	}
	return true
}

func (c *connection) buildVerdict() Verdict {
	t := c.toTierConnection()
	v := Verdict{Connection: c.String(), Egress: Direction{Allowed: true}, Ingress: Direction{Allowed: true}}
	if c.from != nil {
		v.Egress = c.from.decideDirection(t, tier.Egress)
	}
	if c.to != nil {
		v.Ingress = c.to.decideDirection(t, tier.Ingress)
	}
	v.Allowed = v.Egress.Allowed && v.Ingress.Allowed
	return v
}

// decideDirection returns the decision and the deciding policies. NetworkPolicies are additive, so
// each of them is evaluated separately.
func (n *namespace) decideDirection(c *tier.Connection, d tier.Direction) Direction {
	decision := tier.Decide(n.tiers, c, d)
	v := Direction{Allowed: decision.Allowed, DecidedBy: decision.DecidedBy}
	for _, name := range decision.Selecting {
		if name != additive {
			v.Selecting = append(v.Selecting, name)
			continue
		}
		for _, policy := range n.kubernetes {
			selects, decides := policy.Evaluate(c, d)
			if selects == tier.Yes {
				v.Selecting = append(v.Selecting, policy.Name)
			}
			if decides == tier.Allow {
				v.Allowing = append(v.Allowing, policy.Name)
			}
		}
	}
	if decision.DecidedBy == additive {
		v.DecidedBy = ""
	}
	return v
}

// listConnections returns all connections between two namespaces that their policies distinguish.
func listConnections(from, to *namespace, number int, protocol corev1.Protocol) []connection {
	ports := []port{{number: number, protocol: protocol}}
	if number == 0 {
		ports = removeDuplicates([]port{{number: somePort, protocol: corev1.ProtocolTCP}}, from.ports, to.ports)
	}
	var all []connection
	for _, source := range removeDuplicates(from.pods, to.peers) {
		for _, destination := range removeDuplicates(to.pods, from.peers) {
			for _, p := range ports {
				all = append(all, connection{from: from, to: to, fromLabels: source, toLabels: destination, port: p})
			}
		}
	}
	return all
}

// removeDuplicates returns the distinct values of several lists.
func removeDuplicates[T any](lists ...[]T) []T {
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

// collectSamples collects the pods and ports that the namespace's policies treat differently: a
// pod without labels, and a pod for each selector.
func (n *namespace) collectSamples(global []*calico.Policy, clusterWide []*cluster.Policy) {
	n.pods, n.peers, n.ports = []map[string]string{{}}, nil, nil
	for _, policies := range [][]*calico.Policy{global, n.calico} {
		for _, p := range policies {
			n.pods, n.peers = append(n.pods, p.Pods...), append(n.peers, p.Peers...)
			n.addPorts(p.Ports)
		}
	}
	for _, p := range clusterWide {
		n.pods, n.peers = append(n.pods, makeSamplePods(p.Pods)...), append(n.peers, makeSamplePods(p.Peers)...)
		n.addPorts(p.Ports)
	}
	for _, p := range n.kubernetes {
		n.pods, n.peers = append(n.pods, makeSamplePods(p.Pods)...), append(n.peers, makeSamplePods(p.Peers)...)
		n.addPorts(p.Ports)
	}
	n.pods, n.peers, n.ports = removeDuplicates(n.pods), removeDuplicates(n.peers), removeDuplicates(n.ports)
}

// addPorts adds ports that a policy names: the first and the last port of a range, and somePort
// for a protocol alone.
func (n *namespace) addPorts(ports []tier.Ports) {
	for _, named := range ports {
		p := port{number: named.From, name: named.Name, protocol: corev1.Protocol(cmp.Or(named.Protocol, string(corev1.ProtocolTCP)))}
		if p.number == 0 && p.name == "" {
			p.number = somePort
		}
		n.ports = append(n.ports, p)
		if named.To > named.From {
			p.number = named.To
			n.ports = append(n.ports, p)
		}
	}
}

// makeSamplePods returns pods that the selectors distinguish from a pod without labels.
func makeSamplePods(selectors []*metav1.LabelSelector) []map[string]string {
	var pods []map[string]string
	for _, s := range selectors {
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
		if len(pod) > 0 {
			pods = append(pods, pod)
		}
	}
	return pods
}
