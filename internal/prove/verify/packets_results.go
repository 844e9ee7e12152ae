package verify

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/wording"
	"croft.dev/croft/internal/prove/dial"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/walls/wall/network"
)

// kubeletPort is the port of each node's kubelet.
const kubeletPort = 10250

// targets are the addresses that the pods of --packets connect to.
type targets struct {
	// tenants has the tenant of each namespace.
	tenants    map[string]*estate.Tenant
	servers    []serverAddresses
	metadata   []string
	nodes      []nodeAddress
	apiServers []string
	// dns is set if the cluster has a name server where croft expects one.
	dns bool
}

// serverAddresses are the addresses of the server of a namespace.
type serverAddresses struct {
	namespace    string
	pod, service []string
}

type nodeAddress struct{ node, address string }

// The tests that connections belong to, and the names of their results.
const (
	betweenTenants = "packets-between-tenants"
	firstMoments   = "packets-in-first-moments"
	toMetadata     = "packets-to-metadata"
	toNodes        = "packets-to-nodes"
	withinTenant   = "packets-within-tenant"
	toAPIServer    = "packets-to-api-server"
	byName         = "packets-by-name"
)

// packetTests are the tests, in the order of their results.
var packetTests = []struct {
	name, summary string
	kind          attack.Kind
}{
	{betweenTenants, "connect to a pod of another tenant, by its address and its Service's, over TCP and UDP", attack.Breach},
	{firstMoments, "connect to a forbidden address in the first second of a pod", attack.Breach},
	{toMetadata, "connect to a metadata address", attack.Breach},
	{toNodes, "connect to the kubelet of another node although egress is restricted", attack.Breach},
	{withinTenant, "connect to a pod in another namespace of the tenant", attack.Mirror},
	{toAPIServer, "connect to the API server", attack.Mirror},
	{byName, "connect to a Service by its DNS name", attack.Mirror},
}

// connection is an attempt to connect from a pod.
type connection struct {
	// test is the test that the connection belongs to.
	test string
	from string
	// address has the form of package dial, such as tcp/10.1.2.3:8080.
	address string
	// to describes the address.
	to string
	// closed is the desired outcome; node is the node with the address, if it is one.
	closed bool
	node   string
	// outcome is one of package dial's.
	outcome string
	// own is set if the pod was on that node.
	own bool
}

// listConnections returns the connections from a namespace, without outcomes.
func (t *targets) listConnections(from string) []connection {
	var all []connection
	add := func(c connection) {
		c.from = from
		all = append(all, c)
	}
	for _, server := range t.servers {
		if server.namespace == from {
			continue // a pod reaches itself without the network
		}
		other := t.tenants[server.namespace] != t.tenants[from]
		test := withinTenant
		if other {
			test = betweenTenants
		}
		for _, protocol := range []string{"tcp", "udp"} {
			for _, ip := range server.pod {
				add(connection{test: test, address: dial.Format(protocol, ip, dial.Port), to: "the pod of " + server.namespace, closed: other})
			}
			for _, ip := range server.service {
				add(connection{test: test, address: dial.Format(protocol, ip, dial.Port), to: "the Service of " + server.namespace, closed: other})
			}
		}
		if t.dns && !other {
			add(connection{test: byName, address: dial.Format("tcp", serverName+"."+server.namespace+".svc", dial.Port), to: "the Service of " + server.namespace})
		}
	}
	for _, ip := range t.metadata {
		add(connection{test: toMetadata, address: dial.Format("tcp", ip, 80), to: "the metadata address", closed: true})
	}
	restricted := t.tenants[from].Egress == v1alpha1.EgressRestricted
	for _, n := range t.nodes {
		add(connection{test: toNodes, address: dial.Format("tcp", n.address, kubeletPort), to: "the kubelet of " + n.node, node: n.node, closed: restricted})
	}
	if !restricted {
		for _, ip := range t.apiServers {
			add(connection{test: toAPIServer, address: dial.Format("tcp", ip, 443), to: "the API server"})
		}
	}
	return all
}

// selectClosed returns the connections that must be closed from a pod's first moment. The
// addresses of nodes are not among them: whether a pod's own node is closed depends on the
// plugin, and the node is not known beforehand.
func selectClosed(all []connection) []connection {
	return slices.DeleteFunc(slices.Clone(all), func(c connection) bool { return !c.closed || c.node != "" })
}

func listAddresses(all []connection) []string {
	addresses := make([]string, len(all))
	for i, c := range all {
		addresses[i] = c.address
	}
	return addresses
}

// readOutcomes returns the connections of a pod that has ended, with their outcomes.
func readOutcomes(pod *corev1.Pod, t *targets) ([]connection, error) {
	all := t.listConnections(pod.Namespace)
	first := selectClosed(all)
	for i := range all {
		all[i].own = all[i].node == pod.Spec.NodeName
	}
	for i := range first {
		first[i].test = firstMoments
	}
	statuses := append(slices.Clone(pod.Status.InitContainerStatuses), pod.Status.ContainerStatuses...)
	for _, container := range []struct {
		name        string
		connections []connection
	}{{firstContainer, first}, {mainContainer, all}} {
		i := slices.IndexFunc(statuses, func(s corev1.ContainerStatus) bool { return s.Name == container.name })
		if i < 0 || statuses[i].State.Terminated == nil {
			return nil, fmt.Errorf("the pod %s/%s has ended without its container %s", pod.Namespace, pod.Name, container.name)
		}
		ended := statuses[i].State.Terminated
		outcomes := strings.Fields(ended.Message)
		if len(outcomes) != len(container.connections) {
			return nil, fmt.Errorf("the container %s of the pod %s/%s has reported %d of %d connections (exit code %d): is the image croft's?",
				container.name, pod.Namespace, pod.Name, len(outcomes), len(container.connections), ended.ExitCode)
		}
		for i, outcome := range outcomes {
			container.connections[i].outcome = outcome
		}
	}
	return append(all, first...), nil
}

// summarizePackets returns a result for each test.
func summarizePackets(connections []connection, dns bool) []Result {
	var results []Result
	for _, test := range packetTests {
		a := attack.Attack{Name: test.name, Wall: network.Wall{}.Name(), Kind: test.kind, Summary: test.summary, StoppedBy: attack.ByNetworkPolicy}
		if test.name == byName && !dns {
			results = append(results, newNotTried(a, errors.New("this cluster has no Service kube-system/kube-dns")))
			continue
		}
		var wrong []string
		var own, open, count int
		for _, c := range connections {
			if c.test != test.name {
				continue
			}
			count++
			isOpen := c.outcome == dial.Open
			switch {
			case c.node != "" && c.own: // plugins may leave a pod's own node open
				if isOpen {
					own++
				}
			case c.node != "" && !c.closed:
				if isOpen {
					open++
				}
			case isOpen == c.closed:
				wrong = append(wrong, fmt.Sprintf("from %s to %s at %s: %s", c.from, c.to, c.address, c.outcome))
			}
		}
		if count == 0 {
			results = append(results, newNotTried(a, errors.New("the cluster has no such address")))
			continue
		}
		result := newResult(a, Held, "")
		if own+open > 0 {
			result.Message = fmt.Sprintf("open: the kubelet's port of the pod's own node from %s, of other nodes %s with open egress",
				wording.FormatCount(own, "pod"), wording.FormatCount(open, "time"))
		}
		if len(wrong) > 0 {
			result.Result, result.Breaches = Breached, wrong
			result.Message = fmt.Sprintf("%d of %d connections have the wrong outcome: %s", len(wrong), count, formatList(wrong))
		}
		result.Variants = count
		results = append(results, result)
	}
	return results
}
