package heartbeat_test

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"croft.dev/croft/internal/operate/heartbeat"
)

// TestBeat fails if a stopped operator counts as running, or a running one as stopped.
func TestBeat(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	lease := func(holder string, age time.Duration) *coordinationv1.Lease {
		return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, RenewTime: ptr.To(metav1.NewMicroTime(now.Add(-age))),
		}}
	}
	for _, test := range []struct {
		name              string
		beat              heartbeat.Beat
		alive, believable bool
		wantText          string
	}{
		{"alive", heartbeat.ParseLease(lease("croft-0", 3*time.Second)), true, true, "alive, 3 s ago"},
		{"between two signs", heartbeat.ParseLease(lease("croft-0", heartbeat.Interval)), true, true, "alive, 10 s ago"},
		{"a clock that is ahead", heartbeat.ParseLease(lease("croft-0", -time.Minute)), true, true, "alive, 0 s ago"},
		{"lost", heartbeat.ParseLease(lease("croft-0", heartbeat.Lost)), false, false, "no operator for 40 s: the last ran on croft-0"},
		{"long lost", heartbeat.ParseLease(lease("croft-0", 12*time.Minute)), false, false, "no operator for 12 min: the last ran on croft-0"},
		{"stopped", heartbeat.ParseLease(lease("", time.Second)), false, false, "no operator for 1 s: it was stopped"},
		{"lost for days", heartbeat.ParseLease(lease("", 50*time.Hour)), false, false, "no operator for 2d2h: it was stopped"},
		{"never seen", heartbeat.Beat{}, false, false, "no operator has run yet"},
		{"an empty Lease", heartbeat.ParseLease(&coordinationv1.Lease{}), false, false, "no operator has run yet"},
		{"not to be read", heartbeat.Beat{Hidden: true}, false, true, "unknown: you may not read the Lease croft-system/croft-operator"},
	} {
		if got := test.beat.IsAlive(now); got != test.alive {
			t.Errorf("%s: alive %t", test.name, got)
		}
		if got := test.beat.IsBelievable(now); got != test.believable {
			t.Errorf("%s: believable %t", test.name, got)
		}
		if got := test.beat.Describe(now); got != test.wantText {
			t.Errorf("%s: got %q, want %q", test.name, got, test.wantText)
		}
	}
}
