package tenant

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"croft.dev/croft/internal/operate/apply"
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
		{"an object that is wanted no longer", change("RoleBinding", apply.Deleted), "", ""},
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
