package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/test/sandbox"
	"croft.dev/croft/internal/walls/wall/identity"
)

// buildEngineFile returns examples/two-tenants.yaml with another placement engine.
func buildEngineFile(t testing.TB, engine v1alpha1.PlacementEngine) string {
	t.Helper()
	const line = "  clusterName: demo\n"
	file := readRepositoryFile(t, getExamplePath("two-tenants.yaml"))
	if !strings.Contains(file, line) {
		t.Fatalf("the example has no line %q any more", line)
	}
	return strings.Replace(file, line, line+"  placement: "+string(engine)+"\n", 1)
}

// startWithGatekeeper starts a full sandbox with Gatekeeper and croft's operator.
func startWithGatekeeper(t *testing.T, without ...string) *cluster {
	t.Helper()
	return startSandbox(t, sandbox.Options{Croft: findCroftBinary(t), With: []string{sandbox.Gatekeeper}, Without: without})
}

// TestGatekeeper runs the walk-through on a cluster like those before Kubernetes 1.36: without
// MutatingAdmissionPolicy, Gatekeeper places the pods.
func TestGatekeeper(t *testing.T) {
	t.Parallel() // it mostly waits
	sandbox.Thorough(t)
	c := startWithGatekeeper(t, "MutatingAdmissionPolicy")
	t.Run("Native", func(t *testing.T) {
		// The message names the missing kind and the setting to use instead.
		out := c.runCroftWithInput(t, buildEngineFile(t, v1alpha1.PlacementNative), "apply", "-f", "-", "--wait-timeout", "5s")
		if out.status == 0 || !strings.Contains(out.stderr, "set platform.placement to Gatekeeper") {
			t.Errorf("it does not name the fix: %s", out)
		}
		awaitCondition(t, moments, "the rights of the platform's admins", func(ctx context.Context) error {
			return c.admin.Get(ctx, client.ObjectKey{Name: identity.AdminRole}, &rbacv1.ClusterRoleBinding{})
		})
	})
	file := buildEngineFile(t, v1alpha1.PlacementGatekeeper)
	c.applyContent(t, file)
	two := &twoTenants{cluster: c, file: writeTempFile(t, file), estate: buildEstate(t, "two-tenants.yaml", file)}
	t.Run("Placement", func(t *testing.T) { testPlacement(t, two) })
	t.Run("InstanceTypeAndScaleIn", func(t *testing.T) { testInstanceTypeAndScaleIn(t, two) })
	t.Run("Verify", func(t *testing.T) {
		awaitCondition(t, moments, "every wall to hold", func(context.Context) error {
			if out := c.runCroft(t, "verify"); out.status != 0 {
				return errors.New(out.String())
			}
			return nil
		})
	})
	t.Run("Drift", func(t *testing.T) { testMutatorDrift(t, c) })
	t.Run("Unsafe", func(t *testing.T) { testUnsafe(t, c) })
	t.Run("Killed", func(t *testing.T) { testKilled(t, two) })
	t.Run("Delete", func(t *testing.T) { testGatekeeperDelete(t, c) })
}

// testMutatorDrift fails if croft does not restore a mutator, a constraint or a rule on a
// namespace, or does not delete a tenant's constraint that an older version wrote.
func testMutatorDrift(t *testing.T, c *cluster) {
	const old = `{"apiVersion": "constraints.gatekeeper.sh/v1beta1", "kind": "CroftServices", "metadata": {"name": "croft-tenant-a", "labels":
		{"app.kubernetes.io/managed-by": "croft", "croft.dev/tenant": "tenant-a", "croft.dev/wall": "policy"}}, "spec": {"match": {"scope": "Namespaced", "namespaces": ["tenant-a"], "kinds": [{"apiGroups": [""], "kinds": ["Service"]}]}}}`
	c.runKubectl(t, old, "apply", "--server-side", "--field-manager", v1alpha1.ManagedBy, "-f", "-").expectExit(t, 0)
	constraints := c.listConstraints(t)
	if len(constraints) != len(apply.GatekeeperConstraintKinds) {
		t.Errorf("%d constraints, want one of each kind: %v", len(constraints), constraints)
	}
	for _, o := range append(constraints, c.listGatekeeperObjects(t, "tenant-a")...) {
		if o.GetName() == "croft-tenant-a" {
			continue
		}
		deleted := o.DeepCopyObject().(client.Object)
		if err := c.admin.Delete(t.Context(), deleted); err != nil {
			t.Fatal(err)
		}
		awaitCondition(t, moments, o.GetObjectKind().GroupVersionKind().Kind+" "+o.GetName()+" to come back", func(ctx context.Context) error {
			now := o.DeepCopyObject().(client.Object)
			if err := c.admin.Get(ctx, client.ObjectKeyFromObject(o), now); err != nil {
				return err
			}
			if now.GetUID() == o.GetUID() {
				return errors.New("it is still the old one")
			}
			return nil
		})
	}
	const rule = v1alpha1.RulesAnnotationPrefix + "pools"
	c.runKubectl(t, "", "annotate", "namespace", "tenant-a", rule+"-").expectExit(t, 0)
	awaitCondition(t, moments, "the rule to come back", func(ctx context.Context) error {
		var namespace corev1.Namespace
		if err := c.admin.Get(ctx, client.ObjectKey{Name: "tenant-a"}, &namespace); err != nil {
			return err
		}
		if namespace.Annotations[rule] == "" {
			return errors.New("it is not there")
		}
		return nil
	})
	awaitCondition(t, moments, "the constraint of tenant-a's own to go", func(context.Context) error {
		for _, o := range c.listGatekeeperObjects(t, "tenant-a") {
			if o.GetName() == "croft-tenant-a" {
				return errors.New("it is there")
			}
		}
		return nil
	})
}

// testUnsafe fails if croft does not report, with the remedy, that Gatekeeper's chart defaults
// let pods bypass it while it is down.
func testUnsafe(t *testing.T, c *cluster) {
	const name = "gatekeeper-mutating-webhook-configuration"
	set := func(policy string) {
		c.runKubectl(t, "", "patch", "mutatingwebhookconfiguration", name, "--type=json",
			`-p=[{"op":"replace","path":"/webhooks/0/failurePolicy","value":"`+policy+`"}]`).expectExit(t, 0)
	}
	expectReady := func(status metav1.ConditionStatus, words ...string) {
		awaitCondition(t, moments, "the Platform's Ready", func(ctx context.Context) error {
			var platform v1alpha1.Platform
			if err := c.admin.Get(ctx, client.ObjectKey{Name: v1alpha1.PlatformName}, &platform); err != nil {
				return err
			}
			ready := meta.FindStatusCondition(platform.Status.Conditions, v1alpha1.ConditionReady)
			if ready == nil || ready.Status != status {
				return fmt.Errorf("the condition is %+v", ready)
			}
			for _, word := range words {
				if !strings.Contains(ready.Message, word) {
					return fmt.Errorf("the message does not contain %s: %s", word, ready.Message)
				}
			}
			return nil
		})
	}
	set("Ignore")
	expectReady(metav1.ConditionFalse, name, "failurePolicy", "mutatingWebhookFailurePolicy=Fail")
	set("Fail")
	expectReady(metav1.ConditionTrue)
}

// testKilled fails if a pod is admitted without placement while Gatekeeper is being killed, or
// if pods are not admitted again afterwards.
func testKilled(t *testing.T, c *twoTenants) {
	traffic := c.startTraffic(t, c.estate)
	for range 3 {
		traffic.awaitPlaced(t, 50)
		// The count is read before the kill: Gatekeeper is restarted at once, and may be up
		// when Kill returns.
		refused := traffic.refused.Load()
		if err := c.Kill(sandbox.Gatekeeper); err != nil {
			t.Fatal(err)
		}
		traffic.awaitRefused(t, refused)
		if err := c.Start(sandbox.Gatekeeper); err != nil {
			t.Fatal(err)
		}
	}
	traffic.awaitPlaced(t, 50)
	traffic.stopTraffic(t)
	t.Logf("%d pods let in, all placed; %d refused while Gatekeeper was away", traffic.placed.Load(), traffic.refused.Load())
}

// testGatekeeperDelete fails if an object of a deleted tenant remains.
func testGatekeeperDelete(t *testing.T, c *cluster) {
	c.applyContent(t, `
tenants:
  passing: {pool: pool-a, deletion: Delete}
`)
	if len(c.listGatekeeperObjects(t, "passing")) == 0 {
		t.Fatal("a tenant has no mutators")
	}
	c.runCroft(t, "delete", "tenant", "passing", "--yes").expectExit(t, 0)
	c.awaitDeletion(t, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "passing"}})
	if left := c.listGatekeeperObjects(t, "passing"); len(left) > 0 {
		t.Errorf("%d mutators are left, of them %s", len(left), left[0].GetName())
	}
}

// TestSwitchEngine changes the placement engine of a platform and back while pods are created.
// It fails if a pod is admitted without placement, or refused.
func TestSwitchEngine(t *testing.T) {
	t.Parallel() // it mostly waits
	sandbox.Thorough(t)
	c := startWithGatekeeper(t)
	c.applyContent(t, buildEngineFile(t, v1alpha1.PlacementNative))
	traffic := c.startTraffic(t, buildEstate(t, "two-tenants.yaml", buildEngineFile(t, v1alpha1.PlacementNative)))
	traffic.awaitPlaced(t, 50)
	for _, engine := range []v1alpha1.PlacementEngine{v1alpha1.PlacementGatekeeper, v1alpha1.PlacementNative, v1alpha1.PlacementGatekeeper} {
		started := time.Now()
		c.applyContent(t, buildEngineFile(t, engine))
		t.Logf("switched to %s in %s", engine, time.Since(started).Round(10*time.Millisecond))
		awaitCondition(t, patience, "the other engine's objects to go", func(context.Context) error { return c.checkOnlyEngine(t, engine) })
		traffic.awaitPlaced(t, 50)
	}
	traffic.stopTraffic(t)
	if n := traffic.refused.Load(); n > 0 {
		t.Errorf("%d of %d pods were refused; the last: %v", n, n+traffic.placed.Load(), traffic.last.Load())
	}
	t.Logf("%d pods let in, all placed", traffic.placed.Load())
}

// checkOnlyEngine returns an error if objects of the other engine exist, or none of the given
// engine.
func (c *cluster) checkOnlyEngine(t testing.TB, engine v1alpha1.PlacementEngine) error {
	t.Helper()
	var native, other int
	for ref := range c.listEverything(t, ours) {
		switch {
		case strings.HasPrefix(ref.Kind, "MutatingAdmissionPolicy"):
			native++
		case strings.HasSuffix(ref.Group, ".gatekeeper.sh"):
			other++
		}
	}
	if engine == v1alpha1.PlacementGatekeeper {
		native, other = other, native
	}
	if native == 0 || other > 0 {
		return fmt.Errorf("%d objects of %s, and %d of the other engine", native, engine, other)
	}
	return nil
}

// listGatekeeperObjects returns the Gatekeeper objects of a tenant: its mutators.
func (c *cluster) listGatekeeperObjects(t testing.TB, tenant string) []client.Object {
	t.Helper()
	return c.listGroup(t, ".gatekeeper.sh", client.MatchingLabels{v1alpha1.TenantLabel: tenant})
}

// listConstraints returns the constraints that apply to all tenants.
func (c *cluster) listConstraints(t testing.TB) []client.Object {
	t.Helper()
	return slices.DeleteFunc(c.listGroup(t, admissionpolicy.ConstraintsGroup, ours), func(o client.Object) bool { return o.GetLabels()[v1alpha1.TenantLabel] != "" })
}

// listGroup returns the objects of all API groups with this suffix.
func (c *cluster) listGroup(t testing.TB, group string, which client.MatchingLabels) []client.Object {
	t.Helper()
	var all []client.Object
	for ref, o := range c.listEverything(t, which) {
		if strings.HasSuffix(ref.Group, group) {
			object := &metav1.PartialObjectMetadata{ObjectMeta: o}
			object.SetGroupVersionKind(ref.GroupVersionKind)
			all = append(all, object)
		}
	}
	return all
}

// podTraffic creates pods in every tenant, without a pause.
type podTraffic struct {
	placed, refused atomic.Int64
	// last is the error of the last refused pod.
	last    atomic.Value
	stop    context.CancelFunc
	clients sync.WaitGroup
}

// trafficName is the prefix of the pods' names.
const trafficName = "traffic-"

// startTraffic creates pods until it is ended. The pods have a scheduling gate, so they are never
// scheduled, and are deleted in the end.
func (c *cluster) startTraffic(t testing.TB, e *estate.Estate) *podTraffic {
	t.Helper()
	return c.startTrafficBy(t, e, func(*estate.Tenant) client.Client { return c.admin }, t.Errorf)
}

// startTrafficBy is like startTraffic, with pods that a tenant's members create. wrong is called
// for pods that were admitted without placement.
func (c *cluster) startTrafficBy(t testing.TB, e *estate.Estate, people func(*estate.Tenant) client.Client, wrong func(string, ...any)) *podTraffic {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	p := &podTraffic{stop: stop}
	for _, tenant := range e.Tenants {
		as := people(tenant)
		for n := range 2 {
			p.clients.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					pod := newNginxPod(tenant.Namespaces[0], fmt.Sprintf("%s%d-%d", trafficName, n, i), func(spec *corev1.PodSpec) {
						spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "croft.dev/test"}}
					})
					err := as.Create(ctx, pod)
					switch {
					case ctx.Err() != nil:
					case apierrors.IsConflict(err): // two concurrent requests changed the quota
					case err != nil:
						p.refused.Add(1)
						p.last.Store(err.Error())
					default:
						if err := checkPlacement(pod, e.Platform.NodePoolKey, tenant.Pools[0]); err != nil {
							wrong("%s was let in unplaced: %v", pod.Name, err)
						}
						p.placed.Add(1)
						_ = c.admin.Delete(ctx, pod, client.GracePeriodSeconds(0))
					}
				}
			})
		}
	}
	t.Cleanup(func() { p.stop(); p.clients.Wait() })
	return p
}

// awaitPlaced waits until n more pods have been admitted.
func (p *podTraffic) awaitPlaced(t testing.TB, n int64) {
	t.Helper()
	before := p.placed.Load()
	awaitCondition(t, patience, "pods to be let in", func(context.Context) error {
		if got := p.placed.Load() - before; got < n {
			return fmt.Errorf("%d of %d; the last refusal: %v", got, n, p.last.Load())
		}
		return nil
	})
}

// awaitRefused waits until more pods have been refused than before.
func (p *podTraffic) awaitRefused(t testing.TB, before int64) {
	t.Helper()
	awaitCondition(t, patience, "a pod to be refused", func(context.Context) error {
		if p.refused.Load() == before {
			return errors.New("none is")
		}
		return nil
	})
}

func (p *podTraffic) stopTraffic(t testing.TB) {
	t.Helper()
	p.stop()
	p.clients.Wait()
}
