package operatortest

import (
	"context"
	"fmt"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
)

// Await waits until why returns "". goal is the beginning of the message of a test that fails.
func (f *Fixture) Await(goal string, why func() string) {
	f.Helper()
	last := ""
	if err := wait.PollUntilContextTimeout(f.Context(), 50*time.Millisecond, deadline, true, func(context.Context) (bool, error) {
		last = why()
		return last == "", nil
	}); err != nil {
		f.Fatalf("%s: %s", goal, last)
	}
}

// AwaitCondition waits until an object has a condition with this status and reason.
func (f *Fixture) AwaitCondition(o client.Object, name string, status metav1.ConditionStatus, reason string) metav1.Condition {
	f.Helper()
	var found metav1.Condition
	f.Await(fmt.Sprintf("%T %s", o, o.GetName()), func() string {
		if err := f.Client.Get(f.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err.Error()
		}
		c := meta.FindStatusCondition(listConditions(o), name)
		if c == nil || c.Status != status || c.Reason != reason || c.ObservedGeneration != o.GetGeneration() {
			return fmt.Sprintf("want %s=%s %s, have %+v", name, status, reason, listConditions(o))
		}
		found = *c
		return ""
	})
	return found
}

func listConditions(o client.Object) []metav1.Condition {
	switch o := o.(type) {
	case *v1alpha1.Platform:
		return o.Status.Conditions
	case *v1alpha1.Pool:
		return o.Status.Conditions
	case *v1alpha1.Tenant:
		return o.Status.Conditions
	case *v1alpha1.SecondaryNetwork:
		return o.Status.Conditions
	case *v1alpha1.TenantNamespace:
		return o.Status.Conditions
	case *v1alpha1.TenantCaller:
		return o.Status.Conditions
	default:
		return nil
	}
}

// AwaitReady waits until objects are Ready.
func (f *Fixture) AwaitReady(objects ...client.Object) {
	f.Helper()
	for _, o := range objects {
		f.AwaitCondition(o, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	}
}

// AwaitDeletion waits until an object is deleted.
func (f *Fixture) AwaitDeletion(o client.Object) {
	f.Helper()
	f.Await(fmt.Sprintf("%T %s to go", o, o.GetName()), func() string {
		if err := f.Client.Get(f.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("still there (%v)", err)
		}
		return ""
	})
}

// RefuseEvent fails if an object has an event with a reason.
func (f *Fixture) RefuseEvent(o client.Object, reason string) {
	f.Helper()
	var list eventsv1.EventList
	if err := f.Client.List(f.Context(), &list); err != nil {
		f.Fatal(err)
	}
	for _, e := range list.Items {
		if e.Regarding.UID == o.GetUID() && e.Reason == reason {
			f.Errorf("event %s: %s", reason, e.Note)
		}
	}
}

// AwaitEvent waits for an event about an object whose note contains a text.
func (f *Fixture) AwaitEvent(o client.Object, reason, note string) {
	f.Helper()
	f.Await("event "+reason+" "+note, func() string {
		var list eventsv1.EventList
		if err := f.Client.List(f.Context(), &list); err != nil {
			return err.Error()
		}
		var notes []string
		for _, e := range list.Items {
			if e.Regarding.UID != o.GetUID() {
				continue
			}
			if e.Reason == reason && strings.Contains(e.Note, note) {
				return ""
			}
			notes = append(notes, e.Reason+": "+e.Note)
		}
		return fmt.Sprintf("there are %d: %s", len(notes), strings.Join(notes, "; "))
	})
}

// AwaitRepair waits for an event that reports the repair of drift.
func (f *Fixture) AwaitRepair(o client.Object, note string) {
	f.Helper()
	f.AwaitEvent(o, "Repaired", note)
}

// AwaitLog waits for a line in the operator's log that contains all parts.
func (f *Fixture) AwaitLog(parts ...string) {
	f.Helper()
	f.Await("log line "+strings.Join(parts, " … "), func() string {
		for line := range strings.Lines(f.log.String()) {
			found := true
			for _, part := range parts {
				found = found && strings.Contains(line, part)
			}
			if found {
				return ""
			}
		}
		return "no such line"
	})
}

// AwaitPhase waits until an elevation is in a phase.
func (f *Fixture) AwaitPhase(e *v1alpha1.Elevation, want v1alpha1.ElevationPhase) {
	f.Helper()
	f.Await("elevation "+e.Name, func() string {
		if err := f.Client.Get(f.Context(), client.ObjectKeyFromObject(e), e); err != nil {
			return err.Error()
		}
		if e.Status.Phase != want {
			return "is " + string(e.Status.Phase) + ": " + e.Status.Message
		}
		return ""
	})
}
