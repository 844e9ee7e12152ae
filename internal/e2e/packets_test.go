package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/internal/netpol"
	"croft.dev/croft/internal/sandbox"
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

// bothProtocols is a Service of TCP and UDP.
const bothProtocols = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{name: tcp, port: 8080, protocol: TCP}, {name: udp, port: 8080, protocol: UDP}]
`

var packetNamespaces = []string{"red", "red-ci", "green", "blue"}

// TestPackets compares `croft reach` with packets: each pod dials each other one over TCP and
// UDP, by pod address and by Service, on real nodes whose network plugin enforces
// NetworkPolicies. It fails if croft writes a policy that a plugin understands differently,
// or if the evaluator has a mistake.
func TestPackets(t *testing.T) {
	sandbox.Thorough(t)
	needsRealNodes(t)
	c := start(t, sandbox.Options{RealNodes: true, Enforced: true, Croft: croftBinary(t)})
	c.declare(t, packetTenants)
	for _, namespace := range packetNamespaces {
		c.kubectl(t, pod("web", "restartPolicy: Always", "ports: [{containerPort: 8080}]"), "apply", "-n", namespace, "-f", "-").exits(t, 0)
		c.kubectl(t, "", "label", "pod/web", "app=web", "-n", namespace).exits(t, 0)
		c.kubectl(t, bothProtocols, "apply", "-n", namespace, "-f", "-").exits(t, 0)
	}
	for _, namespace := range packetNamespaces {
		c.kubectl(t, "", "wait", "pod/web", "-n", namespace, "--for=condition=Ready", "--timeout", patience.String()).exits(t, 0)
	}
	for _, step := range []struct{ name, policy string }{
		{"croft's policies", ""},
		{"a policy that lets another tenant in", `
metadata: {name: open, namespace: red}
spec: {podSelector: {}, policyTypes: [Ingress], ingress: [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: blue}}}]}]}`},
		{"a policy that opens a port to everybody", `
metadata: {name: open, namespace: green}
spec: {podSelector: {}, policyTypes: [Ingress], ingress: [{ports: [{port: 8080, protocol: TCP}]}]}`},
		{"a policy without a type of its own", `
metadata: {name: open, namespace: blue}
spec: {podSelector: {}, ingress: [{}]}`},
	} {
		t.Run(step.name, func(t *testing.T) {
			if step.policy != "" {
				policy := &networkingv1.NetworkPolicy{}
				if err := yaml.UnmarshalStrict([]byte(step.policy), policy); err != nil {
					t.Fatal(err)
				}
				create(t, c.admin, policy)
				t.Cleanup(func() {
					if err := c.admin.Delete(context.Background(), policy); err != nil { //nolint:usetesting // the test's context has ended
						t.Error(err)
					}
				})
			}
			c.agrees(t)
		})
	}
	t.Run("metadata", func(t *testing.T) {
		const metadata, server = "169.254.169.254:80", "10.96.0.1:443"
		outcomes := c.dial(t, "red", "tcp", metadata, server)
		if outcomes[metadata] == "open" {
			t.Error("a tenant's pod reaches the metadata address")
		}
		if outcomes[server] != "open" {
			t.Errorf("a tenant's pod does not reach the API server: %s", outcomes[server])
		}
	})
}

// agrees fails unless packets pass exactly where croft reach allows a connection.
func (c *cluster) agrees(t *testing.T) {
	t.Helper()
	addresses := map[string][]string{} // by namespace
	for _, namespace := range packetNamespaces {
		var web corev1.Pod
		c.get(t, namespace, "web", &web)
		var service corev1.Service
		c.get(t, namespace, "web", &service)
		addresses[namespace] = []string{web.Status.PodIP + ":8080", service.Spec.ClusterIP + ":8080"}
	}
	for _, network := range []string{"tcp", "udp"} {
		var matrix []netpol.Row
		out := c.croft(t, "reach", "--port=8080", "--protocol", strings.ToUpper(network), "-o", "json").exits(t, 0)
		if err := json.Unmarshal([]byte(out.stdout), &matrix); err != nil {
			t.Fatal(err, out)
		}
		for _, row := range matrix {
			if !slices.Contains(packetNamespaces, row.Namespace) {
				continue
			}
			want := map[string]bool{}
			for _, to := range packetNamespaces {
				for _, address := range addresses[to] {
					want[address] = to == row.Namespace || slices.Contains(row.Reaches, to)
				}
			}
			eventually(t, moments, "packets to pass where croft reach allows it", func(context.Context) error {
				for address, outcome := range c.dial(t, row.Namespace, network, slices.Sorted(maps.Keys(want))...) {
					if (outcome == "open") != want[address] {
						return fmt.Errorf("from %s to %s by %s: %s; croft reach: %t", row.Namespace, address, network, outcome, want[address])
					}
				}
				return nil
			})
		}
	}
}

// dial returns "open" or an error for each address that a namespace's pod connects to.
func (c *cluster) dial(t *testing.T, from, network string, addresses ...string) map[string]string {
	t.Helper()
	args := append([]string{"exec", "pod/web", "-n", from, "--", "/probe", "dial", network}, addresses...)
	outcomes := map[string]string{}
	for line := range strings.Lines(c.kubectl(t, "", args...).exits(t, 0).stdout) {
		address, outcome, _ := strings.Cut(strings.TrimSpace(line), " ")
		outcomes[address] = outcome
	}
	return outcomes
}
