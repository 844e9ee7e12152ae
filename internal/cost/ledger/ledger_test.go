package ledger

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"croft.dev/croft/internal/cost/money"
	"croft.dev/croft/internal/cost/price"
)

// start is the beginning of the hour of these tests.
var start = time.Date(2026, 11, 26, 19, 0, 0, 0, time.UTC)

// makeSpanWithin returns a span of the hour, in seconds.
func makeSpanWithin(from, until int) Span {
	return Span{start.Add(time.Duration(from) * time.Second), start.Add(time.Duration(until) * time.Second)}
}

// whole is the hour.
var whole = makeSpanWithin(0, 3600)

func newPrice(amount money.Amount) price.Price {
	return price.Price{Amount: amount, Known: true, Source: "list"}
}

// makeNode returns a node of 2 CPUs and 9 GiB: half of its weight is CPU.
func makeNode(name, pool string, span Span) Node {
	return Node{Name: name, Pool: pool, CapacityType: "on-demand", InstanceType: "m5.large", Price: newPrice(96_000), Span: span,
		CPU: 2000, Memory: 18 << 10}
}

// formatRows formats rows as "owner workload cost idle", with marks.
func formatRows(h Hour) []string {
	var lines []string
	for _, r := range h.Rows {
		name := formatTitle(string(r.Kind), r.Tenant, r.CostCode, r.Pool, r.Workload, r.InstanceType)
		line := fmt.Sprintf("%s: %d %d", strings.TrimSuffix(name, " m5.large"), r.Cost, r.Idle)
		if r.EstimatedCost+r.EstimatedIdle > 0 {
			line += fmt.Sprintf(" ~%d %d", r.EstimatedCost, r.EstimatedIdle)
		}
		if r.Unpriced > 0 {
			line += fmt.Sprintf(" ?%d", r.Unpriced)
		}
		lines = append(lines, line)
	}
	return lines
}

// TestCompute compares hours with rows that were computed by hand.
func TestCompute(t *testing.T) {
	shop := Owner{Namespace: "shop", Tenant: "shop", CostCode: "org1"}
	half := Pod{Namespace: "shop", Workload: "web", Node: "a", CPU: 1000, Memory: 9 << 10}
	with := func(change func(*Node)) Node {
		n := makeNode("a", "apps", whole)
		change(&n)
		return n
	}
	for name, c := range map[string]struct {
		in   Input
		want []string
	}{
		"half of a node": {Input{Nodes: []Node{makeNode("a", "apps", Span{From: start})}, Pods: []Pod{half}, Owners: []Owner{shop}},
			[]string{"idle apps: 48000 0", "tenant shop org1 apps web: 48000 48000"}},
		"without an owner": {Input{Nodes: []Node{makeNode("a", "apps", whole)}, Pods: []Pod{half}},
			[]string{"idle apps: 48000 0", "platform apps web: 48000 48000"}},
		"no pod": {Input{Nodes: []Node{makeNode("a", "apps", whole)}}, []string{"idle apps: 96000 96000"}},
		"two seconds": {Input{Nodes: []Node{makeNode("a", "apps", whole)}, Owners: []Owner{shop},
			Pods: []Pod{{Namespace: "shop", Workload: "job", Node: "a", CPU: 2000, Memory: 18 << 10, Span: makeSpanWithin(5, 7)}}},
			[]string{"idle apps: 95947 0", "tenant shop org1 apps job: 53 95947"}},
		"no requests": {Input{Nodes: []Node{makeNode("a", "apps", whole)}, Owners: []Owner{shop},
			Pods: []Pod{{Namespace: "shop", Workload: "web", Node: "a"}}},
			[]string{"idle apps: 96000 96000", "tenant shop org1 apps web: 0 0"}},
		"a node changes its pool": {Input{Nodes: []Node{makeNode("a", "apps", makeSpanWithin(0, 900)), makeNode("a", "jobs", makeSpanWithin(900, 3600))},
			Pods: []Pod{half}, Owners: []Owner{shop}}, []string{
			"idle apps: 12000 0", "tenant shop org1 apps web: 12000 12000",
			"idle jobs: 36000 0", "tenant shop org1 jobs web: 36000 36000"}},
		"the cost code changes": {Input{Nodes: []Node{makeNode("a", "apps", whole)}, Pods: []Pod{half}, Owners: []Owner{
			{Namespace: "shop", Tenant: "shop", CostCode: "org1", Span: Span{Until: start.Add(900 * time.Second)}}, {Namespace: "shop", Tenant: "shop", CostCode: "org2", Span: Span{From: start.Add(900 * time.Second)}}}},
			[]string{"idle apps: 48000 0", "tenant shop org1 apps web: 12000 12000", "tenant shop org2 apps web: 36000 36000"}},
		"a namespace without an owner for a while": {Input{Nodes: []Node{makeNode("a", "apps", whole)}, Pods: []Pod{half}, Owners: []Owner{
			{Namespace: "shop", Tenant: "shop", CostCode: "org1", Span: makeSpanWithin(900, 1800)}}},
			[]string{"idle apps: 48000 0", "platform apps web: 36000 36000", "tenant shop org1 apps web: 12000 12000"}},
		"more requests than capacity": {Input{Nodes: []Node{makeNode("a", "apps", whole)}, Owners: []Owner{shop}, Pods: []Pod{half, half,
			{Namespace: "kube-system", Workload: "proxy", Node: "a", CPU: 1 << 40, Memory: 1 << 40}}},
			[]string{"platform apps proxy: 48000 0", "tenant shop org1 apps web: 48000 0"}},
		"an unknown price": {Input{Nodes: []Node{with(func(n *Node) { n.Price = price.Price{} })}, Pods: []Pod{half}, Owners: []Owner{shop}},
			[]string{"idle apps: 0 0 ?3600", "tenant shop org1 apps web: 0 0 ?3600"}},
		"an estimated price": {Input{Nodes: []Node{with(func(n *Node) { n.Price.Estimated = true })}, Pods: []Pod{half}, Owners: []Owner{shop}},
			[]string{"idle apps: 48000 0 ~48000 0", "tenant shop org1 apps web: 48000 48000 ~48000 48000"}},
		"pods that are not observed": {Input{Nodes: []Node{with(func(n *Node) { n.Observed = whole.Until })}, Pods: []Pod{half}, Owners: []Owner{shop}},
			[]string{"idle apps: 48000 0 ~48000 0", "tenant shop org1 apps web: 48000 48000 ~0 48000"}},
		"pods that are observed": {Input{Nodes: []Node{with(func(n *Node) { n.Observed = start })}, Pods: []Pod{half}, Owners: []Owner{shop}},
			[]string{"idle apps: 48000 0", "tenant shop org1 apps web: 48000 48000"}},
		"a deleted node": {Input{Pods: []Pod{half}, Owners: []Owner{shop}}, []string{"tenant shop org1 web: 0 0 ?3600"}},
		"before it registers": {Input{Nodes: []Node{with(func(n *Node) { n.CPU, n.Memory = 0, 0 })}}, []string{
			"unallocated apps: 96000 0"}},
		"another hour": {Input{Nodes: []Node{makeNode("a", "apps", Span{From: start.Add(-time.Hour), Until: start})}, Pods: []Pod{half}}, []string{
			"platform web: 0 0 ?3600"}},
		"idle cost stays in its pool": {Input{Nodes: []Node{makeNode("a", "apps", whole), makeNode("b", "jobs", whole)},
			Pods: []Pod{half}, Owners: []Owner{shop}},
			[]string{"idle apps: 48000 0", "tenant shop org1 apps web: 48000 48000", "idle jobs: 96000 96000"}},
		// 100 GiB for 0.08 a month are 0.010958904 an hour.
		"volumes": {Input{Owners: []Owner{shop}, Volumes: []Volume{
			{Namespace: "shop", Workload: "data", Class: "gp3", Size: 50 << 10, Price: newPrice(80_000), Span: whole},
			{Workload: "old", Class: "gp3", Size: 50 << 10, Price: newPrice(80_000), Span: whole},
			{Namespace: "shop", Workload: "nfs", Class: "nfs", Size: 1, Span: whole}}},
			[]string{"tenant shop org1 data gp3: 5480 0", "unallocated old gp3: 5479 0", "tenant shop org1 nfs nfs: 0 0 ?3600"}},
		"a load balancer": {Input{Owners: []Owner{{Namespace: "shop", Tenant: "shop", CostCode: "", Span: makeSpanWithin(0, 1800)}},
			LoadBalancers: []LoadBalancer{{"shop", "web", newPrice(22_501), whole}}},
			[]string{"platform web: 11251 0", "tenant shop web: 11250 0"}},
	} {
		l, err := New(c.in)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := formatRows(l.Compute(whole)); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// TestNewRefuses expects an error for entries that would be counted twice.
func TestNewRefuses(t *testing.T) {
	for want, in := range map[string]Input{
		"node a has two entries for 2026-11-26T19:00:10Z": {
			Nodes: []Node{makeNode("a", "apps", makeSpanWithin(0, 20)), makeNode("a", "jobs", makeSpanWithin(10, 30))}},
		"namespace shop has two entries for 2026-11-26T19:00:00Z": {
			Owners: []Owner{{Namespace: "shop", Tenant: "shop", CostCode: "", Span: whole}, {Namespace: "shop", Tenant: "bank", CostCode: "", Span: whole}}},
	} {
		if _, err := New(in); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestSplit expects parts that end where clock hours begin.
func TestSplit(t *testing.T) {
	spans := Split(Span{start.Add(-90 * time.Minute), start.Add(time.Minute)})
	var got []string
	for _, s := range spans {
		got = append(got, s.From.Format("15:04")+"-"+s.Until.Format("15:04"))
	}
	if want := []string{"17:30-18:00", "18:00-19:00", "19:00-19:01"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestExplain repeats the divisions of an hour.
func TestExplain(t *testing.T) {
	l, err := New(Input{Nodes: []Node{makeNode("a", "apps", makeSpanWithin(0, 1801))}, Owners: []Owner{{Namespace: "shop", Tenant: "shop"}},
		Pods: []Pod{{Namespace: "shop", Workload: "web", Node: "a", CPU: 700, Memory: 100}}})
	if err != nil {
		t.Fatal(err)
	}
	hour := l.Explain(whole)
	if len(hour.Divisions) != 2 {
		t.Fatalf("%d divisions, want the node and its idle cost", len(hour.Divisions))
	}
	for _, d := range hour.Divisions {
		var sum money.Amount
		for _, share := range d.Shares {
			sum += share.Amount
			if share.Extra {
				sum++
			}
		}
		if sum != d.Amount || d.Amount == 0 {
			t.Errorf("%s is %d, and its shares are %d", d.Title, d.Amount, sum)
		}
	}
	const title = "node a (apps m5.large on-demand): 0.096000 per hour (list) × 1801/3600 s"
	if got := hour.Divisions[0].Title; got != title {
		t.Errorf("%s, want %s", got, title)
	}
}
