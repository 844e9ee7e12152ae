package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"croft.dev/croft/hack/internal/tenants"
	"croft.dev/croft/internal/walls/wall"
)

func countKinds(objects []*unstructured.Unstructured) map[string]int {
	kinds := map[string]int{}
	for _, o := range objects {
		kinds[o.GetKind()]++
	}
	return kinds
}

func TestLines(t *testing.T) {
	for name, want := range map[string]struct {
		kinds  []string
		engine string
	}{
		native:       {[]string{"Namespace", "TenantRules"}, engineNative},
		onGatekeeper: {[]string{"Namespace", "TenantRules", "Assign", "ModifySet"}, engineGatekeeper},
		alone:        {[]string{"Namespace", "Assign"}, engineGatekeeper},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := newLine(name, nil)
			if err != nil {
				t.Fatal(err)
			}
			all, err := l.objects(3)
			if err != nil {
				t.Fatal(err)
			}
			if len(all) != 3 {
				t.Fatalf("%d tenants, want 3", len(all))
			}
			kinds := countKinds(all[2])
			for _, kind := range want.kinds {
				if kinds[kind] == 0 {
					t.Errorf("there is no %s: %v", kind, kinds)
				}
			}
			if kinds["RoleBinding"]+kinds["NetworkPolicy"]+kinds["ResourceQuota"] > 0 {
				t.Errorf("there is what no engine reads: %v", kinds)
			}
			if got := all[2][0].GetLabels()[engineLabel]; all[2][0].GetKind() != "Namespace" || got != want.engine {
				t.Errorf("the first object is a %s of engine %q, want a Namespace of %q", all[2][0].GetKind(), got, want.engine)
			}
			if findNamespace(all[0]) == findNamespace(all[1]) {
				t.Error("two tenants share a namespace")
			}
		})
	}
}

// TestBuildByHand fails if the objects of Gatekeeper alone are not exactly the recipe's
// two Assigns.
func TestBuildByHand(t *testing.T) {
	all, err := buildByHand(1)
	if err != nil {
		t.Fatal(err)
	}
	if got := countKinds(all[0]); got["Assign"] != 2 || len(all[0]) != 3 {
		t.Errorf("got %v, want a namespace and two Assigns", got)
	}
	for _, o := range all[0][1:] {
		namespaces, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "match", "namespaces")
		if len(namespaces) != 1 || namespaces[0] != findNamespace(all[0]) {
			t.Errorf("%s is for %v", o.GetName(), namespaces)
		}
	}
}

// TestExcludeGatekeeper fails if more than the selection of namespaces differs from
// croft's objects, or if validating policies are narrowed too.
func TestExcludeGatekeeper(t *testing.T) {
	built, err := tenants.Build(tenants.Platform)
	if err != nil {
		t.Fatal(err)
	}
	objects, found := wall.PlatformObjects(&built.Platform), 0
	excludeGatekeeper(objects)
	for i, was := range wall.PlatformObjects(&built.Platform) {
		if policy, ok := objects[i].(*admissionv1.MutatingAdmissionPolicy); ok {
			found++
			selector := policy.Spec.MatchConstraints.NamespaceSelector
			last := len(selector.MatchExpressions) - 1
			if added := selector.MatchExpressions[last]; added.Key != engineLabel || added.Values[0] != engineGatekeeper {
				t.Errorf("%s: %v", policy.Name, added)
			}
			selector.MatchExpressions = selector.MatchExpressions[:last]
		}
		if diff := cmp.Diff(was, objects[i]); diff != "" {
			t.Errorf("%s is not as it was:\n%s", was.GetName(), diff)
		}
	}
	if found == 0 {
		t.Error("nothing was narrowed: the API server would place Gatekeeper's pods too")
	}
}
