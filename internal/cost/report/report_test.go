package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/price"
)

var now = time.Date(2026, 11, 26, 20, 30, 0, 0, time.UTC)

// makeInput returns two nodes of pool apps, half of whose weight is requested: one node without a price, and one that
// was launched half an hour ago.
func makeInput() ledger.Input {
	from := ledger.Span{From: now.Add(-30 * time.Minute)}
	node := ledger.Node{Name: "a", Pool: "apps", CapacityType: "on-demand", InstanceType: "m5.large", Span: from, CPU: 2000,
		Memory: 18 << 10, Observed: now, Price: price.Price{Amount: 96_000, Known: true, Source: "list"}}
	unpriced := node
	unpriced.Name, unpriced.Pool, unpriced.CapacityType, unpriced.Price = "b", "jobs", "spot", price.Price{}
	return ledger.Input{
		Nodes: []ledger.Node{node, unpriced},
		Pods: []ledger.Pod{
			{Namespace: "shop", Workload: "Deployment/web", Node: "a", CPU: 1000, Memory: 9 << 10, Span: from},
			{Namespace: "bank", Workload: "Job/report", Node: "b", CPU: 1000, Memory: 9 << 10, Span: from},
			{Namespace: "kube-system", Workload: "DaemonSet/proxy", Node: "a", Span: from},
		},
		Volumes: []ledger.Volume{{Namespace: "bank", Workload: "PersistentVolumeClaim/data", Class: "gp3", Size: 1 << 10,
			Span: from, Price: price.Price{Amount: 730_000_000, Known: true, Source: "prices.yaml"}}},
		LoadBalancers: []ledger.LoadBalancer{{Namespace: "shop", Workload: "Service/web", Span: from}},
		Owners:        []ledger.Owner{{Namespace: "shop", Tenant: "shop", CostCode: "org1"}, {Namespace: "bank", Tenant: "bank"}},
	}
}

// TestBuild compares the lines of each grouping: name, cost, idle, total, estimated, per hour.
func TestBuild(t *testing.T) {
	const volumes = "0.500000 0.000000 0.500000 0.000000 1.000000"
	for by, want := range map[string][]string{
		ByTenant: {"bank " + volumes + " ?", "shop 0.024000 0.024000 0.048000 0.024000 0.096000 ?",
			"(platform) 0.000000 0.000000 0.000000 0.000000 0.000000", "(idle) 0.000000 0.000000 0.000000 0.000000 0.000000 ?"},
		ByNamespace: {"bank " + volumes + " ?", "shop 0.024000 0.024000 0.048000 0.024000 0.096000 ?",
			"kube-system 0.000000 0.000000 0.000000 0.000000 0.000000", "(idle) 0.000000 0.000000 0.000000 0.000000 0.000000 ?"},
		ByWorkload: {"bank PersistentVolumeClaim/data " + volumes, "shop Deployment/web 0.024000 0.024000 0.048000 0.024000 0.096000",
			"bank Job/report 0.000000 0.000000 0.000000 0.000000 0.000000 ?",
			"kube-system DaemonSet/proxy 0.000000 0.000000 0.000000 0.000000 0.000000",
			"shop Service/web 0.000000 0.000000 0.000000 0.000000 0.000000 ?",
			"(idle) 0.000000 0.000000 0.000000 0.000000 0.000000 ?"},
		ByCostCode: {"(no cost code) " + volumes + " ?", "org1 0.024000 0.024000 0.048000 0.024000 0.096000 ?",
			"(platform) 0.000000 0.000000 0.000000 0.000000 0.000000", "(idle) 0.000000 0.000000 0.000000 0.000000 0.000000 ?"},
		ByPool: {"apps 0.024000 0.024000 0.048000 0.024000 0.096000", "jobs 0.000000 0.000000 0.000000 0.000000 0.000000 ?",
			"(volumes) " + volumes, "(load balancers) 0.000000 0.000000 0.000000 0.000000 0.000000 ?"},
		ByInstanceType: {"m5.large 0.024000 0.024000 0.048000 0.024000 0.096000 ?", "(volumes) " + volumes,
			"(load balancers) 0.000000 0.000000 0.000000 0.000000 0.000000 ?"},
	} {
		period := ledger.Span{From: now.Add(-24 * time.Hour), Until: now}
		r, err := Build(makeInput(), Options{Period: period, By: by, Currency: "USD"})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, line := range r.Lines {
			text := fmt.Sprint(line.Name, " ", line.Cost, " ", line.Idle, " ", line.Total, " ", line.Estimated, " ", line.PerHourNow)
			if line.UnknownSeconds > 0 != line.NowUnknown {
				t.Errorf("%s: %s is unknown for %d seconds, and now: %t", by, line.Name, line.UnknownSeconds, line.NowUnknown)
			}
			if line.NowUnknown {
				text += " ?"
			}
			if (line.CostUnknown || line.IdleUnknown) != line.NowUnknown {
				t.Errorf("%s: %s has an unknown cost: %t, idle: %t", by, line.Name, line.CostUnknown, line.IdleUnknown)
			}
			got = append(got, text)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n%s\nwant\n%s", by, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if r.Total.Total != 548_000 || r.Total.PerHourNow != 1_096_000 {
			t.Errorf("%s: the total is %s, and %s per hour", by, r.Total.Total, r.Total.PerHourNow)
		}
	}
}

// TestLimits expects the unknown part of the period, and all missing prices, by name.
func TestLimits(t *testing.T) {
	in := makeInput()
	in.Nodes[0].Price.Estimated = true
	r, err := Build(in, Options{Period: ledger.Span{From: now.Add(-time.Hour), Until: now}, By: ByTenant})
	if err != nil {
		t.Fatal(err)
	}
	limits := strings.Join(r.Limits, "\n")
	for _, want := range []string{
		"from 2026-11-26T19:30:00Z until 2026-11-26T20:00:00Z the cost of nodes is unknown: all nodes are younger",
		"these prices are estimated, as another region's or as the present price of spot instances: list",
		"workloads that request neither CPU nor memory cost nothing: there are 1",
		"deleted pods count as idle",
	} {
		if !strings.Contains(limits, want) {
			t.Errorf("no %q in\n%s", want, limits)
		}
	}
	if want := []string{"load balancers (loadBalancerHour)", "spot nodes of type m5.large (instances.m5.large.spot)"}; !slices.Equal(r.MissingPrices, want) {
		t.Errorf("missing prices: %v, want %v", r.MissingPrices, want)
	}
	if want := []SourceCost{{"list", 48_000}, {"prices.yaml", 500_000}}; !slices.Equal(r.PriceSources, want) {
		t.Errorf("price sources: %v, want %v", r.PriceSources, want)
	}
	in.Nodes = append(in.Nodes, in.Nodes[0])
	if _, err := Build(in, Options{}); err == nil {
		t.Error("two nodes of one name are no error")
	}
}
