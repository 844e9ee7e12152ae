package policy

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/internal/rules/attack"
)

// buildEventAttacks are events about things that did not happen.
func (s scene) buildEventAttacks() []attack.Attack {
	about := func(name string) corev1.ObjectReference {
		return corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: s.own, Name: name}
	}
	old := func(name string, edit func(*corev1.Event)) *corev1.Event {
		e := &corev1.Event{
			TypeMeta: makeCoreMeta("Event"), ObjectMeta: s.makeMeta(name), InvolvedObject: about(name),
			Type: corev1.EventTypeWarning, Reason: "FailedMount", Message: "croft verify tries this",
			Source: corev1.EventSource{Component: "croft-verify"},
		}
		edit(e)
		return e
	}
	of := func(component string) func(*corev1.Event) {
		return func(e *corev1.Event) { e.Source.Component = component }
	}
	newer := func(name, controller string) *eventsv1.Event {
		return &eventsv1.Event{
			TypeMeta: metav1.TypeMeta{APIVersion: eventsv1.SchemeGroupVersion.String(), Kind: "Event"}, ObjectMeta: s.makeMeta(name), Regarding: about(name),
			Type: corev1.EventTypeWarning, Reason: "FailedMount", Note: "croft verify tries this", Action: "Mounting",
			// A constant instead of the current time, so that the attacks are the same in
			// every run.
			EventTime:           metav1.NewMicroTime(time.Unix(1700000000, 0)),
			ReportingController: controller, ReportingInstance: "croft-verify",
		}
	}
	by := attack.ByPolicy(EventsPolicy, EventSourceRule)
	return attack.WithReason("people who look for the cause of a failure, and alerts on events, trust the cluster's own events", nil,
		attack.NewCreate("pass-for-kubelet", "write an event in the name of the kubelet", by, old("pass-for-kubelet", of("kubelet"))),
		attack.NewCreate("pass-for-scheduler", "write an event in the name of the scheduler", by, old("pass-for-scheduler", of("default-scheduler"))),
		attack.NewCreate("pass-for-kubelet-as-reporter", "write an event with the kubelet as its reporter", by, old("pass-for-reporter", func(e *corev1.Event) {
			e.ReportingController = "kubelet"
		})),
		attack.NewCreate("pass-for-kubelet-in-newer-events", "write an event in the name of the kubelet by events.k8s.io", by, newer("pass-for-newer", "kubelet")),
		attack.NewUpdate("change-event-of-kubelet", "change an event that the kubelet has written", by, old("change-event-of-kubelet", of("kubelet")),
			func(e *corev1.Event) { e.Message = "all is well" }),
		attack.NewUpdate("take-event-of-kubelet", "change an event that the kubelet has written into one of one's own", by, old("take-event-of-kubelet", of("kubelet")),
			func(e *corev1.Event) { e.Source.Component, e.Message = "croft-verify", "all is well" }),
		attack.NewUpdate("change-newer-event-of-kubelet", "change an event that the kubelet has written by events.k8s.io", by, newer("change-newer-event", "kubelet"),
			func(e *eventsv1.Event) { e.Labels = map[string]string{"solved": "true"} }),
		attack.NewCreate("write-an-event", "write an event in one's own name", attack.Nobody, old("write-an-event", of("croft-verify"))),
		attack.NewCreate("write-a-newer-event", "write an event in one's own name by events.k8s.io", attack.Nobody, newer("write-a-newer-event", "example.com/croft-verify")),
	)
}
