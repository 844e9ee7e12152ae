package main

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/hack/internal/tenants"
	"croft.dev/croft/internal/prove/trial"
)

// TestLoopSizes expects one pool first, which is the alternative, and the maximum last.
func TestLoopSizes(t *testing.T) {
	for most, want := range map[int][]int{1: {1}, 3: {1, 3}, 20: {1, 20}, 150: {1, 20, 100, 150}, 500: {1, 20, 100, 500}, 900: {1, 20, 100, 500, 900}} {
		if got := listLoopSizes(most); !reflect.DeepEqual(got, want) {
			t.Errorf("up to %d: %v, want %v", most, got, want)
		}
	}
}

// TestLoopFile expects a new tenant in each file, all in the pool that Karpenter tries last, and pods that croft admits.
func TestLoopFile(t *testing.T) {
	e, err := tenants.Build(renderLoopFile([]int{1, 20}))
	if err != nil {
		t.Fatal(err)
	}
	if len(e.Pools) != 20 || len(e.Tenants) != 2 {
		t.Fatalf("%d pools, %d tenants", len(e.Pools), len(e.Tenants))
	}
	// Karpenter 1.14 tries pools of the same weight in reverse order of their names.
	for _, p := range e.Pools {
		if last := e.Tenants[1].Pools[0]; p.Name < last {
			t.Errorf("Karpenter tries the tenant's pool %s before %s", last, p.Name)
		}
	}
	pod := newLoopPod(20)
	tried, err := trial.New(e, e.FindTenant(pod.Namespace), trial.Options{})
	if err != nil {
		t.Fatal(err)
	}
	pod.TypeMeta, pod.Name = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, "loop"
	converted, err := tenants.ToUnstructured([]client.Object{pod})
	if err != nil {
		t.Fatal(err)
	}
	report, err := tried.Try(t.Context(), []trial.Manifest{{File: "pod", Line: 1, Object: converted[0]}})
	if err != nil || report.Refuses() {
		t.Errorf("the pod: %+v (%v)", report, err)
	}
}

// TestReadLoops expects the sum of the provisioner's observations, without the simulations of other controllers.
func TestReadLoops(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`# TYPE karpenter_scheduler_scheduling_duration_seconds histogram
karpenter_scheduler_scheduling_duration_seconds_bucket{controller="disruption",le="+Inf"} 3
karpenter_scheduler_scheduling_duration_seconds_sum{controller="disruption"} 5
karpenter_scheduler_scheduling_duration_seconds_count{controller="disruption"} 3
karpenter_scheduler_scheduling_duration_seconds_bucket{controller="provisioner",le="+Inf"} 2
karpenter_scheduler_scheduling_duration_seconds_sum{controller="provisioner"} 0.75
karpenter_scheduler_scheduling_duration_seconds_count{controller="provisioner"} 2
`))
	}))
	defer server.Close()
	if got, err := (&loopBench{metrics: server.URL}).readLoops(t.Context()); err != nil || got != 0.75 {
		t.Errorf("%g seconds, want 0.75 (%v)", got, err)
	}
}

// TestCompareLoops expects two rows for each number of pools, compared with the first number.
func TestCompareLoops(t *testing.T) {
	rows := compareLoops([]loopResult{
		{Pools: 1, Claims: []float64{0.6, 0.7, 0.8}, Loops: []float64{0.01, 0.02, 0.03}},
		{Pools: 20, Claims: []float64{1, 2, 1.4}, Loops: []float64{0.1, 0.2, 0.3}},
	})
	if len(rows) != 4 {
		t.Fatalf("%d rows", len(rows))
	}
	if r := rows[2]; r.Name != "pod to NodeClaim, 20 pools" || r.Croft != 1.4 || r.Alternative != 0.7 || !strings.Contains(r.Note, "compared with 1 pool; medians of 3 pods") ||
		!strings.Contains(r.Note, "maximum 2.00 s") {
		t.Errorf("%+v", r)
	}
	if r := rows[3]; r.Croft != 0.2 || r.Alternative != 0.02 || !strings.Contains(r.Note, "maximum 300 ms") {
		t.Errorf("%+v", r)
	}
	if rows := compareLoops(nil); len(rows) > 0 {
		t.Errorf("without results: %+v", rows)
	}
}
