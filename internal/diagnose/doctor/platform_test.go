package doctor

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/heartbeat"
)

// TestFindUnready fails if doctor reports a tenant that the operator will make Ready, or does
// not report one that it will not.
func TestFindUnready(t *testing.T) {
	now := time.Now()
	terminating := &apply.NamespaceTerminatingError{Namespace: "shop"}
	ready := func(status metav1.ConditionStatus, reason, message string) []metav1.Condition {
		return []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: message}}
	}
	failed := "Namespace shop: " + terminating.Error()
	for _, test := range []struct {
		name       string
		declared   time.Duration
		generation int64
		conditions []metav1.Condition
		dead       bool
		want       int
	}{
		{"Ready", time.Hour, 1, ready(metav1.ConditionTrue, v1alpha1.ReasonReady, ""), false, 0},
		{"not seen yet", time.Second, 0, nil, false, 0},
		{"not seen yet, by an operator that does not run", time.Second, 0, nil, true, 1},
		{"not seen for long", time.Hour, 0, nil, false, 1},
		{"changed a moment ago", time.Second, 0, ready(metav1.ConditionTrue, v1alpha1.ReasonReady, ""), false, 0},
		{"changed long ago", time.Hour, 0, ready(metav1.ConditionTrue, v1alpha1.ReasonReady, ""), false, 1},
		{"policies that do not take effect yet", time.Second, 1, ready(metav1.ConditionFalse, v1alpha1.ReasonNotEnforcedYet, "x"), false, 0},
		{"policies that take no effect", time.Hour, 1, ready(metav1.ConditionFalse, v1alpha1.ReasonNotEnforcedYet, "x"), false, 1},
		{"invalid since a moment ago", time.Second, 1, ready(metav1.ConditionFalse, v1alpha1.ReasonInvalid, "x"), false, 1},
		{"a namespace that is being deleted", time.Hour, 1, ready(metav1.ConditionFalse, v1alpha1.ReasonApplyFailed, failed), false, 0},
		{"that, and another failure", time.Hour, 1, ready(metav1.ConditionFalse, v1alpha1.ReasonApplyFailed, failed+"\nRole x: refused"), false, 1},
	} {
		s := &Snapshot{Now: now, Heartbeat: heartbeat.Beat{At: now, Holder: "croft-0"}, RefusedNamespaces: map[string]error{"shop": terminating}}
		if test.dead {
			s.Heartbeat = heartbeat.Beat{}
		}
		tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "shop", Generation: 1, CreationTimestamp: metav1.NewTime(now.Add(-test.declared))}}
		found := s.findUnready(owner{"Tenant/shop", tenant, v1alpha1.Status{ObservedGeneration: test.generation, Conditions: test.conditions}})
		if len(found) != test.want {
			t.Errorf("%s: it finds %+v", test.name, found)
		}
	}
}
