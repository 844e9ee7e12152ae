package repair

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/controller/event"
)

func newChange(kind, name string, action apply.Action, undid ...string) apply.Change {
	return apply.Change{
		Ref: apply.Ref{
			GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: kind},
			NamespacedName:   types.NamespacedName{Namespace: "shop", Name: name},
		},
		Action: action, RevertedManagers: undid,
	}
}

func TestFind(t *testing.T) {
	repairs := Find([]apply.Change{
		newChange("NetworkPolicy", "same", apply.Unchanged), newChange("NetworkPolicy", "gone", apply.Created),
		newChange("Namespace", "new", apply.Created), newChange("Namespace", "relabelled", apply.Configured),
		newChange("RoleBinding", "surplus", apply.Deleted), newChange("RoleBinding", "rebound", apply.Recreated),
		newChange("LimitRange", "refused", apply.Failed), newChange("LimitRange", "left", apply.Skipped),
	})
	var names []string
	for _, c := range repairs {
		names = append(names, c.Name)
	}
	if want := []string{"gone", "relabelled", "rebound"}; !slices.Equal(names, want) {
		t.Errorf("repairs of %v, want %v", names, want)
	}
}

func TestFormatNote(t *testing.T) {
	deleted, changed := newChange("NetworkPolicy", "a", apply.Created), newChange("NetworkPolicy", "b", apply.Configured, "kubectl-edit", "helm")
	var many []apply.Change
	for i := range 60 {
		many = append(many, newChange("NetworkPolicy", fmt.Sprintf("croft-policy-%d", i), apply.Created))
	}
	for _, test := range []struct {
		repairs []apply.Change
		want    string
	}{
		{[]apply.Change{deleted}, "restored NetworkPolicy shop/a, which was deleted"},
		{[]apply.Change{changed}, "restored NetworkPolicy shop/b, which was changed by kubectl-edit, helm"},
		{[]apply.Change{deleted, changed}, "restored 2 objects: NetworkPolicy shop/a (deleted), NetworkPolicy shop/b (changed by kubectl-edit, helm)"},
	} {
		if got := formatNote(test.repairs); got != test.want {
			t.Errorf("note:\n%s\nwant:\n%s", got, test.want)
		}
	}
	long := formatNote(many)
	listed := strings.Count(long, "(deleted)")
	if len(long) > event.Longest || !strings.HasSuffix(long, fmt.Sprintf(" and %d more; the operator's log lists all of them", 60-listed)) {
		t.Errorf("%d bytes, %d listed: %s", len(long), listed, long)
	}
}
