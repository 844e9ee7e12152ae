// Package refusals reads the events in which Kubernetes' controllers report that the API
// server refuses their pods. It does no I/O.
package refusals

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/observe/events"
)

// Reason is the reason of these events.
const Reason = "FailedCreate"

// longest is the maximum length of a message. A refusal by a quota must fit: it names each
// exceeded resource three times.
const longest = 1024

// controllers write these events. Tenants may write events, too, but not with these
// component names (admission rule event-source).
var controllers = []string{
	"replicaset-controller", "replication-controller", "statefulset-controller", "daemonset-controller", "job-controller", "cronjob-controller",
}

// IsGenuine reports whether an event is a refusal reported by one of Kubernetes' controllers.
func IsGenuine(e *corev1.Event) bool {
	return e.Reason == Reason && events.IsWrittenBy(e, controllers...)
}

// TrimEvent returns an event with only the fields that this package reads. Of an event that is
// not genuine it keeps only the identity.
func TrimEvent(e *corev1.Event) *corev1.Event {
	slim := &corev1.Event{TypeMeta: e.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Namespace: e.Namespace, Name: e.Name, UID: e.UID, ResourceVersion: e.ResourceVersion, CreationTimestamp: e.CreationTimestamp,
	}}
	if IsGenuine(e) {
		slim.Reason, slim.Source.Component, slim.ReportingController = Reason, e.Source.Component, e.ReportingController
		slim.InvolvedObject = corev1.ObjectReference{Kind: e.InvolvedObject.Kind, Name: e.InvolvedObject.Name, UID: e.InvolvedObject.UID}
		slim.FirstTimestamp, slim.LastTimestamp, slim.EventTime, slim.Series = e.FirstTimestamp, e.LastTimestamp, e.EventTime, e.Series
		slim.Message = extractCause(e.Message)
	}
	return slim
}

// Workload is an object whose pods are refused. For a CronJob, its Jobs are refused.
type Workload struct {
	v1alpha1.RefusedWorkload
	// Until is the time until which the refusal counts, unless it occurs again.
	Until time.Time

	first, last time.Time
}

// Workloads returns the workloads that are refused at present. The earliest refusals come
// first.
func Workloads(all []corev1.Event, now time.Time) []Workload {
	byUID := map[types.UID]*Workload{}
	for i := range all {
		e := &all[i]
		if !IsGenuine(e) {
			continue
		}
		first, last := FindObservedSpan(e, now)
		w := byUID[e.InvolvedObject.UID]
		if w == nil {
			w = &Workload{first: first}
			byUID[e.InvolvedObject.UID] = w
		}
		if first.Before(w.first) {
			w.first = first
		}
		if !last.Before(w.last) {
			w.last = last
			w.RefusedWorkload = v1alpha1.RefusedWorkload{Namespace: e.Namespace, Kind: e.InvolvedObject.Kind, Name: e.InvolvedObject.Name, Message: extractCause(e.Message)}
		}
	}
	var refused []Workload
	for _, w := range byUID {
		if w.Until = Expiry(w.first, w.last); w.Until.After(now) {
			refused = append(refused, *w)
		}
	}
	slices.SortFunc(refused, func(a, b Workload) int {
		return cmp.Or(a.first.Compare(b.first), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return refused
}

// Expiry returns the time until which a refusal counts: then its controller has tried
// again. Controllers back off for about as long as they have tried already, and for at most
// a thousand seconds.
func Expiry(first, last time.Time) time.Time {
	return last.Add(min(last.Sub(first), 19*time.Minute) + time.Minute)
}

// FindObservedSpan returns the times when an event was observed first and last. A time in the future is
// replaced by now, since a clock may be wrong.
func FindObservedSpan(e *corev1.Event, now time.Time) (first, last time.Time) {
	times := []time.Time{e.CreationTimestamp.Time, e.FirstTimestamp.Time, e.LastTimestamp.Time, e.EventTime.Time}
	if e.Series != nil {
		times = append(times, e.Series.LastObservedTime.Time)
	}
	times = slices.DeleteFunc(times, time.Time.IsZero)
	if len(times) == 0 {
		return now, now
	}
	earlier := func(t time.Time) time.Time {
		if t.After(now) {
			return now
		}
		return t
	}
	return earlier(slices.MinFunc(times, time.Time.Compare)), earlier(slices.MaxFunc(times, time.Time.Compare))
}

// preamble matches the part of a message before the cause. It contains the name of a pod,
// which differs at each attempt.
var preamble = regexp.MustCompile(`^[^"]*"[^"]*" is (?:forbidden|invalid): `)

// extractCause returns the cause in a message, truncated to longest.
func extractCause(message string) string {
	message = strings.TrimPrefix(message, "(combined from similar events): ")
	message = strings.TrimPrefix(message, "Error creating: ")
	message = strings.TrimPrefix(message, "Error creating job: ")
	message = message[len(preamble.FindString(message)):]
	if len(message) > longest {
		message = strings.ToValidUTF8(message[:longest], "") + " …"
	}
	return message
}
