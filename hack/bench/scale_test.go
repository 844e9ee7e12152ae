package main

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/hack/internal/tenants"
	"croft.dev/croft/internal/walls/wall"
	"croft.dev/croft/internal/walls/wall/network"
	"croft.dev/croft/internal/walls/wall/policy"
)

// TestScaleFile expects the objects that the measurement deletes and waits for, and one difference between the two files.
func TestScaleFile(t *testing.T) {
	file := scaleFile{tenants: 5, pools: 3}
	built, err := tenants.Build(file.render())
	if err != nil {
		t.Fatal(err)
	}
	if len(built.Tenants) != 5 || len(built.Pools) != 3 {
		t.Fatalf("%d tenants, %d pools", len(built.Tenants), len(built.Pools))
	}
	used := map[string]int{}
	for _, tenant := range built.Tenants {
		used[tenant.Pools[0]]++
		var pods string
		restored := false
		for _, o := range wall.TenantObjects(&built.Platform, tenant) {
			switch o := o.(type) {
			case *corev1.ResourceQuota:
				if o.Name == policy.Name {
					pods = o.Spec.Hard.Pods().String()
				}
			case *networkingv1.NetworkPolicy:
				restored = restored || o.Name == network.DNSPolicy
			}
		}
		if pods == "" || pods == morePods || !restored {
			t.Errorf("%s: a quota of %q pods, a policy that can be deleted: %t", tenant.Name, pods, restored)
		}
	}
	if used[tenants.PoolName(0)] != 2 || used[tenants.PoolName(1)] != 2 || used[tenants.PoolName(2)] != 1 {
		t.Errorf("tenants of pools: %v", used)
	}

	changed := file
	changed.changed = true
	other, err := tenants.Build(changed.render())
	if err != nil {
		t.Fatal(err)
	}
	var differ []string
	for i, tenant := range other.Tenants {
		if !slices.Equal(tenant.Domains, built.Tenants[i].Domains) {
			differ = append(differ, tenant.Name)
		}
	}
	if !slices.Equal(differ, []string{tenants.Name(scalePrefix, 0)}) {
		t.Errorf("tenants with other domains: %v", differ)
	}
}

func TestCompareWithTarget(t *testing.T) {
	for _, test := range []struct {
		name    string
		tenants int
		target  float64
		note    string
	}{
		{firstApply, 5000, 125, "compared with the target"},
		{firstApply, 200, 0, "no target for 200 tenants"},
		{operatorRestart, 1000, 0, "no target for 1000 tenants"},
		{"croft render", 5000, 4, "compared with the target"},
		{"croft check", 5000, 0, "no target for 5000 tenants"},
	} {
		row := compareWithTarget(test.name, inSeconds, 7, test.tenants, "more")
		if row.Alternative != test.target || row.Croft != 7 || row.Note != test.note+"; more" {
			t.Errorf("%s of %d tenants: %+v", test.name, test.tenants, row)
		}
	}
}

func TestCompareUsages(t *testing.T) {
	s := &scaleBench{bench: &bench{tenants: 1000}, idle: map[string]usage{operatorComponent: {Resident: 50 << 20, CPU: 2}, "etcd": {Resident: 10, CPU: 1}}}
	s.ended = s.ended.addEnded(usage{Resident: 90 << 20, Most: 95 << 20, CPU: 12}).addEnded(usage{Most: 60 << 20, CPU: 3})
	rows := s.compareUsages(map[string]usage{
		operatorComponent: usage{Resident: 80 << 20, Most: 85 << 20, CPU: 4}.addEnded(s.ended), "etcd": {Resident: 30, Most: 40, CPU: 6},
	})
	find := func(name string) int {
		return slices.IndexFunc(rows, func(c comparison) bool { return c.Name == name })
	}
	operator, etcd := find(operatorMemory), find("memory of etcd")
	if operator < 0 || etcd < 0 || len(rows) != 2*len(scaleProcesses) {
		t.Fatalf("%+v", rows)
	}
	// The CPU time of all three operators, since the first apply.
	if o := rows[operator]; o.Croft != 80<<20 || o.Alternative != 100<<20 || rows[operator+1].Croft != 4+12+3-2 || !strings.Contains(o.Note, "at most 95.0 MiB") {
		t.Errorf("the operator: %+v, %+v", o, rows[operator+1])
	}
	if e := rows[etcd]; e.Croft != 30 || e.Alternative != 10 || rows[etcd+1].Croft != 5 {
		t.Errorf("etcd: %+v, %+v", e, rows[etcd+1])
	}
}

func TestObjectWatch(t *testing.T) {
	pod := func(namespace, name string) client.Object {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	begin := func(events ...watch.Event) *objectWatch {
		existing := min(1, len(events))
		w := watch.NewFakeWithChanSize(len(events), false)
		for _, e := range events[existing:] {
			w.Action(e.Type, e.Object)
		}
		w.Stop()
		return &objectWatch{
			existing: events[:existing], watch: w, waiting: map[string]string{"a/one": "it does not exist", "a/two": "it does not exist"},
			explain: func(event watch.EventType, _ client.Object) string {
				if event == watch.Deleted {
					return ""
				}
				return "it exists"
			},
		}
	}
	exists, deleted := func(o client.Object) watch.Event { return watch.Event{Type: watch.Added, Object: o} },
		func(o client.Object) watch.Event { return watch.Event{Type: watch.Deleted, Object: o} }

	took, err := begin(exists(pod("a", "one")), deleted(pod("b", "one")), deleted(pod("a", "one")), deleted(pod("a", "one")), deleted(pod("a", "two"))).
		waitAll(t.Context(), time.Now().Add(-time.Hour))
	if err != nil || len(took) != 2 || took[0] < 3600 {
		t.Errorf("%v: %v", took, err)
	}
	_, err = begin(exists(pod("a", "two")), deleted(pod("a", "one"))).waitAll(t.Context(), time.Time{})
	if err == nil || !strings.Contains(err.Error(), "1 objects, such as a/two (it exists): the watch ended") {
		t.Errorf("%v", err)
	}
	failed := context.DeadlineExceeded
	if _, err := begin().observe(t.Context(), func(context.Context) error { return failed }); err == nil {
		t.Error("a failure of the function is ignored")
	}
}
