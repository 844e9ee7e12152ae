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
	c := startSandbox(t, sandbox.Options{})
	c.env = append(c.env, "KUBECONFIG="+c.Kubeconfig)
	c.runKubectl(t, "", append([]string{"delete", "crd"}, listChartKinds(t)...)...).expectExit(t, 0)
	c.runPods(t)
	began := time.Now()
	lap := func(step string) {
		t.Logf("%5.1f s  %s", time.Since(began).Seconds(), step)
		began = time.Now()
	}
	args := append([]string{"install", "croft", chart, "-f", getExamplePath("two-tenants.yaml"), "--wait", "--timeout", patience.String()}, chartImageValues...)
	runHelm(t, c.env, args...).expectExit(t, 0)
	lap("helm install --wait")
	c.runKubectl(t, "", "wait", "tenants", "--all", "--for=condition=Ready", "--timeout", patience.String()).expectExit(t, 0)
	lap("kubectl wait tenants")
	team := teams[0]
	deployment, service := newNginxDeployment(team.tenant, 1)
	createObjects(t, c.newMemberClient(t, team.group), deployment, service)
	pod := c.awaitRunningPods(t, team.tenant, 1)[0]
	lap("a Deployment's pod runs, on a node that Karpenter made")
	expectPlacement(t, &pod, buildEstate(t, getExamplePath("two-tenants.yaml"), readRepositoryFile(t, getExamplePath("two-tenants.yaml"))).Platform.NodePoolKey, team.pool)
	c.runCroft(t, "verify").expectExit(t, 0)
	lap("croft verify")
}
