package migrate_test

import (
	"strings"
	"testing"

	"croft.dev/croft/internal/adoption/migrate/source"
)

// TestDedicatedNodePools tests each way in which a NodePool reserves its nodes for some pods:
// it must become a pool, or a problem.
func TestDedicatedNodePools(t *testing.T) {
	for name, r := range map[string]row{
		"a taint without a value, no tenant":      {read: buildDedicatedPool("jobs") + buildPool("build", "team: build", "taints: [{key: build_workload, effect: NoSchedule}]"), options: demo, gives: []string{`"pools":{"jobs":`}, problems: []string{"NodePool/build: spec.template.spec.taints: its taints reserve the nodes for pods that tolerate them"}},
		"another key than the label's, no tenant": {read: buildDedicatedPool("jobs") + buildPool("team-a", "team: team-a", "taints: [{key: dedicated, value: team-a, effect: NoSchedule}]"), options: demo, problems: []string{"NodePool/team-a: spec.template.spec.taints: "}},
		"a taint alone, no tenant":                {read: buildDedicatedPool("jobs") + buildPool("gpu", "", "taints: [{key: nvidia.com/gpu, value: \"true\", effect: NoSchedule}]"), options: demo, problems: []string{"NodePool/gpu: spec.template.spec.taints: "}},
		"the key without a taint, no tenant":      {read: buildDedicatedPool("jobs") + buildPool("apps", "node-pool: apps", "expireAfter: Never"), options: demo, problems: []string{"NodePool/apps: spec.template.metadata.labels.node-pool: its nodes have the label node-pool=apps"}},
		"the platform's own taint":                {read: buildDedicatedPool("jobs") + buildPool("system", "", "taints: [{key: CriticalAddonsOnly, effect: NoSchedule}]"), options: demo, findings: []want{{source.Other, "NodePool/system ", "belongs to the platform"}}},
		"a taint without a value, a selector": {read: buildPool("build", "team: build", "taints: [{key: build_workload, effect: NoSchedule}]") + buildSelectorAssign("namespaces: [builder]", "team: build"), options: demo,
			gives: []string{`"nodePoolKey":"team"`, `"pools":{"build":`, `"builder":{"pool":"build"}`}, findings: []want{{source.Changed, "taints[0]", "replaces it"}}},
		"a taint without a value, a toleration": {read: buildPool("build", "team: build", "taints: [{key: build_workload, effect: NoSchedule}]") +
			buildMutator("ModifySet", "tolerate", "namespaces: [builder]", "spec.tolerations", "{operation: merge, values: {fromList: [{key: build_workload, operator: Exists}]}}"), options: demo,
			gives: []string{`"builder":{"pool":"build"}`}},
		"another key, both mutators": {read: buildPool("team-a", "team: team-a", "taints: [{key: dedicated, value: team-a, effect: NoSchedule}]") + buildSelectorAssign("namespaces: [a]", "team: team-a") +
			buildMutator("Assign", "tolerate", "namespaces: [a]", "spec.tolerations", "{assign: {value: [{key: dedicated, value: team-a}]}}"), options: demo, gives: []string{`"a":{"pool":"team-a"}`}},
		"a tie by a requirement": {read: buildPool("jobs", "", "requirements: [{key: node-pool, operator: In, values: [jobs]}]\ntaints: [{key: node-pool, value: jobs, effect: NoSchedule}]") + buildSelectorAssign("namespaces: [a]", "node-pool: jobs"), options: demo,
			gives: []string{`"nodePoolKey":"node-pool"`, `"a":{"pool":"jobs"}`}},
		"a tie by a requirement, of another value": {read: buildPool("jobs", "", "requirements: [{key: node-pool, operator: In, values: [big]}]\ntaints: [{key: node-pool, value: big, effect: NoSchedule}]") + buildSelectorAssign("namespaces: [a]", "node-pool: big"), options: demo,
			gives: []string{`"a":{"pool":"jobs"}`}, findings: []want{{source.Changed, "requirements[0]", "will have the value jobs"}}},
		"two keys": {read: buildDedicatedPool("jobs") + strings.ReplaceAll(buildDedicatedPool("apps"), "node-pool", "team") + buildDedicatedPool("data") + buildSelectorAssign("namespaces: [a]", "team: apps"), options: demo,
			gives: []string{`"a":{"pool":"apps"}`, `{"key":"team","operator":"In","values":["apps"]}`}},
		"labels that pods choose": {read: buildPool("shared", "", "requirements: [{key: team, operator: Exists}]\ntaints: [{key: team, effect: NoSchedule}]") + buildSelectorAssign("namespaces: [a]", "team: a"), options: demo,
			problems: []string{"NodePool/shared: spec.template.spec.taints", "the input has no pool a"}},
		"Windows": {read: buildDedicatedPool("jobs") + buildPool("win", "node-pool: win", "requirements: [{key: kubernetes.io/os, operator: NotIn, values: [linux]}]\ntaints: [{key: node-pool, value: win, effect: NoSchedule}]"), options: demo,
			problems: []string{"NodePool/win: spec.template.spec.requirements[0]: croft's nodes run only Linux"}},
		"nodes that must stay": {read: strings.Replace(buildDedicatedPool("jobs"), "labels: {node-pool: jobs}", "labels: {node-pool: jobs}, annotations: {karpenter.sh/do-not-disrupt: \"true\"}", 1), options: demo, gives: []string{`"budgets":[{"nodes":"0"}]`}},
		"a fixed size, and a tenant": {read: strings.Replace(buildDedicatedPool("jobs"), "spec:\n", "spec:\n  replicas: 2\n", 1) + buildSelectorAssign("namespaces: [a]", "node-pool: jobs"), options: demo,
			gives: []string{`"a":{"pool":"jobs-dynamic"}`, `"jobs-dynamic":{`}, problems: []string{"spec.replicas: a Pool has no fixed number of nodes"}},
		"a size of none": {read: strings.Replace(buildDedicatedPool("jobs"), "spec:\n", "spec:\n  replicas: 0\n", 1), options: demo, gives: []string{`"jobs-dynamic":{`}, problems: []string{"spec.replicas: a Pool has no fixed number of nodes"}},
		"a declared Platform's key": {read: "{apiVersion: croft.dev/v1alpha1, kind: Platform, metadata: {name: default}, spec: {clusterName: demo, nodeClass: {kwok: {}}, nodePoolKey: example.org/pool}}\n" + buildDedicatedPool("jobs"), options: demo,
			gives: []string{`"nodePoolKey":"example.org/pool"`}},
	} {
		t.Run(name, r.checkMapping)
	}
}

// TestPlacements tests each way in which a mutator places pods: its namespaces must be on that
// pool, or a problem must give the reason.
func TestPlacements(t *testing.T) {
	jobs, both := buildDedicatedPool("jobs"), buildDedicatedPool("jobs")+buildDedicatedPool("apps")
	onJobs := []string{`"tenants":{"a":{"pool":"jobs"}}`}
	terms := func(values string) string {
		return "{assign: {value: [{matchExpressions: [{key: node-pool, operator: In, values: [" + values + "]}]}]}}"
	}
	for name, r := range map[string]row{
		"an entry":                {read: jobs + buildMutator("Assign", "m", "namespaces: [a]", "spec.nodeSelector.node-pool", "{assign: {value: jobs}}"), options: demo, gives: onJobs},
		"an entry in quotes":      {read: jobs + buildMutator("Assign", "m", "namespaces: [a]", `spec.nodeSelector."node-pool"`, "{assign: {value: jobs}}"), options: demo, gives: onJobs},
		"Karpenter's own label":   {read: jobs + buildSelectorAssign("namespaces: [a]", "karpenter.sh/nodepool: jobs"), options: demo, gives: onJobs},
		"Karpenter's, an entry":   {read: jobs + buildMutator("Assign", "m", "namespaces: [a]", `spec.nodeSelector."karpenter.sh/nodepool"`, "{assign: {value: jobs}}"), options: demo, gives: onJobs},
		"Karpenter's, affinity":   {read: jobs + buildMutator("Assign", "m", "namespaces: [a]", "spec."+required, "{assign: {value: [{matchExpressions: [{key: karpenter.sh/nodepool, operator: In, values: [jobs]}]}]}}"), options: demo, gives: onJobs},
		"Karpenter's former":      {read: provisioner + buildSelectorAssign("namespaces: [a]", "karpenter.sh/provisioner-name: jobs"), gives: onJobs},
		"another label of a pool": {read: buildPool("jobs", "node-pool: jobs, size: big", "taints: [{key: node-pool, value: jobs, effect: NoSchedule}]") + buildDedicatedPool("apps") + buildSelectorAssign("namespaces: [a]", "size: big"), options: demo, gives: onJobs},
		"affinity":                {read: both + buildMutator("Assign", "m", "namespaces: [a]", "spec."+required, terms("jobs")), options: demo, gives: onJobs},
		"affinity as a whole": {read: both + buildMutator("Assign", "m", "namespaces: [a]", "spec.affinity",
			"{assign: {value: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: node-pool, operator: In, values: [jobs]}]}]}}}}}"), options: demo, gives: onJobs},
		"affinity of a Deployment":  {read: both + buildMutatorFor("apps", "Deployment", "Assign", "m", "namespaces: [a]", "spec.template.spec."+required, terms("jobs")), options: demo, gives: onJobs},
		"a selector of a CronJob":   {read: both + buildMutatorFor("batch", "CronJob", "Assign", "m", "namespaces: [a]", "spec.jobTemplate.spec.template.spec.nodeSelector", "{assign: {value: {node-pool: jobs}}}"), options: demo, gives: onJobs},
		"affinity to two pools":     {read: both + buildMutator("Assign", "m", "namespaces: [a]", "spec."+required, terms("jobs, apps")), options: demo, gives: []string{`"a":{"pools":["apps","jobs"]}`}, problems: []string{"the pods of tenant a may run on nodes of pools apps, jobs"}},
		"affinity, and a selector":  {read: both + buildMutator("Assign", "m", "namespaces: [a]", "spec."+required, terms("jobs, apps")) + buildSelectorAssign("namespaces: [a]", "node-pool: jobs"), options: demo, gives: onJobs},
		"two NodePools of a label":  {read: buildPool("spot", "team: a", "taints: [{key: team, value: a, effect: NoSchedule}]") + buildPool("solid", "team: a", "taints: [{key: team, value: a, effect: NoSchedule}]") + buildSelectorAssign("namespaces: [a]", "team: a"), options: demo, problems: []string{"nodes of pools solid, spot"}},
		"affinity to any pool":      {read: both + buildMutator("Assign", "m", "namespaces: [a]", "spec."+required, "{assign: {value: [{matchExpressions: [{key: node-pool, operator: In, values: [jobs]}]}, {matchExpressions: [{key: kubernetes.io/os, operator: In, values: [linux]}]}]}}"), options: demo, not: []string{"tenants:"}, problems: []string{"one of its alternatives allows nodes of any pool"}},
		"affinity to other pools":   {read: both + buildSelectorAssign("namespaces: [a]", "node-pool: jobs") + buildMutator("Assign", "m", "namespaces: [a]", "spec."+required, "{assign: {value: [{matchExpressions: [{key: node-pool, operator: NotIn, values: [jobs]}]}]}}"), options: demo, problems: []string{"pods of namespace a need nodes with node-pool NotIn jobs, which not every node of pool jobs has"}},
		"preferred affinity":        {read: jobs + buildMutator("Assign", "m", "namespaces: [a]", "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution", "{assign: {value: []}}"), options: demo, problems: []string{"Assign/m: spec.location: places pods, and was not converted: pods only prefer"}},
		"affinity by another way":   {read: jobs + buildMutator("Assign", "m", "namespaces: [a]", "spec."+required, "{assign: {value: [{matchFields: [{key: metadata.name, operator: In, values: [n]}]}]}}"), options: demo, problems: []string{"does not select nodes by their labels"}},
		"affinity to pods":          {read: jobs + buildMutator("Assign", "m", "namespaces: [a]", "spec.affinity.podAntiAffinity", "{assign: {value: {}}}"), options: demo, findings: []want{{source.NotKept, "Assign/m ", "does not select nodes"}}},
		"the namespace's name":      {read: buildDedicatedPool("a") + buildNamespace("a", "") + buildMutator("Assign", "m", "namespaces: [\"a*\"]", "spec.nodeSelector.node-pool", "{assign: {fromMetadata: {field: namespace}}}"), options: demo, gives: []string{`"a":{"pool":"a"}`}},
		"two namespaces' names":     {read: buildDedicatedPool("a") + buildDedicatedPool("b") + buildMutator("Assign", "m", "namespaces: [a, b]", "spec.nodeSelector.node-pool", "{assign: {fromMetadata: {field: namespace}}}"), options: demo, gives: []string{`"tenants":{"a":{"pool":"a"},"b":{"pool":"b"}}`}},
		"a name without a pool":     {read: buildDedicatedPool("a") + buildMutator("Assign", "m", "namespaces: [a, b]", "spec.nodeSelector.node-pool", "{assign: {fromMetadata: {field: namespace}}}"), options: demo, gives: []string{`"tenants":{"a":{"pool":"a"}}`}, problems: []string{"the input has no pool b"}},
		"the pod's name":            {read: jobs + buildMutator("Assign", "m", "namespaces: [a]", "spec.nodeSelector.node-pool", "{assign: {fromMetadata: {field: name}}}"), options: demo, problems: []string{"depends on more than the namespace"}},
		"external data":             {read: jobs + buildMutator("Assign", "m", "namespaces: [a]", "spec.nodeSelector.node-pool", "{assign: {externalData: {provider: p}}}"), options: demo, problems: []string{"depends on more than the namespace"}},
		"an architecture as well":   {read: jobs + buildSelectorAssign("namespaces: [a]", "node-pool: jobs, kubernetes.io/arch: arm64"), options: demo, problems: []string{"pods of namespace a need nodes with kubernetes.io/arch=arm64, which not every node of pool jobs has"}},
		"an architecture it has":    {read: buildPool("jobs", "node-pool: jobs", "requirements: [{key: kubernetes.io/arch, operator: In, values: [arm64]}]\ntaints: [{key: node-pool, value: jobs, effect: NoSchedule}]") + buildSelectorAssign("namespaces: [a]", "node-pool: jobs, kubernetes.io/arch: arm64"), options: demo, gives: onJobs},
		"Linux as well":             {read: jobs + buildSelectorAssign("namespaces: [a]", "node-pool: jobs, kubernetes.io/os: linux"), options: demo, gives: onJobs},
		"an architecture alone":     {read: jobs + buildSelectorAssign("namespaces: [a]", "kubernetes.io/arch: arm64"), options: demo, problems: []string{"does not name a pool for the pods of tenant a"}},
		"Linux alone":               {read: jobs + buildSelectorAssign("namespaces: [a]", "kubernetes.io/os: linux"), options: demo, not: []string{"tenants:"}},
		"a label that no pool has":  {read: jobs + buildSelectorAssign("namespaces: [a]", "disk: fast, node-pool: jobs") + buildSelectorAssign("namespaces: [b]", "disk: fast"), options: demo, problems: []string{"Assign/selector: spec.parameters.assign.value.disk"}},
		"a namespace's annotation":  {read: jobs + "\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: a, annotations: {scheduler.alpha.kubernetes.io/node-selector: disk=fast}}}\n", options: demo, problems: []string{"Namespace/a: places the pods of a, and croft.yaml has no equivalent"}},
		"OpenShift's annotation":    {read: jobs + "\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: a, annotations: {openshift.io/node-selector: \"node-pool=jobs\"}}}\n", options: demo, problems: []string{"Namespace/a: places the pods of a, and croft.yaml has no equivalent"}},
		"Kyverno":                   {read: jobs + "\n---\n{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: [{mutate: {patchStrategicMerge: {spec: {nodeSelector: {node-pool: jobs}}}}}]}}\n", options: demo, problems: []string{"ClusterPolicy/p: may select the nodes of pods"}},
		"Kyverno, of labels":        {read: jobs + "\n---\n{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: [{validate: {pattern: {metadata: {labels: {a: b}}}}}]}}\n", options: demo, findings: []want{{source.Other, "ClusterPolicy/p ", "stays as it is"}}},
		"the API server's policy":   {read: jobs + "\n---\n{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicy, metadata: {name: p}, spec: {mutations: [{jsonPatch: {expression: \"[JSONPatch{path: '/spec/tolerations'}]\"}}]}}\n", options: demo, problems: []string{"MutatingAdmissionPolicy/p: may select the nodes of pods"}},
		"a node's name":             {read: jobs + buildMutator("Assign", "m", "namespaces: [a]", "spec.nodeName", "{assign: {value: node-1}}"), options: demo, problems: []string{"croft refuses nodeName"}},
		"a runtime class":           {read: jobs + buildSelectorAssign("namespaces: [a]", "node-pool: jobs") + buildMutator("Assign", "m", "namespaces: [a]", "spec.runtimeClassName", "{assign: {value: gvisor}}"), options: demo, gives: onJobs, problems: []string{"Assign/m: spec.location: Gatekeeper gives pods the runtimeClassName gvisor, which croft refuses"}},
		"a priority":                {read: jobs + buildMutatorFor("apps", "Deployment", "Assign", "m", "namespaces: [a]", "spec.template.spec.priorityClassName", "{assign: {value: low}}"), options: demo, problems: []string{"add it to policy.priorityClasses of the tenants"}},
		"a pull policy":             {read: jobs + buildMutator("Assign", "m", "namespaces: [a]", `spec.containers[name: "*"].imagePullPolicy`, "{assign: {value: IfNotPresent}}"), options: demo, problems: []string{"add it to policy.imagePullPolicies of the tenants"}},
		"croft's own pull policy":   {read: jobs + buildSelectorAssign("namespaces: [a]", "node-pool: jobs") + buildMutator("Assign", "m", "namespaces: [a]", `spec.containers[name: "*"].imagePullPolicy`, "{assign: {value: Always}}"), options: demo, gives: onJobs},
		"another scheduler":         {read: jobs + buildMutator("Assign", "m", "namespaces: [a]", "spec.schedulerName", "{assign: {value: mine}}"), options: demo, problems: []string{"croft refuses schedulerName"}},
		"tolerations taken away":    {read: jobs + buildMutator("ModifySet", "m", "namespaces: [a]", "spec.tolerations", "{operation: prune, values: {fromList: [{key: node-pool, operator: Exists}]}}"), options: demo, problems: []string{"does not remove tolerations"}},
		"every taint tolerated":     {read: both + buildMutator("ModifySet", "m", "namespaces: [a]", "spec.tolerations", "{values: {fromList: [{operator: Exists}]}}"), options: demo, problems: []string{"the pool of the pods of namespace a is unknown: they tolerate the taints of pools apps, jobs"}},
		"every value tolerated":     {read: both + buildMutator("ModifySet", "m", "namespaces: [a]", "spec.tolerations", "{values: {fromList: [{key: node-pool, operator: Exists}]}}"), options: demo, problems: []string{"they tolerate the taints of pools apps, jobs"}},
		"a taint that no pool has":  {read: both + buildMutator("ModifySet", "m", "namespaces: [a]", "spec.tolerations", "{values: {fromList: [{key: gpu, operator: Exists}]}}"), options: demo, problems: []string{"no pool of the input has taints that they tolerate"}},
		"one entry of tolerations":  {read: both + buildMutator("Assign", "m", "namespaces: [a]", "spec.tolerations[key: node-pool]", "{assign: {value: {key: node-pool, operator: Equal, value: jobs}}}"), options: demo, gives: onJobs},
		"tolerations of a template": {read: both + buildMutatorFor("apps", "Deployment", "ModifySet", "m", "namespaces: [a]", "spec.template.spec.tolerations", "{values: {fromList: [{key: node-pool, value: jobs}]}}"), options: demo, gives: onJobs},
	} {
		t.Run(name, r.checkMapping)
	}
}

// TestMatches tests each field by which a mutator selects objects.
func TestMatches(t *testing.T) {
	jobs := buildDedicatedPool("jobs")
	some := buildNamespace("a-prod", "team: a") + buildNamespace("a-test", "team: a, stage: test") + buildNamespace("b", "team: b") + buildNamespace("kube-system", "")
	prodAndTest := []string{`"tenants":{"a-prod":{"pool":"jobs"},"a-test":{"pool":"jobs"}}`}
	tolerate := func(match string) string {
		return buildMutator("ModifySet", "m", match, "spec.tolerations", "{operation: merge, values: {fromList: [{key: node-pool, operator: Equal, value: jobs, effect: NoSchedule}]}}")
	}
	on := func(match string) string { return jobs + some + buildSelectorAssign(match, "node-pool: jobs") }
	for name, r := range map[string]row{
		"a selector of labels":           {read: on("namespaceSelector: {matchLabels: {team: a}}"), options: demo, gives: prodAndTest},
		"a selector, tolerations":        {read: jobs + some + tolerate("scope: Namespaced, namespaceSelector: {matchLabels: {team: a}}"), options: demo, gives: prodAndTest},
		"a selector of expressions":      {read: on("namespaceSelector: {matchExpressions: [{key: team, operator: In, values: [a]}, {key: stage, operator: DoesNotExist}]}"), options: demo, gives: []string{`"tenants":{"a-prod":{"pool":"jobs"}}`}},
		"a selector of names":            {read: jobs + buildSelectorAssign("namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: a}}", "node-pool: jobs"), options: demo, gives: []string{`"tenants":{"a":{"pool":"jobs"}}`}},
		"a selector that none has":       {read: on("namespaceSelector: {matchLabels: {team: c}}"), options: demo, not: []string{"tenants:"}, problems: []string{"selects no namespace of the input"}},
		"a selector that is wrong":       {read: on("namespaceSelector: {matchExpressions: [{key: team, operator: Near}]}"), options: demo, problems: []string{"spec.match.namespaceSelector: places pods, and was not converted: cannot be read"}},
		"a selector, and a name unread":  {read: jobs + buildSelectorAssign("namespaces: [a], namespaceSelector: {matchLabels: {team: a}}", "node-pool: jobs"), options: demo, problems: []string{"the input lacks Namespace a"}},
		"names and a selector":           {read: on("namespaces: [a-prod, b], namespaceSelector: {matchLabels: {team: a}}"), options: demo, gives: []string{`"tenants":{"a-prod":{"pool":"jobs"}}`}},
		"excluded by name":               {read: on("namespaces: [\"a-*\", b], excludedNamespaces: [b]"), options: demo, gives: prodAndTest},
		"excluded by a pattern":          {read: on("excludedNamespaces: [\"kube-*\", \"*-test\", b]"), options: demo, gives: []string{`"tenants":{"a-prod":{"pool":"jobs"}}`}},
		"all excluded":                   {read: on("namespaces: [b], excludedNamespaces: [\"*\"]"), options: demo, not: []string{"tenants:"}, problems: []string{"selects no namespace of the input"}},
		"all namespaces":                 {read: jobs + buildNamespace("a", "") + buildNamespace("b", "") + buildSelectorAssign("scope: Namespaced", "node-pool: jobs"), options: demo, gives: []string{`"tenants":{"a":{"pool":"jobs"},"b":{"pool":"jobs"}}`}},
		"all namespaces, none read":      {read: jobs + buildSelectorAssign("scope: Namespaced", "node-pool: jobs"), options: demo, problems: []string{"selects no namespace of the input: add the Namespace objects"}},
		"namespaces that are exempt":     {read: jobs + buildNamespace("a", "") + buildNamespace("system", "admission.gatekeeper.sh/ignore: \"\"") + buildSelectorAssign("scope: Namespaced", "node-pool: jobs"), options: demo, gives: []string{`"tenants":{"a":{"pool":"jobs"}}`}},
		"a namespace of Kubernetes":      {read: on("namespaces: [a-prod, kube-system]"), options: demo, gives: []string{`"tenants":{"a-prod":{"pool":"jobs"}}`}, problems: []string{"kube-system is the name of a namespace of Kubernetes"}},
		"labels of pods":                 {read: on("namespaces: [b], labelSelector: {matchLabels: {app: db}}"), options: demo, not: []string{"tenants:"}, problems: []string{"Assign/selector: spec.match.labelSelector: places pods, and was not converted: applies to some objects"}},
		"expressions of labels of pods":  {read: on("namespaces: [b], labelSelector: {matchExpressions: [{key: app, operator: Exists}]}"), options: demo, problems: []string{"spec.match.labelSelector"}},
		"an empty selector of labels":    {read: on("namespaces: [b], labelSelector: {}"), options: demo, gives: []string{`"tenants":{"b":{"pool":"jobs"}}`}},
		"names of pods":                  {read: on("namespaces: [b], name: \"db-*\""), options: demo, not: []string{"tenants:"}, problems: []string{"spec.match.name"}},
		"objects outside of namespaces":  {read: on("namespaces: [b], scope: Cluster"), options: demo, not: []string{"tenants:"}, findings: []want{{source.Other, "Assign/selector ", "matches no pod"}}},
		"generated objects":              {read: on("namespaces: [b], source: Generated"), options: demo, not: []string{"tenants:"}, findings: []want{{source.Other, "Assign/selector ", "no pod"}}},
		"original objects":               {read: on("namespaces: [b], source: Original"), options: demo, gives: []string{`"tenants":{"b":{"pool":"jobs"}}`}},
		"other kinds":                    {read: on("namespaces: [b], kinds: [{apiGroups: [apps], kinds: [Deployment]}]"), options: demo, problems: []string{"spec.match.kinds"}},
		"every kind":                     {read: on("namespaces: [b], kinds: [{apiGroups: [\"*\"], kinds: [\"*\"]}]"), options: demo, gives: []string{`"tenants":{"b":{"pool":"jobs"}}`}},
		"an unknown condition":           {read: on("namespaces: [b], phase: full"), options: demo, not: []string{"tenants:"}, problems: []string{"spec.match.phase: places pods, and was not converted: is a condition"}},
		"pods without a nodeSelector":    {read: jobs + buildMutator("Assign", "m", "namespaces: [b]", "spec.nodeSelector", "{pathTests: [{subPath: spec.nodeSelector, condition: MustNotExist}], assign: {value: {node-pool: jobs}}}"), options: demo, not: []string{"tenants:"}, problems: []string{"spec.parameters.pathTests"}},
		"pods with some values":          {read: jobs + buildMutator("Assign", "m", "namespaces: [b]", "spec.nodeSelector.node-pool", "{assignIf: {in: [x]}, assign: {value: jobs}}"), options: demo, not: []string{"tenants:"}, problems: []string{"spec.parameters.assignIf"}},
		"updates alone":                  {read: jobs + strings.Replace(buildSelectorAssign("namespaces: [b]", "node-pool: jobs"), "versions: [v1]", "versions: [v1], operations: [UPDATE]", 1), options: demo, problems: []string{"spec.applyTo[0].operations"}},
		"creation alone":                 {read: jobs + strings.Replace(buildSelectorAssign("namespaces: [b]", "node-pool: jobs"), "versions: [v1]", "versions: [v1], operations: [CREATE]", 1), options: demo, gives: []string{`"tenants":{"b":{"pool":"jobs"}}`}},
		"hosts for excluded namespaces":  {read: on("namespaces: [a-prod, b]") + strings.Replace(buildConstraint("Whatever", "Ingress", "{hosts: [shop.example.org]}"), "namespaces: [shop]", "excludedNamespaces: [b, \"*-test\", \"kube-*\"]", 1), options: demo, gives: []string{`"a-prod":{"domains":["shop.example.org"],"pool":"jobs"},"b":{"pool":"jobs"}`}},
		"hosts for some objects":         {read: on("namespaces: [b]") + strings.Replace(buildConstraint("Whatever", "Ingress", "{hosts: [shop.example.org]}"), "namespaces: [shop]", "namespaces: [b], labelSelector: {matchLabels: {app: web}}", 1), options: demo, not: []string{"domains"}, problems: []string{"spec.match.labelSelector: applies to some objects of its namespaces only"}},
		"hosts for namespaces not known": {read: on("namespaces: [b]") + strings.Replace(buildConstraint("Whatever", "Ingress", "{hosts: [shop.example.org]}"), "namespaces: [shop]", "namespaces: [\"x-*\"]", 1), options: demo, not: []string{"domains"}, problems: []string{"the hosts of this constraint are granted to no tenant"}},
	} {
		t.Run(name, r.checkMapping)
	}
}
