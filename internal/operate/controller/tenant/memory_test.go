package tenant

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
)

// TestMemoryIsNew fails if the same condition causes two events, or a changed one none.
func TestMemoryIsNew(t *testing.T) {
	m := newMemory()
	refused := metav1.Condition{Type: v1alpha1.ConditionApplied, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonRejected, Message: "a"}
	other := refused
	other.Message = "b"
	ready := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonRejected, Message: "a"}
	for i, step := range []struct {
		tenant    string
		condition metav1.Condition
		want      bool
	}{
		{"shop", refused, true},
		{"shop", refused, false},
		{"shop", ready, true},
		{"bank", refused, true},
		{"shop", other, true},
		{"shop", refused, true},
	} {
		if got := m.isNew(step.tenant, step.condition); got != step.want {
			t.Errorf("step %d: %t, want %t", i, got, step.want)
		}
	}
	m.remember("shop", wallState{revision: 2, enforced: 2})
	m.forget("shop")
	if !m.isNew("shop", refused) || m.isNew("bank", refused) || m.get("shop") != (wallState{}) {
		t.Error("the memory of a deleted tenant remains, or that of another is lost")
	}
}

// TestAwaitCount fails if repeated reconciles of a new tenant extend the time without a status.
func TestAwaitCount(t *testing.T) {
	m, began := newMemory(), time.Now()
	for _, step := range []struct{ after, rest time.Duration }{
		{0, countingTime}, {time.Second, countingTime - time.Second}, {countingTime, 0}, {time.Hour, countingTime - time.Hour},
	} {
		if rest := m.awaitCount("shop", m.get("shop"), began.Add(step.after)); rest != step.rest {
			t.Errorf("after %s: %s remain, want %s", step.after, rest, step.rest)
		}
	}
	m.remember("shop", wallState{revision: 2})
	if rest := m.awaitCount("shop", m.get("shop"), began.Add(2*time.Hour)); rest != countingTime {
		t.Errorf("for another quota, %s remain", rest)
	}
}
