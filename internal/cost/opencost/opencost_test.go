package opencost_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/money"
	"croft.dev/croft/internal/cost/opencost"
	"croft.dev/croft/internal/cost/price"
	"croft.dev/croft/internal/cost/report"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// exportCharges returns the allocations of charges by name, with numbers as they are written.
func exportCharges(t *testing.T, charges ...report.Charge) map[string]map[string]any {
	t.Helper()
	s := opencost.New("k8s.example.org", &report.Report{From: noon, Until: noon.Add(24 * time.Hour), Currency: "EUR"})
	for i := range charges {
		if err := s.Add(&charges[i]); err != nil {
			t.Fatal(err)
		}
	}
	return decodeAnswer(t, s.Finish())
}

func decodeAnswer(t *testing.T, answer *opencost.Answer) map[string]map[string]any {
	t.Helper()
	text, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Code            int
		Status, Message string
		Data            []map[string]map[string]any
	}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	if err := decoder.Decode(&got); err != nil || got.Code != 200 || got.Status != "success" || got.Message != "amounts are in EUR" || len(got.Data) != 1 {
		t.Fatalf("%v: %s", err, text)
	}
	return got.Data[0]
}

// newCharge returns a charge of an hour.
func newCharge(hour int, key ledger.Key, row ledger.Row) report.Charge {
	row.Key = key
	from := noon.Add(time.Duration(hour) * time.Hour)
	return report.Charge{From: from, Until: from.Add(time.Hour), Row: row}
}

// formatFields formats fields of an allocation.
func formatFields(allocation map[string]any, fields ...string) string {
	var values []string
	for _, field := range fields {
		values = append(values, fmt.Sprint(allocation[field]))
	}
	return strings.Join(values, " ")
}

// TestAllocations compares the allocations of single charges with sums by hand.
func TestAllocations(t *testing.T) {
	web := ledger.Key{Kind: ledger.Tenant, Resource: ledger.NodeResource, Pool: "apps", Tenant: "shop", CostCode: "org1",
		Namespace: "shop-prod", Workload: "Deployment/web"}
	moved := web
	moved.CostCode = "org2"
	job := ledger.Key{Kind: ledger.Platform, Resource: ledger.NodeResource, Namespace: "kube-system", Workload: "Pod/proxy"}
	data := ledger.Key{Kind: ledger.Tenant, Resource: ledger.VolumeResource, InstanceType: "gp3", Tenant: "shop", Namespace: "shop-prod",
		Workload: "PersistentVolumeClaim/data"}
	lost := ledger.Key{Kind: ledger.Unallocated, Resource: ledger.VolumeResource, Workload: "PersistentVolume/pvc-1"}
	balancer := ledger.Key{Kind: ledger.Tenant, Resource: ledger.LoadBalancerResource, Tenant: "shop", Namespace: "shop-prod", Workload: "Service/web"}
	// Half a CPU and 4608 MiB for an hour have the same weight: 9216 MiB are as much as a CPU.
	requests := ledger.Row{CPU: 500 * 3600, Memory: 4608 * 3600, Cost: 11, Idle: 4}
	for name, c := range map[string]struct {
		charges []report.Charge
		name    string
		// fields and want are fields of the allocation, and their values.
		fields, want string
	}{
		"half of the cost is for memory": {[]report.Charge{newCharge(0, web, requests)}, "shop/shop-prod/deployment/web",
			"cpuCost cpuCostIdle ramCost ramCostIdle totalCost", "0.000008 0.000002 0.000007 0.000002 0.000015"},
		"averages of an hour": {[]report.Charge{newCharge(0, web, requests)}, "shop/shop-prod/deployment/web",
			"minutes cpuCores cpuCoreHours cpuCoreRequestAverage ramBytes ramByteHours", "60 0.5 0.5 0.5 4831838208 4831838208"},
		"averages of three hours": {[]report.Charge{newCharge(2, web, requests), newCharge(0, web, requests)}, "shop/shop-prod/deployment/web",
			"start end minutes cpuCoreHours totalCost", "2026-11-23T12:00:00Z 2026-11-23T15:00:00Z 180 1 0.000030"},
		"properties": {[]report.Charge{newCharge(0, web, requests)}, "shop/shop-prod/deployment/web", "properties window",
			"map[cluster:k8s.example.org controller:web controllerKind:deployment labels:map[croft_dev_cost_code:org1 croft_dev_tenant:shop] " +
				"namespace:shop-prod] map[end:2026-11-24T12:00:00Z start:2026-11-23T12:00:00Z]"},
		"a cost code that changes": {[]report.Charge{newCharge(0, web, requests), newCharge(1, moved, requests)}, "shop/shop-prod/deployment/web",
			"properties totalCost", "map[cluster:k8s.example.org controller:web controllerKind:deployment labels:map[croft_dev_tenant:shop] " +
				"namespace:shop-prod] 0.000030"},
		"a pod of the platform": {[]report.Charge{newCharge(0, job, requests)}, "__unallocated__/kube-system/pod/proxy", "properties",
			"map[cluster:k8s.example.org namespace:kube-system pod:proxy]"},
		"a volume": {[]report.Charge{newCharge(0, data, ledger.Row{Weight: 1024 * 3600, Cost: 7})}, "shop/shop-prod/persistentvolumeclaim/data",
			"pvCost pvBytes pvByteHours cpuCost totalCost", "0.000007 1073741824 1073741824 0.000000 0.000007"},
		"a volume without a claim": {[]report.Charge{newCharge(0, lost, ledger.Row{Weight: 1024 * 3600, Cost: 7})}, "__unmounted__",
			"pvCost properties", "0.000007 map[cluster:k8s.example.org]"},
		"a load balancer": {[]report.Charge{newCharge(0, balancer, ledger.Row{Weight: 3600, Cost: 22_500})}, "shop/shop-prod/service/web",
			"loadBalancerCost totalCost properties", "0.022500 0.022500 map[cluster:k8s.example.org labels:map[croft_dev_tenant:shop] " +
				"namespace:shop-prod services:[web]]"},
		"idle capacity without requests": {[]report.Charge{newCharge(0, ledger.Key{Kind: ledger.Idle, Resource: ledger.NodeResource, Pool: "empty"},
			ledger.Row{Weight: 9, Cost: 96_000, Idle: 96_000})}, "__idle__", "cpuCost cpuCostIdle ramCost totalCost", "0.096000 0.096000 0.000000 0.096000"},
		"an instance that has not registered": {[]report.Charge{newCharge(0, ledger.Key{Kind: ledger.Unallocated, Resource: ledger.NodeResource},
			ledger.Row{Weight: 1, Cost: 5})}, "__idle__", "cpuCost totalCost", "0.000005 0.000005"},
		"fields without figures": {[]report.Charge{newCharge(0, web, requests)}, "shop/shop-prod/deployment/web",
			"gpuCost networkCost sharedCost cpuCoreUsageAverage totalEfficiency pvs", "0.000000 0.000000 0.000000 <nil> <nil> <nil>"},
	} {
		got := exportCharges(t, c.charges...)
		if len(got) != 1 || got[c.name] == nil {
			t.Errorf("%s: %v, want %s", name, got, c.name)
			continue
		}
		if text := formatFields(got[c.name], strings.Fields(c.fields)...); text != c.want {
			t.Errorf("%s: got  %s\nwant %s", name, text, c.want)
		}
	}
	distributed := newCharge(0, ledger.Key{Kind: ledger.Idle, Resource: ledger.NodeResource, Pool: "apps"}, ledger.Row{Cost: 96_000})
	if got := exportCharges(t, distributed); len(got) != 0 {
		t.Errorf("idle cost that is distributed counts twice: %v", got)
	}
}

// fields are the fields of core/pkg/opencost/allocation_json.go that have a value in each answer.
const fields = "name properties window start end minutes cpuCores cpuCoreRequestAverage cpuCoreUsageAverage cpuCoreHours cpuCost " +
	"cpuCostAdjustment cpuCostIdle cpuEfficiency gpuCount gpuHours gpuCost gpuCostAdjustment gpuCostIdle gpuEfficiency networkTransferBytes " +
	"networkReceiveBytes networkCost networkCrossZoneCost networkCrossRegionCost networkInternetCost networkCostAdjustment loadBalancerCost " +
	"loadBalancerCostAdjustment pvBytes pvByteHours pvCost pvs pvCostAdjustment ramBytes ramByteRequestAverage ramByteUsageAverage " +
	"ramByteHours ramCost ramCostAdjustment ramCostIdle ramEfficiency externalCost sharedCost totalCost totalEfficiency lbAllocations"

// TestFields expects each field of OpenCost's answers, and no other.
func TestFields(t *testing.T) {
	got := exportCharges(t, newCharge(0, ledger.Key{Kind: ledger.Tenant, Resource: ledger.NodeResource, Workload: "Job/a"}, ledger.Row{Cost: 1}))
	for _, allocation := range got {
		for _, field := range strings.Fields(fields) {
			if _, found := allocation[field]; !found {
				t.Errorf("the field %s is missing", field)
			}
			delete(allocation, field)
		}
		if len(allocation) > 0 {
			t.Errorf("OpenCost has no such fields: %v", allocation)
		}
	}
}

// makeInput returns nodes of a pool and of none, spot instances, a pool without pods, an instance that has not
// registered, prices that are unknown, volumes and load balancers.
func makeInput(seed uint64) ledger.Input {
	r := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // a test repeats its numbers
	at := func(minutes int) ledger.Span {
		return ledger.Span{From: noon.Add(time.Duration(minutes) * time.Minute)}
	}
	priced := func() price.Price {
		return price.Price{Amount: money.Amount(r.Int64N(1_000_000)), Known: true, Source: "prices.yaml"}
	}
	in := ledger.Input{
		Nodes: []ledger.Node{
			{Name: "a", Pool: "apps", InstanceType: "m5.large", Price: priced(), Span: at(0), CPU: 1930, Memory: 7168},
			{Name: "b", Pool: "apps", InstanceType: "c6i.large", Price: priced(), Span: at(31), CPU: 1930, Memory: 3072},
			{Name: "c", Pool: "empty", InstanceType: "c6i.large", Price: priced(), Span: at(0), CPU: 1930, Memory: 3072},
			{Name: "NodeClaim/d", Pool: "apps", InstanceType: "c6i.large", Price: priced(), Span: at(50)},
			{Name: "e", Pool: "apps", InstanceType: "unknown.large", Span: at(0), CPU: 1930, Memory: 3072},
		},
		Volumes: []ledger.Volume{
			{Namespace: "shop", Workload: "PersistentVolumeClaim/data", Class: "gp3", Size: 1 + r.Int64N(100_000), Price: priced(), Span: at(0)},
			{Workload: "PersistentVolume/pvc-1", Class: "gp3", Size: 1 + r.Int64N(100_000), Price: priced(), Span: at(0)},
		},
		LoadBalancers: []ledger.LoadBalancer{{Namespace: "shop", Workload: "Service/web", Price: priced(), Span: at(-100)}},
		Owners: []ledger.Owner{
			{Namespace: "shop", Tenant: "shop", CostCode: "org1", Span: at(-100)}, {Namespace: "bank", Tenant: "bank", Span: at(-100)},
		},
	}
	for i := range r.IntN(12) {
		in.Pods = append(in.Pods, ledger.Pod{Namespace: []string{"shop", "bank", "kube-system"}[r.IntN(3)],
			Workload: fmt.Sprintf("Deployment/%d", i), Node: []string{"a", "b", "e"}[r.IntN(3)],
			CPU: r.Int64N(300), Memory: r.Int64N(300), Span: at(r.IntN(100))})
	}
	return in
}

// parseAmount reads a number of an allocation exactly.
func parseAmount(t *testing.T, number any) money.Amount {
	t.Helper()
	var d money.Decimal
	if err := d.Parse(fmt.Sprint(number)); err != nil {
		t.Fatalf("%v: %v", number, err)
	}
	return d.Round()
}

// TestSum expects the total costs to add up to the ledger's, and the parts of each allocation to its total cost, to
// the millionth.
func TestSum(t *testing.T) {
	parts := []string{"cpuCost", "ramCost", "pvCost", "loadBalancerCost", "gpuCost", "networkCost", "sharedCost", "externalCost"}
	for seed := range uint64(100) {
		in := makeInput(seed)
		period := ledger.Span{From: noon, Until: noon.Add(150 * time.Minute)}
		set := opencost.New("k8s.example.org", &report.Report{From: period.From, Until: period.Until, Currency: "EUR"})
		if err := report.ListCharges(in, period, set.Add); err != nil {
			t.Fatal(err)
		}
		l, err := ledger.New(in)
		if err != nil {
			t.Fatal(err)
		}
		var want, got money.Amount
		for _, span := range ledger.Split(period) {
			hour := l.Compute(span)
			want += hour.Nodes + hour.Volumes + hour.LoadBalancers
		}
		allocations := decodeAnswer(t, set.Finish())
		for name, a := range allocations {
			var sum money.Amount
			for _, part := range parts {
				sum += parseAmount(t, a[part])
			}
			total := parseAmount(t, a["totalCost"])
			if sum != total || parseAmount(t, a["cpuCostIdle"]) > parseAmount(t, a["cpuCost"]) || parseAmount(t, a["ramCostIdle"]) > parseAmount(t, a["ramCost"]) {
				t.Fatalf("seed %d: the parts of %s add up to %s, not %s: %v", seed, name, sum, total, a)
			}
			got += total
		}
		if got != want {
			t.Fatalf("seed %d: the allocations add up to %s, the ledger to %s", seed, got, want)
		}
		for _, name := range []string{"__idle__", "__unmounted__", "shop/shop/persistentvolumeclaim/data", "shop/shop/service/web"} {
			if !slices.Contains(listNames(allocations), name) {
				t.Fatalf("seed %d: no allocation %s: %v", seed, name, listNames(allocations))
			}
		}
	}
}

func listNames(allocations map[string]map[string]any) (names []string) {
	for name := range allocations {
		names = append(names, name)
	}
	return names
}
