package quota_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/quotaplan"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/operator/operatortest"
	"croft.dev/croft/internal/test/sandbox"
	"croft.dev/croft/internal/walls/wall/policy"
)

// TestQuota covers quotas that all of a tenant's namespaces share.
func TestQuota(t *testing.T) {
	sandbox.EndToEnd(t)
	f := operatortest.Start(t, sandbox.WithControllers)
	stop := f.Operate()
	defer func() { stop() }()
	f.Create(operatortest.NewPlatform(), operatortest.NewPool("apps"))
	for _, test := range []struct {
		name string
		run  func(*fixture)
	}{
		{"what is given up is in force before others get it", func(f *fixture) { quotaLate(f, &stop) }},
		{"many clients in many namespaces", quotaRush},
		{"what does not matter is not written", quotaQuiet},
		{"nobody is let in before it is counted", quotaUncounted},
		{"one namespace, two, and one again", quotaNamespaces},
		{"the quota is declared anew", quotaDeclared},
		{"nobody declares one", quotaBuiltin},
		// A namespace needs more than an even share.
		{"a pod larger than the share gets what the others do not use", quotaLargePod},
		{"a namespace keeps its minimum", quotaMinimum},
		{"a forged refusal moves no share", quotaForged},
		{"workloads whose pods are refused are counted", refusedCounted},
	} {
		if !t.Run(test.name, func(t *testing.T) {
			test.run(&fixture{f.For(t)})
		}) {
			return
		}
	}
}

// fixture is a cluster with croft installed, on which tenants share quotas.
type fixture struct{ *operatortest.Fixture }

// shared returns a tenant with several namespaces and a quota.
func shared(name string, namespaces []string, quota corev1.ResourceList) *v1alpha1.Tenant {
	t := operatortest.NewTenant(name, "apps")
	t.Spec.Namespaces, t.Spec.Quota = namespaces, quota
	return t
}

func amounts(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

// quotas returns the tenant's ResourceQuotas by namespace.
func (f *fixture) quotas(tenant string) map[string]corev1.ResourceQuota {
	f.Helper()
	var list corev1.ResourceQuotaList
	if err := f.Client.List(f.Context(), &list, client.MatchingLabels{v1alpha1.TenantLabel: tenant}); err != nil {
		f.Fatal(err)
	}
	all := map[string]corev1.ResourceQuota{}
	for _, q := range list.Items {
		if q.Name == policy.Name {
			all[q.Namespace] = q
		}
	}
	return all
}

// statuses formats quotas for the message of a failed test.
func statuses(quotas map[string]corev1.ResourceQuota) string {
	var all strings.Builder
	for namespace, q := range quotas {
		for name, hard := range q.Status.Hard {
			used := q.Status.Used[name]
			fmt.Fprintf(&all, "%s %s %s/%s; ", namespace, name, used.String(), hard.String())
		}
	}
	return all.String()
}

// settled waits until the shares are in force and add up to the quota, less at most a
// quarter of the unused amount: croft moves no share for so little unless a namespace runs
// short.
func (f *fixture) settled(t *v1alpha1.Tenant) map[string]corev1.ResourceQuota {
	f.Helper()
	f.AwaitReady(t)
	var quotas map[string]corev1.ResourceQuota
	f.Await("the shares of "+t.Name+" to settle", func() string {
		if err := f.Client.Get(f.Context(), client.ObjectKeyFromObject(t), t); err != nil {
			return err.Error()
		}
		quotas = f.quotas(t.Name)
		for name, total := range t.Spec.Quota {
			sum, used := resource.Quantity{}, resource.Quantity{}
			for _, entry := range t.Status.Shares {
				quota := quotas[entry.Namespace]
				if !quotaplan.IsEqual(entry.Hard, quota.Spec.Hard) || !quotaplan.IsEqual(entry.Hard, quota.Status.Hard) {
					return fmt.Sprintf("%s: ledger %v, status %v", entry.Namespace, entry.Hard, quota.Status)
				}
				sum.Add(entry.Hard[name])
				used.Add(quota.Status.Used[name])
			}
			left, room := total.MilliValue()-sum.MilliValue(), total.MilliValue()-used.MilliValue()
			if left < 0 || left > 0 && 4*left >= room || len(t.Status.Shares) < len(t.Spec.Namespaces) {
				return fmt.Sprintf("%s: %s of %s: %v", name, sum.String(), total.String(), statuses(quotas))
			}
		}
		return ""
	})
	return quotas
}

// untouched waits until the shares of a new tenant are in force and the ConfigMap that
// Kubernetes creates in each namespace is counted. If it is created while
// kube-controller-manager counts for the first time, it is missed until the next count.
func (f *fixture) untouched(t *v1alpha1.Tenant) map[string]corev1.ResourceQuota {
	f.Helper()
	var quotas map[string]corev1.ResourceQuota
	f.Await("the ConfigMaps of "+t.Name+" to be counted", func() string {
		quotas = f.settled(t)
		for namespace, q := range quotas {
			if used := q.Status.Used["configmaps"]; used.Value() != 1 {
				// A deletion triggers a complete recount.
				o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "count-again"}}
				if err := client.IgnoreAlreadyExists(f.Client.Create(f.Context(), o)); err != nil {
					return err.Error()
				}
				if err := f.Client.Delete(f.Context(), o); err != nil {
					return err.Error()
				}
				return namespace + " has " + used.String()
			}
		}
		return ""
	})
	return quotas
}

// census counts the objects in a tenant's namespaces, change by change, as the API server
// stored them.
type census struct {
	mu sync.Mutex
	// now and most are the current and the highest number of ConfigMaps, or of CPU in
	// thousandths.
	now, most map[string]int64
	spaces    map[string]int64
}

func (f *fixture) census(namespaces []string) *census {
	f.Helper()
	all := &census{now: map[string]int64{}, most: map[string]int64{}, spaces: map[string]int64{}}
	for _, list := range []client.ObjectList{&corev1.ConfigMapList{}, &corev1.PodList{}} {
		sandbox.Watch(f, f.Config, list, func(event watch.EventType, o client.Object) {
			if slices.Contains(namespaces, o.GetNamespace()) {
				all.note(event, o)
			}
		})
	}
	return all
}

func (c *census) note(event watch.EventType, o client.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	add := func(what string, n int64) {
		switch event {
		case "", watch.Added:
		case watch.Deleted:
			n = -n
		default:
			return
		}
		c.now[what] += n
		c.most[what] = max(c.most[what], c.now[what])
		c.spaces[what+" in "+o.GetNamespace()] += n
	}
	switch o := o.(type) {
	case *corev1.ConfigMap:
		add("configmaps", 1)
	case *corev1.Pod:
		add("pods", 1)
		add("cpu", o.Spec.Containers[0].Resources.Requests.Cpu().MilliValue())
	}
}

func (c *census) of(what string) (now, most int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now[what], c.most[what]
}

func (c *census) in(what, namespace string) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spaces[what+" in "+namespace]
}

// crowd is a group of clients that create objects.
type crowd struct {
	sync.WaitGroup
	// refused is the error of the last refused pod.
	refused atomic.Value
}

// rush starts clients that create objects in a namespace until the context is done, each at
// a fixed interval. They retry when the quota refuses an object. A test that ends early
// waits for them.
func (f *fixture) rush(ctx context.Context, all *crowd, namespace string, clients int, pause time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	f.Cleanup(func() {
		cancel()
		all.Wait()
	})
	for i := range clients {
		all.Go(func() {
			for pace := rate.NewLimiter(rate.Every(pause), 1); pace.Wait(ctx) == nil; {
				var o client.Object = &corev1.ConfigMap{}
				if i%2 == 1 {
					o = &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{
						Name: "main", Image: "registry.example.org/pause:3.10",
						Resources: corev1.ResourceRequirements{Requests: amounts("cpu", "100m")},
					}}}}
				}
				o.SetNamespace(namespace)
				o.SetGenerateName("rush-")
				o.SetLabels(map[string]string{"rush": "true"})
				// The API server returns a conflict for a quota that too many requests
				// update at once.
				err := f.Client.Create(f.Context(), o)
				if _, isPod := o.(*corev1.Pod); err != nil && isPod {
					all.refused.Store(err.Error())
				}
				if err != nil && ctx.Err() == nil && !apierrors.IsForbidden(err) && !apierrors.IsConflict(err) {
					f.Errorf("create in %s: %v", namespace, err)
					return
				}
			}
		})
	}
}

// quotaLate stops kube-controller-manager, so that lowered shares do not take effect. A
// namespace can still use the share that it is to give up, and does so while no operator
// runs.
func quotaLate(f *fixture, stop *func()) {
	const configMaps = 40
	namespaces := []string{"late-a", "late-b"}
	late := shared("late", namespaces, amounts("configmaps", fmt.Sprint(configMaps)))
	f.Create(late)
	f.untouched(late)
	census := f.census(namespaces)
	const manager = "kube-controller-manager"
	if err := f.Cluster.Stop(manager); err != nil {
		f.Fatal(err)
	}
	var clients crowd
	ctx, cancel := context.WithCancel(f.Context())
	f.rush(ctx, &clients, "late-a", 4, 10*time.Millisecond)
	f.Await("the share of late-b to be lowered", func() string {
		if q := f.quotas("late")["late-b"]; quotaplan.IsEqual(q.Spec.Hard, q.Status.Hard) {
			return fmt.Sprint(q.Spec.Hard)
		}
		return ""
	})
	// The operator reconciles the tenant once more. It observes that late-a needs more, but
	// not that late-b has given anything up.
	f.Patch(late, `{"spec":{"access":[{"group":"late-devs","role":"viewer"}]}}`)
	f.AwaitReady(late)
	(*stop)()
	f.rush(ctx, &clients, "late-b", 4, 10*time.Millisecond)
	// Use the quotas' own count: an object that a busy API server counted but did not
	// create counts until kube-controller-manager runs again.
	f.Await("all that is in force to be used", func() string {
		var used, inForce int64
		for _, q := range f.quotas("late") {
			now, most := q.Status.Used["configmaps"], q.Status.Hard["configmaps"]
			used, inForce = used+now.Value(), inForce+most.Value()
		}
		if used < inForce {
			return fmt.Sprintf("%d of %d", used, inForce)
		}
		return ""
	})
	if err := f.Cluster.Start(manager); err != nil {
		f.Fatal(err)
	}
	f.Await("the shares to be in force", func() string {
		for _, q := range f.quotas("late") {
			if !quotaplan.IsEqual(q.Spec.Hard, q.Status.Hard) {
				return fmt.Sprint(q.Status)
			}
		}
		return ""
	})
	// The share that late-b has used stays with late-b.
	*stop = f.Operate()
	f.settled(late)
	cancel()
	clients.Wait()
	if now, most := census.of("configmaps"); most > configMaps {
		f.Errorf("there were %d ConfigMaps at a time, and are %d, of %d", most, now, configMaps)
	}
}

func quotaRush(f *fixture) {
	sandbox.Thorough(f) // quotaLate uses fewer clients, at the most critical moment
	const configMaps, pods, cpu = 120, 100, 6000
	namespaces := []string{"rush-a", "rush-b", "rush-c", "rush-d"}
	rush := shared("rush", namespaces, amounts("configmaps", fmt.Sprint(configMaps), "pods", fmt.Sprint(pods), "requests.cpu", "6"))
	f.Create(rush)
	f.untouched(rush)
	census := f.census(namespaces)
	within := func() {
		f.Helper()
		for what, limit := range map[string]int64{"configmaps": configMaps, "pods": pods, "cpu": cpu} {
			if now, most := census.of(what); most > limit {
				f.Errorf("there were %d %s at a time, and are %d, of %d", most, what, now, limit)
			}
		}
	}

	// Three namespaces need everything, at different rates, so that shares move meanwhile.
	var clients crowd
	ctx, cancel := context.WithCancel(f.Context())
	f.rush(ctx, &clients, "rush-a", 16, 10*time.Millisecond)
	f.rush(ctx, &clients, "rush-b", 8, 50*time.Millisecond)
	f.rush(ctx, &clients, "rush-c", 2, 100*time.Millisecond)
	start := time.Now()
	f.Await("the quota to be used up", func() string {
		maps, _ := census.of("configmaps")
		if milli, _ := census.of("cpu"); maps < configMaps*9/10 || milli < cpu*9/10 {
			return fmt.Sprintf("%d ConfigMaps, %dm CPU; the last pod: %v", maps, milli, clients.refused.Load())
		}
		return ""
	})
	f.Logf("used up after %s", time.Since(start).Round(time.Millisecond))
	cancel()
	clients.Wait()
	within()

	// One namespace needs everything, and the others give up their shares.
	ctx, cancel = context.WithCancel(f.Context())
	f.rush(ctx, &clients, "rush-b", 16, 10*time.Millisecond)
	start = time.Now()
	for _, namespace := range []string{"rush-a", "rush-c", "rush-d"} {
		for _, o := range []client.Object{&corev1.ConfigMap{}, &corev1.Pod{}} {
			if err := f.Client.DeleteAllOf(f.Context(), o, client.InNamespace(namespace), client.MatchingLabels{"rush": "true"}, client.GracePeriodSeconds(0)); err != nil {
				f.Error(err)
			}
		}
	}
	f.Await("one namespace to use almost all", func() string {
		maps, milli := census.in("configmaps", "rush-b"), census.in("cpu", "rush-b")
		// Each namespace keeps some headroom.
		if maps < configMaps*5/6 || milli < cpu*5/6 {
			return fmt.Sprintf("%d ConfigMaps, %dm CPU", maps, milli)
		}
		return ""
	})
	f.Logf("one namespace had it after %s", time.Since(start).Round(time.Millisecond))
	cancel()
	clients.Wait()
	within()
}

func quotaQuiet(f *fixture) {
	quiet := shared("quiet", []string{"quiet-a", "quiet-b"}, amounts("configmaps", "42"))
	f.Create(quiet)
	before := f.untouched(quiet)
	create := func(namespace string, n int) {
		for range n {
			f.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "quiet-"}})
		}
	}
	more := func(tenant, namespace string) {
		f.Await(namespace+" to get more", func() string {
			q := f.quotas(tenant)[namespace]
			if hard := q.Status.Hard["configmaps"]; hard.Value() <= 21 {
				return hard.String()
			}
			return ""
		})
	}
	marker := shared("marker", []string{"marker-a", "marker-b"}, amounts("configmaps", "42"))
	f.Create(marker)
	f.untouched(marker)

	// A part of the share is used, and nothing may happen. When croft has handled another
	// tenant that runs short later, it has handled this one, too.
	writes := f.Writes.Count()
	create("quiet-a", 8)
	create("marker-a", 14)
	more("marker", "marker-a")
	for _, write := range f.Writes.ListSince(writes) {
		if strings.Contains(write, "quiet") {
			t := f.quotas("quiet")
			f.Errorf("wrote %s: %v", write, t)
		}
	}
	if after := f.quotas("quiet")["quiet-a"]; !quotaplan.IsEqual(after.Spec.Hard, before["quiet-a"].Spec.Hard) {
		f.Errorf("%v, and was %v", after.Spec.Hard, before["quiet-a"].Spec.Hard)
	}

	// Now the namespace runs short, and gets more.
	writes = f.Writes.Count()
	start := time.Now()
	create("quiet-a", 6)
	more("quiet", "quiet-a")
	f.Logf("a share moved in %s", time.Since(start).Round(time.Millisecond))
	f.settled(quiet)
	var moves []string
	for _, write := range f.Writes.ListSince(writes) {
		if strings.Contains(write, "quiet") {
			moves = append(moves, write)
		}
	}
	f.Logf("by %d writes:\n%s", len(moves), strings.Join(moves, "\n"))
	if len(moves) > 4 {
		f.Errorf("%d writes for one move", len(moves))
	}
}

// quotaUncounted covers the time in which a quota is written but not yet enforced.
func quotaUncounted(f *fixture) {
	const manager = "kube-controller-manager"
	if err := f.Cluster.Stop(manager); err != nil {
		f.Fatal(err)
	}
	fresh := operatortest.NewTenant("fresh", "apps")
	fresh.Spec.Quota = amounts("configmaps", "2")
	f.Create(fresh)
	condition := f.AwaitCondition(fresh, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNotEnforcedYet)
	if !strings.Contains(condition.Message, "has not counted the usage in fresh") {
		f.Errorf("the message does not say what is missing: %s", condition.Message)
	}
	for range 3 {
		f.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "fresh", GenerateName: "fresh-"}})
	}
	if n := f.CountBindings("fresh"); n > 0 {
		f.Errorf("%d bindings, where the quota does not hold", n)
	}
	if err := f.Cluster.Start(manager); err != nil {
		f.Fatal(err)
	}
	f.AwaitReady(fresh)
	if f.CountBindings("fresh") == 0 {
		f.Error("nobody is let in")
	}
	if err := f.Client.Create(f.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "fresh", Name: "late"}}); !apierrors.IsForbidden(err) {
		f.Errorf("the quota does not hold: %v", err)
	}
}

func quotaNamespaces(f *fixture) {
	grow := shared("grow", []string{"grow-a"}, amounts("configmaps", "40"))
	f.Create(grow)
	f.AwaitReady(grow)
	if len(grow.Status.Shares) > 0 {
		f.Errorf("a ledger for one namespace: %v", grow.Status.Shares)
	}
	f.Patch(grow, `{"spec":{"namespaces":["grow-a","grow-b"],"deletion":"Delete"}}`)
	quotas := f.settled(grow)
	if len(quotas) != 2 || len(grow.Status.Shares) != 2 {
		f.Errorf("%d quotas, shares %v", len(quotas), grow.Status.Shares)
	}
	f.Patch(grow, `{"spec":{"namespaces":["grow-a"]}}`)
	f.AwaitDeletion(operatortest.NewNamespace("grow-b"))
	f.Await("the one that is left to have the whole", func() string {
		quota := f.quotas("grow")["grow-a"]
		if err := f.Client.Get(f.Context(), client.ObjectKeyFromObject(grow), grow); err != nil {
			return err.Error()
		}
		if !quotaplan.IsEqual(quota.Status.Hard, amounts("configmaps", "40")) || len(grow.Status.Shares) > 0 {
			return fmt.Sprintf("%v, ledger %v", quota.Status.Hard, grow.Status.Shares)
		}
		return ""
	})
}

func quotaDeclared(f *fixture) {
	anew := shared("anew", []string{"anew-a", "anew-b", "anew-c"}, amounts("configmaps", "30", "pods", "10"))
	f.Create(anew)
	f.settled(anew)
	for _, quota := range []string{
		`{"configmaps":"60","pods":"10"}`,
		`{"configmaps":"12","pods":"10"}`,
		`{"configmaps":"12","pods":null,"secrets":"9"}`,
	} {
		f.Patch(anew, `{"spec":{"quota":`+quota+`}}`)
		f.settled(anew)
	}
	// Apply it as croft apply does: an empty quota is not the same as no quota.
	lifted := shared("anew", anew.Spec.Namespaces, corev1.ResourceList{})
	lifted.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Tenant"))
	if _, err := apply.New(f.Client).Apply(f.Context(), lifted); err != nil {
		f.Fatal(err)
	}
	f.AwaitReady(anew)
	f.Await("the quotas to go", func() string {
		if err := f.Client.Get(f.Context(), client.ObjectKeyFromObject(anew), anew); err != nil {
			return err.Error()
		}
		if quotas := f.quotas("anew"); len(quotas) > 0 || len(anew.Status.Shares) > 0 {
			return fmt.Sprintf("%d quotas, ledger %v", len(quotas), anew.Status.Shares)
		}
		return ""
	})
	f.Patch(anew, `{"spec":{"quota":{"configmaps":"30"}}}`)
	f.settled(anew)
}

func quotaBuiltin(f *fixture) {
	plain := operatortest.NewTenant("plain", "apps")
	f.Create(plain)
	f.AwaitReady(plain)
	quota := f.quotas("plain")["plain"]
	for _, name := range []corev1.ResourceName{"secrets", "configmaps", "count/pods", "count/leases.coordination.k8s.io", "count/certificates.cert-manager.io"} {
		if hard := quota.Status.Hard[name]; hard.Sign() <= 0 {
			f.Errorf("%s: %s", name, hard.String())
		}
	}
	for name := range quota.Status.Hard {
		if _, group, _ := strings.Cut(string(name), "."); strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io") || strings.HasSuffix(group, "gateway.networking.k8s.io") {
			continue // an add-on's kind, which is not installed
		}
		if _, ok := quota.Status.Used[name]; !ok {
			f.Errorf("%s is not counted", name)
		}
	}
}
