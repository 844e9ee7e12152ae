// Package ruletest tests single rules of the walls with the API server's own admission code
// and without a cluster. The cases are in the rules' files: see [rulefile.Cases]. Rules in Go
// have their cases in testdata/rules, in files with only cases.
package ruletest

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/rules/evaluator"
	"croft.dev/croft/internal/rules/rulefile"
	"croft.dev/croft/internal/walls/wall"
)

// Tenant is the name of the tenant, Namespace its namespace, and Other a namespace of another
// tenant.
const (
	Tenant    = "shop"
	Namespace = "shop"
	Other     = "bank"
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
  bank: {pool: more, access: [{group: bank-devs, role: operator}]}
`

// scene has the tenants and hosts of all cases.
var scene = rulefile.Scene{
	"own": Namespace, "other": Other,
	"host": "shop.tenants.example.org", "otherHost": "bank.tenants.example.org",
	"otherDomain": "tenants.example.org",
	"deviceClass": "gpu.example.com", "gatewayClass": "public", "ingressClass": "public",
	"issuer": "letsencrypt", "sourceHost": "git.example.org",
}

// ReadFiles returns all cases in the folder of a wall, by the paths of their files.
func ReadFiles(t testing.TB, folder string) map[string]rulefile.Cases {
	t.Helper()
	files, err := rulefile.ReadCases(os.DirFS(filepath.Join(folder, "rules")))
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(folder, "testdata", "rules", "*.yaml"))
	if err != nil || len(paths)+len(files) == 0 {
		t.Fatalf("there are no cases in %s: %v", folder, err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		cases, err := rulefile.ParseCases(data)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		files[strings.TrimSuffix(filepath.Base(path), ".yaml")] = cases
	}
	return files
}

// Run tests every case of every file of a wall.
func Run(t *testing.T) {
	worlds := &evaluatorCache{}
	for name, file := range ReadFiles(t, ".") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, c := range file.Cases {
				if c.ClusterOnly {
					continue
				}
				t.Run(c.Rule+"/"+c.Name, func(t *testing.T) { runCase(t, worlds, file, c) })
			}
		})
	}
}

func runCase(t *testing.T, worlds *evaluatorCache, file rulefile.Cases, c rulefile.Case) {
	t.Helper()
	e := worlds.getEvaluator(t, file.Platform, file.Tenant, c.Tenant)
	object, old, err := file.BuildObjects(c, scene)
	if err != nil {
		t.Fatal(err)
	}
	request := evaluator.Request{
		User: buildUser(c), Verb: cmp.Or(c.Verb, "create"), Authorized: true,
		Resource: evaluator.FindResource(object.GroupVersionKind()), Subresource: c.Subresource,
		Namespace: object.GetNamespace(), Name: object.GetName(), Object: object,
	}
	if old != nil {
		request.Verb, request.Old = cmp.Or(c.Verb, "update"), old
	}
	if request.Verb == "delete" {
		request.Old, request.Object = object, nil
	}
	answer, err := e.Evaluate(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	compareAnswer(t, file.Policy, c, answer)
}

// compareAnswer compares an answer with the case's expectation.
func compareAnswer(t *testing.T, policy string, c rulefile.Case, answer evaluator.Answer) {
	t.Helper()
	refused := false
	for _, d := range answer.Denials {
		switch {
		case d.DeniedBy == "PodSecurity" || slices.Contains(c.OtherRules, d.Rule):
		case d.Rule != c.Rule || d.DeniedBy != policy:
			t.Errorf("%s of %s refuses it too: %s", d.Rule, d.DeniedBy, d.Message)
		case !strings.Contains(d.Message, scene.ReplaceWords(c.Message)):
			t.Errorf("refused, but says %q", d.Message)
		default:
			refused = true
		}
	}
	if refused != c.Refused {
		t.Errorf("refused: %t, want %t; denials: %v", refused, c.Refused, answer.Denials)
	}
	warned := slices.IndexFunc(answer.Warnings, func(w string) bool { return strings.Contains(w, "["+c.Rule+"]") })
	switch {
	case c.Warning == "" && warned >= 0:
		t.Errorf("warned: %s", answer.Warnings[warned])
	case c.Warning != "" && (warned < 0 || !strings.Contains(answer.Warnings[warned], c.Warning)):
		t.Errorf("not warned of %q: %v", c.Warning, answer.Warnings)
	}
}

// buildUser returns the user that sends the request of a case.
func buildUser(c rulefile.Case) user.Info {
	groups := append([]string{user.AllAuthenticated}, c.Groups...)
	if namespace, name, ok := strings.Cut(c.User, "/"); ok {
		account := serviceaccount.UserInfo(namespace, name, "")
		return &user.DefaultInfo{Name: account.GetName(), Groups: append(groups, account.GetGroups()...)}
	}
	return &user.DefaultInfo{Name: cmp.Or(c.User, "ann"), Groups: append(groups, Tenant+"-devs")}
}

// evaluatorCache caches an evaluator for each declaration. They share compiled policies.
type evaluatorCache struct {
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
	objects := append(wall.Objects(buildEstate(t, content)), buildFluxController()...)
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

// buildFluxController returns the objects that give flux-system/kustomize-controller, a controller of
// the whole cluster, the permissions of Flux' own manifests.
func buildFluxController() []client.Object {
	meta := metav1.ObjectMeta{Name: "cluster-reconciler"}
	everything := rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}
	flux := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "flux-system", Name: "kustomize-controller"}
	return []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{everything}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, Subjects: []rbacv1.Subject{flux},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
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
		if content, err = rulefile.MergePatch(content, patch, scene); err != nil {
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
