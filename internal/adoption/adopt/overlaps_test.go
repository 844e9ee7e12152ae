package adopt

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const members = `, access: [{group: shoppers, role: operator}, {user: jane, role: viewer}], quota: {pods: "10", requests.cpu: "4"}`

// TestCompareOverlaps fails if an object is classified as replaced, and so deleted with
// --remove-old, although it does more than the walls or affects other namespaces.
func TestCompareOverlaps(t *testing.T) {
	a := newAdoption(t, "{}", members)
	binding := func(subjects string) string {
		return "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: old, namespace: shop}, roleRef: {kind: ClusterRole, name: edit}, subjects: " + subjects + "}"
	}
	quota := func(spec string) string {
		return "{apiVersion: v1, kind: ResourceQuota, metadata: {name: old, namespace: shop}, spec: " + spec + "}"
	}
	mutator := func(match, location string) string {
		return "{apiVersion: mutations.gatekeeper.sh/v1, kind: Assign, metadata: {name: old}, spec: {match: " + match + ", location: " + location + "}}"
	}
	for name, test := range map[string]struct {
		evaluate func(*unstructured.Unstructured) (bool, string)
		text     string
		replaced bool
		// silent means that it is not reported.
		silent bool
	}{
		"a group that the tenant names":      {a.compareBinding, binding("[{kind: Group, name: shoppers}, {kind: User, name: jane}]"), true, false},
		"an undeclared group":                {a.compareBinding, binding("[{kind: Group, name: shoppers}, {kind: Group, name: visitors}]"), false, false},
		"a user of the name of a group":      {a.compareBinding, binding("[{kind: User, name: shoppers}]"), false, false},
		"a service account among people":     {a.compareBinding, binding("[{kind: Group, name: shoppers}, {kind: ServiceAccount, name: ci, namespace: shop}]"), false, false},
		"service accounts alone":             {a.compareBinding, binding("[{kind: ServiceAccount, name: ci, namespace: shop}]"), false, true},
		"a wider quota":                      {a.compareQuota, quota(`{hard: {pods: "100"}}`), true, false},
		"a quota between share and whole":    {a.compareQuota, quota(`{hard: {pods: "7"}}`), false, false},
		"a narrower quota":                   {a.compareQuota, quota(`{hard: {pods: "1"}}`), false, false},
		"a quota of something else":          {a.compareQuota, quota(`{hard: {services.nodeports: "0"}}`), false, false},
		"a quota of some pods":               {a.compareQuota, quota(`{hard: {pods: "100"}, scopes: [BestEffort]}`), false, false},
		"places the tenant's pods":           {a.compareRule, mutator("{namespaces: [shop]}", "spec.nodeSelector"), true, false},
		"places those of all its namespaces": {a.compareRule, mutator("{namespaces: [shop, shop-ci]}", "spec.tolerations"), true, false},
		"places another's too":               {a.compareRule, mutator("{namespaces: [shop, bank]}", "spec.nodeSelector"), false, false},
		"places everybody's":                 {a.compareRule, mutator("{}", "spec.nodeSelector"), false, false},
		"changes something else":             {a.compareRule, mutator("{namespaces: [shop]}", "spec.dnsPolicy"), false, false},
		"is a constraint":                    {a.compareRule, "{apiVersion: constraints.gatekeeper.sh/v1beta1, kind: Hosts, metadata: {name: old}}", false, false},
		"is a policy of Calico's":            {compareCalico, "{apiVersion: projectcalico.org/v3, kind: NetworkPolicy, metadata: {name: default.old, namespace: shop}}", false, false},
		"is Calico's copy of another":        {compareCalico, "{apiVersion: crd.projectcalico.org/v1, kind: NetworkPolicy, metadata: {name: knp.default.old, namespace: shop}}", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			replaced, why := test.evaluate(parseObject(t, test.text))
			if replaced != test.replaced || (why == "") != test.silent {
				t.Errorf("replaced: %t, want %t: %q", replaced, test.replaced, why)
			}
		})
	}
}

// TestCompareAnnotation fails if an annotation is classified as replaced although it places
// pods by more than their pool.
func TestCompareAnnotation(t *testing.T) {
	a := newAdoption(t, "{}", "")
	key := a.estate.Platform.NodePoolKey
	for name, test := range map[string]struct {
		key, value string
		replaced   bool
	}{
		"the pool":                {nodeSelectorAnnotation, key + "=apps", true},
		"the pool and the system": {nodeSelectorAnnotation, "kubernetes.io/os=linux, " + key + "=apps", true},
		"the pool and a disk":     {nodeSelectorAnnotation, key + "=apps,disk=ssd", false},
		"a disk":                  {nodeSelectorAnnotation, "disk=ssd", false},
		"tolerations":             {defaultTolerations, "[]", false},
		"allowed tolerations":     {allowedTolerations, "[]", false},
	} {
		t.Run(name, func(t *testing.T) {
			if replaced, why := a.compareAnnotation(test.key, test.value); replaced != test.replaced || why == "" {
				t.Errorf("replaced: %t, want %t: %q", replaced, test.replaced, why)
			}
		})
	}
}

// TestMatchesTenant fails if a mutator that selects a namespace of the tenant is missed, or
// another mutator is reported.
func TestMatchesTenant(t *testing.T) {
	a := newAdoption(t, "{}", "")
	live := map[string]*corev1.Namespace{"shop": {ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"team": "shop"}}}}
	for match, want := range map[string]bool{
		"{}":                            true,
		"{namespaces: [shop]}":          true,
		"{namespaces: [shop-*]}":        true,
		"{namespaces: [bank]}":          false,
		"{excludedNamespaces: [shop]}":  true, // shop-ci remains selected
		"{excludedNamespaces: [shop*]}": false,
		"{scope: Cluster}":              false,
		"{scope: Namespaced}":           true,
		"{namespaceSelector: {matchLabels: {team: shop}}}":                     true,
		"{namespaceSelector: {matchLabels: {team: bank}}}":                     false,
		"{namespaces: [bank], namespaceSelector: {matchLabels: {team: shop}}}": false,
	} {
		o := parseObject(t, "{apiVersion: mutations.gatekeeper.sh/v1, kind: Assign, metadata: {name: m}, spec: {match: "+match+"}}")
		if got := a.matchesTenant(o, live); got != want {
			t.Errorf("%s: %t, want %t", match, got, want)
		}
	}
}

// TestExplainConflict fails if two conflicting mutators are not reported before both exist:
// Gatekeeper then refuses every pod.
func TestExplainConflict(t *testing.T) {
	assign := func(value string) *unstructured.Unstructured {
		return parseObject(t, "{apiVersion: mutations.gatekeeper.sh/v1, kind: Assign, metadata: {name: m}, spec: {location: spec.tolerations, parameters: {assign: {value: "+value+"}}}}")
	}
	a := newAdoption(t, "{}", "")
	key := a.estate.Platform.NodePoolKey
	without, with := assign("[{key: team, operator: Exists}]"), assign("[{key: "+key+", operator: Equal, value: apps}]")
	if why := a.explainConflict(without); why != "" {
		t.Errorf("a conflict of mutators where croft places pods natively: %s", why)
	}
	a.estate.Platform.Placement = "Gatekeeper"
	if a.explainConflict(without) == "" {
		t.Error("an Assign that takes croft's toleration away is not named")
	}
	if why := a.explainConflict(with); why != "" {
		t.Errorf("both write the same: %s", why)
	}
}
