package wall_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/walls/wall"
)

// TestNamespaceMetadata requires the declared labels and annotations on every namespace of a tenant,
// including a requested one, and on no namespace of another tenant. A requested namespace also has
// the labels that the team chose from the list, and no other labels of the TenantNamespace.
func TestNamespaceMetadata(t *testing.T) {
	d, problems := manifest.Parse("croft.yaml", []byte(`
platform: {clusterName: demo, nodeClass: {kwok: {}}, tenantDefaults: {namespace: {labels: {project: $(tenant)}}}}
pools: {apps: {}}
tenants:
  shop: {pool: apps, namespaces: [shop, shop-ci], selfService: {namespaces: 1}, namespace: {labels: {team: web}, annotations: {note: a b}, choose: {team: [web, db], env: [dev]}}}
  bank: {pool: apps}
`))
	requested := v1alpha1.TenantNamespace{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "shop-new", Labels: map[string]string{"team": "db", "env": "prod", "note": "x", v1alpha1.TenantLabel: "bank"},
	}}
	requested.Status.Tenant = "shop"
	d.Requests = append(d.Requests, requested)
	e, more := estate.Build(d)
	if len(problems)+len(more) > 0 {
		t.Fatal(problems, more)
	}
	found := map[string]string{}
	for _, tenant := range e.Tenants {
		for _, o := range wall.TenantObjects(&e.Platform, tenant) {
			namespace, ok := o.(*corev1.Namespace)
			if !ok {
				continue
			}
			found[namespace.Name] = strings.Join([]string{namespace.Labels["project"], namespace.Labels["team"], namespace.Annotations["note"], namespace.Labels["env"] + namespace.Labels["note"]}, " ")
			if namespace.Labels[v1alpha1.TenantLabel] != tenant.Name || namespace.Labels["pod-security.kubernetes.io/enforce"] != "baseline" ||
				namespace.Annotations[v1alpha1.RulesAnnotationPrefix+"tenant"] != tenant.Name {
				t.Errorf("%s lacks croft's own labels and annotations: %v %v", namespace.Name, namespace.Labels, namespace.Annotations)
			}
		}
	}
	for name, want := range map[string]string{"shop": "shop web a b ", "shop-ci": "shop web a b ", "shop-new": "shop db a b ", "bank": "bank   "} {
		if found[name] != want {
			t.Errorf("%s has %q, want %q", name, found[name], want)
		}
	}
}

// TestGuardedKeysAreReserved fails if croft.yaml may set a label or an annotation of namespaces
// that the policy croft-namespaces guards.
func TestGuardedKeysAreReserved(t *testing.T) {
	data, err := os.ReadFile("policy/rules/croft-namespaces/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	guarded := regexp.MustCompile(`"(\^croft.*)"`).FindSubmatch(data)
	if guarded == nil {
		t.Fatal("the variable keys of the policy has changed")
	}
	for key := range strings.SplitSeq(string(guarded[1]), "|") {
		key = strings.NewReplacer("^", "", "$", "", "[.]", ".").Replace(key)
		if strings.HasSuffix(key, "/") {
			key += "any"
		}
		if estate.ExplainReservedKey(key) == "" {
			t.Errorf("%s is allowed", key)
		}
	}
}
