package e2e

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/internal/test/sandbox"
	"croft.dev/croft/internal/walls/wall/network"
)

// TestPlatformExample fails if a setting of the Platform has no effect in the cluster: the key
// of labels and taints, the prefix of groups, the namespaces of the platform's services.
func TestPlatformExample(t *testing.T) {
	sandbox.Thorough(t) // internal/cli tests the rendered objects of every setting
	t.Parallel()        // it mostly waits
	const key, tenant, pool = "platform.example.edu/node-pool", "sample-team-gitlab-ci", "sample-team-gitlab-jobs"
	c := startWithCroft(t)
	file := getExamplePath("platform.yaml")
	e := buildEstate(t, file, readRepositoryFile(t, file))
	c.applyFile(t, file)

	t.Run("the key is on nodes", func(t *testing.T) {
		for _, p := range e.Pools {
			var nodePool karpenterv1.NodePool
			c.getObject(t, "", p.Name, &nodePool)
			if got := nodePool.Spec.Template.Labels[key]; got != p.Name {
				t.Errorf("NodePool %s gives its nodes the label %s=%q, want %q", p.Name, key, got, p.Name)
			}
			for _, effect := range []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute} {
				want := corev1.Taint{Key: key, Value: p.Name, Effect: effect}
				if taints := nodePool.Spec.Template.Spec.Taints; !slices.Contains(taints, want) {
					t.Errorf("NodePool %s gives its nodes the taints %v, without %s", p.Name, taints, want.ToString())
				}
			}
		}
	})

	t.Run("groups have their prefix", func(t *testing.T) {
		expectForbidden(t, "creating a pod without the prefix",
			c.newMemberClient(t, "team.devs.platform-access").Create(t.Context(), newNginxPod(tenant, "job")))
		expectForbidden(t, "creating a pod as a viewer",
			c.newMemberClient(t, "oidc:team.devs.platform-access").Create(t.Context(), newNginxPod("nis-customer-portal", "job")))
	})

	t.Run("a pod lands on its pool", func(t *testing.T) {
		pod := newNginxPod(tenant, "job")
		createObjects(t, c.newMemberClient(t, "oidc:team.devs.platform-access"), pod)
		pod = c.awaitRunning(t, pod)
		expectPlacement(t, pod, key, pool)
		node := c.expectPool(t, e, pod, pool)
		if got := node.Labels[corev1.LabelInstanceTypeStable]; got != "t3a.medium" {
			t.Errorf("it runs on a %s, want a t3a.medium", got)
		}
	})

	t.Run("the platform's services can connect", func(t *testing.T) {
		var policy networkingv1.NetworkPolicy
		c.getObject(t, tenant, network.PlatformPolicy, &policy)
		var from []string
		for _, rule := range policy.Spec.Ingress {
			for _, peer := range rule.From {
				for _, e := range peer.NamespaceSelector.MatchExpressions {
					from = append(from, e.Values...)
				}
			}
		}
		if want := []string{"ingress", "monitoring"}; !slices.Equal(from, want) {
			t.Errorf("it lets in %v, want %v", from, want)
		}
	})

	t.Run("all walls hold", func(t *testing.T) { c.runCroft(t, "verify").expectExit(t, 0) })
}
