package verify

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/attack"
)

// TestPhases expects interfering attacks to be separate: attacks on objects of the same name
// run one after the other, and attacks that give rights by mistake run after all attacks that
// these rights would affect.
func TestPhases(t *testing.T) {
	on := func(name string, setup ...client.Object) attack.Attack {
		return attack.Attack{Name: name, Setup: setup, Request: &attack.Request{Object: attack.NewPod("own", name)}}
	}
	mistake := &rbacv1.Role{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "RoleBinding"}}
	attacks := []attack.Attack{
		on("a"),
		on("b", attack.NewPod("own", "shared")),
		on("c", attack.NewPod("own", "shared"), attack.NewPod("own", "other")),
		on("d", mistake),
		on("shared"), // would create the object that b and c need
		on("e", attack.NewPod("own", "other")),
	}
	want := [][][]int{{{0}, {1, 2, 4, 5}}, {{3}}}
	got := splitPhases(attacks)
	if len(got) != len(want) || !slices.EqualFunc(got[0], want[0], slices.Equal) || !slices.EqualFunc(got[1], want[1], slices.Equal) {
		t.Errorf("phases are %v, want %v", got, want)
	}
}

// TestNewExisting expects the second tenant to have other members: a member of both
// has the rights of both.
func TestNewExisting(t *testing.T) {
	tenant := func(name, group string, pools ...string) *estate.Tenant {
		return &estate.Tenant{Name: name, Namespaces: []string{name}, Pools: pools, Access: []v1alpha1.Access{{Group: group, Role: v1alpha1.RoleOperator}}}
	}
	by, same, other := tenant("a", "devs", "apps"), tenant("b", "devs", "jobs"), tenant("c", "others", "apps")

	x := NewExisting(&estate.Estate{Tenants: []*estate.Tenant{by, same, other}}, by)
	if x.alone || x.target.Name != "c" || slices.Contains(x.target.Pools, "apps") {
		t.Errorf("tried on %+v", x.target)
	}
	if other.Pools[0] != "apps" {
		t.Error("the estate was changed")
	}
	x = NewExisting(&estate.Estate{Tenants: []*estate.Tenant{by, same}}, by)
	if !x.alone || !targetsNamespace(attack.Attack{Sweep: &attack.Sweep{Namespace: x.target.Namespaces[0]}}, nonexistent) {
		t.Errorf("there is no tenant to try it on, but it is tried on %+v", x.target)
	}
}
