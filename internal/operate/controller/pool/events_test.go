package pool

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/apply"
)

// TestRecordApplied fails if a change that follows from a new declaration is reported as a repair,
// or if a repair is not reported.
func TestRecordApplied(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	c := &Controller{recorder: recorder, appliedRevisions: map[string]uint64{}}
	apps := &v1alpha1.Pool{ObjectMeta: metav1.ObjectMeta{Name: "apps"}}
	changed := []apply.Change{{
		Ref:    apply.Ref{GroupVersionKind: schema.GroupVersionKind{Group: "karpenter.sh", Version: "v1", Kind: "NodePool"}, NamespacedName: types.NamespacedName{Name: "apps"}},
		Action: apply.Configured,
	}}
	for _, step := range []struct {
		name     string
		revision uint64
		changes  []apply.Change
		err      error
		reported bool
	}{
		{"the first reconcile", 1, changed, nil, false},
		{"nothing to do", 1, nil, nil, false},
		{"drift", 1, changed, nil, true},
		{"a new declaration, and a failure", 2, changed, errors.New("timeout"), false},
		{"the same after the failure", 2, changed, nil, false},
		{"drift of the new one", 2, changed, nil, true},
	} {
		c.recordApplied(t.Context(), apps, step.revision, step.changes, step.err)
		got := ""
		select {
		case got = <-recorder.Events:
		default:
		}
		if strings.Contains(got, "restored NodePool apps") != step.reported {
			t.Errorf("%s: the event is %q, want one: %t", step.name, got, step.reported)
		}
	}
}
