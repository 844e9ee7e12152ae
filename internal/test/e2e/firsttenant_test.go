package e2e

import (
	"testing"
	"time"

	"croft.dev/croft/internal/test/sandbox"
)

// TestFirstTenant follows docs/how-to/install.md from a cluster with Karpenter to a tenant whose walls
// were attacked, and logs the duration of each step, which the page states.
func TestFirstTenant(t *testing.T) {
	sandbox.Thorough(t) // it needs bin/helm; TestTwoTenants takes the same steps with croft install
	c := start(t, sandbox.Options{})
	c.env = append(c.env, "KUBECONFIG="+c.Kubeconfig)
	c.kubectl(t, "", append([]string{"delete", "crd"}, croftKinds(t)...)...).exits(t, 0)
	c.runPods(t)
	began := time.Now()
	lap := func(step string) {
		t.Logf("%5.1f s  %s", time.Since(began).Seconds(), step)
		began = time.Now()
	}
	args := append([]string{"install", "croft", chart, "-f", example("two-tenants.yaml"), "--wait", "--timeout", patience.String()}, chartImageValues...)
	helm(t, c.env, args...).exits(t, 0)
	lap("helm install --wait")
	c.kubectl(t, "", "wait", "tenants", "--all", "--for=condition=Ready", "--timeout", patience.String()).exits(t, 0)
	lap("kubectl wait tenants")
	team := teams[0]
	deployment, service := nginxes(team.tenant, 1)
	create(t, c.member(t, team.group), deployment, service)
	pod := c.running(t, team.tenant, 1)[0]
	lap("a Deployment's pod runs, on a node that Karpenter made")
	isPlaced(t, &pod, estateOf(t, example("two-tenants.yaml"), read(t, example("two-tenants.yaml"))).Platform.NodePoolKey, team.pool)
	c.croft(t, "verify").exits(t, 0)
	lap("croft verify")
}
