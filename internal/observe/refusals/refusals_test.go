package refusals_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"croft.dev/croft/internal/observe/refusals"
)

var now = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// newRefusal returns a controller's event about a ReplicaSet. first and last are the ages of
// its first and last observation.
func newRefusal(name string, first, last time.Duration, change ...func(*corev1.Event)) corev1.Event {
	e := corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "shop"},
		InvolvedObject: corev1.ObjectReference{Kind: "ReplicaSet", Name: name, UID: types.UID(name)},
		Reason:         refusals.Reason, Source: corev1.EventSource{Component: "replicaset-controller"},
		FirstTimestamp: metav1.NewTime(now.Add(-first)), LastTimestamp: metav1.NewTime(now.Add(-last)),
		Message: `Error creating: pods "web-x2x9p" is forbidden: no`,
	}
	for _, f := range change {
		f(&e)
	}
	return e
}

func setReporter(component, reporter string) func(*corev1.Event) {
	return func(e *corev1.Event) { e.Source.Component, e.ReportingController = component, reporter }
}

func setMessage(message string) func(*corev1.Event) {
	return func(e *corev1.Event) { e.Message = message }
}

func TestWorkloads(t *testing.T) {
	long := strings.Repeat("ä", 1000)
	for name, c := range map[string]struct {
		events []corev1.Event
		want   string
	}{
		"just now":                        {[]corev1.Event{newRefusal("web", 0, 0)}, "ReplicaSet shop/web: no"},
		"refused once, long ago":          {[]corev1.Event{newRefusal("web", 2*time.Minute, 2*time.Minute)}, ""},
		"tried again and again":           {[]corev1.Event{newRefusal("web", 20*time.Minute, 9*time.Minute)}, "ReplicaSet shop/web: no"},
		"given up":                        {[]corev1.Event{newRefusal("web", 90*time.Minute, 21*time.Minute)}, ""},
		"the first on top":                {[]corev1.Event{newRefusal("b", 0, 0), newRefusal("c", time.Minute, 0), newRefusal("a", 0, 0)}, "ReplicaSet shop/c: no; ReplicaSet shop/a: no; ReplicaSet shop/b: no"},
		"several events of one":           {[]corev1.Event{newRefusal("web", 0, 0, setMessage("later")), newRefusal("web", time.Hour, time.Minute)}, "ReplicaSet shop/web: later"},
		"by the newer API":                {[]corev1.Event{newRefusal("web", 0, 0, setReporter("", "job-controller"))}, "ReplicaSet shop/web: no"},
		"forged without a source":         {[]corev1.Event{newRefusal("web", 0, 0, setReporter("", ""))}, ""},
		"forged by a longer name":         {[]corev1.Event{newRefusal("web", 0, 0, setReporter("replicaset-controller-x", "x/job-controller"))}, ""},
		"of another component":            {[]corev1.Event{newRefusal("web", 0, 0, setReporter("kubelet", ""))}, ""},
		"for another reason":              {[]corev1.Event{newRefusal("web", 0, 0, func(e *corev1.Event) { e.Reason = "SuccessfulCreate" })}, ""},
		"a StatefulSet's":                 {[]corev1.Event{newRefusal("web", 0, 0, setReporter("statefulset-controller", ""), setMessage(`create Pod web-0 in StatefulSet web failed error: pods "web-0" is forbidden: [image] no`))}, "ReplicaSet shop/web: [image] no"},
		"a CronJob's":                     {[]corev1.Event{newRefusal("web", 0, 0, setReporter("cronjob-controller", ""), setMessage(`Error creating job: jobs.batch "web-1" is forbidden: exceeded quota: croft, requested: pods=1`))}, "ReplicaSet shop/web: exceeded quota: croft, requested: pods=1"},
		"combined":                        {[]corev1.Event{newRefusal("web", 0, 0, setMessage(`(combined from similar events): Error creating: pods "web-a" is forbidden: violates PodSecurity "baseline:latest": x`))}, `ReplicaSet shop/web: violates PodSecurity "baseline:latest": x`},
		"by a webhook":                    {[]corev1.Event{newRefusal("web", 0, 0, setMessage(`Error creating: admission webhook "a" denied the request: b`))}, `ReplicaSet shop/web: admission webhook "a" denied the request: b`},
		"invalid":                         {[]corev1.Event{newRefusal("web", 0, 0, setMessage(`Error creating: Pod "web-a" is invalid: spec.containers: Required value`))}, "ReplicaSet shop/web: spec.containers: Required value"},
		"with a message of two kilobytes": {[]corev1.Event{newRefusal("web", 0, 0, setMessage(long))}, "ReplicaSet shop/web: " + long[:1024] + " …"},
	} {
		t.Run(name, func(t *testing.T) {
			slim := make([]corev1.Event, len(c.events))
			for i := range c.events {
				slim[i] = *refusals.TrimEvent(&c.events[i])
			}
			for how, events := range map[string][]corev1.Event{"whole": c.events, "slim": slim} {
				var got []string
				for _, w := range refusals.Workloads(events, now) {
					got = append(got, w.Kind+" "+w.Namespace+"/"+w.Name+": "+w.Message)
					if !w.Until.After(now) || w.Until.After(now.Add(20*time.Minute)) {
						t.Errorf("%s: it counts until %s", how, w.Until)
					}
				}
				if got := strings.Join(got, "; "); got != c.want {
					t.Errorf("%s: %s\nwant %s", how, got, c.want)
				}
			}
		})
	}
}

// TestTrimEvent expects that only the identity of forged events is kept.
func TestTrimEvent(t *testing.T) {
	forged := newRefusal("web", 0, 0, setReporter("web", ""))
	if slim := refusals.TrimEvent(&forged); slim.Message != "" || slim.InvolvedObject.Name != "" || slim.Namespace != "shop" {
		t.Errorf("%v", slim)
	}
}
