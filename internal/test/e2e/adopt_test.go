package e2e

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/test/sandbox"
)

// shop is a team's namespace on shared nodes, with objects in it that croft's rules refuse.
const shop = `
platform: {clusterName: demo, nodeClass: {kwok: {}}, nodePoolKey: node-pool}
pools:
  pool-b: {instances: {capacityTypes: [on-demand]}}
tenants:
  shop: {pool: pool-b, quota: {pods: "1", services: "0"}, access: [{group: shoppers, role: operator}]}
`

// TestAdopt adopts a namespace with pods that croft would refuse or place on other nodes when
// they are created again. It fails if the plan does not list each of them with the message of
// the rule, or if the command, killed after any step, leaves a state that the next run neither
// undoes nor completes.
func TestAdopt(t *testing.T) {
	sandbox.EndToEnd(t)
	t.Parallel() // it mostly waits
	c := startSandbox(t, sandbox.Options{Croft: findCroftBinary(t)})
	c.runKubectl(t, "", "create", "-f", "internal/test/e2e/testdata/adopt/nodepools.yaml").expectExit(t, 0)
	c.runKubectl(t, "", "create", "-f", "internal/test/e2e/testdata/adopt/shop.yaml").expectExit(t, 0)
	c.awaitRunningPods(t, "shop", 4)
	steady := c.watchSteadiness(t)
	before := selectTenantState(c.recordState(t), "shop", "")
	file := writeTempFile(t, shop)
	adopt := func(more ...string) []string {
		return append([]string{"adopt", "tenant", "shop", "-f", file, "--yes", "--remove-old"}, more...)
	}

	t.Run("adopt stops before the first write", func(t *testing.T) {
		out := c.runCroft(t, adopt()...).expectExit(t, 1)
		if !strings.Contains(out.stderr, "the tenant's namespaces are unchanged") {
			t.Errorf("it does not stop: %s", out)
		}
		expectSame(t, "shop", before, selectTenantState(c.recordState(t), "shop", ""))
	})
	t.Run("plan", func(t *testing.T) {
		now := c.recordState(t)
		out := c.runCroft(t, "adopt", "tenant", "shop", "-f", file, "--dry-run").expectExit(t, 0)
		expectSame(t, "a dry run left something", now, c.recordState(t))
		for _, line := range []string{
			"MOVES to pool-b",
			"IS REFUSED: [priority-class] spec.priorityClassName: system-cluster-critical is not among",
			`IS REFUSED: violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)`,
			"Service shop/door", "[service-type]",
			"RoleBinding shop/strangers", "gives visitors the role ",
			"RoleBinding shop/shoppers", "deleted with --remove-old",
			"WAITS: no new node of pool-b meets its requirements: ", "kubernetes.io/arch In [arm64]",
			"REPLACES ITS NODES", "pods       4", "services   1", "ENDS",
		} {
			if !strings.Contains(out.stdout, line) {
				t.Errorf("the plan does not contain %q: %s", line, out)
			}
		}
	})
	for step := 3; step <= 7; step++ {
		t.Run(fmt.Sprintf("killed after step %d and undone", step), func(t *testing.T) {
			if step != 3 && step != 6 {
				sandbox.Thorough(t) // two steps, and the tests that kill and complete adoptions, are in `make e2e`
			}
			c.killAtStep(t, step, adopt()...)
			c.runCroft(t, "adopt", "tenant", "shop", "--undo", "--yes").expectExit(t, 0)
			expectSame(t, "shop after --undo", before, selectTenantState(c.recordState(t), "shop", ""))
		})
	}
	t.Run("killed and completed", func(t *testing.T) {
		c.killAtStep(t, 4, adopt()...)
		c.killAtStep(t, 6, adopt()...)
		out := c.runCroft(t, adopt()...).expectExit(t, 0)
		for _, line := range []string{"shop/Deployment/urgent would be refused, as the plan shows: [priority-class]", "croft's rules would refuse new pods of 2 workloads"} {
			if !strings.Contains(out.stderr, line) {
				t.Errorf("it does not print %q: %s", line, out)
			}
		}
		c.expectOldObjectsDeleted(t)
		if labels := c.getNamespace(t, "shop").Labels; labels["pod-security.kubernetes.io/enforce"] != "baseline" {
			t.Errorf("the namespace has the labels %v", labels)
		}
		var policies networkingv1.NetworkPolicyList
		if err := c.admin.List(t.Context(), &policies, client.InNamespace("shop"), ours); err != nil || len(policies.Items) == 0 {
			t.Errorf("there are no walls: %v", err)
		}
	})
	steady.expectSteady(t)
	t.Run("fields that the cluster adds to pods", c.adoptTolerant)
}

// adoptTolerant plans the adoption of a namespace whose pods get a toleration from the API
// server's plugin PodTolerationRestriction. croft refuses all of these pods.
func (c *cluster) adoptTolerant(t *testing.T) {
	c.runKubectl(t, "", "create", "-f", "internal/test/e2e/testdata/adopt/tolerant.yaml").expectExit(t, 0)
	file := writeTempFile(t, "tenants: {tolerant: {pool: pool-b}}\n")
	awaitCondition(t, patience, "the plan to report that its pods are refused", func(context.Context) error {
		out := c.runCroft(t, "adopt", "tenant", "tolerant", "-f", file, "--dry-run")
		for _, line := range []string{
			"IS REFUSED: [tolerations]", "every new pod in namespace tolerant would be refused because of fields that the cluster adds to it",
			"Namespace tolerant, annotation scheduler.alpha.kubernetes.io/defaultTolerations", "adds node-pool=pool-b,disk=ssd to pods; croft places them only by node-pool",
		} {
			if out.status != 1 || !strings.Contains(out.stdout, line) {
				return fmt.Errorf("the plan does not contain %q: %s", line, out)
			}
		}
		return nil
	})
}

// killAtStep runs croft and kills it when it reports the given step.
func (c *cluster) killAtStep(t *testing.T, step int, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), findCroftBinary(t), args...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "KUBECONFIG="+c.Kubeconfig)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for scanner := bufio.NewScanner(stderr); scanner.Scan(); {
		lines = append(lines, scanner.Text())
		if strings.HasPrefix(scanner.Text(), fmt.Sprintf("%d/8 ", step)) {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			return
		}
	}
	t.Fatalf("it ended before step %d: %v: %s", step, cmd.Wait(), strings.Join(lines, "\n"))
}
