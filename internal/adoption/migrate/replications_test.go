package migrate_test

import (
	"strings"
	"testing"

	"croft.dev/croft/internal/adoption/migrate/source"
)

// These are manifests in Capsule's rawItems.
const (
	rawSecret  = "{apiVersion: v1, kind: Secret, metadata: {name: a}}"
	rawConfig  = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: b}}"
	rawPolicy  = "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: a}, spec: {podSelector: {POD}, policyTypes: [Ingress], ingress: [{from: [PEER]}]}}"
	rawBinding = "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ROLE}, subjects: [SUBJECT]}"
)

func formatPolicy(pod, peer string) string {
	return strings.NewReplacer("POD", pod, "PEER", peer).Replace(rawPolicy)
}

func formatBinding(role, subject string) string {
	return strings.NewReplacer("ROLE", role, "SUBJECT", subject).Replace(rawBinding)
}

// twoTenants are Capsule's Tenants oil, with two namespaces, and gas, with one.
var twoTenants = strings.Replace(buildCapsuleTenant(""), "{name: oil}", "{name: oil, labels: {energy: fossil}}", 1) + "status: {namespaces: [oil-dev, oil-prod]}\n" +
	buildNamespace("oil-dev", "capsule.clastix.io/tenant: oil, stage: dev, team: all") + buildNamespace("oil-prod", "capsule.clastix.io/tenant: oil, stage: prod, team: all") +
	"---\n{apiVersion: capsule.clastix.io/v1beta2, kind: Tenant, metadata: {name: gas}, spec: {nodeSelector: {node-pool: apps}}, status: {namespaces: [gas]}}\n" +
	buildNamespace("gas", "capsule.clastix.io/tenant: gas, stage: dev")

// buildReplication returns a GlobalTenantResource with one entry, and further fields of its spec.
func buildReplication(entry string, spec ...string) string {
	return twoTenants + "---\n{apiVersion: capsule.clastix.io/v1beta2, kind: GlobalTenantResource, metadata: {name: all}, spec: {" +
		strings.Join(append(spec, "resources: [{"+entry+"}]"), ", ") + "}}\n"
}

// buildTenantResource returns a TenantResource with one entry, in a namespace of tenant oil.
func buildTenantResource(entry string) string {
	return twoTenants + "---\n{apiVersion: capsule.clastix.io/v1beta2, kind: TenantResource, metadata: {name: own, namespace: oil-dev}, spec: {resources: [{" + entry + "}]}}\n"
}

// TestCapsuleReplications expects the objects of Capsule's GlobalTenantResources and TenantResources in
// croft.yaml, and findings about all others.
func TestCapsuleReplications(t *testing.T) {
	const (
		written   = `{"apiVersion":"v1","data":{"a":"b"},"kind":"ConfigMap","metadata":{"name":"a"}}`
		ofAll     = `"tenantDefaults":{"objects":[` + written + `]}`
		ofGas     = `"gas":{"objects":[` + written + `],"pool":"apps"}`
		inOil     = `"oil":{"namespaces":["oil-dev","oil-prod"],"objects":[` + written + `],"pool":"jobs"}`
		global    = "GlobalTenantResource/all spec."
		resource  = global + "resources[0]"
		account   = "{kind: ServiceAccount, name: bot, namespace: '{{namespace}}'}"
		limits    = "{apiVersion: v1, kind: LimitRange, metadata: {name: a}, spec: {limits: [{type: Pod, max: {cpu: 8}}]}}"
		deletes   = "Capsule deletes its copies with its Tenant"
		partially = "croft writes objects into all namespaces of a tenant"
	)
	raw := func(item string) string { return "rawItems: [" + item + "]" }
	data := func(value string) string { return raw(strings.Replace(rawConfig, "{a: b}", "{a: '"+value+"'}", 1)) }
	for name, r := range map[string]row{
		"for all":          {read: buildReplication(raw(rawConfig)), gives: []string{ofAll}, findings: []want{{source.Kept, resource + ".rawItems[0]", "platform.tenantDefaults.objects"}, {source.Changed, "GlobalTenantResource/all ", "delete this one"}}},
		"limits for all":   {read: buildReplication(raw(limits)), gives: []string{`"tenantDefaults":{"objects":[{"apiVersion":"v1","kind":"LimitRange"`}},
		"for a tenant":     {read: buildTenantResource(raw(rawConfig)), gives: []string{inOil}, not: []string{"tenantDefaults"}, findings: []want{{source.Kept, "TenantResource/oil-dev/own spec.resources[0].rawItems[0]", "tenants.oil.objects"}}},
		"in no tenant":     {read: strings.Replace(buildTenantResource(raw(rawConfig)), "namespace: oil-dev}", "namespace: default}", 1), not: []string{`"objects"`}, findings: []want{{source.NotKept, "TenantResource/default/own ", "its namespace belongs to no tenant"}}},
		"for some tenants": {read: buildReplication(raw(rawConfig), "tenantSelector: {matchLabels: {energy: fossil}}"), gives: []string{inOil}, not: []string{"tenantDefaults", ofGas}},
		"for no tenant":    {read: buildReplication(raw(rawConfig), "tenantSelector: {matchLabels: {energy: solar}}"), not: []string{`"objects"`}, findings: []want{{source.NotKept, "GlobalTenantResource/all ", "it selects no tenant"}}},
		"an odd selector":  {read: buildReplication(raw(limits), "tenantSelector: {matchLabels: {energy: 'a b'}}"), not: []string{`"objects"`}, problems: []string{"its tenantSelector cannot be read"}},
		"for each tenant":  {read: buildReplication(raw(limits), "scope: Tenant"), not: []string{`"objects"`}, problems: []string{"GlobalTenantResource/all: with the scope Tenant it does not copy into every namespace"}},
		"two entries":      {read: buildReplication(raw(rawConfig) + "}, {" + raw(limits)), gives: []string{`"objects":[` + written + `,{"apiVersion":"v1","kind":"LimitRange"`}},
		"twice the same":   {read: buildReplication(raw(rawConfig + ", " + strings.Replace(rawConfig, "b}", "c}", 1))), gives: []string{ofAll}, findings: []want{{source.NotKept, resource + ".rawItems[1]", "another object of this kind and name is declared"}, {source.NotKept, "GlobalTenantResource/all ", "only some of the objects"}}},

		"all namespaces":        {read: buildReplication(raw(rawConfig)+", namespaceSelector: {}", "scope: Namespace"), gives: []string{ofAll}},
		"every namespace of it": {read: buildReplication(raw(rawConfig) + ", namespaceSelector: {matchLabels: {team: all}}"), gives: []string{inOil}, not: []string{"tenantDefaults"}, findings: []want{{source.Changed, resource + ".namespaceSelector", "its new namespaces, too"}}},
		"some namespaces": {read: buildReplication(raw(rawConfig) + ", namespaceSelector: {matchLabels: {stage: dev}}"), gives: []string{ofGas}, not: []string{"tenantDefaults", inOil},
			findings: []want{{source.NotKept, resource + ".namespaceSelector", "selects only some namespaces of oil"}}},
		"limits of some": {read: buildReplication(raw(limits) + ", namespaceSelector: {matchLabels: {stage: prod}}"), not: []string{`"objects"`}, problems: []string{"spec.resources[0].namespaceSelector: selects only some namespaces of oil", partially}},
		"no namespace":   {read: buildReplication(raw(rawConfig) + ", namespaceSelector: {matchLabels: {stage: none}}"), not: []string{`"objects"`}, findings: []want{{source.NotKept, resource, "selects no namespace of the input"}}},
		"an unknown one": {read: strings.Replace(buildReplication(raw(limits)+", namespaceSelector: {matchLabels: {team: all}}"), "namespaces: [gas]", "namespaces: [gas, gas-prod]", 1), gives: []string{`"kind":"LimitRange"`}, problems: []string{"selects only some namespaces of gas, or namespaces that the input lacks"}},

		"templates":            {read: buildReplication(data("{{ tenant.name }} {{namespace}} $(tenant)")), gives: []string{`{"a":"$(tenant) $(namespace) $$(tenant)"}`}},
		"another template":     {read: buildReplication(data("{{ index .a }}")), not: []string{`"objects"`}, findings: []want{{source.NotKept, resource + ".rawItems[0]", "templates other than"}}},
		"a tenant of new name": {read: strings.ReplaceAll(strings.ReplaceAll(buildTenantResource(data("{{ tenant.name }}")), "{name: oil,", "{name: oil.v1,"), "clastix.io/tenant: oil", "clastix.io/tenant: oil.v1"), gives: []string{`{"a":"oil.v1"}`}},
		"a template as a name": {read: buildReplication(raw(strings.Replace(rawConfig, "name: a", "name: '{{ tenant.name }}'", 1))), not: []string{`"objects"`}, findings: []want{{source.NotKept, resource + ".rawItems[0]", "is not a name"}}},
		"generators":           {read: buildReplication("generators: [{template: x}]"), problems: []string{"spec.resources[0].generators[0]: is a template"}},
		"a field to come":      {read: buildReplication(raw(rawConfig) + ", everywhere: true"), problems: []string{"spec.resources[0].everywhere: croft migrate does not know this field"}},
		"a setting to come":    {read: buildReplication(raw(rawConfig), "until: tomorrow"), problems: []string{"spec.until: croft migrate does not know this field"}},
		"settings": {read: buildReplication(raw(rawConfig), "resyncPeriod: 60s", "pruningOnDelete: false", "cordoned: true", "dependsOn: [{name: a}]", "settings: {adopt: true}", "serviceAccount: {name: a, namespace: b}"), gives: []string{ofAll}, findings: []want{
			{source.Changed, global + "resyncPeriod", "without a period"}, {source.Changed, global + "pruningOnDelete", "remove from croft.yaml"}, {source.Changed, global + "cordoned", "did not update"},
			{source.Changed, global + "dependsOn", "no particular order"}, {source.Changed, global + "settings", "becomes croft's"}, {source.NotKept, global + "serviceAccount", "own rights"},
		}},
		"additional metadata": {read: buildReplication(raw(strings.Replace(rawConfig, "name: a", "name: a, labels: {a: b, c: d}", 1)) + ", additionalMetadata: {labels: {a: '{{tenant.name}}'}, annotations: {e: f}}"),
			gives: []string{`"metadata":{"annotations":{"e":"f"},"labels":{"a":"$(tenant)","c":"d"},"name":"a"}`}, findings: []want{{source.Kept, resource + ".additionalMetadata", "platform.tenantDefaults.objects"}}},
		"a namespace": {read: buildReplication(raw(strings.Replace(rawConfig, "name: a", "name: a, namespace: elsewhere, creationTimestamp: null", 1))), gives: []string{ofAll}},

		"a Secret":         {read: buildReplication(raw(rawSecret)), gives: []string{`"tenantDefaults":{"secrets":{"a":{}}}`}, findings: []want{{source.Changed, resource + ".rawItems[0]", "create the Secret a in the namespace croft-secrets"}, {source.Changed, "GlobalTenantResource/all ", "delete this one"}}},
		"a Secret of some": {read: buildReplication(raw(rawSecret), "tenantSelector: {matchLabels: {energy: fossil}}"), gives: []string{`"secrets":{"a":{}}`}, not: []string{"tenantDefaults"}, findings: []want{{source.Changed, resource + ".rawItems[0]", "create the Secret a"}}},
		"two Secrets of a name": {read: buildReplication(raw(rawSecret), "tenantSelector: {matchLabels: {energy: fossil}}") + "---\n{apiVersion: capsule.clastix.io/v1beta2, kind: TenantResource, metadata: {name: own, namespace: oil-dev}, spec: {resources: [{namespacedItems: [{apiVersion: v1, kind: Secret, name: a}]}]}}\n",
			findings: []want{{source.NotKept, "TenantResource/oil-dev/own spec.resources[0].namespacedItems[0]", "the tenant oil has another Secret of this name"}}},
		"a Secret of a template":  {read: buildReplication(raw("{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {team: '{{ tenant.name }}'}}")), not: []string{`"secrets"`}, findings: []want{{source.NotKept, resource + ".rawItems[0]", "has templates"}}},
		"a Secret of an odd name": {read: buildReplication(raw("{apiVersion: v1, kind: Secret, metadata: {name: a.b}}")), not: []string{`"secrets"`}, findings: []want{{source.NotKept, resource + ".rawItems[0]", "names of copies are"}}},
		"a Secret of a token":     {read: buildReplication(raw("{apiVersion: v1, kind: Secret, metadata: {name: a}, type: kubernetes.io/service-account-token}")), not: []string{`"secrets"`}, findings: []want{{source.NotKept, resource + ".rawItems[0]", "tokens of service accounts"}}},
		"a ServiceAccount":        {read: buildReplication(raw("{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}}")), findings: []want{{source.NotKept, resource + ".rawItems[0]", deletes}}},
		"a ResourceQuota":         {read: buildReplication(raw("{apiVersion: v1, kind: ResourceQuota, metadata: {name: a}}")), problems: []string{"spec.resources[0].rawItems[0]: ResourceQuota of v1 cannot be declared here"}},
		"no manifest":             {read: buildReplication(raw("7")), problems: []string{"spec.resources[0].rawItems[0]: "}},
		"an odd LimitRange":       {read: buildReplication(raw(strings.Replace(limits, "max:", "most:", 1))), problems: []string{"does not fit its kind"}},
		"a ConfigMap and more":    {read: buildReplication(raw(rawConfig + ", {apiVersion: v1, kind: ServiceAccount, metadata: {name: a}}")), gives: []string{ofAll}, findings: []want{{source.NotKept, "GlobalTenantResource/all ", "only some of the objects"}}},

		"an object by reference": {read: buildReplication("namespacedItems: [{apiVersion: v1, kind: ConfigMap, namespace: shared, selector: {matchLabels: {copy: all}}}]") +
			"---\n" + strings.Replace(rawConfig, "name: a", "name: a, namespace: shared, uid: x, labels: {copy: all, app.kubernetes.io/managed-by: Helm}", 1), gives: []string{ofAll}, findings: []want{{source.Changed, resource + ".namespacedItems[0]", "change them in croft.yaml"}}},
		"an object by name":      {read: buildTenantResource("namespacedItems: [{apiVersion: v1, kind: ConfigMap, name: a}]") + "---\n" + strings.Replace(rawConfig, "name: a", "name: a, namespace: oil-dev", 1), gives: []string{inOil}},
		"literal templates":      {read: buildTenantResource("namespacedItems: [{apiVersion: v1, kind: ConfigMap, name: a}]") + "---\n" + strings.Replace(strings.Replace(rawConfig, "name: a", "name: a, namespace: oil-dev", 1), "a: b", "a: '{{ tenant.name }} $(tenant)'", 1), gives: []string{`{"a":"{{ tenant.name }} $$(tenant)"}`}},
		"an object that is away": {read: buildReplication("namespacedItems: [{apiVersion: v1, kind: ConfigMap, namespace: shared}]"), findings: []want{{source.NotKept, resource + ".namespacedItems[0]", "the input lacks the objects"}}},
		"limits that are away":   {read: buildReplication("namespacedItems: [{apiVersion: v1, kind: LimitRange, namespace: shared}]"), problems: []string{"namespacedItems[0]: the input lacks the objects"}},
		"a Secret by name":       {read: buildReplication("namespacedItems: [{apiVersion: v1, kind: Secret, namespace: shared, name: a}]"), gives: []string{`"tenantDefaults":{"secrets":{"a":{}}}`}, findings: []want{{source.Changed, resource + ".namespacedItems[0]", "create the Secret a in the namespace croft-secrets"}}},
		"a Secret of the input":  {read: buildReplication("namespacedItems: [{apiVersion: v1, kind: Secret, namespace: shared}]") + "---\n{apiVersion: v1, kind: Secret, metadata: {name: b, namespace: shared}}\n", gives: []string{`"tenantDefaults":{"secrets":{"b":{}}}`}},
		"Secrets of two sources": {read: buildReplication("namespacedItems: [{apiVersion: v1, kind: Secret, namespace: shared, name: a}], namespaceSelector: {matchLabels: {team: all}}}, {namespacedItems: [{apiVersion: v1, kind: Secret, namespace: others, name: a}], namespaceSelector: {matchLabels: {stage: dev}}"),
			gives: []string{`"secrets":{"a":{}}`, `"secrets":{"a":{"from":"others-a"}}`}},
		"a Secret by reference": {read: buildReplication("namespacedItems: [{apiVersion: v1, kind: Secret, namespace: shared}]"), findings: []want{{source.NotKept, resource + ".namespacedItems[0]", "write secrets: {NAME: {}} next to objects"}}},

		"people": {read: buildReplication(raw(formatBinding("view", "{kind: Group, name: '{{ tenant.name }}-readers'}"))), gives: []string{`"access":[{"group":"gas-readers","role":"viewer"}]`, `"access":[{"group":"oil-readers","role":"viewer"}]`}, not: []string{`"objects"`},
			findings: []want{{source.Changed, resource + ".rawItems[0]", "becomes viewer"}}},
		"accounts": {read: buildReplication(raw(formatBinding("edit", account))), gives: []string{`"objects":[{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"a"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"croft-operator"},"subjects":[{"kind":"ServiceAccount","name":"bot","namespace":"$(namespace)"}]}]`},
			findings: []want{{source.Changed, resource + ".rawItems[0].roleRef", "delete the existing bindings"}}},
		"people and accounts": {read: buildReplication(raw(formatBinding("view", account+", {kind: User, name: alice}"))), gives: []string{`"access":[{"role":"viewer","user":"alice"}]`, `"name":"croft-viewer"`}},
		"a foreign account":   {read: buildReplication(raw(formatBinding("view", "{kind: ServiceAccount, name: bot, namespace: monitoring}"))), not: []string{`"objects"`}, findings: []want{{source.NotKept, resource + ".rawItems[0]", "allow it by policy.shareWith"}}},
		"an unknown role":     {read: buildReplication(raw(formatBinding("odd", account))), not: []string{`"objects"`}, findings: []want{{source.NotKept, resource + ".rawItems[0]", "roleRef: must be one of"}}},

		"a policy that the wall replaces": {read: buildReplication(raw(formatPolicy("", "{podSelector: {}}"))), not: []string{`"objects"`}, findings: []want{{source.Kept, resource + ".rawItems[0].spec", "croft's wall replaces it"}}},
		"a policy that restricts egress":  {read: buildReplication(raw(strings.Replace(formatPolicy("", "{podSelector: {}}"), "[Ingress]", "[Ingress, Egress]", 1))), gives: []string{`"gas":{"network":{"egress":"Restricted"},"pool":"apps"}`, `"network":{"egress":"Restricted"},"pool":"jobs"`}, not: []string{`"objects"`}},
		"a policy of some pods": {read: buildReplication(raw(formatPolicy("matchLabels: {app: db}", "{namespaceSelector: {matchLabels: {capsule.clastix.io/tenant: '{{ tenant.name }}'}}}"))),
			gives: []string{`"objects":[{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"a"},"spec":{"ingress":[{"from":[{"namespaceSelector":{"matchLabels":{"croft.dev/tenant":"$(tenant)"}}}]}],"podSelector":{"matchLabels":{"app":"db"}},"policyTypes":["Ingress"]}}]`}},
		"a policy of one tenant":    {read: buildTenantResource(raw(formatPolicy("matchLabels: {app: db}", "{namespaceSelector: {matchLabels: {capsule.clastix.io/tenant: oil}}}"))), gives: []string{`{"croft.dev/tenant":"$(tenant)"}`}},
		"a policy for all":          {read: buildReplication(raw(formatPolicy("matchLabels: {app: db}", "{namespaceSelector: {}}"))), not: []string{`"objects"`}, problems: []string{"only the tenant's namespaces and the platform's may be let in"}},
		"a policy for addresses":    {read: buildReplication(raw(formatPolicy("", "{ipBlock: {cidr: 203.0.113.0/24}}"))), not: []string{`"objects"`}, problems: []string{"rawItems[0]: allows connections from addresses outside of the cluster"}},
		"a policy for every tenant": {read: buildReplication(raw(formatPolicy("", "{namespaceSelector: {}}"))), problems: []string{"rawItems[0].spec: allows connections from all namespaces"}},
	} {
		r.options = demo
		t.Run(name, r.checkMapping)
	}
}
