package quota_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/quotaplan"
	"croft.dev/croft/internal/test/sandbox"
)

// testLateQuota stops kube-controller-manager, so that lowered shares do not take effect. A
// namespace can still use the share that it is to give up, and does so while no operator
// runs.
func testLateQuota(f *fixture, stop *func()) {
	const configMaps = 40
	namespaces := []string{"late-a", "late-b"}
	late := newSharedTenant("late", namespaces, makeResourceList("configmaps", fmt.Sprint(configMaps)))
	f.Create(late)
	f.awaitCountedShares(late)
	census := f.startCensus(namespaces)
	const manager = "kube-controller-manager"
	if err := f.Cluster.Stop(manager); err != nil {
		f.Fatal(err)
	}
	var clients crowd
	ctx, cancel := context.WithCancel(f.Context())
	f.startClients(ctx, &clients, "late-a", 4, 10*time.Millisecond)
	f.Await("the share of late-b to be lowered", func() string {
		if q := f.listQuotas("late")["late-b"]; quotaplan.IsEqual(q.Spec.Hard, q.Status.Hard) {
			return fmt.Sprint(q.Spec.Hard)
		}
		return ""
	})
	// The operator reconciles the tenant once more. It observes that late-a needs more, but
	// not that late-b has given anything up.
	f.Patch(late, `{"spec":{"access":[{"group":"late-devs","role":"viewer"}]}}`)
	f.AwaitReady(late)
	(*stop)()
	f.startClients(ctx, &clients, "late-b", 4, 10*time.Millisecond)
	// Use the quotas' own count: an object that a busy API server counted but did not
	// create counts until kube-controller-manager runs again.
	f.Await("all that is in force to be used", func() string {
		var used, inForce int64
		for _, q := range f.listQuotas("late") {
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
		for _, q := range f.listQuotas("late") {
			if !quotaplan.IsEqual(q.Spec.Hard, q.Status.Hard) {
				return fmt.Sprint(q.Status)
			}
		}
		return ""
	})
	// The share that late-b has used stays with late-b.
	*stop = f.Operate()
	f.awaitShares(late)
	cancel()
	clients.Wait()
	if now, most := census.getCounts("configmaps"); most > configMaps {
		f.Errorf("there were %d ConfigMaps at a time, and are %d, of %d", most, now, configMaps)
	}
}

func testQuotaRush(f *fixture) {
	sandbox.Thorough(f) // testLateQuota uses fewer clients, at the most critical moment
	const configMaps, pods, cpu = 120, 100, 6000
	namespaces := []string{"rush-a", "rush-b", "rush-c", "rush-d"}
	rush := newSharedTenant("rush", namespaces, makeResourceList("configmaps", fmt.Sprint(configMaps), "pods", fmt.Sprint(pods), "requests.cpu", "6"))
	f.Create(rush)
	f.awaitCountedShares(rush)
	census := f.startCensus(namespaces)
	within := func() {
		f.Helper()
		for what, limit := range map[string]int64{"configmaps": configMaps, "pods": pods, "cpu": cpu} {
			if now, most := census.getCounts(what); most > limit {
				f.Errorf("there were %d %s at a time, and are %d, of %d", most, what, now, limit)
			}
		}
	}

	// Three namespaces need everything, at different rates, so that shares move meanwhile.
	var clients crowd
	ctx, cancel := context.WithCancel(f.Context())
	f.startClients(ctx, &clients, "rush-a", 16, 10*time.Millisecond)
	f.startClients(ctx, &clients, "rush-b", 8, 50*time.Millisecond)
	f.startClients(ctx, &clients, "rush-c", 2, 100*time.Millisecond)
	start := time.Now()
	f.Await("the quota to be used up", func() string {
		maps, _ := census.getCounts("configmaps")
		if milli, _ := census.getCounts("cpu"); maps < configMaps*9/10 || milli < cpu*9/10 {
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
	f.startClients(ctx, &clients, "rush-b", 16, 10*time.Millisecond)
	start = time.Now()
	for _, namespace := range []string{"rush-a", "rush-c", "rush-d"} {
		for _, o := range []client.Object{&corev1.ConfigMap{}, &corev1.Pod{}} {
			if err := f.Client.DeleteAllOf(f.Context(), o, client.InNamespace(namespace), client.MatchingLabels{"rush": "true"}, client.GracePeriodSeconds(0)); err != nil {
				f.Error(err)
			}
		}
	}
	f.Await("one namespace to use almost all", func() string {
		maps, milli := census.getNamespaceCount("configmaps", "rush-b"), census.getNamespaceCount("cpu", "rush-b")
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

func testQuietQuota(f *fixture) {
	quiet := newSharedTenant("quiet", []string{"quiet-a", "quiet-b"}, makeResourceList("configmaps", "42"))
	f.Create(quiet)
	before := f.awaitCountedShares(quiet)
	create := func(namespace string, n int) {
		for range n {
			f.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "quiet-"}})
		}
	}
	more := func(tenant, namespace string) {
		f.Await(namespace+" to get more", func() string {
			q := f.listQuotas(tenant)[namespace]
			if hard := q.Status.Hard["configmaps"]; hard.Value() <= 21 {
				return hard.String()
			}
			return ""
		})
	}
	marker := newSharedTenant("marker", []string{"marker-a", "marker-b"}, makeResourceList("configmaps", "42"))
	f.Create(marker)
	f.awaitCountedShares(marker)

	// A part of the share is used, and nothing may happen. When croft has handled another
	// tenant that runs short later, it has handled this one, too.
	writes := f.Writes.Count()
	create("quiet-a", 8)
	create("marker-a", 14)
	more("marker", "marker-a")
	for _, write := range f.Writes.ListSince(writes) {
		if strings.Contains(write, "quiet") {
			t := f.listQuotas("quiet")
			f.Errorf("wrote %s: %v", write, t)
		}
	}
	if after := f.listQuotas("quiet")["quiet-a"]; !quotaplan.IsEqual(after.Spec.Hard, before["quiet-a"].Spec.Hard) {
		f.Errorf("%v, and was %v", after.Spec.Hard, before["quiet-a"].Spec.Hard)
	}

	// Now the namespace runs short, and gets more.
	writes = f.Writes.Count()
	start := time.Now()
	create("quiet-a", 6)
	more("quiet", "quiet-a")
	f.Logf("a share moved in %s", time.Since(start).Round(time.Millisecond))
	f.awaitShares(quiet)
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
