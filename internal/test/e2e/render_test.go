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
	c := start(t, sandbox.Options{})
	file := example("two-tenants.yaml")
	e := estateOf(t, file, read(t, file))

	rendered := c.croft(t, "render", "-f", file).exits(t, 0).stdout
	if again := c.croft(t, "render", "-f", file).exits(t, 0).stdout; again != rendered {
		t.Errorf("render prints something else the second time:\n%s\n--- and before:\n%s", again, rendered)
	}
	for range 2 { // twice, as GitOps tools apply repeatedly
		c.kubectl(t, rendered, "apply", "--server-side", "-f", "-").exits(t, 0)
	}

	for _, team := range teams {
		c.placesPods(t, team.tenant, e.Platform.NodePoolKey, team.pool)
	}
	for _, team := range teams {
		deployment, service := nginxes(team.tenant, 3)
		create(t, c.member(t, team.group), deployment, service)
	}
	for _, team := range teams {
		for _, pod := range c.running(t, team.tenant, 3) {
			isPlaced(t, &pod, e.Platform.NodePoolKey, team.pool)
			c.runsOn(t, e, &pod, team.pool)
		}
	}
	a := teams[0]
	member := c.member(t, a.group)
	isRefused(t, "a pod that tolerates everything",
		member.Create(t.Context(), nginx(a.tenant, "stowaway", tolerateEverything)), byPlacement)
	isRefused(t, "a NetworkPolicy that lets everybody in",
		member.Create(t.Context(), openHouse(a.tenant)), byFloor)

	t.Run("an operator takes over", func(t *testing.T) {
		before := c.namespaceUIDs(t)
		operator := c.operate(t, c.install(t))
		c.apply(t, file)
		if after := c.namespaceUIDs(t); !maps.Equal(before, after) {
			t.Errorf("the tenants' namespaces are now %v, and were %v", after, before)
		}
		for _, team := range teams {
			c.running(t, team.tenant, 3)
		}
		operator.stop(t)
	})
}

// namespaceUIDs returns the UIDs of tenants' namespaces, which change if one is replaced.
func (c *cluster) namespaceUIDs(t testing.TB) map[string]types.UID {
	t.Helper()
	namespaces, err := c.tenantNamespaces(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	uids := map[string]types.UID{}
	for _, n := range namespaces {
		uids[n.Name] = n.UID
	}
	return uids
}
