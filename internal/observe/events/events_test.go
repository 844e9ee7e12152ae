package events_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/internal/observe/events"
)

func TestBy(t *testing.T) {
	old := func(component string) corev1.Event {
		return corev1.Event{Source: corev1.EventSource{Component: component}}
	}
	for name, c := range map[string]struct {
		event corev1.Event
		want  bool
	}{
		"the older API":            {old("karpenter"), true},
		"the newer API":            {corev1.Event{ReportingController: "karpenter"}, true},
		"another component":        {old("kubelet"), false},
		"a longer name":            {old("karpenter-x"), false},
		"a longer name, newer API": {corev1.Event{ReportingController: "karpenter-x"}, false},
		"below the name":           {corev1.Event{ReportingController: "karpenter/x"}, false},
		"a shorter name":           {old("karpente"), false},
		"in capitals":              {old("Karpenter"), false},
		"no source":                {corev1.Event{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := events.IsWrittenBy(&c.event, "default-scheduler", "karpenter"); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestLast(t *testing.T) {
	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	old, later := metav1.NewTime(at(1)), metav1.NewTime(at(2))
	for name, c := range map[string]struct {
		event corev1.Event
		want  time.Time
	}{
		"the older API": {corev1.Event{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: old}, FirstTimestamp: old, LastTimestamp: later}, at(2)},
		"the newer API": {corev1.Event{EventTime: metav1.NewMicroTime(at(1)), Series: &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(at(3))}}, at(3)},
		"created alone": {corev1.Event{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: old}}, at(1)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := events.LastObserved(&c.event); !got.Equal(c.want) {
				t.Errorf("got %s", got)
			}
		})
	}
}
