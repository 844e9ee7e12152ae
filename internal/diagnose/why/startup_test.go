package why_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/internal/diagnose/why"
)

// TestStartupTaints expects the name of a startup taint that a node keeps or has again. It
// expects no mention during the usual time of a start, or without the taint.
func TestStartupTaints(t *testing.T) {
	taint := corev1.Taint{Key: "node.cilium.io/agent-not-ready", Value: "true", Effect: corev1.TaintEffectNoExecute}
	explain := func(age time.Duration, initialized, tainted bool) why.Story {
		s := newWaitingStep()
		s.Target = why.Target{Kind: "node", Name: "node-1"}
		claim := &s.Claims[0]
		claim.CreationTimestamp = metav1.NewTime(time.Now().Add(-age))
		claim.Spec.StartupTaints, claim.Status.NodeName = []corev1.Taint{taint}, "node-1"
		last := metav1.Condition{Type: "Initialized", Status: metav1.ConditionTrue}
		if !initialized {
			last = metav1.Condition{Type: "Initialized", Status: metav1.ConditionUnknown, Reason: "StartupTaintsExist", Message: `StartupTaint "` + taint.ToString() + `" still exists`}
		}
		writeConditions(&claim.Status, metav1.Condition{Type: "Launched", Status: metav1.ConditionTrue}, metav1.Condition{Type: "Registered", Status: metav1.ConditionTrue}, last)
		s.Nodes = []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}}
		if tainted {
			s.Nodes[0].Spec.Taints = []corev1.Taint{taint}
		}
		return why.ExplainSnapshot(s)
	}
	for name, test := range map[string]struct {
		story    why.Story
		verdict  why.Verdict
		wantText string
	}{
		"after a minute":           {explain(time.Minute, false, true), why.Waiting, `StartupTaint "node.cilium.io/agent-not-ready=true:NoExecute" still exists`},
		"after an hour":            {explain(time.Hour, false, true), why.Bad, `StartupTaint "node.cilium.io/agent-not-ready=true:NoExecute" still exists`},
		"again, once initialized":  {explain(time.Hour, true, true), why.Bad, "it has the startup taint node.cilium.io/agent-not-ready=true:NoExecute again"},
		"removed, as it should be": {explain(time.Hour, true, false), why.Good, ""},
	} {
		seen := ""
		for _, step := range test.story.Steps {
			seen += step.Observation + "\n"
		}
		if test.story.Verdict != test.verdict || !strings.Contains(seen, test.wantText) || test.verdict == why.Bad && (test.story.First == nil || test.story.First.ID != "startup-taint") {
			t.Errorf("%s: %+v", name, test.story)
		}
	}
}
