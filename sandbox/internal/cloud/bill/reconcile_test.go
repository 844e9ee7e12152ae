package bill_test

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	costbill "croft.dev/croft/internal/cost/bill"
	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/money"
	"croft.dev/croft/internal/cost/objects"
	"croft.dev/croft/internal/cost/price"
	"croft.dev/croft/internal/cost/reconcile"
	"croft.dev/croft/internal/cost/report"
	"croft.dev/croft/internal/cost/timeline"
	"croft.dev/croft/sandbox/internal/cloud/account"
	"croft.dev/croft/sandbox/internal/cloud/bill"
)

// begin is the beginning of the bill.
var begin = time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)

// world is an account, and the timeline of a ledger that observes the cluster of its instances.
type world struct {
	t *testing.T
	*account.Account
	now      time.Time
	timeline *timeline.Timeline
	prices   *price.List
	nodes    map[string]*node
}

// node is an instance as the API server shows it.
type node struct {
	group
	claim *karpenterv1.NodeClaim
	node  *corev1.Node
}

// group are instances with the same properties. Instances without a pool are not Karpenter's, and have no tags.
type group struct{ pool, capacity, instanceType, namespace, costCode string }

var groups = []group{
	{"apps", account.OnDemand, "m5.large", "shop", "org1"}, {"jobs", account.Spot, "c5.large", "bank", "org2"},
	{"", account.OnDemand, "r5.large", "shop", "org1"},
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, now: begin, timeline: timeline.New(), nodes: map[string]*node{}}
	var err error
	w.Account, err = account.Open(filepath.Join(t.TempDir(), "aws.json"), account.Settings{
		Region: "us-west-2", Zones: []string{"us-west-2a", "us-west-2b"}, Cluster: "demo", Speed: 1}, func() time.Time { return w.now })
	w.check(err)
	w.check(w.PutProfile(account.InstanceProfile{Name: "nodes", Role: "KarpenterNodeRole-demo", Path: "/"}))
	_, err = w.PutTemplate(account.LaunchTemplate{Name: "lt", Data: account.TemplateData{Profile: "nodes"}})
	w.check(err)
	for _, g := range groups[:2] {
		w.observe(timeline.Owner, types.UID(g.namespace), timeline.Facts{Namespace: g.namespace, Tenant: g.namespace, CostCode: g.costCode}, begin)
	}
	w.setSpotPrice(0.0315)
	return w
}

func (w *world) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) observe(kind timeline.Kind, uid types.UID, facts timeline.Facts, from time.Time) {
	w.timeline.Observe(timeline.Key{Kind: kind, UID: string(uid)}, facts, from.Unix(), 0, w.now.Unix())
}

// setSpotPrice changes the price of spot instances, in the account and in the ledger's prices.
func (w *world) setSpotPrice(hour float64) {
	w.t.Helper()
	w.check(w.SetSpotPrice("c5.large", hour))
	text := "instances:\n"
	for _, g := range groups {
		text += fmt.Sprintf("  %s: {%s: %g}\n", g.instanceType, g.capacity, w.FindPrice(account.FindType(g.instanceType), g.capacity, w.now))
	}
	var err error
	w.prices, err = price.Parse("prices.yaml", []byte(text))
	w.check(err)
	w.timeline.Reprice(w.prices.Currency, func(_ timeline.Kind, f timeline.Facts) price.Price {
		return w.prices.FindInstance(price.Offering{CapacityType: f.CapacityType, InstanceType: f.InstanceType})
	}, w.now.Unix())
}

// launch launches an instance, as Karpenter does, and returns its ID.
func (w *world) launch(g group) string {
	w.t.Helper()
	tags := account.Tags{}
	if g.pool != "" {
		tags = account.Tags{"CostCode": g.costCode, "NodePool": g.pool, "Name": "not activated"}
	}
	subnet := w.ListSubnets(nil)[0]
	started, refused, err := w.Launch(account.Order{Capacity: g.capacity, Count: 1, Tags: tags,
		Offers: []account.Offer{{Template: "lt", Type: g.instanceType, Subnet: subnet.ID, Zone: subnet.Zone}}})
	w.check(err)
	if len(refused) > 0 {
		w.t.Fatal(refused)
	}
	id := started[0].IDs[0]
	n := &node{group: g}
	if g.pool != "" {
		n.claim = &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: id, UID: types.UID(id), Labels: map[string]string{
			karpenterv1.NodePoolLabelKey: g.pool, karpenterv1.CapacityTypeLabelKey: g.capacity, corev1.LabelInstanceTypeStable: g.instanceType}}}
		n.claim.Status.Conditions = []status.Condition{{Type: karpenterv1.ConditionTypeLaunched, Status: metav1.ConditionTrue,
			LastTransitionTime: metav1.NewTime(w.now)}}
	}
	w.nodes[id] = n
	w.observeNode(id)
	return id
}

func (w *world) observeNode(id string) {
	n := w.nodes[id]
	if n.claim == nil && n.node == nil {
		return
	}
	i, _ := objects.ReadInstance(n.claim, n.node)
	w.observe(timeline.Node, types.UID(id), timeline.Facts{Name: i.Name, Pool: i.Pool, CapacityType: i.CapacityType, InstanceType: i.InstanceType,
		CPU: i.CPU, Memory: i.Memory, Price: w.prices.FindInstance(i.Offering)}, i.From)
}

// advance lets time pass: instances become nodes, each with a pod of a tenant and one of the platform, and end.
func (w *world) advance(until time.Time) {
	w.t.Helper()
	for {
		next := w.FindNextDue()
		if next.IsZero() || next.After(until) {
			w.now = until
			return
		}
		w.now = next
		due, err := w.Advance()
		w.check(err)
		for _, i := range due {
			if i.State == account.Terminated {
				w.timeline.End(timeline.Key{Kind: timeline.Node, UID: i.ID}, w.now.Unix())
				w.check(w.UpdateInstance(i.ID, func(i *account.Instance) { i.Left = true }))
				continue
			}
			w.register(&i)
			w.check(w.UpdateInstance(i.ID, func(i *account.Instance) { i.Registered = true }))
		}
	}
}

func (w *world) register(i *account.Instance) {
	n := w.nodes[i.ID]
	n.node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: i.DNSName(w.Region), UID: types.UID(i.ID), CreationTimestamp: metav1.NewTime(w.now),
		Labels: map[string]string{karpenterv1.NodePoolLabelKey: n.pool, karpenterv1.CapacityTypeLabelKey: n.capacity,
			corev1.LabelInstanceTypeStable: n.instanceType}}}
	n.node.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("1930m"), "memory": resource.MustParse("3Gi")}
	w.observeNode(i.ID)
	for name, p := range map[string]timeline.Facts{
		"app": {Namespace: n.namespace, Workload: "Deployment/app", CPU: 1000, Memory: 2048}, "proxy": {Namespace: "kube-system", Workload: "DaemonSet/proxy", CPU: 100},
	} {
		p.Node = n.node.Name
		w.observe(timeline.Pod, types.UID(i.ID+name), p, w.now)
	}
}

// liveTwoDays lets instances of all groups come and go, most of them for hours and some for seconds. The price of
// spot instances changes every eight hours.
func (w *world) liveTwoDays() {
	w.t.Helper()
	r := rand.New(rand.NewPCG(7, 39)) //nolint:gosec // a test repeats its numbers
	ends := map[string]time.Time{}
	until := begin.Add(2 * day)
	for at := begin; at.Before(until); at = at.Add(time.Duration(300+r.IntN(1200)) * time.Second) {
		for len(ends) > 0 {
			id := slices.MinFunc(slices.Collect(maps.Keys(ends)), func(a, b string) int { return ends[a].Compare(ends[b]) })
			if ends[id].After(at) {
				break
			}
			w.advance(ends[id])
			w.check(w.Terminate(id))
			delete(ends, id)
		}
		before := w.now
		w.advance(at)
		if before.Truncate(8 * time.Hour).Before(at.Truncate(8 * time.Hour)) {
			w.setSpotPrice(float64(300+r.IntN(60)) / 10_000)
		}
		life := time.Hour + time.Duration(r.IntN(36_000))*time.Second
		if r.IntN(10) == 0 {
			life = time.Duration(15+r.IntN(30)) * time.Second
		}
		ends[w.launch(groups[r.IntN(len(groups))])] = at.Add(life)
	}
	w.advance(until)
}

const day = 24 * time.Hour

// compare reconciles the bill with the ledger, without the charges of one hour if it is set.
func (w *world) compare(text string, lost time.Time) *reconcile.Result {
	w.t.Helper()
	b, err := costbill.Read("cur.csv", strings.NewReader(text), costbill.Options{CostCodeTag: "CostCode", PoolTag: "NodePool"})
	w.check(err)
	period, err := reconcile.FindPeriod(b, w.now)
	w.check(err)
	if whole := (ledger.Span{From: begin, Until: begin.Add(2 * day)}); period != whole {
		w.t.Fatalf("the bill is for %v, want %v", period, whole)
	}
	c := reconcile.New(b, period)
	w.check(report.ListCharges(w.timeline.Build(), period, func(charge *report.Charge) error {
		if charge.From.Equal(lost) {
			return nil
		}
		return c.Add(charge)
	}))
	return c.Finish(nil)
}

// addUp returns the true amount of each cause in the total, from the lines of the bill. Instances without tags are in the ledger,
// and their disks are not.
func addUp(t *testing.T, text string) map[string]money.Amount {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]float64{}
	for _, row := range rows[1:] {
		cost, err := strconv.ParseFloat(row[8], 64)
		if err != nil {
			t.Fatal(err)
		}
		switch usage := row[4]; {
		case row[0] == "EdpDiscount":
			sums[reconcile.Discount] -= cost
		case strings.Contains(usage, "NatGateway"):
			sums[reconcile.OtherServices] -= cost
		case strings.Contains(usage, "VolumeUsage") && row[10] == "{}":
			sums[reconcile.Untagged] -= cost
		case strings.Contains(usage, "VolumeUsage"):
			sums[reconcile.NodeDisks] -= cost
		}
	}
	amounts := map[string]money.Amount{}
	for cause, sum := range sums {
		amounts[cause] = money.Amount(sum * float64(money.Unit))
	}
	return amounts
}

// checkCauses returns an error unless each cause has its true amount in the total, and nothing else is unexplained: both to
// 0.2 % of the bill.
func checkCauses(r *reconcile.Result, want map[string]money.Amount) error {
	got := map[string]money.Amount{}
	for _, c := range r.Total.Causes {
		got[c.Cause] = c.Amount
	}
	var wrong error
	for _, cause := range []string{reconcile.Discount, reconcile.OtherServices, reconcile.NodeDisks, reconcile.Untagged, reconcile.SharedPools,
		reconcile.Rounding, reconcile.Unexplained} {
		if off := got[cause] - want[cause]; max(off, -off) > r.Total.Bill/500 {
			wrong = errors.Join(wrong, fmt.Errorf("%s: %s, want %s of %s", cause, got[cause], want[cause], r.Total.Bill))
		}
	}
	return wrong
}

// TestReconcile compares the bill of two days with the ledger of the same instances. The bill has a private discount, instances
// without tags, the disks of nodes, another service, and AWS's rules: charges begin when an instance runs, are for 60 seconds at
// least, and end when it shuts down. With a lost hour in the ledger, the causes are wrong.
func TestReconcile(t *testing.T) {
	w := newWorld(t)
	w.liveTwoDays()
	var text bytes.Buffer
	w.check(bill.Write(&text, w.Account, bill.Terms{From: begin, Until: begin.Add(2 * day), TagKeys: []string{"CostCode", "NodePool"}, Discount: 5}))
	causes := addUp(t, text.String())
	r := w.compare(text.String(), time.Time{})
	if err := checkCauses(r, causes); err != nil {
		t.Error(err)
	}
	found := map[string]bool{}
	for _, line := range append(r.Lines, r.Total) {
		t.Logf("%s: bill %s, croft %s, causes %v", line.CostCode, line.Bill, line.Croft, line.Causes)
		for _, c := range line.Causes {
			found[line.CostCode+" "+c.Cause] = true
		}
	}
	for _, cause := range []string{"org1 discount", "org1 untagged", "org2 discount", "org2 shared pools", "(no cost code) untagged", "total other services", "total disks of nodes"} {
		if !found[cause] {
			t.Errorf("there is no %s", cause)
		}
	}
	if err := checkCauses(w.compare(text.String(), begin.Add(30*time.Hour)), causes); err == nil {
		t.Error("a lost hour is not noticed")
	} else {
		t.Logf("with a lost hour: %v", err)
	}
}
