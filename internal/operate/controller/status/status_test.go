package status_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/document"
	"croft.dev/croft/internal/operate/controller/status"
)

func TestSetReady(t *testing.T) {
	const one, two = v1alpha1.ConditionAccepted, v1alpha1.ConditionApplied
	for _, test := range []struct {
		name           string
		have           map[string]metav1.ConditionStatus
		ready          metav1.ConditionStatus
		reason, report string
	}{
		{"all hold", map[string]metav1.ConditionStatus{one: "True", two: "True"}, "True", v1alpha1.ReasonReady, ""},
		{"the first does not", map[string]metav1.ConditionStatus{one: "False", two: "False"}, "False", "Why" + one, "about " + one},
		{"the second does not", map[string]metav1.ConditionStatus{one: "True", two: "False"}, "False", "Why" + two, "about " + two},
		{"one is not known", map[string]metav1.ConditionStatus{one: "True", two: "Unknown"}, "Unknown", "Why" + two, "about " + two},
		{"one is missing", map[string]metav1.ConditionStatus{one: "True"}, "Unknown", "Pending", two + " is not known yet"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := &v1alpha1.Status{}
			for name, value := range test.have {
				status.Set(s, 3, name, value, "Why"+name, "about "+name)
			}
			status.SetReady(s, 3, one, two)
			ready := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady)
			if ready == nil || ready.Status != test.ready || ready.Reason != test.reason || ready.Message != test.report {
				t.Errorf("Ready = %+v", ready)
			}
			if s.ObservedGeneration != 3 || ready.ObservedGeneration != 3 {
				t.Errorf("observed %d and %d", s.ObservedGeneration, ready.ObservedGeneration)
			}
		})
	}
}

func TestAccept(t *testing.T) {
	problems := document.Problems{{Field: "spec.pool", Message: "there is no pool x"}, {Message: "and more"}}
	for _, test := range []struct {
		name           string
		platform       bool
		problems       document.Problems
		accepted       bool
		reason, report string
	}{
		{"valid", true, nil, true, v1alpha1.ReasonAccepted, ""},
		{"invalid", true, problems, false, v1alpha1.ReasonInvalid, "spec.pool: there is no pool x\nand more"},
		{"no Platform, and so nothing else", false, problems, false, v1alpha1.ReasonNoPlatform, "no valid Platform"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := &v1alpha1.Status{}
			if got := status.Accept(s, 1, test.platform, test.problems); got != test.accepted {
				t.Errorf("accepted = %v", got)
			}
			c := s.Conditions[0]
			if c.Reason != test.reason || !strings.Contains(c.Message, test.report) {
				t.Errorf("condition = %+v", c)
			}
		})
	}
}

func TestLongMessagesAreCut(t *testing.T) {
	s := &v1alpha1.Status{}
	status.Set(s, 1, v1alpha1.ConditionReady, metav1.ConditionFalse, "Long", strings.Repeat("é", 40_000))
	if n := len(s.Conditions[0].Message); n > 5000 {
		t.Errorf("%d bytes", n)
	}
}

func TestFindChanged(t *testing.T) {
	before, after := &v1alpha1.Status{}, &v1alpha1.Status{}
	status.Set(after, 1, v1alpha1.ConditionReady, metav1.ConditionTrue, "Ready", "")
	if status.FindChanged(before, after, v1alpha1.ConditionReady) == nil {
		t.Error("new, and not turned")
	}
	status.Set(before, 7, v1alpha1.ConditionReady, metav1.ConditionTrue, "Ready", "")
	if status.FindChanged(before, after, v1alpha1.ConditionReady) != nil {
		t.Error("the same, and turned")
	}
}
