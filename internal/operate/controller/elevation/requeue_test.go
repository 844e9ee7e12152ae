package elevation

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
)

// TestRequeueDelay fails if an elevation is not reconciled at its end, or less than once a
// minute.
func TestRequeueDelay(t *testing.T) {
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		until *metav1.Time
		want  time.Duration
	}{
		"pending":  {nil, time.Minute},
		"an hour":  {&metav1.Time{Time: now.Add(time.Hour)}, time.Minute},
		"a second": {&metav1.Time{Time: now.Add(time.Second)}, time.Second},
	} {
		if got := computeRequeueDelay(&v1alpha1.Elevation{Status: v1alpha1.ElevationStatus{Until: test.until}}, now); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
