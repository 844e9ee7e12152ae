package e2e

import (
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"croft.dev/croft/internal/test/sandbox"
)

// TestRenderWithoutOperator fails if the output of render lacks a part of the walls, has an
// order that one pass of kubectl cannot apply, or is not deterministic, or if the operator
// treats objects that another tool has applied as foreign.
func TestRenderWithoutOperator(t *testing.T) {
	sandbox.Thorough(t) // internal/cli tests the output of render; TestTwoTenants applies the same
	t.Parallel()        // it mostly waits
	c := startSandbox(t, sandbox.Options{})
	file := getExamplePath("two-tenants.yaml")
	e := buildEstate(t, file, readRepositoryFile(t, file))

	rendered := c.runCroft(t, "render", "-f", file).expectExit(t, 0).stdout
	if again := c.runCroft(t, "render", "-f", file).expectExit(t, 0).stdout; again != rendered {
		t.Errorf("render prints something else the second time:\n%s\n--- and before:\n%s", again, rendered)
	}
	for range 2 { // twice, as GitOps tools apply repeatedly
		c.runKubectl(t, rendered, "apply", "--server-side", "-f", "-").expectExit(t, 0)
	}

	for _, team := range teams {
		c.awaitPlacement(t, team.tenant, e.Platform.NodePoolKey, team.pool)
	}
	for _, team := range teams {
		deployment, service := newNginxDeployment(team.tenant, 3)
		createObjects(t, c.newMemberClient(t, team.group), deployment, service)
	}
	for _, team := range teams {
		for _, pod := range c.awaitRunningPods(t, team.tenant, 3) {
			expectPlacement(t, &pod, e.Platform.NodePoolKey, team.pool)
			c.expectPool(t, e, &pod, team.pool)
		}
	}
	a := teams[0]
	member := c.newMemberClient(t, a.group)
	expectRefusal(t, "a pod that tolerates everything",
		member.Create(t.Context(), newNginxPod(a.tenant, "stowaway", tolerateEverything)), byPlacement)
	expectRefusal(t, "a NetworkPolicy that lets everybody in",
		member.Create(t.Context(), newOpenPolicy(a.tenant)), byFloor)

	t.Run("an operator takes over", func(t *testing.T) {
		before := c.listNamespaceUIDs(t)
		operator := c.startOperator(t, c.installCroft(t))
		c.applyFile(t, file)
		if after := c.listNamespaceUIDs(t); !maps.Equal(before, after) {
			t.Errorf("the tenants' namespaces are now %v, and were %v", after, before)
		}
		for _, team := range teams {
			c.awaitRunningPods(t, team.tenant, 3)
		}
		operator.stopProcess(t)
	})
}

// listNamespaceUIDs returns the UIDs of tenants' namespaces, which change if one is replaced.
func (c *cluster) listNamespaceUIDs(t testing.TB) map[string]types.UID {
	t.Helper()
	namespaces, err := c.listTenantNamespaces(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	uids := map[string]types.UID{}
	for _, n := range namespaces {
		uids[n.Name] = n.UID
	}
	return uids
}
