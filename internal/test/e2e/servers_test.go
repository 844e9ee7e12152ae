package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/test/sandbox"
	"croft.dev/croft/internal/walls/wall/policy"
)

// threeServers declares a tenant whose images come from registry 0.
const threeServers = `
platform: {clusterName: three, nodeClass: {kwok: {}}}
pools: {apps: {}}
tenants: {shop: {pool: apps, policy: {registries: [r0.example.org]}}}
`

// TestReadyAtEveryServer changes a tenant's registry while all of three API servers are
// well, while one is frozen, and while one is cut off from etcd. It fails if the tenant
// becomes Ready before each server has the new rules, or if one of them allows an image
// of the previous registry afterwards.
func TestReadyAtEveryServer(t *testing.T) {
	sandbox.EndToEnd(t)
	c := startSandbox(t, sandbox.Options{Components: sandbox.WithControllers, Croft: findCroftBinary(t), APIServers: 3})
	names := []string{"kube-apiserver", "kube-apiserver-2", "kube-apiserver-3"}
	servers := map[string]client.Client{}
	for _, name := range names {
		config, err := c.ConfigAt(name)
		if err != nil {
			t.Fatal(err)
		}
		servers[name] = newClient(t, config)
	}
	c.runCroft(t, "apply", "--wait=false", "-f", writeTempFile(t, threeServers)).expectExit(t, 0)
	c.awaitTenantReady(t, "shop")

	for i, step := range []struct {
		disturb         func(server string) error
		server, message string
	}{
		{nil, "kube-apiserver-2", ""},
		{c.Freeze, "kube-apiserver-2", "does not answer"},
		{c.Cut, "kube-apiserver-3", "still evaluates the previous rules of namespace shop"},
	} {
		if step.disturb != nil {
			if err := step.disturb(step.server); err != nil {
				t.Fatal(err)
			}
		}
		tenant := c.allowRegistry(t, fmt.Sprintf("r%d.example.org", i+1))
		changed := time.Now()
		if step.disturb != nil {
			condition := c.awaitEnforced(t, tenant, metav1.ConditionFalse)
			if condition.Reason != v1alpha1.ReasonAPIServerBehind || !strings.Contains(condition.Message, step.message) {
				t.Errorf("%s: the condition is %s: %s", step.server, condition.Reason, condition.Message)
			}
			t.Logf("%s: after %s: %s", step.server, time.Since(changed).Round(time.Millisecond), condition.Message)
			changed = time.Now()
			if err := c.Thaw(step.server); err != nil {
				t.Fatal(err)
			}
		}
		c.awaitEnforced(t, tenant, metav1.ConditionTrue)
		t.Logf("%s: Ready %s later", step.server, time.Since(changed).Round(time.Millisecond))
		for name, server := range servers {
			previous := newPodWithImage(fmt.Sprintf("r%d.example.org/app", i))
			err := server.Create(t.Context(), previous, client.DryRunAll)
			if !attack.ByPolicy(admissionpolicy.PodsPolicy, policy.RegistryRule).IsRefusal(err) {
				t.Errorf("step %d: the tenant is Ready, and %s answers a pod of the previous registry with: %v", i, name, err)
			}
		}
	}
	for i := range 6 {
		open := c.measureWindow(t, servers, fmt.Sprintf("r%d.example.org", i+3), fmt.Sprintf("r%d.example.org", i+4))
		t.Logf("a server admitted pods by the previous rules for %s", open.Round(time.Millisecond))
		if open > 5*time.Second {
			t.Errorf("a connected server admitted pods by the previous rules for %s", open)
		}
	}
}

// measureWindow sends pods of a registry to all servers while the tenant is limited to another
// one, and returns for how long a server still admitted them after the rules were written.
func (c *cluster) measureWindow(t *testing.T, servers map[string]client.Client, before, after string) time.Duration {
	t.Helper()
	for name, server := range servers {
		awaitCondition(t, moments, name+" to admit pods of "+before, func(ctx context.Context) error {
			return server.Create(ctx, newPodWithImage(before+"/app"), client.DryRunAll)
		})
	}
	ctx, stop := context.WithCancel(t.Context())
	var mu sync.Mutex
	var last time.Time
	var all sync.WaitGroup
	for _, server := range servers {
		all.Go(func() {
			for tick := time.NewTicker(5 * time.Millisecond); ctx.Err() == nil; <-tick.C {
				sent := time.Now()
				if server.Create(ctx, newPodWithImage(before+"/app"), client.DryRunAll) == nil {
					mu.Lock()
					if sent.After(last) {
						last = sent
					}
					mu.Unlock()
				}
			}
		})
	}
	tenant := c.allowRegistry(t, after)
	err := wait.PollUntilContextTimeout(t.Context(), 2*time.Millisecond, moments, true, func(ctx context.Context) (bool, error) {
		var namespace corev1.Namespace
		err := c.admin.Get(ctx, client.ObjectKey{Name: "shop"}, &namespace)
		return strings.Contains(fmt.Sprint(namespace.Annotations), after), err
	})
	if err != nil {
		t.Fatal(err)
	}
	written := time.Now()
	c.awaitEnforced(t, tenant, metav1.ConditionTrue)
	stop()
	all.Wait()
	return max(last.Sub(written), 0)
}

// allowRegistry makes a registry the only allowed one of the tenant shop. It tries again while
// etcd elects a leader.
func (c *cluster) allowRegistry(t testing.TB, registry string) *v1alpha1.Tenant {
	t.Helper()
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	patch := fmt.Sprintf(`{"spec": {"policy": {"registries": [%q]}}}`, registry)
	awaitCondition(t, moments, "the change of the tenant", func(ctx context.Context) error {
		return c.admin.Patch(ctx, tenant, client.RawPatch("application/merge-patch+json", []byte(patch)))
	})
	return tenant
}

// awaitEnforced waits until the operator has observed this generation of a tenant and Enforced
// has a status, and returns the condition. If it is to be False, the tenant must not be
// Ready before.
func (c *cluster) awaitEnforced(t testing.TB, tenant *v1alpha1.Tenant, status metav1.ConditionStatus) (condition *metav1.Condition) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, moments, true, func(ctx context.Context) (bool, error) {
		now := &v1alpha1.Tenant{}
		if err := c.admin.Get(ctx, client.ObjectKeyFromObject(tenant), now); err != nil {
			return false, err
		}
		if now.Status.ObservedGeneration != tenant.Generation {
			return false, nil
		}
		if status == metav1.ConditionFalse && meta.IsStatusConditionTrue(now.Status.Conditions, v1alpha1.ConditionReady) {
			return false, errors.New("it is Ready while an API server evaluates the previous rules")
		}
		condition = meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionEnforced)
		ready := meta.IsStatusConditionPresentAndEqual(now.Status.Conditions, v1alpha1.ConditionReady, status)
		return ready && condition != nil && condition.Status == status, nil
	})
	if err != nil {
		t.Fatalf("tenant %s, Enforced to be %s: %v, %+v", tenant.Name, status, err, condition)
	}
	return condition
}

// newPodWithImage returns a pod with an image, in the namespace shop.
func newPodWithImage(image string) *corev1.Pod {
	spec := attack.NewPodSpec()
	spec.Containers[0].Image = image
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", GenerateName: "previous-"}, Spec: spec}
}
