package wall_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/rules/evaluator"
	"croft.dev/croft/internal/walls/wall"
	"croft.dev/croft/internal/walls/wall/identity"
	"croft.dev/croft/internal/walls/wall/policy"
)

// everyRole sets every field of a Platform that gives roles of tenants more kinds.
const everyRole = `
platform:
  clusterName: demo
  nodeClass: {kwok: {}}
  elevation: {}
  network: {dialect: Calico, calico: {apiGroup: GROUP, tenantPolicies: true}}
  addons: [{apiGroup: monitoring.coreos.com, resources: [servicemonitors, podmonitors/scale]}]
  roles: {deployer: {rules: [{apiGroups: [apps], resources: [deployments], verbs: [get, create]}]}}
pools: {apps: {}}
tenants:
  shop: {pool: apps, selfService: {namespaces: 2}, access: [
    {group: ops, role: operator}, {group: devs, role: viewer}, {group: bots, role: deployer}]}
`

const noObjects = "a right without objects"

// uncounted has the resources that no quota bounds, with the reason why that is safe.
var uncounted = map[string]string{
	"events":                                 "Kubernetes lets no quota count them; they expire after an hour",
	"events.events.k8s.io":                   "the same objects",
	"tier.networkpolicies.projectcalico.org": noObjects,
}

// parts has the subresources that tenants write without creating an object, with the reason
// why they cannot store much.
var parts = map[string]string{
	"pods/exec":                               "a stream",
	"pods/attach":                             "a stream",
	"pods/portforward":                        "a stream",
	"pods/eviction":                           "a request that is not stored",
	"serviceaccounts/token":                   "a token that is not stored",
	"pods/ephemeralcontainers":                "the policy on pods measures the pod again",
	"pods/resize":                             "it changes numbers only",
	"deployments.apps/scale":                  "it changes a number only",
	"statefulsets.apps/scale":                 "it changes a number only",
	"replicasets.apps/scale":                  "it changes a number only",
	"replicationcontrollers/scale":            "it changes a number only",
	"podmonitors.monitoring.coreos.com/scale": "it changes a number only",
}

// TestCountsAndSizesCoverRoles fails if a role for a tenant's users may create a kind that
// the default quota does not count, or write a kind whose size no policy limits. Such objects
// could fill etcd, which all tenants share. Each exception has a reason.
func TestCountsAndSizesCoverRoles(t *testing.T) {
	used := map[string]bool{}
	for _, group := range []v1alpha1.CalicoAPIGroup{v1alpha1.CalicoGroup, v1alpha1.CalicoStorageGroup} {
		e := parseEstate(t, strings.ReplaceAll(everyRole, "GROUP", string(group)))
		judge, err := evaluator.NewLazy(wall.Objects(e))
		if err != nil {
			t.Fatal(err)
		}
		for gr, roles := range listWritable(listPeopleRoles(t, e)) {
			name := formatName(gr)
			used[name] = true
			switch _, isPart := parts[name]; {
			case isPart:
			case strings.Contains(name, "/"):
				t.Errorf("%v write %s: add to parts why it cannot store much", roles, name)
			case uncounted[name] == "" && !isCounted(e.FindTenant("shop"), gr):
				t.Errorf("%v create any number of %s", roles, name)
			}
			if !strings.Contains(name, "/") && uncounted[name] != noObjects && !isSizeLimited(t, judge, gr) {
				t.Errorf("%v write %s of any size", roles, name)
			}
		}
	}
	for _, exceptions := range []map[string]string{uncounted, parts} {
		for name := range exceptions {
			if !used[name] {
				t.Errorf("%s is an exception, and no role writes it", name)
			}
		}
	}
}

// listPeopleRoles returns the rules of each ClusterRole that is bound in the tenants'
// namespaces, and of the role for elevations.
func listPeopleRoles(t *testing.T, e *estate.Estate) map[string][]rbacv1.PolicyRule {
	t.Helper()
	all, bound := map[string][]rbacv1.PolicyRule{}, map[string]bool{identity.ElevatedRole: true}
	objects := wall.Objects(e)
	for _, o := range objects {
		if b, ok := o.(*rbacv1.RoleBinding); ok {
			bound[b.RoleRef.Name] = true
		}
	}
	for _, o := range objects {
		if r, ok := o.(*rbacv1.ClusterRole); ok && bound[r.Name] {
			all[r.Name] = r.Rules
		}
	}
	if len(all) != 4 {
		t.Fatalf("roles of people: %v", slices.Sorted(maps.Keys(all)))
	}
	return all
}

// listWritable returns the resources that the roles may write, each with the names of its roles.
func listWritable(roles map[string][]rbacv1.PolicyRule) map[schema.GroupResource][]string {
	all := map[schema.GroupResource][]string{}
	for name, rules := range roles {
		for _, r := range rules {
			if !slices.ContainsFunc(r.Verbs, func(verb string) bool { return slices.Contains([]string{"create", "update", "patch"}, verb) }) {
				continue
			}
			for _, group := range r.APIGroups {
				for _, resource := range r.Resources {
					gr := schema.GroupResource{Group: group, Resource: resource}
					all[gr] = append(all[gr], name)
				}
			}
		}
	}
	return all
}

// formatName returns a name such as deployments.apps/scale.
func formatName(gr schema.GroupResource) string {
	resource, part, found := strings.Cut(gr.Resource, "/")
	name := schema.GroupResource{Group: gr.Group, Resource: resource}.String()
	if found {
		name += "/" + part
	}
	return name
}

func isCounted(tenant *estate.Tenant, gr schema.GroupResource) bool {
	_, byName := tenant.Quota[corev1.ResourceName(gr.Resource)]
	_, counted := tenant.Quota[corev1.ResourceName("count/"+gr.String())]
	return counted || byName && gr.Group == "" && manifest.CountedObjects.Has(gr.Resource)
}

// kindOf maps resources to kinds, for Kubernetes and croft.
var kindOf = testrestmapper.TestOnlyStaticRESTMapper(scheme.New())

// isSizeLimited reports whether an object of more than half a MiB is refused for its size.
func isSizeLimited(t *testing.T, judge *evaluator.Evaluator, gr schema.GroupResource) bool {
	t.Helper()
	kind, err := kindOf.KindFor(gr.WithVersion(""))
	if err != nil {
		kind = schema.GroupVersionKind{Group: gr.Group, Version: "v1", Kind: "Sample"}
	}
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"containers": []any{}}}}
	o.SetGroupVersionKind(kind)
	o.SetNamespace("shop")
	o.SetName("a")
	o.SetAnnotations(map[string]string{"a": strings.Repeat("x", 600<<10)})
	answer, err := judge.Evaluate(t.Context(), evaluator.Request{
		User: &user.DefaultInfo{Name: "ann", Groups: []string{user.AllAuthenticated}}, Verb: "create", Authorized: true,
		Resource: kind.GroupVersion().WithResource(gr.Resource), Namespace: "shop", Name: "a", Object: o,
	})
	if err != nil {
		t.Fatalf("%s: %v", gr, err)
	}
	return slices.ContainsFunc(answer.Denials, func(d evaluator.Denial) bool { return d.Rule == policy.SizeRule })
}
