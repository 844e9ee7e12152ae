package server

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/money"
	"croft.dev/croft/internal/cost/price"
	"croft.dev/croft/internal/cost/report"
	"croft.dev/croft/internal/cost/store"
)

// makePods returns random pods. They fit on their nodes, as the scheduler ensures.
func makePods(r *rand.Rand, tenant, namespace string, nodes, count int) []ledger.Pod {
	var pods []ledger.Pod
	for i := range count {
		from := now.Add(-time.Duration(r.IntN(3600)) * time.Second)
		pods = append(pods, ledger.Pod{Namespace: namespace, Workload: fmt.Sprintf("Deployment/%s-%d", tenant, i),
			Node: fmt.Sprintf("node-%d", r.IntN(nodes)), CPU: 100 + r.Int64N(300), Memory: 100 + r.Int64N(1000), Span: ledger.Span{From: from}})
	}
	return pods
}

// computeNeighbours returns the record of an hour of a pool that shop shares. Each node has another price.
func computeNeighbours(t *testing.T, pods []ledger.Pod, nodes int) store.Record {
	t.Helper()
	in := ledger.Input{Pods: pods, Owners: []ledger.Owner{{Namespace: "shop-prod", Tenant: "shop"}, {Namespace: "bank", Tenant: "bank"}}}
	for i := range nodes {
		in.Nodes = append(in.Nodes, ledger.Node{Name: fmt.Sprintf("node-%d", i), Pool: "apps", InstanceType: "m5.large",
			CapacityType: "on-demand", CPU: 4000, Memory: 16 << 10, Span: ledger.Span{From: now.Add(-24 * time.Hour)},
			Price: price.Price{Amount: 96_000 * money.Amount(i+1), Known: true, Source: "list"}})
	}
	l, err := ledger.New(in)
	if err != nil {
		t.Fatal(err)
	}
	span := ledger.Span{From: now.Add(-time.Hour), Until: now}
	return store.Record{Span: span, Currency: "USD", Rows: l.Compute(span).Rows}
}

// readNeighbour returns the answer for shop, by workload, for an hour of a pool that it shares.
func readNeighbour(t *testing.T, pods []ledger.Pod, nodes int) *report.Report {
	t.Helper()
	record := computeNeighbours(t, pods, nodes)
	s, _ := newTestServer()
	a := &access{tenant: "shop", namespaces: map[string]bool{"shop-prod": true}, whole: true}
	view := makeView(record)
	records, err := view.Select(store.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := report.BuildStored(s.filter(view, records, record.From, a), report.ByWorkload)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestNoInference changes the neighbours in random hours of real divisions: their requests, their number, and
// whether they exist. The answers to a tenant stay the same, to the millionth that rounding may add on each
// node.
func TestNoInference(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 4)) //nolint:gosec // a test repeats its numbers
		nodes := 1 + r.IntN(4)
		own := makePods(r, "shop", "shop-prod", nodes, 3)
		first := readNeighbour(t, append(slices.Clone(own), makePods(r, "bank", "bank", nodes, r.IntN(6))...), nodes)
		second := readNeighbour(t, append(slices.Clone(own), makePods(r, "bank", "bank", nodes, r.IntN(6))...), nodes)
		for i := range first.Lines {
			a, b := first.Lines[i], second.Lines[i]
			if a.Idle != 0 || b.Idle != 0 || !a.IdleHidden || (a.Cost-b.Cost) > money.Amount(nodes) || (b.Cost-a.Cost) > money.Amount(nodes) {
				t.Fatalf("seed %d: %+v and %+v", seed, a, b)
			}
			a.Cost, a.Total, a.PerHourNow = b.Cost, b.Total, b.PerHourNow
			if !reflect.DeepEqual(a, b) {
				t.Fatalf("seed %d: %+v and %+v", seed, a, b)
			}
		}
		if fmt.Sprint(first.Limits, first.MissingPrices) != fmt.Sprint(second.Limits, second.MissingPrices) {
			t.Fatalf("seed %d: %v and %v", seed, first.Limits, second.Limits)
		}
	}
}
