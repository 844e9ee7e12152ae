package collect

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/cost/podusage"
	"croft.dev/croft/internal/cost/store"
)

func newLaunchedCondition(at time.Time) status.Condition {
	return status.Condition{Type: karpenterv1.ConditionTypeLaunched, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(at)}
}

// A node costs 360,000 millionths an hour: 100 a second. A pod has half of it.

// TestHour covers an hour with a pod that runs for two seconds, a node that changes its pool, and a
// namespace that changes its cost code. The current hour is visible, and final ten minutes after its end.
func TestHour(t *testing.T) {
	c := newCluster(t)
	c.startProcess()
	c.addNamespace("shop", "shop", "org1")
	node := c.addNode("a", "apps")
	c.passTime(10 * time.Minute)
	c.addPod("shop", "short", "a")
	c.passTime(2 * time.Second)
	c.removeObject("short")
	c.passTime(10*time.Minute - 2*time.Second)
	c.addPod("shop", "web", "a")
	c.passTime(10 * time.Minute)
	c.addNamespace("shop", "shop", "org2")
	c.passTime(10 * time.Minute)
	moved := node.DeepCopy()
	moved.Labels = map[string]string{karpenterv1.NodePoolLabelKey: "jobs", karpenterv1.CapacityTypeLabelKey: "on-demand",
		corev1.LabelInstanceTypeStable: "m5.large"}
	c.setObject("a", moved)
	c.passTime(10 * time.Minute)
	c.expectRecords(noon,
		// 240,000 for 40 minutes in apps: 2 s and 20 min of half of the node.
		"idle apps: 179900 0", "idle jobs: 30000 0",
		"tenant shop org1 apps Pod/short: 100 300", "tenant shop org1 apps Pod/web: 30000 89800",
		"tenant shop org2 apps Pod/web: 30000 89800", "tenant shop org2 jobs Pod/web: 30000 30000",
	)
	c.passTime(19 * time.Minute)
	if last, err := c.collector.Store.FindLast(); err != nil || !last.IsZero() {
		t.Errorf("an hour is stored at %s: %v", c.clock.Now(), err)
	}
	c.passTime(time.Minute)
	if last, err := c.collector.Store.FindLast(); err != nil || !last.Equal(noon.Add(time.Hour)) {
		t.Errorf("no hour is stored at %s: %v", c.clock.Now(), err)
	}
	if records := c.readRecords(noon); len(records) != 2 || records[1].Until != c.clock.Now() {
		t.Errorf("%d records", len(records))
	}
}

// TestRegistration expects that an instance costs once, from its launch, as the capacity of its node, in
// each order of the events.
func TestRegistration(t *testing.T) {
	want := []string{"idle apps: 180000 180000"}
	c := newCluster(t)
	c.startProcess()
	c.addNode("a", "apps")
	claim := c.objects["claim-a"]
	c.passTime(30 * time.Minute)
	c.expectRecords(noon, want...)

	late := newCluster(t)
	late.startProcess()
	late.setObject("claim-a", claim)
	late.passTime(time.Minute)
	late.expectRecords(noon, "unallocated apps: 6000 0")
	late.setObject("a", c.objects["a"])
	late.passTime(29 * time.Minute)
	late.expectRecords(noon, want...)

	first := newCluster(t)
	first.startProcess()
	first.setObject("a", c.objects["a"])
	first.passTime(time.Minute)
	first.setObject("claim-a", claim)
	first.passTime(29 * time.Minute)
	first.expectRecords(noon, want...)
	first.removeObject("a")
	first.passTime(time.Minute)
	first.removeObject("claim-a")
	first.passTime(time.Minute)
	first.expectRecords(noon, "idle apps: 180000 180000", "unallocated apps: 6000 0")
}

// TestReplaced replaces a pod while the watch is interrupted, as a StatefulSet does: one event has both pods. The
// first one must cost nothing from then on.
func TestReplaced(t *testing.T) {
	c := newCluster(t)
	c.startProcess()
	c.addNamespace("shop", "shop", "")
	c.addNode("a", "apps")
	first := c.addPod("shop", "web-0", "a")
	c.passTime(30 * time.Minute)
	second := first.DeepCopy()
	second.UID, second.CreationTimestamp = "second", metav1.NewTime(c.clock.Now())
	second.Status.Conditions[0].LastTransitionTime = second.CreationTimestamp
	c.collector.set(first, second)
	c.passTime(30 * time.Minute)
	c.expectRecords(noon, "idle apps: 180000 0", "tenant shop apps Pod/web-0: 180000 180000 ~180000 0")
}

// TestVolumesServicesAndPrices covers volumes that lose their claim, a Service that becomes a load
// balancer, and a price that changes.
func TestVolumesServicesAndPrices(t *testing.T) {
	c := newCluster(t)
	c.startProcess()
	c.addNamespace("shop", "shop", "")
	v := &corev1.PersistentVolume{ObjectMeta: c.makeMetadata("pv")}
	v.Spec.StorageClassName = "gp3"
	v.Spec.Capacity = corev1.ResourceList{"storage": resource.MustParse("360Gi")} // 360,000 an hour
	v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "data"}
	v.Status.Phase = corev1.VolumeBound
	c.setObject("pv", v)
	s := &corev1.Service{ObjectMeta: c.makeMetadata("web")}
	s.Namespace = "shop"
	c.setObject("web", s)
	c.passTime(30 * time.Minute)
	v = v.DeepCopy()
	v.Status.Phase = corev1.VolumeReleased
	c.setObject("pv", v)
	s = s.DeepCopy()
	s.Spec.Type = corev1.ServiceTypeLoadBalancer
	c.setObject("web", s)
	c.passTime(15 * time.Minute)
	c.prices = "volumes: {gp3: 0.365}\nloadBalancerHour: 0.036\n"
	c.collector.updatePrices(t.Context())
	c.passTime(15 * time.Minute)
	c.expectRecords(noon, "tenant shop PersistentVolumeClaim/data: 180000 0", "tenant shop Service/web: 14625 0",
		"unallocated PersistentVolume/pv: 135000 0")
	c.removeObject("pv")
	c.removeObject("web")
	c.passTime(time.Hour)
	c.expectRecords(noon.Add(time.Hour))
}

// TestUsage covers an hour with a restart, in which metrics-server serves nothing from the 40th to the 50th minute. The first
// measurement afterwards counts for three minutes.
func TestUsage(t *testing.T) {
	c := newCluster(t)
	c.startProcess()
	c.addNamespace("shop", "shop", "")
	c.addNode("a", "apps")
	c.addPod("shop", "web", "a")
	c.used = &podusage.Pod{CPU: 500_000, Memory: 2048}
	c.passTime(30 * time.Minute)
	c.killProcess()
	c.startProcess()
	c.passTime(10 * time.Minute)
	c.used = nil
	c.passTime(10 * time.Minute)
	c.used = &podusage.Pod{CPU: 500_000, Memory: 2048}
	c.passTime(10 * time.Minute)
	expect := func(want string) {
		t.Helper()
		for _, row := range c.readRecords(noon)[0].Rows {
			if got := fmt.Sprint(row.UsedCPU, " ", row.UsedMemory, " in ", row.Measured, ", ", row.Unmeasured, " unknown"); row.Workload != "" && got != want {
				t.Errorf("%s: %s, want %s", row.Workload, got, want)
			}
		}
	}
	expect("1560 6240 in 3120, 480 unknown")
	c.passTime(10 * time.Minute)
	expect("1568 6272 in 3120, 480 unknown") // files have six bits of it
	c.killProcess()
	c.startProcess()
	// Another pod gets the name.
	c.removeObject("web")
	pod := c.addPod("shop", "web", "a")
	pod = pod.DeepCopy()
	pod.UID = "later"
	c.removeObject("web")
	c.setObject("later", pod)
	c.passTime(time.Hour)
	rows := c.readRecords(noon.Add(time.Hour))[0].Rows
	for i := range rows {
		if r := &rows[i]; r.Workload != "" && (r.Measured+r.Unmeasured != 3600 || r.Measured < 3200) {
			t.Errorf("%+v", r)
		}
	}
	c.removeObject("later")
	if known := c.collector.tracker.pods; len(known) > 0 {
		t.Errorf("names of pods that do not exist: %v", known)
	}
}

// TestGap covers a day without a process: objects that existed before and after it cost exactly, idle cost
// is estimated, and objects that disappeared cost half of the time, by estimate.
func TestGap(t *testing.T) {
	c := newCluster(t)
	c.startProcess()
	c.addNamespace("shop", "shop", "")
	for _, name := range []string{"a", "b"} {
		c.addNode(name, "apps")
	}
	c.addPod("shop", "web", "a")
	c.addPod("shop", "old", "b")
	c.passTime(time.Hour)
	c.killProcess()
	c.passTime(12 * time.Hour)
	c.addNode("c", "apps")
	c.addPod("shop", "new", "c")
	c.passTime(12 * time.Hour)
	for _, uid := range []types.UID{"b", "claim-b", "old"} {
		delete(c.objects, uid)
	}
	c.startProcess()
	c.passTime(time.Hour)
	c.expectRecords(noon,
		"idle apps: 9360000 0 ~8640000 0",
		"tenant shop apps Pod/new: 2340000 2340000 ~0 2160000",
		"tenant shop apps Pod/old: 2340000 2340000 ~2160000 2160000",
		"tenant shop apps Pod/web: 4680000 4680000 ~0 4320000")
	gaps := 0
	for _, r := range c.readRecords(noon) {
		for _, g := range r.Gaps {
			gaps += int(g.Until.Sub(g.From) / time.Second)
		}
	}
	if gaps != 24*3600 {
		t.Errorf("gaps of %d s, want a day", gaps)
	}
}

// TestFormerLeader expects that a process which lost its lease writes nothing.
func TestFormerLeader(t *testing.T) {
	c := newCluster(t)
	c.startProcess()
	c.addNode("a", "apps")
	former := c.collector
	c.passTime(time.Hour)
	c.startProcess()
	c.passTime(15 * time.Minute)
	before := c.sumRecords(noon)
	if err := former.compute(t.Context()); !errors.Is(err, store.ErrFenced) {
		t.Errorf("the former leader writes an hour: %v", err)
	}
	if err := former.flush(); !errors.Is(err, store.ErrFenced) {
		t.Errorf("the former leader writes observations: %v", err)
	}
	if after := c.sumRecords(noon); !reflect.DeepEqual(before, after) {
		t.Errorf("%v, want %v", after, before)
	}
}

// TestExclusive expects a pool to be exclusive while one tenant is declared to use it, and no other one
// has pods there.
func TestExclusive(t *testing.T) {
	c := newCluster(t)
	declare := func(name string, pools ...string) {
		tenant := &v1alpha1.Tenant{ObjectMeta: c.makeMetadata(name)}
		tenant.UID = "tenant-" + tenant.UID
		tenant.Spec.Pools = pools
		c.setObject(tenant.UID, tenant)
	}
	declare("shop", "apps", "jobs")
	declare("bank", "jobs", "vault")
	c.startProcess()
	c.addNamespace("shop", "shop", "")
	c.addNamespace("bank", "bank", "")
	c.addNode("a", "vault")
	c.addPod("shop", "misplaced", "a")
	c.passTime(time.Hour)
	c.removeObject("misplaced")
	c.passTime(time.Hour)
	c.removeObject("tenant-shop")
	c.passTime(2 * time.Hour)
	records := c.readRecords(noon)
	for i, want := range [][]store.Exclusive{
		{{Pool: "apps", Tenant: "shop"}}, {{Pool: "apps", Tenant: "shop"}, {Pool: "vault", Tenant: "bank"}},
		{{Pool: "jobs", Tenant: "bank"}, {Pool: "vault", Tenant: "bank"}},
	} {
		if got := records[i].Exclusive; !reflect.DeepEqual(got, want) {
			t.Errorf("hour %d: %v, want %v", i, got, want)
		}
	}
}
