package why_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/diagnose/catalog"
	"croft.dev/croft/internal/diagnose/why"
)

// TestRangeFull expects the report about a pod that waits for an address to name the
// network, its usage and the remedy.
func TestRangeFull(t *testing.T) {
	for name, test := range map[string]struct {
		condition metav1.Condition
		verdict   why.Verdict
		wantText  string
	}{
		"full": {
			metav1.Condition{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonRangeFull, Message: "us-west-2a: 32 of 32 addresses of 10.0.4.32/27 are used"},
			why.Bad, "us-west-2a: 32 of 32",
		},
		"free again":    {metav1.Condition{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAddressesAvailable}, why.Waiting, "has addresses again"},
		"not permitted": {},
	} {
		t.Run(name, func(t *testing.T) {
			s := newWaitingStep()
			s.Pods[0].Spec.NodeName = "node-1"
			s.Events = append(s.Events, newEvent("Pod", "web", "FailedCreatePodSandBox", "kubelet", catalog.FindRow("network-range-full").Texts[0]))
			if test.wantText != "" {
				test.condition.Type = v1alpha1.ConditionAddressesAvailable
				s.Networks = []v1alpha1.SecondaryNetwork{{ObjectMeta: metav1.ObjectMeta{Name: "n6"}}, {
					ObjectMeta: metav1.ObjectMeta{Name: "n4"}, Status: v1alpha1.Status{Conditions: []metav1.Condition{test.condition}},
				}}
			}
			story := why.ExplainSnapshot(s)
			if story.First == nil || story.First.ID != "network-range-full" || !strings.Contains(story.First.Fix, "podCIDR") {
				t.Errorf("the first cause is %+v", story.First)
			}
			reported := false
			for _, step := range story.Steps {
				if step.Link == why.LinkNetwork {
					reported = step.Object == "secondarynetwork/n4" && step.Verdict == test.verdict && strings.Contains(step.Observation, test.wantText)
				}
			}
			if reported != (test.wantText != "") {
				t.Errorf("steps: %+v", story.Steps)
			}
		})
	}
}

// TestNetworksAwaited expects the report about a node with the startup taint to name the
// missing component, and not to mention the taint once it is removed.
func TestNetworksAwaited(t *testing.T) {
	const message = "DaemonSet kube-system/whereabouts has no pod on the node"
	explainNode := func(age time.Duration, tainted bool) *why.Story {
		s := newWaitingStep()
		taint := corev1.Taint{Key: v1alpha1.NetworksTaint, Value: v1alpha1.NetworksTaintValue, Effect: corev1.TaintEffectNoSchedule}
		claim := &s.Claims[0]
		claim.CreationTimestamp = metav1.NewTime(time.Now().Add(-age))
		claim.Spec.StartupTaints, claim.Status.NodeName = []corev1.Taint{taint}, "node-1"
		writeConditions(&claim.Status, metav1.Condition{Type: "Launched", Status: metav1.ConditionTrue}, metav1.Condition{Type: "Registered", Status: metav1.ConditionTrue},
			metav1.Condition{Type: "Initialized", Status: metav1.ConditionUnknown, Reason: "StartupTaintsExist", Message: `StartupTaint "` + taint.ToString() + `" still exists`})
		node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", CreationTimestamp: claim.CreationTimestamp}}
		node.Status.Conditions = []corev1.NodeCondition{{
			Type: v1alpha1.ConditionPodNetworksReady, Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonPluginsPending, Message: message,
		}}
		if tainted {
			node.Spec.Taints = []corev1.Taint{taint}
		} else {
			claim.Status.Conditions = claim.Status.Conditions[:2]
		}
		s.Nodes = []corev1.Node{node}
		story := why.ExplainSnapshot(s)
		return &story
	}
	joinObservations := func(s *why.Story) (all string) {
		for _, step := range s.Steps {
			if step.Link == why.LinkNode {
				all += step.Observation
			}
		}
		return all
	}
	late := explainNode(time.Hour, true)
	if late.First == nil || late.First.ID != "networks-pending" || late.Verdict != why.Bad || !strings.Contains(joinObservations(late), message) {
		t.Errorf("after an hour: %+v", late)
	}
	if young := explainNode(time.Minute, true); young.Verdict != why.Waiting || !strings.Contains(joinObservations(young), message) {
		t.Errorf("after a minute: %+v", young)
	}
	if untainted := explainNode(time.Hour, false); strings.Contains(joinObservations(untainted), message) {
		t.Errorf("without the taint: %+v", untainted)
	}
}
