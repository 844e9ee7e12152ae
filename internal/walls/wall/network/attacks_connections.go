package network

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/attack"
)

// ListAgreements returns the connections to which tenants of the cluster have agreed.
func ListAgreements(p *estate.Platform) []attack.Agreement {
	var all []attack.Agreement
	for _, c := range p.Connections {
		agreed := attack.Agreement{From: c.Caller, To: c.Callee, ToNamespace: c.CalleeNamespace, FromLabels: c.CallerPods, ToLabels: c.CalleePods}
		for _, r := range c.Ports {
			agreed.Ports = append(agreed.Ports, attack.Ports{Protocol: string(r.Protocol), First: int(r.First), Last: int(r.Last)})
		}
		all = append(all, agreed)
	}
	return all
}

// listOpen returns a tenant's connections from a caller to a namespace of a callee.
func listOpen(t *estate.Tenant, caller, callee, namespace string) []estate.Connection {
	return slices.DeleteFunc(slices.Clone(t.Connections), func(c estate.Connection) bool {
		return c.Caller != caller || c.Callee != callee || c.CalleeNamespace != "" && c.CalleeNamespace != namespace
	})
}

// includesPort reports whether one of the connections includes a port, on any pods.
func includesPort(open []estate.Connection, port estate.PortRange) bool {
	return slices.ContainsFunc(open, func(c estate.Connection) bool { return c.Allows(port) })
}

// findClosedPort returns a TCP port that no connection includes: the first one after the ports of
// one of them. Without connections it is any port, and 0 if they include all.
func findClosedPort(open []estate.Connection) int {
	for _, c := range open {
		for _, r := range c.Ports {
			next := int(r.Last) + 1
			if next <= 65535 && r.Protocol == corev1.ProtocolTCP && !includesPort(open, makeTCPPort(next)) {
				return next
			}
		}
	}
	for _, port := range []int{8080, 1} {
		if !includesPort(open, makeTCPPort(port)) {
			return port
		}
	}
	return 0
}

// buildAgreedAttacks are connections beyond the ones to which the two tenants have agreed, and the
// agreed connections as mirrors.
func buildAgreedAttacks(by, on *estate.Tenant) []attack.Attack {
	own, other := by.Namespaces[0], on.Namespaces[0]
	var all []attack.Attack
	if c := by.FindConnection(on.Name, by.Name); c != nil {
		agreed := makeAgreedFlow(c, other, own)
		all = append(all, buildBeyondAttacks("be-called", "receive a connection", by, c, agreed, other)...)
		stranger := agreed
		stranger.FromNamespace = metav1.NamespaceDefault
		all = append(all, makeFlow("be-called-by-third-party", "receive a connection to which another tenant agreed, from a namespace outside of both tenants", stranger))
	}
	if c := by.FindConnection(by.Name, on.Name); c != nil {
		agreed := makeAgreedFlow(c, own, other)
		all = append(all, buildBeyondAttacks("call", "connect", by, c, agreed, other)...)
		if by.Egress == v1alpha1.EgressRestricted {
			all = append(all, makeFlow("call-the-internet-from-agreed-pods", "connect to an address outside the cluster that is not allowed, from a pod that may connect to another tenant",
				attack.Flow{FromNamespace: own, FromLabels: c.CallerPods, ToIP: "203.0.113.10", Port: 443}))
		}
	}
	return attack.WithReason("two tenants agree on some connections; with any other, one tenant's pods could attack another tenant's pods", nil, all...)
}

// buildAcceptedAttacks are connections beyond the ones that the team of one namespace accepted by a
// TenantCaller, and the accepted connections as mirrors.
func buildAcceptedAttacks(by, on *estate.Tenant) []attack.Attack {
	own, other := by.Namespaces[0], on.Namespaces[0]
	var all []attack.Attack
	if c := by.FindAccepted(on.Name, by.Name); c != nil {
		accepted := makeAgreedFlow(c, other, c.CalleeNamespace)
		all = append(all, buildBeyondAttacks("be-called-in-a-namespace", "receive a connection in one namespace", by, c, accepted, other)...)
		all = append(all, buildElsewhereAttacks("be-called", "receive a connection in a namespace whose team did not accept it", by, c, accepted, own, other)...)
		stranger := accepted
		stranger.FromNamespace = metav1.NamespaceDefault
		all = append(all, makeFlow("be-called-in-a-namespace-by-third-party", "receive a connection that a team accepted from another tenant, from a namespace outside of both tenants", stranger))
	}
	if c := by.FindAccepted(by.Name, on.Name); c != nil {
		accepted := makeAgreedFlow(c, own, c.CalleeNamespace)
		all = append(all, buildBeyondAttacks("call-a-namespace", "connect to one namespace", by, c, accepted, c.CalleeNamespace)...)
		all = append(all, buildElsewhereAttacks("call", "connect to a namespace whose team did not accept it", by, c, accepted, other, other)...)
	}
	return attack.WithReason("a team accepts connections to the pods of one namespace; with any others, it would decide for other teams of its tenant", nil, all...)
}

// buildElsewhereAttacks is an accepted connection, but to another namespace of the callee. other is a
// namespace of the other tenant, which lets everything through.
func buildElsewhereAttacks(name, summary string, by *estate.Tenant, c *estate.Connection, accepted attack.Flow, elsewhere, other string) []attack.Attack {
	if elsewhere == c.CalleeNamespace || includesPort(listOpen(by, c.Caller, c.Callee, elsewhere), getFirstPort(c)) {
		return nil
	}
	accepted.ToNamespace, accepted.AddedPolicies = elsewhere, []client.Object{makeOpenNetworkPolicy(other)}
	return []attack.Attack{makeFlow(name+"-in-other-namespace", summary, accepted)}
}

func makeAgreedFlow(c *estate.Connection, from, to string) attack.Flow {
	return attack.Flow{
		FromNamespace: from, FromLabels: c.CallerPods, ToNamespace: to, ToLabels: c.CalleePods,
		Port: int(c.Ports[0].First), Protocol: string(c.Ports[0].Protocol),
	}
}

// buildBeyondAttacks are connections that resemble an agreed one: to another port, over another
// protocol, to other pods and from other pods. The other tenant's namespace lets everything
// through, so that one's own policies are tested alone. The mirror is the agreed connection.
func buildBeyondAttacks(name, summary string, by *estate.Tenant, c *estate.Connection, agreed attack.Flow, other string) []attack.Attack {
	open := append([]estate.Connection{*c}, listOpen(by, c.Caller, c.Callee, agreed.ToNamespace)...)
	mirror := makeFlow(name+"-as-agreed", summary+" to which both tenants agreed", agreed)
	mirror.Kind, mirror.StoppedBy = attack.Mirror, attack.Stopper{}
	all := []attack.Attack{mirror}
	add := func(suffix, beyond string, differs bool, change func(*attack.Flow)) {
		if !differs {
			return
		}
		flow := agreed
		flow.AddedPolicies = []client.Object{makeOpenNetworkPolicy(other)}
		change(&flow)
		all = append(all, makeFlow(name+suffix, summary+beyond, flow))
	}
	closed := findClosedPort(open)
	add("-beyond-agreed-ports", " on a port to which not both tenants agreed", closed > 0, func(f *attack.Flow) {
		f.Port, f.Protocol = closed, string(corev1.ProtocolTCP)
	})
	sctp := getFirstPort(c)
	sctp.Protocol = corev1.ProtocolSCTP
	add("-over-other-protocol", " on an agreed port over another protocol", !includesPort(open, sctp), func(f *attack.Flow) { f.Protocol = string(corev1.ProtocolSCTP) })
	includesAllPods := func(o estate.Connection) bool { return len(o.CalleePods) == 0 && o.Allows(getFirstPort(c)) }
	add("-from-other-pods", " from pods to which not both tenants agreed", len(c.CallerPods) > 0, func(f *attack.Flow) { f.FromLabels = nil })
	add("-to-other-pods", " at pods to which not both tenants agreed", !slices.ContainsFunc(open, includesAllPods), func(f *attack.Flow) { f.ToLabels = nil })
	return all
}

// getFirstPort returns the first port of a connection.
func getFirstPort(c *estate.Connection) estate.PortRange {
	return estate.PortRange{Protocol: c.Ports[0].Protocol, First: c.Ports[0].First, Last: c.Ports[0].First}
}

func makeTCPPort(port int) estate.PortRange {
	return estate.PortRange{Protocol: corev1.ProtocolTCP, First: int32(port), Last: int32(port)}
}
