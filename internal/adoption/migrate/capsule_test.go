package migrate_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"croft.dev/croft/internal/adoption/migrate/source"
)

// buildCapsuleTenant returns a Capsule Tenant on the pool jobs.
func buildCapsuleTenant(spec string) string {
	return pools + "---\napiVersion: capsule.clastix.io/v1beta2\nkind: Tenant\nmetadata: {name: oil}\nspec:\n  nodeSelector: {node-pool: jobs}\n  " +
		strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ") + "\n"
}

func TestCapsule(t *testing.T) {
	for name, r := range map[string]row{
		"a pool": {read: buildCapsuleTenant(""), options: demo, gives: []string{`"oil":{"pool":"jobs"}`}},
		"another key": {read: buildCapsuleTenant("cordoned: false") + "---\n{apiVersion: capsule.clastix.io/v1beta2, kind: Tenant, metadata: {name: gas}, spec: {nodeSelector: {zone: a, node-pool: jobs}}}\n", options: demo,
			findings: []want{{source.NotKept, "Tenant/gas spec.nodeSelector.zone", "may lack"}}, problems: []string{"Tenant/gas: spec.nodeSelector.zone: pods ran only on nodes with zone=a, which the nodes of pool jobs may lack"}},
		"no pool":        {read: strings.Replace(buildCapsuleTenant("cordoned: false"), "  nodeSelector: {node-pool: jobs}\n", "", 1), options: demo, problems: []string{"does not name a pool for the pods of tenant oil"}},
		"its namespaces": {read: buildCapsuleTenant("") + "status: {namespaces: [oil-dev, oil-prod]}\n", options: demo, gives: []string{`"namespaces":["oil-dev","oil-prod"]`}},
		"namespaces by their label": {read: buildCapsuleTenant("") + "---\n{apiVersion: v1, kind: Namespace, metadata: {name: oil-dev, labels: {capsule.clastix.io/tenant: oil}}}\n",
			options: demo, gives: []string{`"namespaces":["oil-dev"]`}},
		"owners": {read: buildCapsuleTenant("owners: [{kind: Group, name: devs}, {kind: User, name: alice, clusterRoles: [view]}, {kind: ServiceAccount, name: robot}]"), options: demo,
			gives: []string{`{"group":"devs","role":"operator"}`, `{"role":"viewer","user":"alice"}`}, findings: []want{{source.NotKept, "spec.owners[2]", "ServiceAccount"}, {source.Changed, "spec.owners[1].clusterRoles", "viewer"}}},
		"more bindings":         {read: buildCapsuleTenant("additionalRoleBindings: [{clusterRoleName: view, subjects: [{kind: Group, name: audit}]}, {clusterRoleName: odd, subjects: [{kind: Group, name: x}]}]"), options: demo, gives: []string{`{"group":"audit","role":"viewer"}`}, findings: []want{{source.NotKept, "additionalRoleBindings[1].clusterRoleName", "its rights are unknown"}}},
		"a quota of the tenant": {read: buildCapsuleTenant("resourceQuotas: {scope: Tenant, items: [{hard: {pods: 10}}, {hard: {pods: 5, services: 3}}]}"), options: demo, gives: []string{`"quota":{"pods":"5","services":"3"}`}},
		"a quota of each namespace": {read: buildCapsuleTenant("resourceQuotas: {scope: Namespace, items: [{hard: {pods: 10}}]}") + "status: {namespaces: [a, b]}\n", options: demo,
			gives: []string{`"quota":{"pods":"20"}`}, findings: []want{{source.Changed, "resourceQuotas.scope", "together"}}},
		"limits": {read: buildCapsuleTenant("limitRanges: {items: [{limits: [{type: Container, max: {cpu: 4}}]}]}"), options: demo, gives: []string{`"limits":{"max":{"cpu":"4"}}`}},
		"hosts": {read: buildCapsuleTenant("ingressOptions: {allowedHostnames: {allowed: [oil.example.org], allowedRegex: \".*\"}, allowedClasses: {allowed: [nginx]}, hostnameCollisionScope: Tenant}"), options: demo, gives: []string{`"domains":["oil.example.org"]`, `"ingressClasses":["nginx"]`}, findings: []want{{source.NotKept, "allowedHostnames.allowedRegex", "by name"}, {source.Changed, "hostnameCollisionScope", "never"}},
			problems: []string{"spec.ingressOptions.allowedHostnames.allowedRegex: croft grants hosts by name"}},
		"any host":         {read: buildCapsuleTenant("cordoned: false"), options: demo, findings: []want{{source.Changed, "ingressOptions.allowedHostnames", "all hosts were allowed"}, {source.Changed, "serviceOptions.allowedServices", "ClusterIP by default"}, {source.Changed, "spec.imagePullPolicies", "Always"}}},
		"Services":         {read: buildCapsuleTenant("serviceOptions: {allowedServices: {nodePort: false, loadBalancer: true}, externalIPs: {allowed: [10.0.0.0/8]}}"), options: demo, gives: []string{`"serviceTypes":["ClusterIP","LoadBalancer","ExternalName"]`}, findings: []want{{source.NotKept, "externalIPs.allowed", "load balancer"}}},
		"lists":            {read: buildCapsuleTenant("containerRegistries: {allowed: [ghcr.io]}\nstorageClasses: {allowed: [gp3]}\npriorityClasses: {allowed: [batch]}\nruntimeClasses: {allowed: [gvisor]}\nimagePullPolicies: [Always, IfNotPresent]"), options: demo, gives: []string{`"registries":["ghcr.io"]`, `"storageClasses":["gp3"]`, `"priorityClasses":["batch"]`, `"runtimeClasses":["gvisor"]`, `"imagePullPolicies":["Always","IfNotPresent"]`}},
		"network policies": {read: buildCapsuleTenant("networkPolicies: {items: [{podSelector: {}, policyTypes: [Egress], egress: [{to: [{ipBlock: {cidr: 10.1.0.0/16}}]}]}]}"), options: demo, gives: []string{`"network":{"allowCIDRs":["10.1.0.0/16"],"egress":"Restricted"}`}},
		"metadata": {read: buildCapsuleTenant("namespaceOptions: {quota: 3, additionalMetadata: {labels: {a: b, istio-injection: enabled}, annotations: {x: 'of {{ tenant.name }}', y: '{{ namespace }}'}}, forbiddenLabels: {denied: [x]}}"), options: demo,
			gives: []string{`"namespace":{"annotations":{"x":"of $(tenant)"},"labels":{"a":"b"}}`}, findings: []want{{source.Changed, "namespaceOptions.quota", "names them"}, {source.Kept, "namespaceOptions.additionalMetadata.labels.a", ""},
				{source.NotKept, "namespaceOptions.additionalMetadata.labels.istio-injection", "policy of yours"}, {source.NotKept, "namespaceOptions.additionalMetadata.annotations.y", "only the tenant's name"}}},
		"metadata of some":    {read: buildCapsuleTenant("namespaceOptions: {additionalMetadataList: [{namespaceSelector: {matchLabels: {a: b}}, labels: {c: d}}]}"), options: demo, not: []string{`"namespace":`}, findings: []want{{source.NotKept, "labels.c", "all namespaces of a tenant"}}},
		"a proxy's settings":  {read: buildCapsuleTenant("owners: [{kind: Group, name: devs, proxySettings: [{kind: Nodes, operations: [List]}]}]"), options: demo, findings: []want{{source.NotKept, "owners[0].proxySettings", "docs/how-to/proxy.md"}}},
		"device classes":      {read: buildCapsuleTenant("deviceClasses: {allowed: [gpu.example.com]}"), options: demo, gives: []string{`"deviceClasses":["gpu.example.com"]`}},
		"not frozen":          {read: buildCapsuleTenant("cordoned: false\npreventDeletion: true"), options: demo, gives: []string{`"protect":true`}, findings: []want{{source.Kept, "spec.preventDeletion", "tenants.oil.protect"}}},
		"not protected":       {read: buildCapsuleTenant("preventDeletion: false"), options: demo, not: []string{`"protect"`}, findings: []want{{source.Kept, "spec.preventDeletion", "tenants.oil.protect"}}},
		"protected by a mark": {read: strings.Replace(buildCapsuleTenant(""), "{name: oil}", "{name: oil, annotations: {capsule.clastix.io/protected: \"\"}}", 1), options: demo, gives: []string{`"protect":true`}, findings: []want{{source.Kept, `protected"]`, "tenants.oil.protect"}}},
		"all empty":           {read: buildCapsuleTenant("namespaceOptions: {}\nnetworkPolicies: {}\nresourceQuotas: {}\npermissions: {}\ningressOptions: {}\nrules: []"), options: demo, gives: []string{`"oil":{"pool":"jobs"}`}},
	} {
		t.Run(name, r.checkMapping)
	}
}

// TestCapsuleCordon expects a freeze of a cordoned tenant, and a problem for a tenant of which only some
// namespaces are cordoned.
func TestCapsuleCordon(t *testing.T) {
	const frozen = `"frozen":{"reason":"cordoned in Capsule"}`
	marked := func(metadata string) string {
		return strings.Replace(buildCapsuleTenant(""), "{name: oil}", "{name: oil, "+metadata+"}", 1)
	}
	cordoned := func(spec string, values ...string) string {
		all := buildCapsuleTenant(spec)
		for i, value := range values {
			all += fmt.Sprintf("---\n{apiVersion: v1, kind: Namespace, metadata: {name: oil-%d, labels: {capsule.clastix.io/tenant: oil, projectcapsule.dev/cordoned: %q}}}\n", i, value)
		}
		return all
	}
	for name, r := range map[string]row{
		"the field":        {read: buildCapsuleTenant("cordoned: true"), gives: []string{frozen}, findings: []want{{source.Changed, "spec.cordoned", "write the purpose into reason"}}},
		"an older label":   {read: marked("labels: {capsule.clastix.io/cordon: enabled}"), gives: []string{frozen}, findings: []want{{source.Changed, `labels["capsule.clastix.io/cordon"]`, "write the purpose"}}},
		"an annotation":    {read: marked(`annotations: {capsule.clastix.io/cordon: "true"}`), gives: []string{frozen}},
		"not cordoned":     {read: marked(`annotations: {capsule.clastix.io/cordon: "false"}`), not: []string{frozen}},
		"every namespace":  {read: cordoned("", "true", "true"), gives: []string{frozen}, findings: []want{{source.Changed, `Namespace/oil-1 metadata.labels["projectcapsule.dev/cordoned"]`, "write the purpose"}}},
		"some namespaces":  {read: cordoned("", "true", "false"), not: []string{frozen}, problems: []string{`Namespace/oil-0: metadata.labels["projectcapsule.dev/cordoned"]: Capsule refuses changes in this namespace`}},
		"both":             {read: cordoned("cordoned: true", "true", "false"), gives: []string{frozen}},
		"none is cordoned": {read: cordoned("", "false", "false"), not: []string{frozen}},
	} {
		r.options = demo
		t.Run(name, r.checkMapping)
	}
}

// TestCapsuleRestrictions expects a problem for each field that restricts a tenant and has no
// equivalent in croft.yaml.
func TestCapsuleRestrictions(t *testing.T) {
	any, none := "until you write names, all are allowed", "until you write names, none is allowed"
	for name, r := range map[string]row{
		"registries by pattern":   {read: buildCapsuleTenant(`containerRegistries: {allowedRegex: "internal\\.example\\..*"}`), not: []string{`"registries"`}, gives: []string{"# left out: tenants.oil.policy.registries: ", any}, problems: []string{"containerRegistries.allowedRegex: croft allows by name"}},
		"storage by labels":       {read: buildCapsuleTenant("storageClasses: {matchLabels: {env: prod}}"), not: []string{`"storageClasses"`}, gives: []string{"# left out: tenants.oil.policy.storageClasses: ", any}, problems: []string{"storageClasses.matchLabels: croft allows by name"}},
		"ingress by labels":       {read: buildCapsuleTenant("ingressOptions: {allowedClasses: {matchLabels: {env: prod}, default: tenant}}"), not: []string{`"ingressClasses"`}, gives: []string{"# left out: tenants.oil.policy.ingressClasses: "}, problems: []string{"allowedClasses.matchLabels: croft allows by name"}},
		"gateways by expressions": {read: buildCapsuleTenant("gatewayOptions: {allowedClasses: {matchExpressions: [{key: env, operator: Exists}]}}"), not: []string{`"gatewayClasses"`}, gives: []string{"# left out: tenants.oil.policy.gatewayClasses: "}, problems: []string{"matchExpressions: croft allows by name"}},
		"priorities by pattern":   {read: buildCapsuleTenant(`priorityClasses: {allowedRegex: "^tier-.*$"}`), not: []string{`"priorityClasses"`}, gives: []string{"# left out: tenants.oil.policy.priorityClasses: ", none}, problems: []string{"priorityClasses.allowedRegex"}},
		"runtimes by labels":      {read: buildCapsuleTenant("runtimeClasses: {matchLabels: {a: b}}"), not: []string{`"runtimeClasses"`}, gives: []string{none}, problems: []string{"runtimeClasses.matchLabels"}},
		"devices by labels":       {read: buildCapsuleTenant("deviceClasses: {matchLabels: {a: b}}"), not: []string{`"deviceClasses"`}, gives: []string{none}, problems: []string{"deviceClasses.matchLabels"}},
		"an empty list":           {read: buildCapsuleTenant("storageClasses: {allowed: []}"), not: []string{`"storageClasses"`}, gives: []string{"# left out: tenants.oil.policy.storageClasses: "}, problems: []string{"spec.storageClasses: croft allows by name"}},
		"names and a pattern":     {read: buildCapsuleTenant(`storageClasses: {allowed: [gp3], allowedRegex: "^x"}`), gives: []string{`"storageClasses":["gp3"]`}, problems: []string{"storageClasses.allowedRegex: croft allows by name"}},
		"a list of another sort":  {read: buildCapsuleTenant("storageClasses: {allowed: [gp3], denied: [gp2]}"), gives: []string{`"storageClasses":["gp3"]`}, problems: []string{"spec.storageClasses.denied: croft migrate does not know"}},
		"only a default":          {read: buildCapsuleTenant("storageClasses: {default: gp3}"), gives: []string{`"storageClasses":["gp3"]`}, findings: []want{{source.Changed, "spec.storageClasses.default", "croft sets no default"}}},
		"a default priority": {read: buildCapsuleTenant("priorityClasses: {allowed: [tier-1], default: tier-2}"), gives: []string{`"priorityClass":{"default":"tier-2"}`, `"priorityClasses":["tier-1","tier-2"]`},
			findings: []want{{source.Kept, "spec.priorityClasses.default", "policy.priorityClass.default"}}},
		"a default runtime": {read: buildCapsuleTenant("runtimeClasses: {default: gvisor}"), gives: []string{`"runtimeClass":{"default":"gvisor"}`, `"runtimeClasses":["gvisor"]`},
			findings: []want{{source.Kept, "spec.runtimeClasses.default", "policy.runtimeClass.default"}}},
		"an empty default": {read: buildCapsuleTenant(`priorityClasses: {allowed: [tier-1], default: ""}`), gives: []string{`"priorityClasses":["tier-1"]`}, not: []string{`"priorityClass"`}},
		"a default among a pattern": {read: buildCapsuleTenant(`priorityClasses: {allowedRegex: "^tier-.*$", default: tier-2}`), not: []string{`"priorityClass"`}, gives: []string{none}, problems: []string{"priorityClasses.allowedRegex"},
			findings: []want{{source.Changed, "spec.priorityClasses.default", "croft sets no default"}}},
		"hosts by pattern": {read: buildCapsuleTenant(`ingressOptions: {allowedHostnames: {allowedRegex: "^.*example.org$"}}`), problems: []string{"allowedHostnames.allowedRegex: croft grants hosts by name"}},

		"rules of registries": {read: buildCapsuleTenant(`rules: [{enforce: {action: deny, workloads: {registries: [{exp: "a/.*"}]}}}, {enforce: {action: allow, workloads: {registries: [{exp: "a/b/.*"}], qosClasses: [Guaranteed]}}}]`),
			problems: []string{"spec.rules[0].enforce: croft migrate does not read Capsule's rules", "spec.rules[1].enforce: croft migrate does not read Capsule's rules"}},
		"a rule of metadata":  {read: buildCapsuleTenant(`rules: [{enforce: {metadata: [{kinds: [Namespace], labels: {pod-security.kubernetes.io/enforce: {managed: restricted}}}]}}]`), problems: []string{"spec.rules[0].enforce"}},
		"a rule that audits":  {read: buildCapsuleTenant(`rules: [{enforce: {action: audit, workloads: {qosClasses: [Guaranteed]}}}]`), findings: []want{{source.NotKept, "spec.rules[0].enforce", "Capsule refused no requests"}}},
		"a quota of a rule":   {read: buildCapsuleTenant("rules: [{quota: [{name: pods, hard: {pods: 3}}]}]"), problems: []string{"spec.rules[0].quota[0]: croft migrate does not read quotas"}},
		"a rule to come":      {read: buildCapsuleTenant("rules: [{refuse: {everything: true}}]"), problems: []string{"spec.rules: croft migrate does not know"}},
		"a field to come":     {read: buildCapsuleTenant("nodePort: 3"), problems: []string{"spec.nodePort: croft migrate does not know"}},
		"an empty one":        {read: buildCapsuleTenant("volumeTypes: []"), problems: []string{"spec.volumeTypes: croft migrate does not know"}},
		"a setting in it":     {read: buildCapsuleTenant("serviceOptions: {allowedServices: {nodePort: false, headless: false}}"), problems: []string{"allowedServices.headless: croft migrate does not know"}},
		"marks of Services":   {read: buildCapsuleTenant("serviceOptions: {forbiddenAnnotations: {denied: [a]}}"), problems: []string{"spec.serviceOptions.forbiddenAnnotations"}},
		"a scoped quota":      {read: buildCapsuleTenant("resourceQuotas: {items: [{hard: {pods: 1}, scopes: [BestEffort]}]}"), not: []string{`"quota"`}, problems: []string{"items[0].scopes: a tenant's quota counts all its objects, and Capsule deletes its ResourceQuota"}},
		"limits of pods":      {read: buildCapsuleTenant("limitRanges: {items: [{limits: [{type: Pod, max: {cpu: 8}}]}]}"), problems: []string{"limits[0]: a tenant's limits apply to containers"}},
		"a ratio":             {read: buildCapsuleTenant("limitRanges: {items: [{limits: [{type: Container, maxLimitRequestRatio: {cpu: 2}}]}]}"), problems: []string{"maxLimitRequestRatio: croft does not limit the ratio"}},
		"two sets of limits":  {read: buildCapsuleTenant("limitRanges: {items: [{limits: [{type: Container, max: {cpu: 4}}]}, {limits: [{type: Container, max: {cpu: 2}}]}]}"), gives: []string{`"limits":{"max":{"cpu":"4"}}`}, problems: []string{"items[1].limits[0]: another namespace of the tenant, or another LimitRange"}},
		"two of one name":     {read: strings.Replace(buildCapsuleTenant(""), "{name: oil}", "{name: oil.v1}", 1) + "---" + strings.Split(strings.Replace(buildCapsuleTenant(""), "{name: oil}", "{name: oil-v1}", 1), "---")[2], gives: []string{`"oil-v1":{"pool":"jobs"}`}, problems: []string{"Tenant/oil-v1: would become tenant oil-v1, as Tenant/oil.v1 would"}},
		"a policy of some":    {read: buildCapsuleTenant("networkPolicies: {items: [{podSelector: {matchLabels: {app: db}}, policyTypes: [Ingress]}]}"), problems: []string{"networkPolicies.items[0]: selects only some pods"}},
		"an older annotation": {read: strings.Replace(buildCapsuleTenant(""), "{name: oil}", "{name: oil, annotations: {capsule.clastix.io/enable-node-ports: \"false\"}}", 1), problems: []string{"does not know this setting of Capsule"}},
		"an older label":      {read: strings.Replace(buildCapsuleTenant(""), "{name: oil}", "{name: oil, labels: {capsule.clastix.io/fence: enabled}}", 1), problems: []string{"does not know this setting of Capsule"}},
		"what binds no one":   {read: strings.Replace(buildCapsuleTenant(""), "{name: oil}", "{name: oil, annotations: {capsule.clastix.io/forbidden-namespace-labels: a, team: b}}", 1), findings: []want{{source.NotKept, "forbidden-namespace-labels\"]", "tenants may not write labels"}}},
	} {
		r.options = demo
		t.Run(name, r.checkMapping)
	}
}

func TestCapsuleOthers(t *testing.T) {
	other := func(kind string) string {
		return buildCapsuleTenant("") + "---\n{apiVersion: capsule.clastix.io/v1beta2, kind: " + kind + ", metadata: {name: all}, spec: {quota: {hard: {pods: 1}}}}\n"
	}
	for name, r := range map[string]row{
		"a pool of resources":    {read: other("ResourcePool"), problems: []string{"ResourcePool/all: croft migrate does not read Capsule's ResourcePool"}},
		"a quota of the cluster": {read: other("GlobalResourceQuota"), problems: []string{"GlobalResourceQuota/all"}},
		"a quota of any kind":    {read: other("CustomQuota"), problems: []string{"CustomQuota/all"}},
		"a kind to come":         {read: other("TenantFence"), problems: []string{"TenantFence/all"}},
		"an owner":               {read: other("TenantOwner"), findings: []want{{source.NotKept, "TenantOwner/all ", "access"}}},
		"its configuration":      {read: other("CapsuleConfiguration"), findings: []want{{source.NotKept, "CapsuleConfiguration/all ", "only Capsule"}}},
	} {
		r.options = demo
		t.Run(name, r.checkMapping)
	}
}

// TestPodSecurity expects the stricter of two levels.
func TestPodSecurity(t *testing.T) {
	enforce := func(level string) string { return "labels: {pod-security.kubernetes.io/enforce: " + level + "}" }
	metadata := func(level string) string { return "namespaceOptions: {additionalMetadata: {" + enforce(level) + "}}" }
	labelled := func(levels ...string) string {
		all := "status: {namespaces: [oil-0, oil-1]}\n"
		for i, level := range levels {
			all += fmt.Sprintf("---\n{apiVersion: v1, kind: Namespace, metadata: {name: oil-%d, %s}}\n", i, enforce(level))
		}
		return all
	}
	const restricted = `"podSecurity":"restricted"`
	for name, r := range map[string]row{
		"by Capsule":                {read: buildCapsuleTenant(metadata("restricted")), gives: []string{restricted}, findings: []want{{source.Kept, `labels["pod-security.kubernetes.io/enforce"]`, "podSecurity"}}},
		"by Capsule's list":         {read: buildCapsuleTenant("namespaceOptions: {additionalMetadataList: [{" + enforce("restricted") + "}]}"), gives: []string{restricted}},
		"both, the list stricter":   {read: buildCapsuleTenant("namespaceOptions: {additionalMetadata: {" + enforce("baseline") + "}, additionalMetadataList: [{" + enforce("restricted") + "}]}"), gives: []string{restricted}, findings: []want{{source.Changed, `additionalMetadata.labels["pod-security.kubernetes.io/enforce"]`, "restricted, which is stricter"}}},
		"both, the list weaker":     {read: buildCapsuleTenant("namespaceOptions: {additionalMetadata: {" + enforce("restricted") + "}, additionalMetadataList: [{" + enforce("privileged") + "}]}"), gives: []string{restricted}, findings: []want{{source.Changed, `additionalMetadataList[0].labels["pod-security.kubernetes.io/enforce"]`, "restricted, which is stricter"}}},
		"some namespaces of it":     {read: buildCapsuleTenant("namespaceOptions: {additionalMetadataList: [{namespaceSelector: {matchLabels: {a: b}}, " + enforce("restricted") + "}]}"), gives: []string{restricted}, findings: []want{{source.Changed, `labels["pod-security.kubernetes.io/enforce"]`, "one level for all"}}},
		"some namespaces without":   {read: buildCapsuleTenant("namespaceOptions: {additionalMetadataList: [{namespaceSelector: {matchLabels: {a: b}}, " + enforce("privileged") + "}]}"), not: []string{"podSecurity"}, problems: []string{"one level for a tenant"}},
		"all namespaces without":    {read: buildCapsuleTenant(metadata("privileged")), gives: []string{`"podSecurity":"privileged"`}},
		"Capsule and its namespace": {read: buildCapsuleTenant(metadata("baseline")) + labelled("restricted", "restricted"), gives: []string{restricted}},
		"its namespace, weaker":     {read: buildCapsuleTenant(metadata("restricted")) + labelled("baseline", "baseline"), gives: []string{restricted}},
		"two namespaces":            {read: buildCapsuleTenant("") + labelled("baseline", "restricted"), gives: []string{restricted}},
		"two, the first stricter":   {read: buildCapsuleTenant("") + labelled("restricted", "baseline"), gives: []string{restricted}},
		"two, one without":          {read: buildCapsuleTenant("") + labelled("restricted", "privileged"), gives: []string{restricted}, problems: []string{"one level for a tenant"}},
		"one labelled, one not":     {read: buildCapsuleTenant("") + labelled("privileged"), not: []string{"podSecurity"}, problems: []string{"one level for a tenant"}},
		"a level that is none":      {read: buildCapsuleTenant(metadata("Restricted")), problems: []string{`"Restricted" is not a Pod Security level`}},
		"a version": {read: buildCapsuleTenant("namespaceOptions: {additionalMetadata: {labels: {pod-security.kubernetes.io/enforce: restricted, pod-security.kubernetes.io/enforce-version: v1.24, pod-security.kubernetes.io/warn: restricted}}}"), gives: []string{restricted},
			findings: []want{{source.Changed, `["pod-security.kubernetes.io/enforce-version"]`, "latest version"}, {source.Kept, `["pod-security.kubernetes.io/warn"]`, "croft sets it"}}},
		"forbidden labels": {read: buildCapsuleTenant("namespaceOptions: {forbiddenLabels: {denied: [pod-security.kubernetes.io/enforce]}, forbiddenAnnotations: {deniedRegex: .*}}"), findings: []want{{source.Changed, "namespaceOptions.forbiddenLabels", "tenants may not write labels"}}},
		"a cost code":      {read: buildCapsuleTenant("namespaceOptions: {additionalMetadata: {labels: {example.org/cost-code: org1, team: oil}}}"), gives: []string{`"costCode":"org1"`, `"labels":{"team":"oil"}`}},
	} {
		r.options = demo
		t.Run(name, r.checkMapping)
	}
}

// TestCapsuleUnknownFields adds a field that Capsule does not have to each object of a Tenant,
// with a random value, and expects a problem: a later version may add such a field.
func TestCapsuleUnknownFields(t *testing.T) {
	around := []string{
		"%s", "storageClasses: {allowed: [gp3], %s}", "containerRegistries: {allowed: [ghcr.io], %s}", "priorityClasses: {allowed: [a], %s}",
		"runtimeClasses: {allowed: [a], %s}", "deviceClasses: {allowed: [a], %s}", "gatewayOptions: {%s}", "gatewayOptions: {allowedClasses: {allowed: [a], %s}}",
		"ingressOptions: {%s}", "ingressOptions: {allowedClasses: {allowed: [a], %s}}", "ingressOptions: {allowedHostnames: {allowed: [oil.example.org], %s}}",
		"namespaceOptions: {quota: 3, %s}", "namespaceOptions: {additionalMetadata: {labels: {a: b}, %s}}", "namespaceOptions: {additionalMetadataList: [{labels: {a: b}, %s}]}",
		"serviceOptions: {%s}", "serviceOptions: {allowedServices: {nodePort: false, %s}}", "serviceOptions: {externalIPs: {%s}}", "podOptions: {%s}",
		"resourceQuotas: {scope: Tenant, %s}", "resourceQuotas: {items: [{hard: {pods: 3}, %s}]}", "limitRanges: {items: [{limits: [{type: Container, max: {cpu: 1}}]}], %s}",
		"networkPolicies: {items: [{podSelector: {}}], %s}", "permissions: {%s}", "rules: [{quota: [{name: a, hard: {pods: 1}}], %s}]", "rules: [{permissions: {%s}}]",
	}
	random := rand.New(rand.NewPCG(1, 0)) //nolint:gosec // the same values each time
	for _, within := range around {
		key := fmt.Sprintf("fence%d", random.IntN(1000))
		value := []string{"true", "false", "3", "strict", "[a, b]", "{a: {b: c}}", "[{a: b}]"}[random.IntN(7)]
		t.Run(within, func(t *testing.T) {
			row{read: buildCapsuleTenant(fmt.Sprintf(within, key+": "+value)), options: demo, problems: []string{"croft migrate does not know"}}.checkMapping(t)
		})
	}
}
