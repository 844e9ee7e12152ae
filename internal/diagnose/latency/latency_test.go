package latency_test

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/internal/diagnose/latency"
)

var start = time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)

func makeTime(seconds int) metav1.Time {
	return metav1.NewTime(start.Add(time.Duration(seconds) * time.Second))
}

// newObjects returns a node with all times.
func newObjects() *latency.Objects {
	claim := karpenterv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "apps-1", CreationTimestamp: makeTime(2),
			Labels: map[string]string{karpenterv1.NodePoolLabelKey: "apps"}},
		Status: karpenterv1.NodeClaimStatus{NodeName: "node-1", ProviderID: "aws:///a/i-1", ImageID: "ami-1"},
	}
	for _, c := range []metav1.Condition{
		{Type: karpenterv1.ConditionTypeLaunched, LastTransitionTime: makeTime(5)},
		{Type: karpenterv1.ConditionTypeRegistered, LastTransitionTime: makeTime(21)},
		{Type: karpenterv1.ConditionTypeInitialized, LastTransitionTime: makeTime(33)},
	} {
		c.Status = metav1.ConditionTrue
		setCondition(&claim, c)
	}
	podTrue := func(kind corev1.PodConditionType, seconds int) corev1.PodCondition {
		return corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: makeTime(seconds)}
	}
	started := makeTime(36)
	return &latency.Objects{
		Claims: []karpenterv1.NodeClaim{claim},
		Nodes: []corev1.Node{{
			ObjectMeta: metav1.ObjectMeta{Name: "node-1", CreationTimestamp: makeTime(20)},
			Spec:       corev1.NodeSpec{ProviderID: "aws:///a/i-1"},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady,
				Status: corev1.ConditionTrue, LastTransitionTime: makeTime(30)}}},
		}},
		Pods: []corev1.Pod{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1", CreationTimestamp: makeTime(0)},
			Spec:       corev1.PodSpec{NodeName: "node-1"},
			Status: corev1.PodStatus{StartTime: &started, Conditions: []corev1.PodCondition{
				podTrue(corev1.PodScheduled, 35), podTrue(corev1.PodReadyToStartContainers, 38),
				podTrue(corev1.PodReady, 45),
			}},
		}},
		Events: []corev1.Event{newNomination("web", "1", "nodeclaim/apps-1")},
	}
}

func newNomination(pod, uid, targets string) corev1.Event {
	return corev1.Event{
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: pod, UID: types.UID(uid)},
		Source:         corev1.EventSource{Component: "karpenter"},
		Reason:         latency.Nominated, Message: "Pod should schedule on: " + targets, FirstTimestamp: makeTime(3),
	}
}

// setCondition adds a condition, whose type is in a module that croft does not require.
func setCondition(claim *karpenterv1.NodeClaim, c metav1.Condition) {
	conditions := slices.Grow(claim.Status.Conditions, 1)[:len(claim.Status.Conditions)+1]
	last := &conditions[len(conditions)-1]
	last.Type, last.Status, last.LastTransitionTime = c.Type, c.Status, c.LastTransitionTime
	claim.Status.Conditions = conditions
}

// all are the phases of one.
var all = map[latency.Phase]float64{
	latency.Decision: 2, latency.Launch: 3, latency.Boot: 15, latency.Ready: 10, latency.Initialization: 3,
	latency.Scheduling: 5, latency.Start: 10,
	latency.ClaimToNodeReady: 28, latency.PodToNodeReady: 30, latency.PodToPodReady: 45,
}

// TestPhases removes or invalidates the time that a phase depends on: that phase must then be
// absent, and no other.
func TestPhases(t *testing.T) {
	withPod := []latency.Phase{latency.Decision, latency.Scheduling, latency.Start, latency.PodToNodeReady,
		latency.PodToPodReady}
	withReady := []latency.Phase{latency.Ready, latency.Initialization, latency.Scheduling, latency.ClaimToNodeReady,
		latency.PodToNodeReady}
	for name, c := range map[string]struct {
		change func(*latency.Objects)
		absent []latency.Phase
		pod    string
		note   string
	}{
		"everything is known": {func(*latency.Objects) {}, nil, "shop/web", ""},
		"not launched": {func(o *latency.Objects) { o.Claims[0].Status.Conditions[0].Status = metav1.ConditionFalse },
			[]latency.Phase{latency.Launch, latency.Boot}, "shop/web", ""},
		"launched at an unknown time": {func(o *latency.Objects) {
			o.Claims[0].Status.Conditions[0].LastTransitionTime = metav1.Time{}
		},
			[]latency.Phase{latency.Launch, latency.Boot}, "shop/web", ""},
		"not initialized": {func(o *latency.Objects) {
			o.Claims[0].Status.Conditions = o.Claims[0].Status.Conditions[:2]
		},
			[]latency.Phase{latency.Initialization}, "shop/web", ""},
		"startup taint left": {func(o *latency.Objects) {
			taint := corev1.Taint{Key: "wait", Effect: corev1.TaintEffectNoSchedule}
			claim := &o.Claims[0]
			claim.Status.Conditions, claim.Spec.StartupTaints = claim.Status.Conditions[:2], []corev1.Taint{taint}
			o.Nodes[0].Spec.Taints = []corev1.Taint{{Key: "other", Effect: corev1.TaintEffectNoSchedule}, taint}
		}, []latency.Phase{latency.Initialization}, "shop/web", "still has startup taints: wait"},
		"not ready": {func(o *latency.Objects) { o.Nodes[0].Status.Conditions[0].Status = corev1.ConditionUnknown },
			withReady, "shop/web", ""},
		"ready again": {func(o *latency.Objects) { o.Nodes[0].Status.Conditions[0].LastTransitionTime = makeTime(300) },
			withReady,
			"shop/web", "became Ready again at 2026-11-23T10:05:00Z: the first time is unknown"},
		"a node's clock is ahead": {func(o *latency.Objects) {
			o.Claims[0].Status.Conditions[2].LastTransitionTime = makeTime(29)
		},
			[]latency.Phase{latency.Initialization}, "shop/web", ""},
		"no event left": {func(o *latency.Objects) { o.Events = nil }, nil, "shop/web", ""},
		"no event left, a DaemonSet's": {func(o *latency.Objects) {
			yes := true
			o.Events, o.Pods[0].OwnerReferences = nil, []metav1.OwnerReference{{Kind: "DaemonSet", Controller: &yes}}
		}, withPod, "", ""},
		"no event left, pod came later": {func(o *latency.Objects) {
			o.Events, o.Pods[0].CreationTimestamp = nil, makeTime(4)
		}, withPod, "", ""},
		"no event left, pod was scheduled before": {func(o *latency.Objects) {
			o.Events, o.Pods[0].Status.Conditions[0].LastTransitionTime = nil, makeTime(1)
		}, withPod, "", ""},
		"nominated for another": {func(o *latency.Objects) {
			o.Events[0].Message = "Pod should schedule on: nodeclaim/apps-11"
			o.Pods[0].CreationTimestamp = makeTime(4)
		}, withPod, "", ""},
		"nominated later": {func(o *latency.Objects) { o.Pods[0].CreationTimestamp = makeTime(4) }, withPod, "", ""},
		"nominated with a node": {func(o *latency.Objects) {
			o.Events[0].Message = "Pod should schedule on: nodeclaim/apps-1, node/node-1"
		}, nil, "shop/web", ""},
		"pod is deleted": {func(o *latency.Objects) { o.Pods = nil }, withPod, "shop/web",
			"pod shop/web, for which the node was created, is deleted: its times are unknown"},
		"a nomination by another component": {func(o *latency.Objects) { o.Pods, o.Events[0].Source.Component = nil, "karpenter-x" }, withPod, "", ""},
		"pod is another of the same name": {func(o *latency.Objects) {
			o.Pods[0].UID, o.Pods[0].CreationTimestamp = "2", makeTime(40)
		}, withPod, "shop/web",
			"pod shop/web, for which the node was created, is deleted: its times are unknown"},
		"pod went elsewhere": {func(o *latency.Objects) { o.Pods[0].Spec.NodeName = "node-2" },
			[]latency.Phase{latency.Scheduling, latency.Start, latency.PodToPodReady}, "shop/web",
			"pod shop/web, for which the node was created, runs on node node-2"},
		"containers restarted": {func(o *latency.Objects) {
			o.Pods[0].Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: 1}}
		}, []latency.Phase{latency.Start, latency.PodToPodReady}, "shop/web",
			"containers of pod shop/web have restarted: the first time it was ready is unknown"},
		"pod not ready": {func(o *latency.Objects) { o.Pods[0].Status.Conditions[2].Status = corev1.ConditionFalse },
			[]latency.Phase{latency.Start, latency.PodToPodReady}, "shop/web", ""},
		"a node of the same name, of another instance": {func(o *latency.Objects) {
			o.Claims[0].Status.ProviderID, o.Events = "aws:///a/i-0", nil
		},
			slices.Collect(maps.Keys(removePhases(all, latency.Launch))), "", ""},
		"no provider ID": {func(o *latency.Objects) { o.Claims[0].Status.ProviderID = "" }, nil, "shop/web", ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := newObjects()
			c.change(o)
			got := latency.Build(*o, latency.Options{})[0]
			if want := removePhases(all, c.absent...); !maps.Equal(got.Phases, want) {
				t.Errorf("phases %v, want %v", got.Phases, want)
			}
			if got.Pod != c.pod || strings.Join(got.Notes, "\n") != c.note {
				t.Errorf("pod %q and notes %q, want %q and %q", got.Pod, got.Notes, c.pod, c.note)
			}
		})
	}
}

func removePhases(phases map[latency.Phase]float64, absent ...latency.Phase) map[latency.Phase]float64 {
	left := maps.Clone(phases)
	for _, p := range absent {
		delete(left, p)
	}
	return left
}

// TestEvents expects the events sorted by time, with seconds since the first.
func TestEvents(t *testing.T) {
	got := latency.Build(*newObjects(), latency.Options{})[0]
	var events []string
	for _, e := range got.Events {
		events = append(events, latency.FormatSeconds(e.Seconds)+" "+e.Name)
	}
	want := []string{
		"0s Pod Created", "2s NodeClaim Created", "3s Pod Nominated", "5s NodeClaim Launched", "20s Node Created",
		"21s NodeClaim Registered",
		"30s Node Ready", "33s NodeClaim Initialized", "35s Pod Scheduled", "36s Pod Started",
		"38s Pod Sandbox Ready", "45s Pod Ready",
	}
	if !slices.Equal(events, want) {
		t.Errorf("events %q, want %q", events, want)
	}
	if got.Pool != "apps" || got.Image != "ami-1" || got.InstanceID != "i-1" || got.Node != "node-1" ||
		got.Claim != "apps-1" {
		t.Errorf("it is described as %+v", got)
	}
}

// TestSameSecond expects events of the same second in their usual order.
func TestSameSecond(t *testing.T) {
	o := newObjects()
	o.Claims[0].Status.Conditions[2].LastTransitionTime, o.Events[0].FirstTimestamp = makeTime(30), makeTime(2)
	var events []string
	for _, e := range latency.Build(*o, latency.Options{})[0].Events {
		events = append(events, e.Name)
	}
	if slices.Index(events, latency.NodeReady) > slices.Index(events, latency.ClaimInitialized) ||
		slices.Index(events, latency.ClaimCreated) > slices.Index(events, latency.PodNominated) {
		t.Errorf("events %q", events)
	}
}

// TestWithinASecond expects an event with a more precise time than a condition not to count as
// later.
func TestWithinASecond(t *testing.T) {
	o := newObjects()
	o.Claims[0].Status.Conditions[0].LastTransitionTime.Time = makeTime(20).Add(700 * time.Millisecond)
	took, known := latency.Build(*o, latency.Options{})[0].Phases[latency.Boot]
	if !known || took != 0 {
		t.Errorf("a phase within a second took %v (known: %t)", took, known)
	}
}

// TestSentence expects only known facts.
func TestSentence(t *testing.T) {
	for name, c := range map[string]struct {
		absent []latency.Phase
		want   string
	}{
		"all": {nil,
			"it took 30s from the pod that needed it to Ready; " +
				"15s of them in boot (instance boots, kubelet registers)"},
		"no pod": {[]latency.Phase{latency.Decision, latency.PodToNodeReady},
			"it took 28s from its NodeClaim to Ready; 15s of them in boot (instance boots, kubelet registers)"},
		"no boot": {[]latency.Phase{latency.Boot},
			"it took 30s from the pod that needed it to Ready; " +
				"10s of them in ready (network plugin starts, node turns Ready)"},
		"totals": {[]latency.Phase{latency.Decision, latency.Launch, latency.Boot, latency.Ready},
			"it took 30s from the pod that needed it to Ready"},
		"nothing": {[]latency.Phase{latency.ClaimToNodeReady, latency.PodToNodeReady}, ""},
	} {
		line := latency.Timeline{Phases: removePhases(all, c.absent...)}
		if got := line.Sentence(); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// TestBuildChoosesPod expects the first of several pods that runs on the node.
func TestBuildChoosesPod(t *testing.T) {
	o := newObjects()
	for name, created := range map[string]int{"first": 0, "earlier": -9} {
		pod := *o.Pods[0].DeepCopy()
		pod.Name, pod.UID, pod.CreationTimestamp = name, types.UID(name), makeTime(created)
		o.Pods = append(o.Pods, pod)
		o.Events = append(o.Events, newNomination(name, name, "nodeclaim/apps-1"))
	}
	if got := latency.Build(*o, latency.Options{})[0].Pod; got != "shop/earlier" {
		t.Errorf("it was made for %s, want the pod that was there first", got)
	}
	for i := range o.Pods {
		if o.Pods[i].Name == "earlier" {
			o.Pods[i].Spec.NodeName = "elsewhere"
		}
	}
	if got := latency.Build(*o, latency.Options{})[0].Pod; got != "shop/first" {
		t.Errorf("it was made for %s, want one that runs there", got)
	}
}

// TestChoose selects nodes by pool and by time, and nodes that Karpenter did not create.
func TestChoose(t *testing.T) {
	o := newObjects()
	o.Nodes = append(o.Nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "managed", CreationTimestamp: makeTime(-60)},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady,
			Status: corev1.ConditionTrue, LastTransitionTime: makeTime(-50)}}}})
	for name, c := range map[string]struct {
		pool  string
		since time.Time
		want  []string
	}{
		"all":          {"", time.Time{}, []string{"managed", "node-1"}},
		"pool":         {"apps", time.Time{}, []string{"node-1"}},
		"another pool": {"app", time.Time{}, nil},
		"since":        {"", makeTime(2).Time, []string{"node-1"}},
		"since later":  {"", makeTime(3).Time, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, line := range latency.FilterByPool(latency.Build(*o, latency.Options{Since: c.since}), c.pool) {
				got = append(got, line.Title())
				if line.Node == "managed" && !maps.Equal(line.Phases, map[latency.Phase]float64{latency.Ready: 10}) {
					t.Errorf("phases %v of a node without a NodeClaim", line.Phases)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("nodes %q, want %q", got, c.want)
			}
		})
	}
}

// TestSummarize expects percentiles by nearest rank, over the nodes that have a phase.
func TestSummarize(t *testing.T) {
	var nodes []latency.Timeline
	for i := range 100 {
		nodes = append(nodes, latency.Timeline{Pool: "apps",
			Phases: map[latency.Phase]float64{latency.Boot: float64(100 - i)}})
	}
	nodes = append(nodes, latency.Timeline{Pool: "jobs", Zone: "a", Phases: map[latency.Phase]float64{}})
	groups := map[string]latency.Group{}
	for _, g := range latency.Summarize(nodes) {
		groups[g.By+" "+g.Value] = g
	}
	want := latency.Percentiles{Count: 100, P50: 50, P90: 90, P99: 99}
	if g := groups["all "]; g.Nodes != 101 || g.Phases[latency.Boot] != want {
		t.Errorf("of all: %+v", g)
	}
	if g := groups["pool apps"]; g.Nodes != 100 || g.Phases[latency.Boot] != want {
		t.Errorf("of a pool: %+v", g)
	}
	if g, is := groups["pool jobs"]; !is || g.Nodes != 1 || len(g.Phases) != 0 {
		t.Errorf("of a pool whose phases are not known: %+v", g)
	}
	if g := groups["zone "]; g.Nodes != 100 {
		t.Errorf("of unknown zones: %+v", g)
	}
	alone := latency.Summarize([]latency.Timeline{{Phases: map[latency.Phase]float64{latency.Boot: 7}}})
	if single := alone[0].Phases[latency.Boot]; single != (latency.Percentiles{Count: 1, P50: 7, P90: 7, P99: 7}) {
		t.Errorf("of one node: %+v", single)
	}
}

// TestMetrics parses the output as Prometheus does.
func TestMetrics(t *testing.T) {
	var text bytes.Buffer
	if err := latency.WriteMetrics(&text, latency.Build(readNodes(t), latency.Options{})); err != nil {
		t.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(&text)
	if err != nil {
		t.Fatal(err)
	}
	boots := map[string]uint64{}
	for _, m := range families["croft_node_phase_seconds"].GetMetric() {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		if labels["phase"] == "boot" {
			of := []string{labels["pool"], labels["instance_type"], labels["zone"], labels["image"]}
			boots[strings.Join(of, " ")] = m.GetHistogram().GetSampleCount()
		}
	}
	want := map[string]uint64{"apps m5.large eu-west-1a ami-03eaa1eb8976e21a9": 2,
		"telco c6i.2xlarge eu-west-1b ami-03eaa1eb8976e21a9": 1}
	if !maps.Equal(boots, want) {
		t.Errorf("boots %v, want %v", boots, want)
	}
}

func TestSeconds(t *testing.T) {
	for seconds, want := range map[float64]string{0: "0s", 0.04: "0s", 57: "57s", 1.25: "1.3s", 119.9: "119.9s",
		120: "2m", 125: "2m5s", 3600: "1h", 3661: "1h1m1s"} {
		if got := latency.FormatSeconds(seconds); got != want {
			t.Errorf("%v is written as %s, want %s", seconds, got, want)
		}
	}
}
