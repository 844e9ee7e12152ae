package migrate_test

import (
	"strings"
	"testing"

	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
)

// pools are two pools for tenants.
var pools = strings.ReplaceAll(nodePool, "karpenter.k8s.aws, kind: EC2NodeClass", "karpenter.kwok.sh, kind: KWOKNodeClass") + "---" +
	strings.ReplaceAll(strings.ReplaceAll(nodePool, "karpenter.k8s.aws, kind: EC2NodeClass", "karpenter.kwok.sh, kind: KWOKNodeClass"), "jobs", "apps")

var demo = draft.Options{ClusterName: "demo"}

func buildAssign(name, location, value string) string {
	return `
---
apiVersion: mutations.gatekeeper.sh/v1
kind: Assign
metadata: {name: ` + name + `}
spec:
  applyTo: [{groups: [""], kinds: [Pod], versions: [v1]}]
  match: {scope: Namespaced, kinds: [{apiGroups: ["*"], kinds: [Pod]}], namespaces: [shop]}
  location: ` + location + `
  parameters: {assign: {value: ` + value + `}}
`
}

var onJobs = buildAssign("selector", "spec.nodeSelector", "{node-pool: jobs}")

func TestMutators(t *testing.T) {
	for name, r := range map[string]row{
		"a selector":         {read: pools + onJobs, options: demo, gives: []string{`"tenants":{"shop":{"pool":"jobs"}}`}},
		"one key of it":      {read: pools + buildAssign("selector", `spec.nodeSelector["node-pool"]`, "jobs"), options: demo, gives: []string{`"shop":{"pool":"jobs"}`}},
		"with a toleration":  {read: pools + onJobs + buildAssign("toleration", "spec.tolerations", "[{key: node-pool, operator: Equal, value: jobs}]"), options: demo, gives: []string{`"shop":{"pool":"jobs"}`}, findings: []want{{source.Kept, "parameters.assign.value[0]", "croft adds the toleration"}}},
		"only a toleration":  {read: pools + buildAssign("toleration", "spec.tolerations", "[{key: node-pool, operator: Equal, value: jobs}]"), options: demo, gives: []string{`"shop":{"pool":"jobs"}`}, findings: []want{{source.Changed, "assign.value[0]", "also selects"}}},
		"another toleration": {read: pools + onJobs + buildAssign("toleration", "spec.tolerations", "[{key: gpu, operator: Exists}]"), options: demo, findings: []want{{source.Kept, "assign.value[0]", "no other taint"}}},
		"a ModifySet": {read: pools + strings.Replace(buildAssign("toleration", "spec.tolerations", "x"), "kind: Assign", "kind: ModifySet", 1)[:strings.Index(buildAssign("toleration", "spec.tolerations", "x"), "  parameters")+3] +
			"  parameters: {operation: merge, values: {fromList: [{key: node-pool, operator: Equal, value: jobs}]}}\n", options: demo, gives: []string{`"shop":{"pool":"jobs"}`}},
		"two that disagree": {read: pools + onJobs + buildAssign("second", "spec.nodeSelector", "{node-pool: apps}"), options: demo, gives: []string{`"shop":{"pool":"jobs"}`},
			problems: []string{"Assign/second: spec.parameters.assign.value: puts tenant shop on pool apps, but Assign/selector at read.yaml:23 puts it on pool jobs, and takes precedence: make the two agree"}},
		"a toleration that disagrees": {read: pools + onJobs + buildAssign("second", "spec.tolerations", "[{key: node-pool, operator: Equal, value: apps}]"), options: demo, problems: []string{"pods of namespace shop tolerate pool apps, but run on pool jobs"}},
		"croft's own":                 {read: pools + strings.Replace(onJobs, "{name: selector}", "{name: selector, labels: {app.kubernetes.io/managed-by: croft}}", 1), options: demo, not: []string{"tenants:"}, gives: []string{`"placement":"Gatekeeper"`}},
		"an unknown pool": {read: pools + buildAssign("selector", "spec.nodeSelector", "{node-pool: job}"), options: demo,
			gives: []string{"# left out: tenant shop"}, problems: []string{"the input has no pool job; did you mean jobs?; croft.yaml omits tenant shop until"}},
		"a namespace's own selector": {read: pools + "---\n{apiVersion: v1, kind: Namespace, metadata: {name: shop, annotations: {scheduler.alpha.kubernetes.io/node-selector: \"node-pool=jobs\"}}}\n", options: demo,
			gives: []string{`"shop":{"pool":"jobs"}`}, findings: []want{{source.Changed, `annotations["scheduler.alpha.kubernetes.io/node-selector"]`, "toleration"}}},
		"a pattern of namespaces": {read: pools + strings.Replace(onJobs, "[shop]", "[\"shop-*\"]", 1) + "---\n{apiVersion: v1, kind: Namespace, metadata: {name: shop-a}}\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: bank}}\n", options: demo,
			gives: []string{`"tenants":{"shop-a":{"pool":"jobs"}}`}},
		"a pattern without namespaces": {read: pools + strings.Replace(onJobs, "[shop]", "[\"shop-*\"]", 1), options: demo, findings: []want{{source.NotKept, "Assign/selector ", "no namespace shop-*"}}, problems: []string{"Assign/selector: spec.match.namespaces: places pods, and was not converted"}},
		"something else":               {read: pools + buildAssign("pull", "spec.containers[name:*].imagePullPolicy", "Always"), options: demo, findings: []want{{source.NotKept, "Assign/pull ", "keep it in Gatekeeper"}}},
	} {
		t.Run(name, r.checkMapping)
	}
}

func buildConstraint(kind, about, parameters string) string {
	return `
---
apiVersion: constraints.gatekeeper.sh/v1beta1
kind: ` + kind + `
metadata: {name: shop}
spec:
  match: {namespaces: [shop], kinds: [{apiGroups: [""], kinds: [` + about + `]}]}
  parameters: ` + parameters + "\n"
}

func TestConstraints(t *testing.T) {
	for name, r := range map[string]row{
		"hosts":             {read: pools + onJobs + buildConstraint("Whatever", "Ingress", "{hosts: [shop.example.org, \"*.shop.example.org\"]}"), options: demo, gives: []string{`"domains":["shop.example.org","*.shop.example.org"]`}},
		"more than hosts":   {read: pools + onJobs + buildConstraint("Whatever", "Ingress", "{hosts: [shop.example.org], tls: true}"), options: demo, findings: []want{{source.NotKept, "parameters.tls", "keep the constraint"}}},
		"no tenant's":       {read: pools + buildConstraint("Whatever", "Ingress", "{hosts: [shop.example.org]}"), options: demo, findings: []want{{source.NotKept, "parameters.hosts", "no tenant with one of the namespaces"}}},
		"dry run":           {read: pools + onJobs + buildConstraint("Whatever", "Ingress", "{hosts: [shop.example.org]}") + "  enforcementAction: dryrun\n", options: demo, findings: []want{{source.Changed, "enforcementAction", "refuses"}}},
		"types of Services": {read: pools + onJobs + buildConstraint("K8sBlockNodePort", "Service", "{}"), options: demo, findings: []want{{source.Changed, "K8sBlockNodePort/shop ", "ClusterIP"}}},
		"anything else":     {read: pools + onJobs + buildConstraint("K8sRequiredLabels", "Pod", "{labels: [team]}"), options: demo, findings: []want{{source.NotKept, "K8sRequiredLabels/shop ", "does not know"}}},
		"its template":      {read: pools + "---\n{apiVersion: templates.gatekeeper.sh/v1, kind: ConstraintTemplate, metadata: {name: x}, spec: {targets: [{rego: \"$HOME\"}]}}\n", options: demo, findings: []want{{source.Other, "ConstraintTemplate/x ", "stays"}}},
	} {
		t.Run(name, r.checkMapping)
	}
}

const values = `
global: {clusterName: demo, tenantHostPrefix: tenants.example.org, clusterDNS: [10.0.0.10, 10.0.0.11], clusterHostname: h}
nodePools:
  jobs: {instances: {capacityTypes: [spot], instanceTypes: [t3a.large], ttl: 604800}, emptyTtl: 600, costCode: org1}
tenants:
  shop: {nodePool: jobs, operatorEdGroup: devs, domains: [shop.example.org]}
`

func TestValues(t *testing.T) {
	kwok := draft.Options{Kwok: true}
	for name, r := range map[string]row{
		"all of it": {read: values, options: kwok, gives: []string{`"clusterName":"demo"`, `"tenantDomain":"tenants.example.org"`, `"clusterDNS":["10.0.0.10","10.0.0.11"]`,
			`"jobs":{"costCode":"org1","emptyTTL":"10m","instances":{"capacityTypes":["spot"],"instanceTypes":["t3a.large"]},"ttl":"168h"}`,
			`"shop":{"access":[{"group":"devs","role":"operator"}],"domains":["shop.example.org"],"pool":"jobs"}`},
			findings: []want{{source.NotKept, "global.clusterHostname", "ingress"}}},
		"one name server":         {read: strings.Replace(values, "[10.0.0.10, 10.0.0.11]", "10.0.0.10", 1), options: kwok, gives: []string{`"clusterDNS":["10.0.0.10"]`}},
		"no node class":           {read: values, problems: []string{"croft.yaml: platform.nodeClass: the input has no node class"}},
		"croft's own":             {read: pools + strings.Replace(onJobs, "{name: selector}", "{name: selector, labels: {app.kubernetes.io/managed-by: croft}}", 1), options: demo, not: []string{"tenants:"}, gives: []string{`"placement":"Gatekeeper"`}},
		"an unknown pool":         {read: strings.Replace(values, "nodePool: jobs", "nodePool: jbos", 1), options: kwok, gives: []string{`"pools":{"jobs"`}, problems: []string{"read.yaml:6: values: tenants.shop.nodePool: the input has no pool jbos; did you mean jobs?"}},
		"no pool":                 {read: strings.Replace(values, "nodePool: jobs, ", "", 1), options: kwok, problems: []string{"does not name a pool for the pods of tenant shop"}},
		"seconds that are none":   {read: strings.Replace(values, "emptyTtl: 600", "emptyTtl: soon", 1), options: kwok, problems: []string{`read.yaml:4: values: nodePools.jobs.emptyTtl: "soon" is not a number of seconds`}},
		"a name that is none":     {read: strings.Replace(values, "shop: {", "Shop_1: {", 1), options: kwok, gives: []string{`"shop-1":{`}, findings: []want{{source.Changed, "tenants.Shop_1", "small letters"}}},
		"a domain that is none":   {read: strings.Replace(values, "[shop.example.org]", "[\"http://x\"]", 1), options: kwok, problems: []string{"tenants.shop.domains[0]"}},
		"a field that is none":    {read: values + "quota: 3\n", options: kwok, findings: []want{{source.NotKept, "values quota", "does not know"}}},
		"a system's namespace":    {read: strings.Replace(values, "shop: {", "kube-system: {", 1), options: kwok, problems: []string{"kube-system is the name of a namespace of Kubernetes"}},
		"two tenants, one domain": {read: values + "  bank: {nodePool: jobs, domains: [shop.example.org]}\n", options: kwok, problems: []string{"overlaps with"}},
	} {
		t.Run(name, r.checkMapping)
	}
}

// buildTenantObject returns an object in the namespace of a tenant, with the tenant's placement.
func buildTenantObject(object string) string { return pools + onJobs + "---\n" + object + "\n" }

func buildBinding(role, subjects string) string {
	return buildTenantObject("{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: b, namespace: shop}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: " + role + "}, subjects: [" + subjects + "]}")
}

func TestAccess(t *testing.T) {
	const (
		devs  = `{kind: Group, name: "oidc:devs", apiGroup: rbac.authorization.k8s.io}`
		alice = "{kind: User, name: alice}"
	)
	for name, r := range map[string]row{
		"view":            {read: buildBinding("view", devs), options: demo, gives: []string{`"access":[{"group":"devs","role":"viewer"}]`, `"groupPrefix":"oidc:"`}, findings: []want{{source.Changed, "RoleBinding/shop/b roleRef", "viewer"}}},
		"edit":            {read: buildBinding("edit", devs), options: demo, gives: []string{`{"group":"devs","role":"operator"}`}},
		"prefixes differ": {read: buildBinding("edit", devs+", {kind: Group, name: \"ldap:ops\"}"), options: demo, gives: []string{`"oidc:devs"`, `"ldap:ops"`}, not: []string{"groupPrefix"}},
		"a person":        {read: buildBinding("edit", "{kind: User, name: alice}"), options: demo, gives: []string{`{"role":"operator","user":"alice"}`}},
		"a robot":         {read: buildBinding("edit", "{kind: ServiceAccount, name: flux, namespace: shop}"), options: demo, not: []string{"access"}, findings: []want{{source.Other, "subjects[0]", "stays"}}},
		"everybody":       {read: buildBinding("view", "{kind: Group, name: \"system:authenticated\"}"), options: demo, not: []string{"access"}, findings: []want{{source.NotKept, "subjects[0]", "does not identify a team"}}},
		"an unknown role": {read: buildBinding("platform-tenant", devs), options: demo, not: []string{"access"}, findings: []want{{source.NotKept, "subjects[0]", "role: viewer"}, {source.NotKept, "roleRef", "its rights are unknown"}}},
		"a role that reads": {read: buildBinding("platform-tenant", devs) + "---\n{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: platform-tenant}, rules: [{apiGroups: [\"\"], resources: [pods], verbs: [get, list]}]}\n",
			options: demo, gives: []string{`{"group":"devs","role":"viewer"}`}},
		"a role that runs": {read: buildBinding("platform-tenant", devs) + "---\n{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: platform-tenant}, rules: [{apiGroups: [\"*\"], resources: [\"*\"], verbs: [\"*\"]}]}\n",
			options: demo, gives: []string{`{"group":"devs","role":"operator"}`}},
		"in some namespaces": {read: twoTenants + addMetadata(formatBinding("view", alice), "namespace: oil-dev"), options: demo, not: []string{"alice"}, findings: []want{
			{source.NotKept, "RoleBinding/oil-dev/a subjects[0]", "in only some namespaces of oil, not in oil-prod"}, {source.NotKept, "RoleBinding/oil-dev/a roleRef", "the binding stays as it is"}}},
		"in every namespace": {read: twoTenants + addMetadata(formatBinding("view", alice), "namespace: oil-dev") + addMetadata(formatBinding("edit", alice), "namespace: oil-prod"), options: demo,
			gives: []string{`"access":[{"role":"viewer","user":"alice"}]`}, findings: []want{{source.NotKept, "RoleBinding/oil-prod/a subjects[0]", "not in oil-dev"}}},
		"no tenant's": {read: strings.Replace(buildBinding("view", devs), "namespace: shop", "namespace: kube-system", 1), options: demo, findings: []want{{source.Other, "RoleBinding/kube-system/b ", "belongs to no tenant"}}},
	} {
		t.Run(name, r.checkMapping)
	}
}

func TestQuotas(t *testing.T) {
	quota := func(spec string) string {
		return buildTenantObject("{apiVersion: v1, kind: ResourceQuota, metadata: {name: q, namespace: shop}, spec: " + spec + "}")
	}
	limits := func(items string) string {
		return buildTenantObject("{apiVersion: v1, kind: LimitRange, metadata: {name: l, namespace: shop}, spec: {limits: [" + items + "]}}")
	}
	for name, r := range map[string]row{
		"hard":                         {read: quota("{hard: {pods: 10, requests.cpu: \"4\"}}"), options: demo, gives: []string{`"quota":{"pods":"10","requests.cpu":"4"}`}},
		"scopes":                       {read: quota("{hard: {pods: 10}, scopes: [BestEffort]}"), options: demo, not: []string{`"quota"`}, findings: []want{{source.NotKept, "spec.scopes", "in addition to"}}},
		"containers":                   {read: limits("{type: Container, default: {memory: 1Gi}, defaultRequest: {cpu: 50m}, max: {cpu: 4}, min: {cpu: 10m}}"), options: demo, gives: []string{`"limits":{"default":{"memory":"1Gi"},"defaultRequest":{"cpu":"50m"},"max":{"cpu":"4"},"min":{"cpu":"10m"}}`}},
		"claims":                       {read: limits("{type: PersistentVolumeClaim, max: {storage: 1Gi}}"), options: demo, findings: []want{{source.NotKept, "spec.limits[0]", "in addition to croft's"}}},
		"a level of Pod Security":      {read: buildTenantObject("{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {pod-security.kubernetes.io/enforce: restricted, team: shop}}}"), options: demo, gives: []string{`"podSecurity":"restricted"`}, findings: []want{{source.Other, "metadata.labels.team", "stays"}}},
		"a namespace that is no one's": {read: buildTenantObject("{apiVersion: v1, kind: Namespace, metadata: {name: kube-system}}"), options: demo, findings: []want{{source.Other, "Namespace/kube-system ", "belongs to no tenant"}}},
	} {
		t.Run(name, r.checkMapping)
	}
}

func TestNetworkPolicies(t *testing.T) {
	policy := func(spec string) string {
		return buildTenantObject("{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: p, namespace: shop}, spec: " + spec + "}")
	}
	const at = "NetworkPolicy/shop/p spec"
	for name, r := range map[string]row{
		"deny others":             {read: policy("{podSelector: {}, ingress: [{from: [{podSelector: {}}]}]}"), options: demo, findings: []want{{source.Kept, at, "replaces it"}}},
		"the same in other words": {read: policy("{podSelector: {}, policyTypes: [Ingress], ingress: [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: shop}}}]}]}"), options: demo, findings: []want{{source.Kept, at, "replaces it"}}},
		"deny all":                {read: policy("{podSelector: {}, policyTypes: [Ingress, Egress]}"), options: demo, gives: []string{`"network":{"egress":"Restricted"}`}, findings: []want{{source.Changed, at, "denies even"}}},
		"names alone":             {read: policy("{podSelector: {}, policyTypes: [Egress], egress: [{to: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kube-system}}}], ports: [{protocol: UDP, port: 53}]}]}"), options: demo, gives: []string{`"network":{"egress":"Restricted"}`}, findings: []want{{source.Changed, at, "only to name servers"}}},
		"a network":               {read: policy("{podSelector: {}, policyTypes: [Egress], egress: [{to: [{ipBlock: {cidr: 10.20.0.0/16}}]}]}"), options: demo, gives: []string{`"network":{"allowCIDRs":["10.20.0.0/16"],"egress":"Restricted"}`}},
		"everywhere":              {read: policy("{podSelector: {}, policyTypes: [Egress], egress: [{}]}"), options: demo, not: []string{`"network"`}, findings: []want{{source.Changed, at, "metadata"}}},
		"everywhere but to":       {read: policy("{podSelector: {}, policyTypes: [Egress], egress: [{to: [{ipBlock: {cidr: 0.0.0.0/0, except: [192.168.0.0/16]}}]}]}"), options: demo, not: []string{`"network"`}, problems: []string{"denies pods connections to 192.168.0.0/16"}},
		"everywhere on a port":    {read: policy("{podSelector: {}, policyTypes: [Egress], egress: [{ports: [{port: 443}]}]}"), options: demo, problems: []string{"denies pods connections to ports that it does not name"}},
		"all but metadata":        {read: policy("{podSelector: {}, policyTypes: [Egress], egress: [{to: [{ipBlock: {cidr: 0.0.0.0/0, except: [169.254.169.254/32]}}]}]}"), options: demo, not: []string{`"network"`}, findings: []want{{source.Kept, at, "egress: Open replaces it"}}},
		"an ingress controller":   {read: policy("{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: ingress-nginx}}}]}]}"), options: demo, gives: []string{`"platformNamespaces":["ingress-nginx"]`}},
		"everybody":               {read: policy("{podSelector: {}, ingress: [{from: [{namespaceSelector: {}}]}]}"), options: demo, findings: []want{{source.NotKept, at, "all namespaces"}}, problems: []string{"NetworkPolicy/shop/p: spec: allows connections from all namespaces"}},
		"another tenant": {read: policy("{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: bank}}}]}]}") + strings.Replace(strings.Replace(onJobs, "[shop]", "[bank]", 1), "name: selector", "name: other", 1),
			options: demo, findings: []want{{source.NotKept, at, "bank, another tenant's"}}, problems: []string{"NetworkPolicy/shop/p: spec: allows connections from pods of bank, another tenant's namespace"}},
		"some pods":              {read: policy("{podSelector: {matchLabels: {app: db}}, ingress: [{from: [{podSelector: {matchLabels: {app: web}}}]}]}"), options: demo, findings: []want{{source.Changed, at, "no longer"}}},
		"not valid":              {read: policy("{podSelector: {}, ingress: [{from: [{ipBlock: {cidr: nonsense}}]}]}"), options: demo, problems: []string{"is not a valid NetworkPolicy"}},
		"of Calico":              {read: buildTenantObject("{apiVersion: projectcalico.org/v3, kind: NetworkPolicy, metadata: {name: p, namespace: shop}, spec: {order: 20, selector: all(), types: [Ingress], ingress: [{action: Deny, source: {namespaceSelector: \"a == 'b'\"}}]}}"), options: demo, findings: []want{{source.Changed, at, "replaces it"}, {source.Changed, at + ".order", "cannot precede croft's"}}},
		"Calico, before croft's": {read: buildTenantObject("{apiVersion: projectcalico.org/v3, kind: NetworkPolicy, metadata: {name: p, namespace: shop}, spec: {order: 20, selector: \"app == 'db'\", egress: [{action: Allow}]}}"), options: demo, problems: []string{"NetworkPolicy/shop/p: spec.order: precedes croft's policies"}},
		"Calico, else":           {read: buildTenantObject("{apiVersion: projectcalico.org/v3, kind: NetworkPolicy, metadata: {name: p, namespace: shop}, spec: {selector: \"app == 'db'\", ingress: [{action: Allow}]}}"), options: demo, findings: []want{{source.NotKept, at, "Calico evaluates both"}}},
	} {
		t.Run(name, r.checkMapping)
	}
}

// TestPlacingAnnotations tests the annotations by which plugins of the API server place a
// namespace's pods.
func TestPlacingAnnotations(t *testing.T) {
	const (
		selector = "scheduler.alpha.kubernetes.io/node-selector"
		given    = "scheduler.alpha.kubernetes.io/defaultTolerations"
		allowed  = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
		own      = `[{"key":"node-pool","operator":"Equal","value":"jobs","effect":"NoSchedule"}]`
	)
	annotated := func(annotations ...string) string {
		all := ""
		for i := 0; i < len(annotations); i += 2 {
			all += "\n    " + annotations[i] + ": '" + annotations[i+1] + "'"
		}
		return pools + "---\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: shop\n  annotations:" + all + "\n"
	}
	placed := func(annotations ...string) string {
		return annotated(append(annotations, selector, "node-pool=jobs")...)
	}
	const pool = `"shop":{"pool":"jobs"}`
	refused := []string{"the tenant would not become Ready"}
	for name, r := range map[string]row{
		"its pool's toleration":       {read: placed(given, own), gives: []string{pool}, findings: []want{{source.Kept, given + "\"]", "croft adds the toleration"}}},
		"its pool's toleration alone": {read: annotated(given, own), gives: []string{pool}, findings: []want{{source.Changed, given + "\"]", "also selects"}}},
		"a node's life":               {read: placed(given, `[{"key":"node.kubernetes.io/not-ready","operator":"Exists"}]`), gives: []string{pool}},
		"no toleration":               {read: placed(given, "[]", allowed, "[]"), gives: []string{pool}},
		"another toleration":          {read: placed(given, `[{"key":"workload-type","operator":"Equal","value":"ml","effect":"NoSchedule"}]`), gives: []string{pool}, problems: []string{"a toleration of workload-type=ml, which is not the taint of the tenant's pool"}},
		"two tolerations":             {read: placed(given, own[:len(own)-1]+`,{"key":"gpu","operator":"Exists"}]`), gives: []string{pool}, problems: []string{"a toleration of gpu, which is not"}},
		"another pool's":              {read: placed(given, `[{"key":"node-pool","value":"apps"}]`), gives: []string{pool}, problems: refused},
		"every pool's":                {read: placed(given, `[{"key":"node-pool","operator":"Exists"}]`), gives: []string{pool}, problems: refused},
		"every toleration":            {read: placed(given, `[{"operator":"Exists"}]`), gives: []string{pool}, problems: []string{"a toleration of every taint"}},
		"no list":                     {read: placed(given, "gpu"), gives: []string{pool}, problems: []string{"is not a list of tolerations in JSON"}},
		"allowed: another":            {read: placed(allowed, `[{"key":"workload-type","operator":"Exists"}]`), gives: []string{pool}, problems: refused},
		"allowed: of one effect":      {read: placed(allowed, own), gives: []string{pool}, problems: refused},
		"allowed: its pool's":         {read: placed(allowed, `[{"key":"node-pool","operator":"Exists"}]`), gives: []string{pool}, findings: []want{{source.Changed, allowed + "\"]", "remove the annotation"}}},
		"allowed: everything":         {read: placed(allowed, `[{"operator":"Exists"}]`), gives: []string{pool}, findings: []want{{source.Changed, allowed + "\"]", "remove the annotation"}}},
		"allowed: no list":            {read: placed(allowed, "{}"), gives: []string{pool}, problems: refused},

		"more keys, which the pool has":        {read: annotated(selector, "node-pool=jobs, kubernetes.io/os=linux"), gives: []string{pool}, findings: []want{{source.Changed, selector + "\"]", "all nodes of the tenant's pool have kubernetes.io/os=linux"}}},
		"more keys, which the pool has not":    {read: annotated(selector, "node-pool=jobs,disk=ssd"), gives: []string{pool}, problems: []string{"pods ran only on nodes with disk=ssd, which the nodes of pool jobs may lack"}},
		"more keys, before the pool's":         {read: annotated(selector, "disk=ssd,node-pool=jobs"), gives: []string{pool}, problems: []string{"disk=ssd"}},
		"an architecture of two":               {read: annotated(selector, "kubernetes.io/arch=arm64,node-pool=jobs"), gives: []string{pool}, problems: []string{"kubernetes.io/arch=arm64"}},
		"another key, and a pool by an Assign": {read: annotated(selector, "disk=ssd") + onJobs, gives: []string{pool}, problems: []string{"disk=ssd"}},
	} {
		r.options = demo
		t.Run(name, r.checkMapping)
	}
}

// TestKeyOfPools expects the key of a nodeSelector whose values are pools.
func TestKeyOfPools(t *testing.T) {
	nodes := func(name, labels string) string {
		return "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: " + name + "}\nspec:\n  template:\n    metadata: {labels: {" + labels + "}}\n    spec:\n" +
			"      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}\n      requirements: [{key: kubernetes.io/arch, operator: In, values: [amd64]}]\n---\n"
	}
	tenant := func(name, selector string) string {
		return "{apiVersion: capsule.clastix.io/v1beta2, kind: Tenant, metadata: {name: " + name + "}, spec: {nodeSelector: {" + selector + "}}}\n---\n"
	}
	annotated := func(name, selector string) string {
		return "{apiVersion: v1, kind: Namespace, metadata: {name: " + name + ", annotations: {scheduler.alpha.kubernetes.io/node-selector: \"" + selector + "\"}}}\n---\n"
	}
	const four = "pool: oil, kubernetes.io/os: linux, kubernetes.io/arch: amd64, hardware: gpu"
	for name, r := range map[string]row{
		"four keys":                     {read: tenant("oil", four) + nodes("oil", "pool: oil, hardware: gpu"), gives: []string{`"nodePoolKey":"pool"`, `"oil":{"pool":"oil"}`}, findings: []want{{source.Kept, "nodeSelector.hardware", "all nodes of the tenant's pool have"}}},
		"four keys of an annotation":    {read: annotated("oil", strings.ReplaceAll(strings.ReplaceAll(four, ": ", "="), " ", "")) + nodes("oil", "pool: oil, hardware: gpu"), gives: []string{`"nodePoolKey":"pool"`, `"oil":{"pool":"oil"}`}},
		"no key has pool in its name":   {read: tenant("oil", "team: oil, hardware: gpu") + nodes("oil", "team: oil, hardware: gpu"), gives: []string{`"nodePoolKey":"team"`, `"oil":{"pool":"oil"}`}},
		"pools of other names":          {read: tenant("oil", "team: red, hardware: gpu") + tenant("gas", "team: blue, hardware: gpu") + nodes("one", "team: red, hardware: gpu") + nodes("two", "team: blue, hardware: gpu"), gives: []string{`"nodePoolKey":"team"`, `"gas":{"pool":"two"}`, `"oil":{"pool":"one"}`}},
		"a key that a pool lacks":       {read: tenant("oil", "pool: oil, hardware: gpu") + nodes("oil", "pool: oil"), gives: []string{`"oil":{"pool":"oil"}`}, problems: []string{"pods ran only on nodes with hardware=gpu"}},
		"another value":                 {read: tenant("oil", "pool: oil, hardware: gpu") + nodes("oil", "pool: oil, hardware: cpu"), gives: []string{`"oil":{"pool":"oil"}`}, problems: []string{"pods ran only on nodes with hardware=gpu"}},
		"a region is no pool":           {read: tenant("oil", "topology.kubernetes.io/region: eu, team: oil") + nodes("oil", "team: oil"), gives: []string{`"nodePoolKey":"team"`}, problems: []string{"topology.kubernetes.io/region=eu"}},
		"two pools of one value":        {read: tenant("oil", "pool: oil") + nodes("oil-spot", "pool: oil") + nodes("oil-demand", "pool: oil"), gives: []string{`"oil":{"pools":["oil-demand","oil-spot"]}`}, problems: []string{"nodes of pools oil-demand, oil-spot"}},
		"by an annotation of Capsule's": {read: strings.Replace(tenant("oil", ""), "nodeSelector: {}", "namespaceOptions: {additionalMetadata: {annotations: {scheduler.alpha.kubernetes.io/node-selector: pool=oil}}}", 1) + nodes("oil", "pool: oil"), gives: []string{`"oil":{"pool":"oil"}`}},
		"by one of some namespaces":     {read: strings.Replace(tenant("oil", "pool: oil"), "spec: {", "spec: {namespaceOptions: {additionalMetadataList: [{namespaceSelector: {matchLabels: {a: b}}, annotations: {scheduler.alpha.kubernetes.io/node-selector: pool=gas}}]}, ", 1) + nodes("oil", "pool: oil") + nodes("gas", "pool: gas"), gives: []string{`"oil":{"pool":"oil"}`}, problems: []string{"places pods of some namespaces"}},
		"tolerations by Capsule":        {read: strings.Replace(tenant("oil", "pool: oil"), "spec: {", "spec: {namespaceOptions: {additionalMetadata: {annotations: {scheduler.alpha.kubernetes.io/defaultTolerations: '[{\"key\":\"gpu\",\"operator\":\"Exists\"}]'}}}, ", 1) + nodes("oil", "pool: oil"), gives: []string{`"oil":{"pool":"oil"}`}, problems: []string{"a toleration of gpu"}},
	} {
		r.options = demo
		t.Run(name, r.checkMapping)
	}
}
