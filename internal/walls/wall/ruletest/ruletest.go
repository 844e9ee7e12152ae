// Package ruletest tests single rules of the walls with the API server's own admission code
// and without a cluster. The cases are YAML tables: one file for each group of rules.
//
//	# The policy of the rules.
//	policy: croft-pods
//	# The tenant of all cases, merged over one without exceptions.
//	tenant: {policy: {priorityClasses: [low]}}
//	# The object that the cases modify.
//	object: {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c, image: i}]}}
//	cases:
//	- name: a class that is not the tenant's
//	  rule: priority-class
//	  set: {spec: {priorityClassName: high}}
//	  refused: true
//	# With by: flux-system/kustomize-controller, a controller of the whole cluster is the user.
//	- name: a pod that had the class before
//	  rule: priority-class
//	  old: {spec: {priorityClassName: high}}
//	  set: {spec: {priorityClassName: high}}
//
// `set`, `old` and `tenant` are JSON merge patches: null removes a field, and lists are
// replaced. {$repeat: N, of: VALUE} is a list of N copies of VALUE. {$text: N, of: "ab"} is a
// string of N copies of ab. INDEX in a string of a list is replaced by the index of its item.
package ruletest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/rules/evaluator"
	"croft.dev/croft/internal/walls/wall"
)

// File is a file of cases.
type File struct {
	// Policy is the name of the rules' policy.
	Policy   string         `json:"policy"`
	Platform map[string]any `json:"platform"`
	Tenant   map[string]any `json:"tenant"`
	Object   map[string]any `json:"object"`
	Cases    []Case         `json:"cases"`
}

// Case is a request, and whether a rule refuses it.
type Case struct {
	Name string `json:"name"`
	// Rule is the rule under test. Only Rule and the rules in OtherRules may refuse the request.
	Rule       string   `json:"rule"`
	Refused    bool     `json:"refused"`
	OtherRules []string `json:"also"`
	// Message is a part of the rule's message. Empty matches any message.
	Message string `json:"message"`
	// Warning is a part of the warning that Rule must send. If empty, Rule must not warn.
	Warning string `json:"warning"`
	// Set is merged over the file's object. Old is merged over it too, as the old object:
	// with Old the request is an update.
	Set map[string]any `json:"set"`
	Old map[string]any `json:"old"`
	// Object replaces the file's object.
	Object map[string]any `json:"object"`
	Tenant map[string]any `json:"tenant"`
	// User is the user, or a service account as NAMESPACE/NAME. It defaults to a user of the
	// tenant.
	User string `json:"by"`
	// Groups are additional groups of the user.
	Groups []string `json:"groups"`
	// Verb is create, update, patch or delete. It defaults to update with Old, and to create
	// without.
	Verb        string `json:"verb"`
	Subresource string `json:"subresource"`
}

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

// ReadFiles returns all files of a folder by their names, without the extension.
func ReadFiles(t testing.TB, folder string) map[string]File {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("there are no cases in %s: %v", folder, err)
	}
	files := map[string]File{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var file File
		if err := yaml.UnmarshalStrict(data, &file); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		files[strings.TrimSuffix(filepath.Base(path), ".yaml")] = file
	}
	return files
}

// Run tests every case of every file of a folder.
func Run(t *testing.T, folder string) {
	worlds := &evaluatorCache{}
	for name, file := range ReadFiles(t, folder) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, c := range file.Cases {
				t.Run(c.Rule+"/"+c.Name, func(t *testing.T) { runCase(t, worlds, file, c) })
			}
		})
	}
}

func runCase(t *testing.T, worlds *evaluatorCache, file File, c Case) {
	t.Helper()
	e := worlds.getEvaluator(t, file.Platform, file.Tenant, c.Tenant)
	base := file.Object
	if c.Object != nil {
		base = c.Object
	}
	object := &unstructured.Unstructured{Object: mergePatch(t, defaultToEmpty(base), defaultToEmpty(c.Set))}
	if object.GetNamespace() == "" {
		object.SetNamespace(Namespace)
	}
	request := evaluator.Request{
		User: buildUser(c), Verb: cmp.Or(c.Verb, "create"), Authorized: true,
		Resource: evaluator.FindResource(object.GroupVersionKind()), Subresource: c.Subresource,
		Namespace: object.GetNamespace(), Name: object.GetName(), Object: object,
	}
	if c.Old != nil {
		request.Verb = cmp.Or(c.Verb, "update")
		request.Old = &unstructured.Unstructured{Object: mergePatch(t, defaultToEmpty(base), defaultToEmpty(c.Old))}
		request.Old.SetNamespace(object.GetNamespace())
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
func compareAnswer(t *testing.T, policy string, c Case, answer evaluator.Answer) {
	t.Helper()
	refused := false
	for _, d := range answer.Denials {
		switch {
		case d.DeniedBy == "PodSecurity" || slices.Contains(c.OtherRules, d.Rule):
		case d.Rule != c.Rule || d.DeniedBy != policy:
			t.Errorf("%s of %s refuses it too: %s", d.Rule, d.DeniedBy, d.Message)
		case !strings.Contains(d.Message, c.Message):
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
func buildUser(c Case) user.Info {
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
	content = mergePatch(t, content, map[string]any{"platform": defaultToEmpty(platform)})
	for _, differs := range tenant {
		content = mergePatch(t, content, map[string]any{"tenants": map[string]any{Tenant: defaultToEmpty(differs)}})
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

// mergePatch returns a copy of base with a patch merged over it.
func mergePatch(t testing.TB, base, patch map[string]any) map[string]any {
	t.Helper()
	var content map[string]any
	document, err := json.Marshal(expandPlaceholders(base, 0))
	over, wrong := json.Marshal(expandPlaceholders(patch, 0))
	if err = errors.Join(err, wrong); err == nil {
		document, err = jsonpatch.MergePatch(document, over)
	}
	if err == nil {
		// Integers stay integers, as in an API server.
		err = utiljson.Unmarshal(document, &content)
	}
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// expandPlaceholders expands $repeat and $text, and replaces INDEX by numbers.
func expandPlaceholders(v any, index int) any {
	switch v := v.(type) {
	case string:
		return strings.ReplaceAll(v, "INDEX", strconv.Itoa(index))
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = expandPlaceholders(v[i], index)
		}
		return out
	case map[string]any:
		if n, ok := v["$repeat"].(float64); ok {
			out := make([]any, int(n))
			for i := range out {
				out[i] = expandPlaceholders(v["of"], i)
			}
			return out
		}
		if n, ok := v["$text"].(float64); ok {
			return strings.Repeat(fmt.Sprint(v["of"]), int(n))
		}
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[key] = expandPlaceholders(value, index)
		}
		return out
	}
	return v
}
