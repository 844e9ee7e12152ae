package estate_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
)

// TestObjectsRefused requires one clear problem for each manifest that cannot be in croft.yaml.
func TestObjectsRefused(t *testing.T) {
	const (
		config  = "{apiVersion: v1, kind: ConfigMap, metadata: {name: ca}, data: {a: b}}"
		binding = "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ROLE}, subjects: [SUBJECT]}"
		own     = "{kind: ServiceAccount, name: bot, namespace: $(namespace)}"
	)
	bind := func(role, subject string) string {
		return strings.NewReplacer("ROLE", role, "SUBJECT", subject).Replace(binding)
	}
	rule := func(spec string) string {
		return "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: a}, spec: {podSelector: {}, " + spec + "}}"
	}
	for name, test := range map[string]struct{ objects, problem string }{
		"a ConfigMap":                {config, ""},
		"limits":                     {"{apiVersion: v1, kind: LimitRange, metadata: {name: a}, spec: {limits: [{type: Pod, max: {cpu: 8}}]}}", ""},
		"a binding":                  {bind("croft-viewer", own), ""},
		"a binding to an own role":   {bind("croft-role-deployer", own), ""},
		"a shared account":           {bind("croft-viewer", "{kind: ServiceAccount, name: prometheus, namespace: monitoring}"), ""},
		"a policy":                   {rule("ingress: [{from: [{namespaceSelector: {matchLabels: {croft.dev/tenant: $(tenant)}}}]}]"), ""},
		"a null":                     {"{apiVersion: v1, kind: ConfigMap, metadata: {name: ca, creationTimestamp: null}}", ""},
		"a script":                   {"{apiVersion: v1, kind: ConfigMap, metadata: {name: ca}, data: {run.sh: echo $(date)}}", ""},
		"the text of a parameter":    {"{apiVersion: v1, kind: ConfigMap, metadata: {name: ca, annotations: {a: $$(tenant)}}}", ""},
		"a Secret":                   {"{apiVersion: v1, kind: Secret, metadata: {name: a}}", "Secret a: a Secret cannot be declared here, since everyone who may read croft.yaml could read its content; create it in the namespace croft-secrets, and write secrets: {a: {}} next to objects"},
		"a Deployment":               {"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}", "Deployment of apps/v1 cannot be declared here; the kinds are ConfigMap of v1, LimitRange of v1"},
		"another version":            {"{apiVersion: networking.k8s.io/v1beta1, kind: NetworkPolicy, metadata: {name: a}}", "NetworkPolicy of networking.k8s.io/v1beta1 cannot be declared here"},
		"no kind":                    {"{metadata: {name: a}}", "the manifest number 1: nothing of nothing cannot be declared here"},
		"a text":                     {"7", "must be a mapping"},
		"no name":                    {"{apiVersion: v1, kind: ConfigMap}", `metadata.name: "" is not a name`},
		"a parameter in the name":    {"{apiVersion: v1, kind: ConfigMap, metadata: {name: $(tenant)}}", "is not a name"},
		"croft's name":               {"{apiVersion: v1, kind: LimitRange, metadata: {name: croft}}", "names that begin with croft belong to croft's own objects"},
		"a name of croft's":          {"{apiVersion: v1, kind: ConfigMap, metadata: {name: croft-ca}}", "names that begin with croft belong"},
		"the cluster's CA":           {"{apiVersion: v1, kind: ConfigMap, metadata: {name: kube-root-ca.crt}}", "Kubernetes writes an object of this name"},
		"a namespace":                {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}", "remove metadata.namespace"},
		"an owner":                   {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, ownerReferences: []}}", "remove metadata.ownerReferences"},
		"croft's label":              {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {croft.dev/tenant: bank}}}", "remove the label or annotation croft.dev/tenant, which croft sets"},
		"another manager":            {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {app.kubernetes.io/managed-by: Helm}}}", "remove the label or annotation app.kubernetes.io/managed-by"},
		"an invalid label":           {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {a: $(tenant)-}}}", `"shop-" is not a value of the label a`},
		"a literal label":            {"{apiVersion: v1, kind: LimitRange, metadata: {name: a, labels: {a: b c}}}", `"b c" is not a value of the label a`},
		"an unknown field":           {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, date: {a: b}}", `ConfigMap a: does not fit its kind: unknown field "date"`},
		"an invalid key":             {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a/b: c}}", `"a/b" is not a key of a ConfigMap`},
		"an immutable one":           {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, immutable: true}", "remove immutable"},
		"an unknown parameter":       {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {a: $(team)}}}", "$(team) is not a parameter; the parameters are $(tenant), $(namespace), $(costCode) and $(domain)"},
		"no cost code":               {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: $(costCode)}}", "uses $(costCode), and the tenant has none; set costCode"},
		"no domain":                  {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: $(domain)}}", "uses $(domain), and the tenant has none"},
		"two of a name":              {config + ", " + config, "ConfigMap ca: is twice in the list"},
		"a large one":                {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: " + strings.Repeat("x", 300<<10) + "}}", "ConfigMap a: has 300 KiB; write at most 256 KiB"},
		"cluster-admin":              {bind("cluster-admin", own), "roleRef: must be one of the ClusterRoles croft-viewer, croft-operator and croft-role-deployer, not ClusterRole cluster-admin"},
		"a binding to people":        {bind("croft-viewer", "{kind: Group, name: devs, apiGroup: rbac.authorization.k8s.io}"), "Group devs is not a service account; give people a role by access"},
		"another tenant's account":   {bind("croft-viewer", "{kind: ServiceAccount, name: bot, namespace: bank}"), "the service account bank/bot does not belong to the tenant"},
		"no subjects":                {bind("croft-viewer", ""), "subjects: is empty"},
		"a policy for every tenant":  {rule("ingress: [{}]"), "spec.ingress: a rule without from lets every tenant in"},
		"a policy for another":       {rule("ingress: [{from: [{namespaceSelector: {matchLabels: {croft.dev/tenant: bank}}}]}]"), "spec.ingress: only the tenant's namespaces"},
		"a policy for all addresses": {rule("egress: [{to: [{ipBlock: {cidr: 0.0.0.0/0}}]}]"), "spec.egress: 0.0.0.0/0 contains the instance metadata address"},
	} {
		t.Run(name, func(t *testing.T) {
			d, problems := manifest.Parse("croft.yaml", []byte(`
platform: {clusterName: demo, nodeClass: {kwok: {}}, roles: {deployer: {rules: [{apiGroups: [apps], resources: [deployments], verbs: [get]}]}}}
pools: {apps: {}}
tenants:
  shop:
    pool: apps
    policy: {shareWith: [{serviceAccount: monitoring/prometheus}]}
    objects: [`+test.objects+`]
  bank: {pool: apps}
`))
			_, more := estate.Build(d)
			problems = append(problems, more...)
			switch {
			case test.problem == "" && len(problems) > 0:
				t.Errorf("refused: %v", problems)
			case test.problem != "" && (len(problems) != 1 || !strings.Contains(problems[0].Error(), test.problem)):
				t.Errorf("got %v, want %s", problems, test.problem)
			case test.problem != "" && !strings.HasPrefix(problems[0].Error(), "croft.yaml:8: tenants.shop.objects"):
				t.Errorf("%v does not name the field", problems[0])
			}
		})
	}
}

// TestDefaultObjectsRefused checks the platform's manifests: an error of the manifest itself is a
// problem of the platform, and one that depends on a tenant a problem of this tenant.
func TestDefaultObjectsRefused(t *testing.T) {
	for object, want := range map[string]string{
		"{apiVersion: v1, kind: Secret, metadata: {name: a}}":                               "croft.yaml:2: platform.tenantDefaults.objects: Secret a: a Secret cannot be declared here",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {code: $(costCode)}}": "croft.yaml:5: tenants.shop.objects: ConfigMap a of platform.tenantDefaults.objects: uses $(costCode), and the tenant has none",
	} {
		d, problems := manifest.Parse("croft.yaml", []byte(`
platform: {clusterName: demo, nodeClass: {kwok: {}}, tenantDefaults: {objects: [`+object+`]}}
pools: {apps: {}}
tenants:
  shop: {pool: apps}
  bank: {pool: apps, costCode: org1}
`))
		_, more := estate.Build(d)
		problems = append(problems, more...)
		if len(problems) != 1 || !strings.HasPrefix(problems[0].Error(), want) {
			t.Errorf("got %v, want %s", problems, want)
		}
	}
}

// TestExplainRefusedObject requires the reasons of the checks of croft.yaml for a manifest that is to be added
// to the objects of a tenant.
func TestExplainRefusedObject(t *testing.T) {
	const (
		config  = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"ca"}}`
		binding = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"a"},` +
			`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"croft-viewer"},"subjects":[{"kind":"ServiceAccount","name":"bot","namespace":"shop-ci"}]}`
	)
	list := func(manifests ...string) []runtime.RawExtension {
		var all []runtime.RawExtension
		for _, m := range manifests {
			all = append(all, runtime.RawExtension{Raw: []byte(m)})
		}
		return all
	}
	many := make([]string, 16)
	for i := range many {
		many[i] = fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a%d"}}`, i)
	}
	for name, test := range map[string]struct {
		platform, own []string
		manifest, why string
	}{
		"a ConfigMap":       {nil, nil, config, ""},
		"another kind":      {nil, nil, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"}}`, "cannot be declared here"},
		"a text":            {nil, nil, "7", "must be a manifest"},
		"the tenant's own":  {nil, []string{config}, config, "another object of this kind and name"},
		"the platform's":    {[]string{config}, nil, config, "another object of this kind and name"},
		"one too many":      {nil, many, config, "at most 16 manifests"},
		"an own account":    {nil, nil, binding, ""},
		"a foreign account": {nil, nil, strings.ReplaceAll(binding, "shop-ci", "bank"), "does not belong to the tenant"},
		"no cost code":      {nil, nil, strings.Replace(config, "}}", `},"data":{"a":"$(costCode)"}}`, 1), "the tenant has none"},
		"a rule for all":    {nil, nil, `{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"a"},"spec":{"podSelector":{},"ingress":[{}]}}`, "lets every tenant in"},
		"addresses of the IMDS": {nil, nil, `{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"a"},"spec":{"podSelector":{},"egress":[{"to":[{"ipBlock":{"cidr":"0.0.0.0/0"}}]}]}}`,
			"contains the instance metadata address"},
	} {
		t.Run(name, func(t *testing.T) {
			platform := v1alpha1.PlatformSpec{}
			platform.TenantDefaults.Objects = list(test.platform...)
			tenant := v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Spec: v1alpha1.TenantSpec{Namespaces: []string{"shop", "shop-ci"}, Objects: list(test.own...)}}
			why := estate.ExplainRefusedObject(&platform, &tenant, list(test.manifest)[0])
			if (why == "") != (test.why == "") || !strings.Contains(why, test.why) {
				t.Errorf("the reason is %q, and should contain %q", why, test.why)
			}
		})
	}
}
