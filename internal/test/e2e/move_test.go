package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/test/sandbox"
)

// buildMovingEstate returns an estate whose tenant is on the named pool.
func buildMovingEstate(pool string) string {
	return "platform: {clusterName: demo, nodeClass: {kwok: {}}}\npools: {left: {}, right: {}}\n" +
		"tenants: {shop: {pool: " + pool + ", access: [{group: shoppers, role: operator}]}}\n"
}

// TestMove changes a tenant's pool while its pods run. It fails if `why`, `doctor` or `verify`
// do not report pods on the old pool; if `croft move` leaves any there, or evicts more at once
// than a budget allows; or if --undo does not move them back.
func TestMove(t *testing.T) {
	sandbox.EndToEnd(t)
	t.Parallel() // it mostly waits
	c := startSandbox(t, sandbox.Options{Croft: findCroftBinary(t)})
	c.applyContent(t, buildMovingEstate("left"))
	c.awaitServiceAccount(t, "shop")
	roll, _ := newNginxDeployment("shop", 3)
	roll.Name = "roll"
	recreate := roll.DeepCopy()
	recreate.Name = "recreate"
	recreate.Labels, recreate.Spec.Selector = map[string]string{"app": "recreate"}, &metav1.LabelSelector{MatchLabels: map[string]string{"app": "recreate"}}
	recreate.Spec.Template.Labels = recreate.Labels
	recreate.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	createObjects(t, c.admin, roll, recreate, newNginxPod("shop", "bare"), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "recreate"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(2)), Selector: recreate.Spec.Selector},
	})
	c.awaitRunningPods(t, "shop", 7)
	c.runCroft(t, "why", "deployment/roll", "-n", "shop").expectExit(t, 0)
	awaitCondition(t, patience, "doctor to find nothing", func(context.Context) error {
		return checkNoMisplaced(c.runCroft(t, "doctor"))
	})

	c.applyContent(t, buildMovingEstate("right"))
	t.Run("named", func(t *testing.T) {
		for _, command := range [][]string{
			{"why", "deployment/roll", "-n", "shop"}, {"why", "pod/bare", "-n", "shop"}, {"doctor"}, {"verify", "--tenant", "shop"},
			{"why", "deployment/roll", "-n", "shop", "--as", "jane", "--as-group", "shoppers"},
		} {
			if out := c.runCroft(t, command...).expectExit(t, 1); !hasMisplaced(out) {
				t.Errorf("pods on the old pool are not named: %s", out)
			}
		}
	})
	t.Run("moved", func(t *testing.T) {
		out := c.runCroft(t, "move", "tenant", "shop", "--dry-run").expectExit(t, 0)
		for _, want := range []string{"Deployment/roll", "is restarted", "PodDisruptionBudget recreate allows 1", "Pod/bare", "STAYS"} {
			if !strings.Contains(out.stdout, want) {
				t.Errorf("the plan does not contain %q: %s", want, out)
			}
		}
		least := c.recordLeastAvailable(t, "shop", "recreate")
		c.runCroft(t, "move", "tenant", "shop", "--yes", "--wait-timeout", patience.String()).expectExit(t, 1) // a bare pod remains
		if n := least(); n < 2 {
			t.Errorf("only %d pods were available, although the budget asks for 2", n)
		}
		c.runCroft(t, "move", "tenant", "shop", "--yes", "--evict", "--wait-timeout", patience.String()).expectExit(t, 0)
		c.awaitPodsOnPool(t, "shop", "right", 6)
		c.runCroft(t, "why", "deployment/roll", "-n", "shop").expectExit(t, 0)
	})
	t.Run("undone", func(t *testing.T) {
		c.runCroft(t, "move", "tenant", "shop", "--undo", "--yes", "--wait-timeout", patience.String()).expectExit(t, 0)
		var tenant v1alpha1.Tenant
		c.getObject(t, "", "shop", &tenant)
		if tenant.Spec.Pool != "left" {
			t.Errorf("the tenant has pool %s", tenant.Spec.Pool)
		}
		c.awaitPodsOnPool(t, "shop", "left", 6)
	})
}

// hasMisplaced reports whether croft names pods that run on nodes of another pool than their
// tenant's.
func hasMisplaced(out outcome) bool {
	text := out.stdout + out.stderr
	for _, words := range []string{"tenant may not use", "on a node of another pool", "on nodes of other pools"} {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}

func checkNoMisplaced(out outcome) error {
	if hasMisplaced(out) {
		return fmt.Errorf("it prints %s", out)
	}
	return nil
}

// recordLeastAvailable records the minimum number of available pods of a Deployment until the
// returned function is called.
func (c *cluster) recordLeastAvailable(t *testing.T, namespace, name string) func() int {
	t.Helper()
	least := 1 << 10
	stop := sandbox.Watch(t, c.Config, &appsv1.DeploymentList{}, func(_ watch.EventType, o client.Object) {
		least = min(least, int(o.(*appsv1.Deployment).Status.AvailableReplicas))
	}, client.InNamespace(namespace), client.MatchingFields{"metadata.name": name})
	return func() int { stop(); return least }
}

// awaitPodsOnPool waits until exactly this number of a namespace's pods run, all of them on one
// pool.
func (c *cluster) awaitPodsOnPool(t *testing.T, namespace, pool string, want int) {
	t.Helper()
	awaitCondition(t, patience, "the pods to be on "+pool, func(ctx context.Context) error {
		var pods corev1.PodList
		if err := c.admin.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
			return err
		}
		n := 0
		for i := range pods.Items {
			var node corev1.Node
			if pods.Items[i].DeletionTimestamp != nil {
				continue
			}
			if err := c.admin.Get(ctx, client.ObjectKey{Name: pods.Items[i].Spec.NodeName}, &node); err != nil {
				return err
			}
			if on := node.Labels[v1alpha1.DefaultNodePoolKey]; on != pool {
				return fmt.Errorf("pod %s is on pool %s", pods.Items[i].Name, on)
			}
			n++
		}
		if n != want {
			return fmt.Errorf("%d pods, want %d", n, want)
		}
		return nil
	})
}
