package e2e

import (
	"context"
	"fmt"
	"net/url"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/internal/observe/launches"
	"croft.dev/croft/internal/test/sandbox"
)

// TestRefusedLaunches removes the instance profile of one pool. It fails if a pod of another tenant
// then runs later than after twice its usual time: at the first refusal, during the hold, or while
// Karpenter tries again; or if the pool does not get nodes soon after its Pool has changed. Instances
// are as slow as real ones: an attempt takes Karpenter and croft the same time at any speed.
func TestRefusedLaunches(t *testing.T) {
	sandbox.Thorough(t)
	c := &accountCluster{&faultyCluster{&twoTenants{cluster: startSandbox(t, sandbox.Options{Croft: findCroftBinary(t), With: []string{sandbox.AWS}})}}}
	c.configureAWSClient(t)
	profile, role := url.Values{"InstanceProfileName": {"ours"}}, url.Values{"InstanceProfileName": {"ours"}, "RoleName": {"KarpenterNodeRole-demo"}}
	create := func() {
		c.callIAM(t, "CreateInstanceProfile", profile)
		c.callIAM(t, "AddRoleToInstanceProfile", role)
	}
	create()
	const spec = "{instances: {instanceTypes: [c5.2xlarge]}, nodeClass: {aws: {instanceProfile: ours}}, weight: %d}"
	c.declarePool(t, "broken", fmt.Sprintf(spec, 1))
	c.declarePool(t, "patient", "{instances: {instanceTypes: [c5.large]}}")
	c.awaitNodePoolReady(t, "broken")
	c.awaitNodePoolReady(t, "patient")
	usual := max(c.starts(t, "usual-1"), c.starts(t, "usual-2"))

	c.callIAM(t, "RemoveRoleFromInstanceProfile", role)
	c.callIAM(t, "DeleteInstanceProfile", profile)
	c.createDeployment(t, "broken")
	c.isLaunching(t, "broken")
	refused := c.starts(t, "refused")
	c.refusal(t, "broken", "its launches to be held", func(_ *launches.Refusal, held bool) bool { return held })
	c.awaitCause(t, "instance-profile-name", "", "deployment/nginx", "-n", "broken")
	held := c.starts(t, "held")
	c.runCroftWithInput(t, poolFile("broken", fmt.Sprintf(spec, 1)), "diff", "-f", "-").expectExit(t, 0)
	c.isLaunching(t, "broken")
	again := c.starts(t, "again")
	t.Logf("a pod runs after %v; at the first refusal after %v, during the hold after %v, at a further attempt after %v", usual, refused, held, again)
	for when, took := range map[string]time.Duration{"at the first refusal": refused, "during the hold": held, "at a further attempt": again} {
		if took > 2*usual {
			t.Errorf("%s a pod of another tenant runs after %v, and usually after %v", when, took, usual)
		}
	}

	second := c.refusal(t, "broken", "its second hold", func(r *launches.Refusal, held bool) bool { return held && r.Attempts > 1 })
	create()
	c.declarePool(t, "broken", fmt.Sprintf(spec, 2))
	c.refusal(t, "broken", "the change to end the hold", func(_ *launches.Refusal, held bool) bool { return !held })
	if time.Now().After(second.Until) {
		t.Errorf("the hold has only ended at %v", second.Until)
	}
	c.awaitRunningPods(t, "broken", 1)
}

// isLaunching waits until a pool has a NodeClaim, which lives for seconds. A pod that is created then
// is not among the pods about which Karpenter has just decided.
func (c *accountCluster) isLaunching(t testing.TB, pool string) {
	t.Helper()
	var claims karpenterv1.NodeClaimList
	if err := wait.PollUntilContextTimeout(t.Context(), interval, patience, true, func(ctx context.Context) (bool, error) {
		err := c.admin.List(ctx, &claims, client.MatchingLabels{karpenterv1.NodePoolLabelKey: pool})
		return err == nil && len(claims.Items) > 0, nil
	}); err != nil {
		t.Fatalf("a NodeClaim of %s: %v", pool, err)
	}
}

// starts creates a pod that needs a node of its own, and returns the time until it runs.
func (c *accountCluster) starts(t testing.TB, name string) time.Duration {
	t.Helper()
	pod := newNginxPod("patient", name, func(spec *corev1.PodSpec) {
		spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1200m")}
	})
	awaitCondition(t, moments, "a team to be let in", func(ctx context.Context) error {
		return client.IgnoreAlreadyExists(c.newMemberClient(t, "team-patient").Create(ctx, pod.DeepCopy()))
	})
	began := time.Now()
	if err := wait.PollUntilContextTimeout(t.Context(), interval, patience, true, func(ctx context.Context) (bool, error) {
		err := c.admin.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return err == nil && checkRunning(pod) == nil, nil
	}); err != nil {
		t.Fatalf("pod %s: %v: %+v", name, err, pod.Status)
	}
	return time.Since(began)
}

// refusal waits for a record of refused launches, and returns it.
func (c *accountCluster) refusal(t testing.TB, pool, what string, is func(r *launches.Refusal, held bool) bool) *launches.Refusal {
	t.Helper()
	var live karpenterv1.NodePool
	r := &launches.Refusal{}
	awaitCondition(t, patience, what, func(ctx context.Context) error {
		if err := c.admin.Get(ctx, client.ObjectKey{Name: pool}, &live); err != nil {
			return err
		}
		if r = launches.ReadRefusal(&live); r == nil {
			r = &launches.Refusal{}
		}
		if !is(r, launches.IsHeld(&live)) {
			return fmt.Errorf("%+v, %v", r, live.Spec.Limits)
		}
		return nil
	})
	return r
}
