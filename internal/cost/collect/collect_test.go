package collect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/money"
	"croft.dev/croft/internal/cost/podusage"
	"croft.dev/croft/internal/cost/price"
	"croft.dev/croft/internal/cost/store"
)

// noon is the beginning of these tests.
var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// cluster is a simulated cluster, with a process that observes it, while one runs.
type cluster struct {
	t         *testing.T
	directory string
	clock     *clocktesting.FakeClock
	prices    string
	objects   map[types.UID]any
	collector *Collector
	leaders   int64
	// used is the usage of each pod that metrics-server serves, if it is not nil.
	used *podusage.Pod
	// measured and unmeasured are the seconds of pods in the hours that checkUsage has seen.
	measured, unmeasured int64
	// onDamage is called for files that cannot be read completely. onStep is called before each step of a process's writes:
	// an error kills it there.
	onDamage func(file string, err error)
	onStep   func(step string) error
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	return &cluster{t: t, directory: t.TempDir(), clock: clocktesting.NewFakeClock(noon), objects: map[types.UID]any{},
		onDamage: func(file string, err error) { t.Errorf("%s: %v", file, err) },
		onStep:   func(string) error { return nil },
		prices:   "instances: {m5.large: {on-demand: 0.36, spot: 0.036}}\nvolumes: {gp3: 0.73}\nloadBalancerHour: 0.0225\n"}
}

// startProcess starts a process, which then leads.
func (c *cluster) startProcess() {
	c.t.Helper()
	if err := c.tryStart(); err != nil {
		c.t.Fatal(err)
	}
}

// tryStart is like startProcess. It returns an error if the process does not survive its start.
func (c *cluster) tryStart() error {
	s, err := store.Open(c.directory, c.onDamage)
	if err != nil {
		return err
	}
	s.OnStep = c.onStep
	c.leaders++
	if err := s.Lead(store.Leader{Identity: fmt.Sprint("pod-", c.leaders), Lease: "lease", Transitions: c.leaders}); err != nil {
		return err
	}
	c.collector = New(Options{Store: s, Clock: c.clock, Log: slog.New(slog.DiscardHandler), ReadUsage: c.readUsage,
		ReadPrices: func(context.Context) (*price.List, error) { return price.Parse("prices.yaml", []byte(c.prices)) }})
	if err := c.collector.begin(c.t.Context()); err != nil {
		return err
	}
	for _, o := range c.objects {
		c.collector.set(nil, o)
	}
	return c.collector.finish(c.t.Context())
}

// readUsage returns the usage of all pods.
func (c *cluster) readUsage(context.Context) ([]podusage.Pod, error) {
	var pods []podusage.Pod
	for _, o := range c.objects {
		if pod, is := o.(*corev1.Pod); is && c.used != nil {
			pods = append(pods, podusage.Pod{Namespace: pod.Namespace, Name: pod.Name, CPU: c.used.CPU, Memory: c.used.Memory})
		}
	}
	return pods, nil
}

// killProcess ends the process, without a word.
func (c *cluster) killProcess() { c.collector = nil }

// passTime lets time pass, with the process's writes.
func (c *cluster) passTime(d time.Duration) {
	c.t.Helper()
	end := c.clock.Now().Add(d)
	for c.clock.Now().Before(end) {
		c.clock.SetTime(getEarlier(c.clock.Now().Add(time.Minute), end))
		if c.collector == nil {
			continue
		}
		c.collector.measure(c.t.Context())
		if err := errors.Join(c.collector.flush(), c.collector.compute(c.t.Context())); err != nil {
			c.t.Fatal(err)
		}
	}
}

func getEarlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// setObject creates or changes an object.
func (c *cluster) setObject(uid types.UID, o any) {
	old := c.objects[uid]
	c.objects[uid] = o
	if c.collector != nil {
		c.collector.set(old, o)
	}
}

func (c *cluster) removeObject(uid types.UID) {
	if c.collector != nil {
		c.collector.remove(c.objects[uid], false)
	}
	delete(c.objects, uid)
}

func (c *cluster) makeMetadata(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(c.clock.Now())}
}

// addNode creates a node of 2 CPUs and 18 GiB, with its NodeClaim: half of its weight is CPU.
func (c *cluster) addNode(name, pool string) *corev1.Node {
	labels := map[string]string{karpenterv1.NodePoolLabelKey: pool, karpenterv1.CapacityTypeLabelKey: "on-demand",
		corev1.LabelInstanceTypeStable: "m5.large"}
	claim := &karpenterv1.NodeClaim{ObjectMeta: c.makeMetadata("claim-" + name)}
	claim.Labels, claim.Status.ProviderID = labels, name
	claim.Status.Conditions = append(claim.Status.Conditions, newLaunchedCondition(c.clock.Now()))
	c.setObject(claim.UID, claim)
	node := &corev1.Node{ObjectMeta: c.makeMetadata(name)}
	node.Labels, node.Spec.ProviderID = labels, name
	node.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("18Gi")}
	c.setObject(node.UID, node)
	return node
}

func (c *cluster) addNamespace(name, tenant, costCode string) {
	n := &corev1.Namespace{ObjectMeta: c.makeMetadata(name)}
	n.Labels = map[string]string{v1alpha1.TenantLabel: tenant, v1alpha1.CostCodeLabel: costCode}
	c.setObject(n.UID, n)
}

// addPod creates a pod with half of a node's capacity.
func (c *cluster) addPod(namespace, name, node string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: c.makeMetadata(name)}
	pod.Namespace, pod.Spec.NodeName = namespace, node
	pod.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("9Gi")}}}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue,
		LastTransitionTime: metav1.NewTime(c.clock.Now())}}
	c.setObject(pod.UID, pod)
	return pod
}

// readRecords returns all records from a time, with their rows.
func (c *cluster) readRecords(from time.Time) []store.Record {
	c.t.Helper()
	v, err := c.collector.Read(from)
	if err != nil {
		c.t.Fatal(err)
	}
	reading, err := v.Select(store.Selection{})
	if err != nil {
		c.t.Fatal(err)
	}
	defer reading.Close()
	records, err := reading.Collect()
	if err != nil {
		c.t.Fatal(err)
	}
	at := from
	for i := range records {
		r := &records[i]
		if r.From.After(at) || r.From.Before(at) && i > 0 {
			c.t.Errorf("record %d begins at %s, want %s", i, r.From, at)
		}
		at = r.Until
		var sum money.Amount
		for _, row := range r.Rows {
			sum += row.Cost
		}
		if sum != r.Nodes+r.Volumes+r.LoadBalancers {
			c.t.Errorf("the rows of %s are %d, and the objects %d", r.From, sum, r.Nodes+r.Volumes+r.LoadBalancers)
		}
	}
	return records
}

// sumRecords returns lines "owner workload cost idle" of all records from a time, with the
// estimated parts.
func (c *cluster) sumRecords(from time.Time) []string {
	c.t.Helper()
	sums := map[string]*ledger.Row{}
	for _, r := range c.readRecords(from) {
		for i := range r.Rows {
			row := &r.Rows[i]
			key := strings.Join(strings.Fields(fmt.Sprint(row.Kind, " ", row.Tenant, " ", row.CostCode, " ", row.Pool, " ", row.Workload)), " ")
			if sums[key] == nil {
				sums[key] = &ledger.Row{}
			}
			s := sums[key]
			s.Cost, s.Idle, s.Unpriced = s.Cost+row.Cost, s.Idle+row.Idle, s.Unpriced+row.Unpriced
			s.EstimatedCost, s.EstimatedIdle = s.EstimatedCost+row.EstimatedCost, s.EstimatedIdle+row.EstimatedIdle
		}
	}
	var lines []string
	for key, row := range sums {
		line := fmt.Sprintf("%s: %d %d", key, row.Cost, row.Idle)
		if row.EstimatedCost+row.EstimatedIdle > 0 {
			line += fmt.Sprintf(" ~%d %d", row.EstimatedCost, row.EstimatedIdle)
		}
		if row.Unpriced > 0 {
			line += fmt.Sprintf(" ?%d", row.Unpriced)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

func (c *cluster) expectRecords(from time.Time, want ...string) {
	c.t.Helper()
	if got := c.sumRecords(from); !slices.Equal(got, want) {
		c.t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
