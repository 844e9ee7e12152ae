package ruletest

import (
	"encoding/json"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/rules/evaluator"
	"croft.dev/croft/internal/rules/rulefile"
	"croft.dev/croft/internal/walls/wall"
	"croft.dev/croft/internal/walls/wall/policy"
)

const declared = `
platform: {clusterName: test, tenantDomain: tenants.example.org, admins: [platform-admins], nodeClass: {kwok: {}},
  network: {platformNamespaces: [ingress]}}
pools: {jobs: {secondaryNetworks: [n3, n6]}, more: {}}
secondaryNetworks:
  n3: {zones: [{zone: zone-a, subnet: s, cidr: 10.0.3.0/24, podCIDR: 10.0.3.32/27},
    {zone: zone-b, subnet: t, cidr: 10.0.4.0/24, podCIDR: 10.0.4.32/27}]}
  n6: {zones: [{zone: zone-a, subnet: u, cidr: 10.0.6.0/24, podCIDR: 10.0.6.32/27}]}
tenants:
  shop: {pool: jobs, access: [{group: shop-devs, role: operator}]}
  bank: {pool: more, access: [{group: bank-devs, role: operator}],
    network: {callers: {shop: {ports: [443], services: [api], gateways: [public]}}}}
`

// words has the tenants and hosts of all cases.
var words = map[string]string{
	"own": Namespace, "other": Other,
	"host": "shop.tenants.example.org", "otherHost": "bank.tenants.example.org",
	"otherDomain": "tenants.example.org",
	"deviceClass": "gpu.example.com", "gatewayClass": "public", "ingressClass": "public",
	"issuer": "letsencrypt", "sourceHost": "git.example.org", "storageClass": "standard",
	"otherTenant": Other, "platform": "ingress", "registry": "registry.example.org",
	"maxVolumeSize": "1Ti", "overVolumeSize": "1025Gi",
	"agreedNamespace": Other, "agreedService": "api", "agreedGateway": "public",
}

// buildScene returns the scene of all cases.
func buildScene(t testing.TB) rulefile.Scene {
	t.Helper()
	e := buildEstate(t, mergeDeclaration(t, nil))
	return rulefile.Scene{Words: words, Bases: policy.BuildBases(&e.Platform, e.FindTenant(Tenant))}
}

// evaluatorCache caches an evaluator for each declaration. They share compiled policies.
type evaluatorCache struct {
	scene rulefile.Scene
	mutex sync.Mutex
	first *evaluator.Evaluator
	known map[string]*evaluator.Evaluator
}

func (w *evaluatorCache) getEvaluator(
	t testing.TB, platform map[string]any, tenant ...map[string]any,
) *evaluator.Evaluator {
	t.Helper()
	content := mergeDeclaration(t, platform, tenant...)
	key, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if e, ok := w.known[string(key)]; ok {
		return e
	}
	objects := append(wall.Objects(buildEstate(t, content)), buildControllers()...)
	var e *evaluator.Evaluator
	if w.first == nil {
		e, err = evaluator.NewLazy(objects)
		w.first, w.known = e, map[string]*evaluator.Evaluator{}
	} else {
		e, err = w.first.WithObjects(objects)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.known[string(key)] = e
	return e
}

// buildControllers returns the objects that give controllers permissions in the whole cluster: the
// scheduler, the volume controller, with and without an account of its own, and
// flux-system/kustomize-controller, by Flux' own manifests.
func buildControllers() []client.Object {
	meta := metav1.ObjectMeta{Name: "controllers"}
	everything := rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}
	return []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{everything}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
			Subjects: []rbacv1.Subject{
				{Kind: rbacv1.ServiceAccountKind, Namespace: "flux-system", Name: "kustomize-controller"},
				{Kind: rbacv1.ServiceAccountKind, Namespace: "kube-system", Name: "persistent-volume-binder"},
				{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "system:kube-controller-manager"},
				{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "system:kube-scheduler"},
			},
		},
	}
}

// mergeDeclaration merges a case's changes over the usual platform and tenant. The patches of the
// tenant are applied one by one: merging them first would lose null.
func mergeDeclaration(t testing.TB, platform map[string]any, tenant ...map[string]any) map[string]any {
	t.Helper()
	var content map[string]any
	if err := yaml.Unmarshal([]byte(declared), &content); err != nil {
		t.Fatal(err)
	}
	patches := []map[string]any{{"platform": defaultToEmpty(platform)}}
	for _, differs := range tenant {
		patches = append(patches, map[string]any{"tenants": map[string]any{Tenant: defaultToEmpty(differs)}})
	}
	for _, patch := range patches {
		var err error
		if content, err = rulefile.MergePatch(content, patch, rulefile.Scene{Words: words}); err != nil {
			t.Fatal(err)
		}
	}
	return content
}

func buildEstate(t testing.TB, content map[string]any) *estate.Estate {
	t.Helper()
	data, err := yaml.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	d, problems := manifest.Parse("case.yaml", data)
	e, more := estate.Build(d)
	if err := append(problems, more...).Err(); err != nil {
		t.Fatal(err)
	}
	return e
}

// defaultToEmpty returns m, or an empty map for nil: null would remove the field that it is merged
// over.
func defaultToEmpty(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}
