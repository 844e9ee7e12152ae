package tenant

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/controller/status"
)

func TestNews(t *testing.T) {
	change := func(kind string, action apply.Action) apply.Change {
		return apply.Change{
			Ref:    apply.Ref{GroupVersionKind: schema.GroupVersionKind{Kind: kind}, NamespacedName: types.NamespacedName{Name: "x"}},
			Action: action,
		}
	}
	for _, test := range []struct {
		name         string
		change       apply.Change
		reason, note string
	}{
		{"an object of a wall", change("NetworkPolicy", apply.Created), "", ""},
		{"an object that is no longer desired", change("RoleBinding", apply.Deleted), "", ""},
		{"a namespace", change("Namespace", apply.Created), "NamespaceCreated", "created namespace x"},
		{"a namespace adopted", change("Namespace", apply.Adopted), "NamespaceAdopted", "adopted namespace x, as its annotation permits"},
		{"a namespace refused", change("Namespace", apply.Failed), "", ""},
		{"a namespace relabelled", change("Namespace", apply.Configured), "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if reason, note := describeChange(test.change); reason != test.reason || note != test.note {
				t.Errorf("%s: %s", reason, note)
			}
		})
	}
}

// TestReadyEvent fails if a new tenant that is soon Ready gets an event, or if a tenant that has waited gets none.
func TestReadyEvent(t *testing.T) {
	ready := &v1alpha1.Tenant{}
	status.Set(&ready.Status.Status, 1, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady, "")
	waiting := &v1alpha1.Tenant{}
	status.Set(&waiting.Status.Status, 1, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNotEnforcedYet, "")
	for name, test := range map[string]struct {
		before *v1alpha1.Tenant
		events int
	}{"new": {&v1alpha1.Tenant{}, 0}, "after a wait": {waiting, 1}, "Ready before": {ready, 0}} {
		t.Run(name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(1)
			c := &Controller{recorder: recorder, memory: newMemory()}
			c.emitConditions(test.before, ready)
			if n := len(recorder.Events); n != test.events {
				t.Errorf("%d events, want %d", n, test.events)
			}
		})
	}
}
