package latency_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/diagnose/latency"
	"croft.dev/croft/internal/network/boot"
)

// newBootedNode returns a node with known logs and networks.
func newBootedNode() *latency.Objects {
	o := newObjects()
	times := boot.Times{}
	for event, second := range map[boot.Event]int{
		boot.VMInitialized: 7, boot.CloudInitFinalStart: 9, boot.CloudInitFinalFinish: 14, boot.NodeadmRunStart: 14,
		boot.NodeadmRunFinish: 17, boot.ContainerdStart: 15, boot.ContainerdInitialized: 16, boot.KubeletStart: 17,
		boot.KubeletRegistered: 20,
	} {
		times[event] = makeTime(second).Add(300 * time.Millisecond)
	}
	o.Nodes[0].Annotations = map[string]string{v1alpha1.BootAnnotation: boot.Encode(times)}
	o.Nodes[0].Status.Conditions = append(o.Nodes[0].Status.Conditions, corev1.NodeCondition{
		Type: v1alpha1.ConditionNetworksReady, Status: corev1.ConditionTrue, LastTransitionTime: makeTime(31), Message: "croft-n4",
	})
	o.Events = append(o.Events, newClaimEvent("NetworksAttached", 12), newClaimEvent("NetworksReady", 32))
	return o
}

func newClaimEvent(reason string, second int) corev1.Event {
	return corev1.Event{
		InvolvedObject: corev1.ObjectReference{Kind: "NodeClaim", Name: "apps-1", UID: "claim"}, Reason: reason, ReportingController: "croft",
		EventTime: metav1.NewMicroTime(makeTime(second).Time),
	}
}

// parts are the phases of booted that one lacks.
var parts = map[latency.Phase]float64{
	latency.VMStart: 2, latency.System: 2, latency.UserData: 5, latency.Nodeadm: 3, latency.Containerd: 1,
	latency.Kubelet: 3, latency.Interfaces: 7, latency.Links: 11, latency.Networks: 1,
}

// TestParts removes or invalidates the times that the phases of logs and networks depend on.
func TestParts(t *testing.T) {
	logs := []latency.Phase{latency.VMStart, latency.System, latency.UserData, latency.Nodeadm, latency.Containerd,
		latency.Kubelet}
	annotation := func(o *latency.Objects) boot.Times {
		times, err := boot.Decode(o.Nodes[0].Annotations[v1alpha1.BootAnnotation])
		if err != nil {
			t.Fatal(err)
		}
		return times
	}
	with := func(change func(boot.Times)) func(*latency.Objects) {
		return func(o *latency.Objects) {
			times := annotation(o)
			change(times)
			o.Nodes[0].Annotations[v1alpha1.BootAnnotation] = boot.Encode(times)
		}
	}
	lacking := func(events ...boot.Event) func(*latency.Objects) {
		return with(func(times boot.Times) {
			for _, e := range events {
				delete(times, e)
			}
		})
	}
	for name, c := range map[string]struct {
		change func(*latency.Objects)
		absent []latency.Phase
		// other are phases that become longer or shorter.
		other map[latency.Phase]float64
		note  string
	}{
		"everything is known": {func(*latency.Objects) {}, nil, nil, ""},
		"no logs":             {func(o *latency.Objects) { o.Nodes[0].Annotations = nil }, logs, nil, ""},
		"no logs that can be read": {func(o *latency.Objects) {
			o.Nodes[0].Annotations[v1alpha1.BootAnnotation] = "x"
		}, logs, nil, "its annotation croft.dev/boot cannot be read: boot times: invalid character 'x' looking for beginning of value"},
		"logs from before its NodeClaim": {with(func(times boot.Times) {
			for e := range times {
				times[e] = times[e].Add(-time.Hour)
			}
		}), logs, nil, "9 events of its logs are older than its NodeClaim, and are omitted"},
		"a file goes before the annotation": {func(o *latency.Objects) {
			times := annotation(o)
			times[boot.CloudInitFinalFinish] = makeTime(13).Time
			o.Boots = map[string]boot.Times{"node-1": times, "node-2": {}}
		}, nil, map[latency.Phase]float64{latency.UserData: 4}, ""},
		"no cloud-init": {lacking(boot.CloudInitFinalStart, boot.CloudInitFinalFinish), []latency.Phase{latency.UserData},
			map[latency.Phase]float64{latency.System: 8}, ""},
		"Bottlerocket": {with(func(times boot.Times) {
			times[boot.BootstrapStart] = times[boot.CloudInitFinalStart]
			times[boot.BootstrapFinish] = times[boot.CloudInitFinalFinish]
			delete(times, boot.CloudInitFinalStart)
			delete(times, boot.CloudInitFinalFinish)
		}), nil, nil, ""},
		"user data does not end": {lacking(boot.CloudInitFinalFinish), []latency.Phase{latency.UserData}, nil, ""},
		"no kernel":              {lacking(boot.VMInitialized), []latency.Phase{latency.VMStart, latency.System}, nil, ""},
		"the kubelet's log has no time of registration": {lacking(boot.KubeletRegistered), nil, nil, ""},

		"networks' events have expired": {func(o *latency.Objects) { o.Events = o.Events[:1] },
			[]latency.Phase{latency.Interfaces, latency.Networks}, nil, ""},
		"networks' events by another component": {func(o *latency.Objects) {
			o.Events[1].ReportingController, o.Events[2].ReportingController = "croft-x", "croft-y"
		}, []latency.Phase{latency.Interfaces, latency.Networks}, nil, ""},
		"events of another NodeClaim of the name": {func(o *latency.Objects) { o.Claims[0].UID = "another" },
			[]latency.Phase{latency.Interfaces, latency.Networks}, nil, ""},
		"events again, after a restart": {func(o *latency.Objects) {
			o.Events = append(o.Events, newClaimEvent("NetworksAttached", 50), newClaimEvent("NetworksReady", 60))
		}, nil, nil, ""},
		"interfaces come after the node": {func(o *latency.Objects) { o.Events[1] = newClaimEvent("NetworksAttached", 25) }, nil,
			map[latency.Phase]float64{latency.Interfaces: 20, latency.Links: 6}, ""},
		"links are not up": {func(o *latency.Objects) { o.Nodes[0].Status.Conditions[1].Status = corev1.ConditionFalse },
			[]latency.Phase{latency.Links, latency.Networks}, nil, ""},
		"links were up before": {func(o *latency.Objects) { o.Nodes[0].Status.Conditions[1].LastTransitionTime = makeTime(300) },
			[]latency.Phase{latency.Links, latency.Networks}, nil,
			"reported its links of secondary networks as up again at 2026-11-23T10:05:00Z: the first time is unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newBootedNode()
			c.change(o)
			got := latency.Build(*o, latency.Options{})[0]
			want := maps.Clone(all)
			maps.Copy(want, parts)
			maps.Copy(want, c.other)
			if want = removePhases(want, c.absent...); !maps.Equal(got.Phases, want) {
				t.Errorf("phases\n%v, want\n%v", got.Phases, want)
			}
			if notes := strings.Join(got.Notes, "\n"); notes != c.note {
				t.Errorf("notes %q, want %q", notes, c.note)
			}
		})
	}
}

// TestPartsInOrder expects events of logs and of the API in one order, in whole seconds.
func TestPartsInOrder(t *testing.T) {
	var events []string
	for _, e := range latency.Build(*newBootedNode(), latency.Options{})[0].Events {
		events = append(events, latency.FormatSeconds(e.Seconds)+" "+e.Name)
	}
	want := []string{
		"0s Pod Created", "2s NodeClaim Created", "3s Pod Nominated", "5s NodeClaim Launched", "7s VM Initialized",
		"9s Cloud-Init Final Start", "12s Interfaces Attached", "14s Cloud-Init Final Finish", "14s Nodeadm Run Start",
		"15s Containerd Start", "16s Containerd Initialized", "17s Kubelet Start", "17s Nodeadm Run Finish",
		"20s Kubelet Registered", "20s Node Created", "21s NodeClaim Registered", "30s Node Ready", "31s Links Up",
		"32s Networks Ready", "33s NodeClaim Initialized", "35s Pod Scheduled", "36s Pod Started",
		"38s Pod Sandbox Ready", "45s Pod Ready",
	}
	if !slices.Equal(events, want) {
		t.Errorf("events\n%q, want\n%q", events, want)
	}
}

// TestSentenceOfParts expects the longest part of the boot, if the boot is the longest phase.
func TestSentenceOfParts(t *testing.T) {
	phases := maps.Clone(all)
	maps.Copy(phases, parts)
	line := latency.Timeline{Phases: phases}
	const want = "it took 30s from the pod that needed it to Ready; " +
		"15s of them in boot (instance boots, kubelet registers), and 5s of these in user data (user data runs)"
	if got := line.Sentence(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	line.Phases[latency.Ready] = 16
	if got := line.Sentence(); strings.Contains(got, "these") {
		t.Errorf("got %q for a node that took longer to be ready", got)
	}
}

// TestUsualOrder expects each event to have one place in the usual order.
func TestUsualOrder(t *testing.T) {
	o := newBootedNode()
	names := map[string]int{}
	times := boot.Times{}
	for _, e := range boot.Events() {
		times[e] = makeTime(20).Time
	}
	o.Boots = map[string]boot.Times{"node-1": times}
	for _, e := range latency.Build(*o, latency.Options{})[0].Events {
		names[e.Name]++
	}
	if len(names) != len(boot.Events())+15 {
		t.Errorf("%d events", len(names))
	}
	for name, n := range names {
		if n != 1 {
			t.Errorf("%s is there %d times", name, n)
		}
	}
}
