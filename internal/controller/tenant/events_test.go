package tenant

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"croft.dev/croft/internal/apply"
)

func TestNews(t *testing.T) {
	change := func(kind string, action apply.Action, undid ...string) apply.Change {
		ref := apply.Ref{GroupVersionKind: schema.GroupVersionKind{Kind: kind}, NamespacedName: types.NamespacedName{Namespace: "shop", Name: "x"}}
		c := apply.Change{Ref: ref, Action: action, Undid: undid}
		if kind == "Namespace" {
			c.Namespace = ""
		}
		return c
	}
	for _, test := range []struct {
		name         string
		change       apply.Change
		stood        bool
		reason, note string
	}{
		{"nothing", change("NetworkPolicy", apply.Unchanged), true, "", ""},
		{"the making of a tenant", change("NetworkPolicy", apply.Created), false, "", ""},
		{"a change of what is declared", change("NetworkPolicy", apply.Configured, "kubectl"), false, "", ""},
		{"what is wanted no longer", change("RoleBinding", apply.Deleted), true, "", ""},
		{"drift", change("NetworkPolicy", apply.Configured, "kubectl-edit"), true, "PutBack", "put back NetworkPolicy shop/x, which somebody had changed with kubectl-edit"},
		{"a deletion", change("NetworkPolicy", apply.Created), true, "PutBack", "put back NetworkPolicy shop/x, which somebody had deleted"},
		{"a namespace", change("Namespace", apply.Created), false, "NamespaceCreated", "created namespace x"},
		{"a namespace adopted", change("Namespace", apply.Adopted), false, "NamespaceAdopted", "adopted namespace x, as its annotation permits"},
		{"a namespace refused", change("Namespace", apply.Failed), true, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if reason, note := news(test.change, test.stood); reason != test.reason || note != test.note {
				t.Errorf("%s: %s", reason, note)
			}
		})
	}
}
