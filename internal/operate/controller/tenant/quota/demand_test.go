package quota

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

// newRefusedEvent returns the event of a controller that may not create a pod with so much
// CPU.
func newRefusedEvent(by, cpu string, first, last time.Time) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "shop"},
		InvolvedObject: corev1.ObjectReference{UID: types.UID(by)},
		Reason:         "FailedCreate", Source: corev1.EventSource{Component: "replicaset-controller"},
		FirstTimestamp: metav1.NewTime(first), LastTimestamp: metav1.NewTime(last),
		Message: "Error creating: pods \"web\" is forbidden: exceeded quota: croft, requested: cpu=" + cpu + ", used: cpu=0, limited: cpu=1",
	}
}

// TestDemandDuration tests that a refusal counts until its controller has had
// time to try again.
func TestDemandDuration(t *testing.T) {
	now := time.Now()
	for _, test := range []struct {
		name        string
		first, last time.Duration
		counts      bool
	}{
		{"just now", 0, 0, true},
		{"a moment ago", -50 * time.Second, -50 * time.Second, true},
		{"refused once, long ago", -2 * time.Minute, -2 * time.Minute, false},
		{"tried again and again", -20 * time.Minute, -9 * time.Minute, true},
		{"given up", -90 * time.Minute, -21 * time.Minute, false},
		{"in the future", time.Hour, time.Hour, true},
		{"since for ever", -1 << 62, 0, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			q := New(nil, nil, clocktesting.NewFakeClock(now))
			e := newRefusedEvent("web", "2", now.Add(test.first), now.Add(test.last))
			if got := q.recordRefusal(e, func() {}); got != test.counts || len(q.listDemands("shop")) > 0 != got {
				t.Errorf("it counts: %v; want %v", got, test.counts)
			}
			for _, d := range q.demands["shop"] {
				if d.until.After(now.Add(20 * time.Minute)) {
					t.Errorf("it counts until %s", d.until)
				}
				d.forget.Stop()
			}
		})
	}
}

// TestForgedDemands tests that only refusals count that Kubernetes' controllers report.
func TestForgedDemands(t *testing.T) {
	for _, component := range []string{"", "web", "replicaset-controller-x", "kubelet"} {
		now := time.Now()
		q := New(nil, nil, clocktesting.NewFakeClock(now))
		e := newRefusedEvent("web", "2", now, now)
		e.Source.Component = component
		if q.recordRefusal(e, func() {}) || len(q.listDemands("shop")) > 0 {
			t.Errorf("an event of %q counts", component)
		}
	}
}

// TestDemandsAreLimited expects one demand per object, and the limit per namespace.
func TestDemandsAreLimited(t *testing.T) {
	now := time.Now()
	q := New(nil, nil, clocktesting.NewFakeClock(now))
	for i := range 3 * perNamespace {
		q.recordRefusal(newRefusedEvent(fmt.Sprint("job-", i), "2", now, now), func() {})
		q.recordRefusal(newRefusedEvent("web", fmt.Sprint(i), now, now), func() {})
	}
	if n := len(q.listDemands("shop")); n != perNamespace {
		t.Errorf("%d demands are remembered", n)
	}
	for uid, d := range q.demands["shop"] {
		q.forgetDemand("shop", uid, d)
		d.forget.Stop()
	}
	if len(q.demands) > 0 {
		t.Errorf("%v is left", q.demands)
	}
}

// TestDemandExpires tests the reconcile after a demand has expired: other namespaces
// may then get its share.
func TestDemandExpires(t *testing.T) {
	now := clocktesting.NewFakeClock(time.Now())
	q, forgotten := New(nil, nil, now), false
	if !q.recordRefusal(newRefusedEvent("web", "2", now.Now(), now.Now()), func() { forgotten = true }) {
		t.Fatal("it does not count")
	}
	// A demand counts for a minute after its last event.
	now.Step(59 * time.Second)
	if forgotten || len(q.listDemands("shop")) == 0 {
		t.Error("it is forgotten too early")
	}
	now.Step(time.Second)
	if all := q.listDemands("shop"); !forgotten || len(all) > 0 {
		t.Errorf("%v still counts", all)
	}
}
