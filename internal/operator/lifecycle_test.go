package operator_test

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operator"
	"croft.dev/croft/internal/sandbox"
)

func TestOperator(t *testing.T) {
	f := newField(t, sandbox.Full)
	stop := f.operate()
	defer func() { stop() }()

	early := tenant("early", "apps")
	f.create(early)
	f.condition(early, v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonNoPlatform)
	f.create(platform(), pool("apps"), pool("jobs"), tenant("shop", "apps"))
	f.ready(platform(), pool("apps"), pool("jobs"), early, tenant("shop", "apps"))

	for _, test := range []struct {
		name string
		run  func(*field)
	}{
		{"a tenant has what it declares", tenantHas},
		{"what somebody changes is put back", driftPutBack},
		{"the platform's people are bound", peopleBound},
		{"what was put back is reported", repairsReported},
		{"the state is measured", stateMeasured},
		{"a status that was not written is completed", statusCompleted},
		{"an object is rejected", rejectedReported},
		{"a domain is another's, and then is not", domainMended},
		{"a tenant is written that croft check refuses", tenantRefused},
		{"a namespace is refused, and then adopted", namespaceAdopted},
		{"a namespace loses its label", namespaceUnlabelled},
		{"a namespace is declared no longer", namespaceDropped},
		{"a namespace is given to another tenant", namespaceGiven},
		{"a tenant is deleted and its namespaces are retained", tenantRetained},
		{"a tenant is deleted with its namespaces", tenantDeleted},
		{"a pool is kept while it is used", poolInUse},
	} {
		if !t.Run(test.name, func(t *testing.T) {
			inner := *f
			inner.TB = t
			test.run(&inner)
		}) {
			return
		}
	}

	t.Run("an operator that is killed is followed by another", func(t *testing.T) {
		inner := *f
		inner.TB = t
		var tenants []client.Object
		for i := range 20 {
			tenants = append(tenants, tenant(fmt.Sprintf("many-%d", i), "apps"))
		}
		inner.create(tenants...)
		stop()
		stop = inner.operate()
		inner.ready(tenants...)
	})

	t.Run("a file prunes what it does not name", func(t *testing.T) {
		inner := *f
		inner.TB = t
		filePrunes(&inner)
	})

	t.Run("what stands is not written", func(t *testing.T) {
		inner := *f
		inner.TB = t
		stop()
		before := len(f.writes.since(0))
		stop = inner.operate()
		spaces := inner.tenantNamespaces()
		probed := map[string]bool{}
		inner.eventually("every tenant to be gone through", func() string {
			for _, write := range f.writes.since(before) {
				if name, ok := strings.CutSuffix(strings.TrimPrefix(write, "POST /api/v1/namespaces/"), "/pods?dryRun=All"); ok {
					probed[name] = true
				}
			}
			if len(probed) < spaces {
				return fmt.Sprintf("%d of %d", len(probed), spaces)
			}
			return ""
		})
		others := slices.DeleteFunc(f.writes.since(before), func(write string) bool {
			// A new leader reports itself in an event in croft's own namespace.
			return strings.HasSuffix(write, "/pods?dryRun=All") || strings.Contains(write, "/leases") ||
				strings.HasSuffix(write, "/namespaces/"+v1alpha1.SystemNamespace+"/events")
		})
		if len(others) > 0 {
			t.Errorf("wrote %d times:\n%s", len(others), strings.Join(others, "\n"))
		}
	})
}

// statusCompleted fails if an operator that remembers that the walls of a tenant are
// enforced assumes that status.placement was written, too. That write may have lost a race.
// The e2e test testSteadyState found it: the next operator wrote the field.
func statusCompleted(f *field) {
	shop := tenant("shop", "")
	if err := f.client.Status().Patch(f.Context(), shop, client.RawPatch(types.MergePatchType, []byte(`{"status":{"placement":null}}`))); err != nil {
		f.Fatal(err)
	}
	n := 0
	f.eventually("the placement engine to be in the status again", func() string {
		// Another manager's label on the namespace makes croft reconcile the tenant, but
		// requires no write.
		n++
		f.patch(namespace("shop"), fmt.Sprintf(`{"metadata":{"labels":{"looked-at":"%d"}}}`, n))
		if err := f.client.Get(f.Context(), client.ObjectKeyFromObject(shop), shop); err != nil {
			return err.Error()
		}
		if shop.Status.Placement != v1alpha1.PlacementNative {
			return fmt.Sprintf("it is %q", shop.Status.Placement)
		}
		return ""
	})
	f.patch(namespace("shop"), `{"metadata":{"labels":{"looked-at":null}}}`)
}

// tenantNamespaces counts the namespaces of tenants that are Ready.
func (f *field) tenantNamespaces() int {
	f.Helper()
	var tenants v1alpha1.TenantList
	if err := f.client.List(f.Context(), &tenants); err != nil {
		f.Fatal(err)
	}
	n := 0
	for _, t := range tenants.Items {
		n += len(t.Status.Namespaces)
	}
	return n
}

func tenantHas(f *field) {
	shop := tenant("shop", "")
	f.ready(shop)
	if shop.Status.Pool != "apps" || !slices.Equal(shop.Status.Pools, []string{"apps"}) || !slices.Equal(shop.Status.Namespaces, []string{"shop"}) || len(shop.Status.Domains) != 2 {
		f.Errorf("status = %+v", shop.Status)
	}
	if f.bindings("shop") == 0 || len(f.policies("shop")) == 0 {
		f.Error("no RoleBinding or no NetworkPolicy")
	}
	f.event(shop, "NamespaceCreated", "created namespace shop")
	f.event(shop, "Ready", "every wall is in force")
	apps := pool("apps")
	f.ready(apps)
	if apps.Status.Tenants != 2 {
		f.Errorf("%d tenants, want 2", apps.Status.Tenants)
	}
}

func driftPutBack(f *field) {
	shop := tenant("shop", "")
	f.ready(shop)
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "croft-isolation"}}
	f.patch(policy, `{"spec":{"ingress":[{}]}}`)
	f.eventually("the open rule to go", func() string {
		if err := f.client.Get(f.Context(), client.ObjectKeyFromObject(policy), policy); err != nil {
			return err.Error()
		}
		if len(policy.Spec.Ingress) == 1 && len(policy.Spec.Ingress[0].From) == 0 {
			return "still open"
		}
		return ""
	})
	f.event(shop, "PutBack", "NetworkPolicy shop/croft-isolation, which was changed by somebody")

	f.delete(policy)
	f.eventually("the policy to come back", func() string {
		if err := f.client.Get(f.Context(), client.ObjectKeyFromObject(policy), policy); err != nil {
			return err.Error()
		}
		return ""
	})

	// Drift of cluster-wide objects is repaired, too.
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "croft-viewer"}}
	f.patch(role, `{"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}`)
	f.eventually("the role to be put back", func() string {
		if err := f.client.Get(f.Context(), client.ObjectKeyFromObject(role), role); err != nil {
			return err.Error()
		}
		if len(role.Rules) == 1 {
			return "still everything"
		}
		return ""
	})
	nodePool := &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "apps"}}
	f.patch(nodePool, `{"spec":{"template":{"spec":{"taints":[]}}}}`)
	f.eventually("the taints to be put back", func() string {
		if err := f.client.Get(f.Context(), client.ObjectKeyFromObject(nodePool), nodePool); err != nil {
			return err.Error()
		}
		if len(nodePool.Spec.Template.Spec.Taints) == 0 {
			return "still none"
		}
		return ""
	})
}

// tenantRefused declares objects that the API server would refuse. croft writes none of the
// tenant's objects, and the condition has the same message as croft check.
func tenantRefused(f *field) {
	refused := tenant("refused", "apps")
	refused.Spec.Quota = corev1.ResourceList{"cpus": resource.MustParse("4")}
	f.create(refused)
	condition := f.condition(refused, v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonInvalid)
	if want := "spec.quota[cpus]: a quota cannot limit cpus; did you mean cpu?"; condition.Message != want {
		f.Errorf("the message is %q, want %q", condition.Message, want)
	}
	f.patch(refused, `{"spec":{"quota":{"cpus":null,"cpu":"4"}}}`)
	f.ready(refused)
}

func domainMended(f *field) {
	first, second := tenant("first", "apps"), tenant("second", "apps")
	first.Spec.Domains = []string{"www.example.edu"}
	f.create(first)
	f.ready(first)
	f.create(second)
	f.ready(second)

	f.patch(second, `{"spec":{"domains":["www.example.edu"],"access":[]}}`)
	condition := f.condition(second, v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonInvalid)
	if !strings.Contains(condition.Message, "first") {
		f.Errorf("the message does not name the other tenant: %s", condition.Message)
	}
	f.condition(second, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonInvalid)
	if f.bindings("second") == 0 {
		f.Error("what stood was touched for a tenant that is invalid")
	}
	f.patch(first, `{"spec":{"domains":null}}`)
	f.ready(second)
	if f.bindings("second") != 0 {
		f.Error("access that was taken away is still there")
	}
	if !slices.Contains(second.Status.Domains, "www.example.edu") {
		f.Errorf("domains = %v", second.Status.Domains)
	}
}

func namespaceAdopted(f *field) {
	f.create(namespace("legacy"))
	legacy := tenant("moving", "apps")
	legacy.Spec.Namespaces = []string{"legacy", "fresh"}
	f.create(legacy)
	condition := f.condition(legacy, v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonNamespaceNotOwned)
	if !strings.Contains(condition.Message, "croft adopt tenant moving -f croft.yaml") {
		f.Errorf("the message does not say what to do: %s", condition.Message)
	}
	if !slices.Equal(legacy.Status.Namespaces, []string{"fresh"}) {
		f.Errorf("namespaces = %v", legacy.Status.Namespaces)
	}
	f.event(legacy, v1alpha1.ReasonNamespaceNotOwned, "namespace legacy exists already")
	f.patch(namespace("legacy"), `{"metadata":{"annotations":{"croft.dev/adopt":"moving"}}}`)
	f.ready(legacy)
	f.event(legacy, "NamespaceAdopted", "legacy")
}

func namespaceUnlabelled(f *field) {
	moving := tenant("moving", "")
	f.ready(moving)
	// croft created one namespace and adopted the other, whose annotation is removed here.
	f.patch(namespace("legacy"), `{"metadata":{"annotations":{"croft.dev/adopt":null}}}`)
	for _, name := range []string{"fresh", "legacy"} {
		f.patch(namespace(name), `{"metadata":{"labels":{"croft.dev/tenant":null}}}`)
		f.eventually("the label of "+name+" to be put back", func() string {
			live := namespace(name)
			if err := f.client.Get(f.Context(), client.ObjectKeyFromObject(live), live); err != nil {
				return err.Error()
			}
			if live.Labels[v1alpha1.TenantLabel] != "moving" || (live.Annotations[v1alpha1.CreatedAnnotation] == "true") != (name == "fresh") {
				return fmt.Sprintf("labels %v, annotations %v", live.Labels, live.Annotations)
			}
			return ""
		})
		f.ready(moving)
	}
	f.event(moving, "PutBack", "Namespace fresh")

	// A namespace that another tenant owns by now is not taken back, and the tenant must
	// not be reported as enforced.
	f.patch(namespace("fresh"), `{"metadata":{"labels":{"croft.dev/tenant":"nobody"}}}`)
	f.condition(moving, v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonNamespaceNotOwned)
	f.condition(moving, v1alpha1.ConditionEnforced, metav1.ConditionFalse, v1alpha1.ReasonNamespaceNotOwned)
	f.patch(namespace("fresh"), `{"metadata":{"labels":{"croft.dev/tenant":"moving"}}}`)
	f.ready(moving)
}

func namespaceDropped(f *field) {
	moving := tenant("moving", "")
	f.ready(moving)
	f.patch(moving, `{"spec":{"namespaces":["legacy"]}}`)
	f.eventually("access to go", func() string {
		if n := f.bindings("fresh"); n > 0 {
			return fmt.Sprintf("%d bindings", n)
		}
		return ""
	})
	if len(f.policies("fresh")) == 0 {
		f.Error("the walls of a namespace that is retained are gone")
	}
}

func tenantRetained(f *field) {
	second := tenant("early", "")
	f.ready(second)
	f.delete(second)
	f.gone(second)
	if n := f.bindings("early"); n != 0 {
		f.Errorf("%d bindings", n)
	}
	live := namespace("early")
	if err := f.client.Get(f.Context(), client.ObjectKeyFromObject(live), live); err != nil || live.DeletionTimestamp != nil {
		f.Errorf("the namespace: %v, deleted %v", err, live.DeletionTimestamp)
	}
	if len(f.policies("early")) == 0 {
		f.Error("the walls are gone")
	}
	// A tenant that is declared again gets its namespace back.
	again := tenant("early", "apps")
	f.create(again)
	f.ready(again)
	if f.bindings("early") == 0 {
		f.Error("no access")
	}
}

func tenantDeleted(f *field) {
	moving := tenant("moving", "")
	f.ready(moving)
	f.patch(moving, `{"spec":{"deletion":"Delete"}}`)
	f.gone(namespace("fresh"))
	f.patch(moving, `{"spec":{"namespaces":["legacy","later"]}}`)
	f.ready(moving)
	f.delete(moving)
	f.gone(moving)
	f.gone(namespace("later"))
	live := namespace("legacy")
	if err := f.client.Get(f.Context(), client.ObjectKeyFromObject(live), live); err != nil || live.DeletionTimestamp != nil {
		f.Fatalf("the adopted namespace: %v, deleted %v", err, live.DeletionTimestamp)
	}
	if len(live.Labels) != 1 || len(live.Annotations) != 0 || len(f.policies("legacy")) != 0 {
		f.Errorf("not released: labels %v, annotations %v", live.Labels, live.Annotations)
	}
}

func poolInUse(f *field) {
	jobs, user := pool("jobs"), tenant("user", "jobs")
	f.create(user)
	f.ready(user)
	f.delete(jobs)
	condition := f.condition(jobs, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonInUse)
	if !strings.Contains(condition.Message, "user") {
		f.Errorf("the message does not name the tenant: %s", condition.Message)
	}
	f.patch(user, `{"spec":{"pool":"apps"}}`)
	f.ready(user)
	f.gone(jobs)
	f.gone(&karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "jobs"}})
}

// TestHealth checks that a running operator is healthy, and that it is ready if it can read
// its objects and has all its rights.
func TestHealth(t *testing.T) {
	sandbox.EndToEnd(t)
	f := newField(t, sandbox.WithControllers)
	t.Run("before Karpenter is there", func(t *testing.T) {
		inner := *f
		inner.TB = t
		karpenterLater(&inner)
	})
	t.Run("without one right", func(t *testing.T) {
		inner := *f
		inner.TB = t
		rightTaken(&inner)
	})
	nobody := rest.CopyConfig(f.config)
	nobody.Impersonate = rest.ImpersonationConfig{UserName: "nobody", Groups: []string{"system:authenticated"}}
	for _, test := range []struct {
		name   string
		config *rest.Config
		ready  int
	}{
		{"with its rights", f.config, http.StatusOK},
		{"without any", nobody, http.StatusInternalServerError},
	} {
		t.Run(test.name, func(t *testing.T) {
			inner := *f
			inner.TB = t
			addr := freeAddress(t)
			done := make(chan error, 1)
			go func() {
				done <- operator.Run(t.Context(), test.config, operator.Options{HealthAddr: addr, MetricsAddr: "0", Log: f.log()})
			}()
			answers := func(path string, want int) {
				inner.eventually(path, func() string {
					select {
					case err := <-done:
						return fmt.Sprintf("the operator stopped: %v", err)
					default:
					}
					response, err := http.Get("http://" + addr + path)
					if err != nil {
						return err.Error()
					}
					defer func() { _ = response.Body.Close() }()
					if response.StatusCode != want {
						return response.Status
					}
					return ""
				})
			}
			answers("/healthz", http.StatusOK)
			answers("/readyz", test.ready)
		})
	}
}

// rightTaken removes a right that no cache needs, and restores it.
func rightTaken(f *field) {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ManagedBy}}
	if err := f.client.Get(f.Context(), client.ObjectKeyFromObject(role), role); err != nil {
		f.Fatal(err)
	}
	whole := role.DeepCopy()
	for i := range role.Rules {
		if slices.Contains(role.Rules[i].Resources, "tenantrules") {
			role.Rules[i].Verbs = slices.DeleteFunc(slices.Clone(role.Rules[i].Verbs), func(verb string) bool { return verb == "patch" })
		}
	}
	if err := f.client.Update(f.Context(), role); err != nil {
		f.Fatal(err)
	}
	addr := freeAddress(f)
	stop := f.operateAt(addr)
	defer stop()
	ready := func(want int) {
		f.Helper()
		f.eventually(fmt.Sprintf("readiness %d", want), func() string {
			response, err := http.Get("http://" + addr + "/readyz")
			if err != nil {
				return err.Error()
			}
			defer func() { _ = response.Body.Close() }()
			if response.StatusCode != want {
				return response.Status
			}
			return ""
		})
	}
	ready(http.StatusInternalServerError)
	f.logged("not ready", "the operator may not patch tenantrules.croft.dev: run croft install or helm upgrade again")
	whole.ResourceVersion = role.ResourceVersion
	if err := f.client.Update(f.Context(), whole); err != nil {
		f.Fatal(err)
	}
	ready(http.StatusOK)
}

// freeAddress returns an address that no process listens on.
func freeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// karpenterLater covers a cluster on which Karpenter is installed after croft.
func karpenterLater(f *field) {
	var kinds []*apiextensionsv1.CustomResourceDefinition
	for _, name := range []string{"nodepools.karpenter.sh", "nodeclaims.karpenter.sh"} {
		kind := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := f.client.Get(f.Context(), client.ObjectKeyFromObject(kind), kind); err != nil {
			f.Fatal(err)
		}
		f.delete(kind)
		f.gone(kind.DeepCopy())
		kinds = append(kinds, kind)
	}
	// Discovery drops the kinds a moment later. An operator that still discovers them waits
	// two minutes for objects that are not served.
	served, err := discovery.NewDiscoveryClientForConfig(f.config)
	if err != nil {
		f.Fatal(err)
	}
	f.eventually("discovery to forget NodePools and NodeClaims", func() string {
		ofGroup, err := served.ServerResourcesForGroupVersion("karpenter.sh/v1")
		if err != nil && !apierrors.IsNotFound(err) {
			return err.Error()
		}
		_, all, err := served.ServerGroupsAndResources()
		if err != nil {
			return err.Error()
		}
		for _, list := range append(all, ofGroup) {
			if list != nil && slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool {
				return r.Kind == "NodePool" || r.Kind == "NodeClaim"
			}) {
				return "it has them"
			}
		}
		return ""
	})

	stop := f.operate()
	defer stop()
	apps, shop := pool("apps"), tenant("shop", "apps")
	f.create(platform(), apps, shop)
	condition := f.condition(apps, v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonApplyFailed)
	if !strings.Contains(condition.Message, "NodePool apps: this cluster does not know the kind NodePool (karpenter.sh/v1)") {
		f.Errorf("the message does not say what is missing: %s", condition.Message)
	}
	// The other walls do not depend on Karpenter.
	f.ready(shop)

	for _, kind := range kinds {
		kind.ResourceVersion, kind.UID = "", ""
		f.create(kind)
	}
	f.condition(apps, v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
}
