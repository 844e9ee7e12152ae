package elevation

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
)

// TestDecideRequest checks the phase of each request that must not be granted, and when
// requests are deleted.
func TestDecideRequest(t *testing.T) {
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	hour := metav1.Duration{Duration: time.Hour}
	with := func(approvers ...string) *v1alpha1.PlatformElevation {
		return &v1alpha1.PlatformElevation{MaxDuration: hour, Approvers: approvers}
	}
	for _, test := range []struct {
		name     string
		platform *v1alpha1.PlatformElevation
		approved string
		duration time.Duration
		age      time.Duration
		want     v1alpha1.ElevationPhase
	}{
		{"no elevations", nil, "ann", time.Hour, 0, v1alpha1.ElevationRefused},
		{"approved", with("leads"), "ann", time.Hour, 0, v1alpha1.ElevationActive},
		{"not approved", with("leads"), "", time.Hour, 0, v1alpha1.ElevationPending},
		{"not approved for a day", with("leads"), "", time.Hour, patience + 1, v1alpha1.ElevationRefused},
		{"approved too late", with("leads"), "ann", time.Hour, patience + 1, v1alpha1.ElevationRefused},
		{"no approvers", with(), "", time.Hour, 0, v1alpha1.ElevationActive},
		{"by the requester", with("leads"), "eve", time.Hour, 0, v1alpha1.ElevationRefused},
		{"longer than since lowered", with("leads"), "ann", time.Hour + time.Second, 0, v1alpha1.ElevationRefused},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := &v1alpha1.Elevation{
				ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now.Add(-test.age))},
				Spec:       v1alpha1.ElevationSpec{RequestedBy: "eve", ApprovedBy: test.approved, Duration: metav1.Duration{Duration: test.duration}},
			}
			p := &estate.Platform{}
			p.Elevation = test.platform
			if got, why := decideRequest(e, p, now); got != test.want {
				t.Errorf("%s: %s, want %s", got, why, test.want)
			}
		})
	}
	for _, test := range []struct {
		name   string
		status v1alpha1.ElevationStatus
		want   time.Time
	}{
		{"refused", v1alpha1.ElevationStatus{Phase: v1alpha1.ElevationRefused}, now.Add(retention)},
		{"undecided", v1alpha1.ElevationStatus{}, now.Add(retention)},
		{"ended", v1alpha1.ElevationStatus{Phase: v1alpha1.ElevationEnded, Until: &metav1.Time{Time: now.Add(time.Hour)}}, now.Add(time.Hour + retention)},
	} {
		e := &v1alpha1.Elevation{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now)}, Status: test.status}
		if got := computeExpiry(e); !got.Equal(test.want) {
			t.Errorf("%s: is deleted %s, not %s", test.name, got, test.want)
		}
	}
	if got, _ := decideRequest(&v1alpha1.Elevation{}, nil, now); got != v1alpha1.ElevationRefused {
		t.Errorf("without a platform: %s", got)
	}
}

// TestConditions checks the conditions of each phase, and that they do not change without a
// new decision.
func TestConditions(t *testing.T) {
	for _, test := range []struct {
		phase            v1alpha1.ElevationPhase
		ready            metav1.ConditionStatus
		reason, progress string
	}{
		{v1alpha1.ElevationPending, metav1.ConditionFalse, v1alpha1.ReasonAwaitingApproval, v1alpha1.ConditionReconciling},
		{v1alpha1.ElevationActive, metav1.ConditionTrue, v1alpha1.ReasonGranted, ""},
		{v1alpha1.ElevationEnded, metav1.ConditionFalse, v1alpha1.ReasonEnded, ""},
		{v1alpha1.ElevationRefused, metav1.ConditionFalse, v1alpha1.ReasonRefused, v1alpha1.ConditionStalled},
	} {
		t.Run(string(test.phase), func(t *testing.T) {
			s := v1alpha1.ElevationStatus{Phase: v1alpha1.ElevationPending}
			setConditions(&s, 1)
			s.Phase, s.Message = test.phase, "why"
			setConditions(&s, 2)
			ready := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady)
			if s.ObservedGeneration != 2 || ready.ObservedGeneration != 2 || ready.Status != test.ready || ready.Reason != test.reason || ready.Message != "why" {
				t.Errorf("generation %d, Ready = %+v", s.ObservedGeneration, ready)
			}
			for _, name := range []string{v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled} {
				if c := meta.FindStatusCondition(s.Conditions, name); (c != nil) != (name == test.progress) {
					t.Errorf("%s = %+v", name, c)
				}
			}
			again := *s.DeepCopy()
			setConditions(&again, 2)
			if !equality.Semantic.DeepEqual(s, again) {
				t.Errorf("without a decision, the conditions change from %+v to %+v", s, again)
			}
		})
	}
}
