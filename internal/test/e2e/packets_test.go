package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"croft.dev/croft/internal/observe/netpol"
	"croft.dev/croft/internal/prove/verify"
	"croft.dev/croft/internal/test/sandbox"
	"croft.dev/croft/internal/walls/wall/network"
)

// packetTenants are three tenants: two share a pool, and so nodes.
const packetTenants = `
platform:
  clusterName: demo
  tenantDomain: tenants.example.org
  nodeClass: {kwok: {}}
pools:
  pool-a: {instances: {instanceTypes: [t3a.large]}}
  pool-b: {instances: {instanceTypes: [t3a.large]}}
tenants:
  red: {pool: pool-a, namespaces: [red, red-ci], access: [{group: team-red, role: operator}]}
  green: {pool: pool-a, access: [{group: team-green, role: operator}]}
  blue: {pool: pool-b, access: [{group: team-blue, role: operator}]}
`

// packetNamespaces are the namespaces of the tenants, by tenant.
var packetNamespaces = map[string][]string{"red": {"red", "red-ci"}, "green": {"green"}, "blue": {"blue"}}

// webPort is the port of the pods' servers of TCP and UDP. They also accept TCP on 80 and 443.
const webPort = 8080

// webService is a Service with all ports of the pods' servers.
const webService = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports:
    - {name: tcp, port: 8080, protocol: TCP}
    - {name: udp, port: 8080, protocol: UDP}
    - {name: http, port: 80, protocol: TCP}
    - {name: https, port: 443, protocol: TCP}
`

// TestPackets compares `croft reach` with packets: each pod connects to each other one over TCP
// and UDP, by the pod's address and by the Service's, on real nodes whose network plugin
// enforces NetworkPolicies. It fails if a plugin understands croft's policies differently, or
// if the evaluator of croft reach has a mistake. Then it plants mistakes in the policies, and
// expects packets and croft reach to agree on each: both must differ from the declared walls.
func TestPackets(t *testing.T) {
	sandbox.Thorough(t)
	requireRealNodes(t)
	c := startSandbox(t, sandbox.Options{RealNodes: true, Enforced: true, Croft: findCroftBinary(t)})
	c.applyContent(t, packetTenants)
	for _, namespace := range slices.Concat(slices.Collect(maps.Values(packetNamespaces))...) {
		c.runKubectl(t, formatPod("web", "restartPolicy: Always", "ports: [{containerPort: 8080}]"), "apply", "-n", namespace, "-f", "-").expectExit(t, 0)
		c.runKubectl(t, "", "label", "pod/web", "app=web", "-n", namespace).expectExit(t, 0)
		c.runKubectl(t, webService, "apply", "-n", namespace, "-f", "-").expectExit(t, 0)
	}
	for _, namespace := range slices.Concat(slices.Collect(maps.Values(packetNamespaces))...) {
		c.runKubectl(t, "", "wait", "pod/web", "-n", namespace, "--for=condition=Ready", "--timeout", patience.String()).expectExit(t, 0)
	}
	t.Run("declared", func(t *testing.T) {
		if wrong := findUndeclared(c.expectMatrix(t, webPort, "tcp", "udp")); len(wrong) > 0 {
			t.Errorf("connections that the declaration does not have: %v", wrong)
		}
		const metadata, server = "tcp/169.254.169.254:80", "tcp/10.96.0.1:443"
		outcomes := c.dialFrom(t, "red", metadata, server)
		if outcomes[metadata] == "open" {
			t.Error("a tenant's pod reaches the metadata address")
		}
		if outcomes[server] != "open" {
			t.Errorf("a tenant's pod does not reach the API server: %s", outcomes[server])
		}
	})
	t.Run("names", func(t *testing.T) {
		const own, other = "tcp/web.red.svc.cluster.local:8080", "tcp/web.blue.svc.cluster.local:8080"
		awaitCondition(t, moments, "the DNS server to know the Services", func(context.Context) error {
			if outcomes := c.dialFrom(t, "red", own, other); outcomes[own] != "open" || outcomes[other] == "open" {
				return fmt.Errorf("outcomes by name: %v", outcomes)
			}
			return nil
		})
	})
	t.Run("consent", c.testConsent) // before verify, whose pods end after it
	t.Run("verify", func(t *testing.T) {
		for _, r := range c.verifyPackets(t, "pool-a", 0) {
			if r.Result != verify.Held {
				t.Errorf("%s: %s: %s", r.Name, r.Result, r.Message)
			}
		}
	})
	t.Run("windows", c.testWindows)
	if err := c.Stop("croft"); err != nil { // it would repair the policies
		t.Fatal(err)
	}
	for _, mistake := range mistakes {
		t.Run(mistake.name, func(t *testing.T) {
			policy := &networkingv1.NetworkPolicy{}
			c.getObject(t, mistake.namespace, network.IsolationPolicy, policy)
			before := policy.DeepCopy()
			t.Cleanup(func() {
				before.ResourceVersion, before.UID = "", ""
				_ = c.admin.Delete(context.Background(), policy) //nolint:usetesting // the test's context has ended
				if err := c.admin.Create(context.Background(), before); err != nil {
					t.Fatal(err)
				}
			})
			if mistake.change == nil {
				if err := c.admin.Delete(t.Context(), policy); err != nil {
					t.Fatal(err)
				}
			} else {
				mistake.change(&policy.Spec)
				if err := c.admin.Update(t.Context(), policy); err != nil {
					t.Fatal(err)
				}
			}
			if wrong := findUndeclared(c.expectMatrix(t, webPort, "tcp", "udp")); len(wrong) == 0 {
				t.Error("neither packets nor croft reach show the mistake")
			}
		})
	}
	c.killSandbox(t)
}

// killSandbox kills a sandbox with real nodes, as in a crash. It fails if a process of a node
// stays, or if `croft-sandbox down` leaves a control group.
func (c *cluster) killSandbox(t *testing.T) {
	t.Helper()
	if out, err := exec.Command("pkill", "-KILL", "-f", regexp.QuoteMeta(c.Dir)+".* supervise$").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	awaitCondition(t, moments, "all processes of nodes to end", func(context.Context) error {
		for _, group := range listControlGroups(t) {
			running, err := os.ReadFile(filepath.Join(group, "cgroup.procs"))
			if err == nil && len(running) > 0 {
				return fmt.Errorf("%s has the processes %q", group, running)
			}
		}
		return nil
	})
	if err := c.Down(); err != nil {
		t.Fatal(err)
	}
	if left := listControlGroups(t); len(left) > 0 {
		t.Errorf("control groups of nodes are left: %v", left)
	}
}

// verifyPackets runs `croft verify --packets` on a pool, and returns the results of its tests.
func (c *cluster) verifyPackets(t *testing.T, pool string, status int) []verify.Result {
	t.Helper()
	var report struct{ Results []verify.Result }
	out := c.runCroft(t, "verify", "--wall", "network", "--packets", "--pool", pool, "--image", "any/croft", "-o", "json").expectExit(t, status)
	if err := json.Unmarshal([]byte(out.stdout), &report); err != nil {
		t.Fatal(err, out)
	}
	results := slices.DeleteFunc(report.Results, func(r verify.Result) bool { return !strings.HasPrefix(r.Name, "packets-") })
	if len(results) != 7 {
		t.Fatalf("%d results of packets: %s", len(results), out)
	}
	return results
}

// mistakes are mistakes in a tenant's isolation, in one namespace. Without a change the policy
// is deleted.
var mistakes = []struct {
	name, namespace string
	change          func(*networkingv1.NetworkPolicySpec)
}{
	{"no policy", "red", nil},
	{"no policy of a tenant on another pool", "blue", nil},
	{"egress alone", "green", func(s *networkingv1.NetworkPolicySpec) {
		s.PolicyTypes, s.Ingress = []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}, nil
	}},
	{"from all namespaces", "red", func(s *networkingv1.NetworkPolicySpec) {
		s.Ingress[0].From[0].NamespaceSelector = &metav1.LabelSelector{}
	}},
	{"from anywhere", "blue", func(s *networkingv1.NetworkPolicySpec) { s.Ingress[0].From = nil }},
	{"from another tenant", "green", func(s *networkingv1.NetworkPolicySpec) {
		s.Ingress[0].From = append(s.Ingress[0].From, networkingv1.NetworkPolicyPeer{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "blue"}},
		})
	}},
	{"from an address range", "red-ci", func(s *networkingv1.NetworkPolicySpec) {
		s.Ingress[0].From = []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: "10.244.0.0/16"}}}
	}},
	{"for other pods", "blue", func(s *networkingv1.NetworkPolicySpec) {
		s.PodSelector = metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}}
	}},
	{"not from the tenant itself", "red", func(s *networkingv1.NetworkPolicySpec) { s.Ingress = nil }},
	{"on another port", "red-ci", func(s *networkingv1.NetworkPolicySpec) {
		s.Ingress[0].Ports = []networkingv1.NetworkPolicyPort{{Port: ptr.To(intstr.FromInt32(81)), Protocol: ptr.To(corev1.ProtocolTCP)}}
	}},
}

// connection is a connection between two namespaces over a protocol.
type connection struct{ from, to, protocol string }

// findUndeclared lists the connections that are open although the namespaces belong to different
// tenants, or closed although they belong to one. Agreed connections must be open, too.
func findUndeclared(matrix map[connection]bool, agreed ...connection) []connection {
	tenants := map[string]string{}
	for tenant, namespaces := range packetNamespaces {
		for _, namespace := range namespaces {
			tenants[namespace] = tenant
		}
	}
	var wrong []connection
	for each, open := range matrix {
		if open != (tenants[each.from] == tenants[each.to] || slices.Contains(agreed, each)) {
			wrong = append(wrong, each)
		}
	}
	return wrong
}

// expectMatrix returns the connections to a port that croft reach reports as open, and fails unless
// packets pass on exactly these.
func (c *cluster) expectMatrix(t *testing.T, port int, protocols ...string) map[connection]bool {
	t.Helper()
	all := slices.Concat(slices.Collect(maps.Values(packetNamespaces))...)
	open := map[connection]bool{}
	want := map[string]map[string]bool{} // by source, and by address
	for _, protocol := range protocols {
		var reach struct{ Namespaces []netpol.Row }
		out := c.runCroft(t, "reach", fmt.Sprintf("--port=%d", port), "--protocol", strings.ToUpper(protocol), "-o", "json").expectExit(t, 0)
		if err := json.Unmarshal([]byte(out.stdout), &reach); err != nil {
			t.Fatal(err, out)
		}
		for _, row := range reach.Namespaces {
			if want[row.Namespace] == nil {
				want[row.Namespace] = map[string]bool{}
			}
			for _, to := range all {
				if to == row.Namespace {
					continue // a pod reaches itself without the network
				}
				reaches := slices.Contains(row.Reaches, to)
				open[connection{row.Namespace, to, protocol}] = reaches
				for _, address := range c.listAddresses(t, to, port) {
					want[row.Namespace][protocol+"/"+address] = reaches
				}
			}
		}
	}
	for from, addresses := range want {
		awaitCondition(t, moments, "packets to pass where croft reach allows it", func(context.Context) error {
			for address, outcome := range c.dialFrom(t, from, slices.Sorted(maps.Keys(addresses))...) {
				if (outcome == "open") != addresses[address] {
					return fmt.Errorf("from %s to %s: %s; croft reach: %t", from, address, outcome, addresses[address])
				}
			}
			return nil
		})
	}
	return open
}

// listAddresses returns the addresses of a namespace's pod and Service, with a port.
func (c *cluster) listAddresses(t *testing.T, namespace string, port int) []string {
	t.Helper()
	var web corev1.Pod
	c.getObject(t, namespace, "web", &web)
	var service corev1.Service
	c.getObject(t, namespace, "web", &service)
	number := strconv.Itoa(port)
	return []string{net.JoinHostPort(web.Status.PodIP, number), net.JoinHostPort(service.Spec.ClusterIP, number)}
}

// dialFrom returns "open" or an error for each address, such as tcp/10.244.1.2:8080, that a
// namespace's pod connects to.
func (c *cluster) dialFrom(t *testing.T, from string, addresses ...string) map[string]string {
	t.Helper()
	args := append([]string{"exec", "pod/web", "-n", from, "--", "/probe", "dial"}, addresses...)
	outcomes := map[string]string{}
	for line := range strings.Lines(c.runKubectl(t, "", args...).expectExit(t, 0).stdout) {
		address, outcome, _ := strings.Cut(strings.TrimSpace(line), " ")
		outcomes[address] = outcome
	}
	return outcomes
}
