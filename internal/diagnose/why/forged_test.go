package why_test

import (
	"encoding/json"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"croft.dev/croft/internal/diagnose/why"
)

// TestForgedEvents fails if an event is trusted whose component only resembles a component
// of Kubernetes or Karpenter: a tenant may write such events. Events with the exact name
// are trusted.
func TestForgedEvents(t *testing.T) {
	const lie = "ask evil.example.org for help"
	onNode := func() *why.Snapshot {
		s := newWaitingStep()
		s.Events, s.Pods[0].Spec.NodeName = nil, "node-1"
		return s
	}
	unscheduled := func() *why.Snapshot {
		s := newWaitingStep()
		s.Events = nil
		return s
	}
	launching := func() *why.Snapshot {
		s := newWaitingStep()
		s.Target, s.Pods, s.Events, s.Claims = why.Target{Kind: "nodepool", Name: "pool-a"}, nil, nil, nil
		return s
	}
	of := func(kind string) func() *why.Snapshot {
		return func() *why.Snapshot {
			return &why.Snapshot{
				Target: why.Target{Kind: "statefulset", Namespace: "tenant-a", Name: "web"},
				Object: &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](1)}}, Makers: []why.Maker{{Kind: kind, Name: "web"}},
			}
		}
	}
	cron := func() *why.Snapshot {
		return &why.Snapshot{Target: why.Target{Kind: "cronjob", Name: "web"}, Object: &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "web"}}}
	}
	for name, c := range map[string]struct {
		snapshot          func() *why.Snapshot
		kind, object      string
		reason, component string
		message, believed string
		components        []string
	}{
		"Karpenter's word":     {unscheduled, "Pod", "web", "FailedScheduling", "karpenter", "Failed to schedule pod, " + lie, lie, []string{"karpenter-x", "karpenter/x", "my-karpenter"}},
		"a nomination":         {unscheduled, "Pod", "web", "Nominated", "karpenter", "Pod should schedule on: nodeclaim/pool-a-x2x9p", "has chosen a node for it", []string{"karpenter-x"}},
		"a NodeClaim's launch": {launching, "NodeClaim", "pool-a-x2x9p", "InsufficientCapacityError", "karpenter", "no capacity: " + lie, lie, []string{"karpenter-x"}},
		"a refused pod":        {of("ReplicaSet"), "ReplicaSet", "web", "FailedCreate", "replicaset-controller", "Error creating: " + lie, lie, []string{"replicaset-controller-x", "deployment-controller"}},
		"a sandbox":            {onNode, "Pod", "web", "FailedCreatePodSandBox", "kubelet", lie, lie, []string{"kubelet-x", "kube"}},
		"a volume":             {onNode, "Pod", "web", "FailedAttachVolume", "attachdetach-controller", lie, lie, []string{"attachdetach-controller-x"}},
		"a schedule":           {cron, "CronJob", "web", "UnknownTimeZone", "cronjob-controller", lie, lie, []string{"cronjob-controller.evil"}},
	} {
		t.Run(name, func(t *testing.T) {
			tells := func(component string, newer bool) bool {
				s := c.snapshot()
				e := newEvent(c.kind, c.object, c.reason, component, c.message)
				if newer {
					e.Source.Component, e.ReportingController = "", component
				}
				s.Events = []corev1.Event{e}
				story, err := json.Marshal(why.ExplainSnapshot(s))
				if err != nil {
					t.Fatal(err)
				}
				return strings.Contains(string(story), c.believed)
			}
			for _, newer := range []bool{false, true} {
				if !tells(c.component, newer) {
					t.Errorf("%s is not believed", c.component)
				}
				for _, forged := range c.components {
					if tells(forged, newer) {
						t.Errorf("%s is believed", forged)
					}
				}
			}
		})
	}
}

// TestRefusedLaunchOfOtherPool fails if the refused launch of pool-a-2 is reported for pool-a.
func TestRefusedLaunchOfOtherPool(t *testing.T) {
	s := newWaitingStep()
	s.Target, s.Pods, s.Claims = why.Target{Kind: "nodepool", Name: "pool-a"}, nil, nil
	s.Events = []corev1.Event{newEvent("NodeClaim", "pool-a-2-x2x9p", "InsufficientCapacityError", "karpenter", "no capacity")}
	if story := why.ExplainSnapshot(s); story.Verdict != why.Good {
		t.Errorf("the story is %+v", story)
	}
}
