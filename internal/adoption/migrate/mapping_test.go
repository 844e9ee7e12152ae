package migrate_test

import (
	"slices"
	"strings"
	"testing"

	"croft.dev/croft/internal/adoption/migrate"
	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
)

// want is the expected outcome of a field.
type want struct {
	outcome source.Outcome
	field   string
	message string
}

// row is one row of a mapping: the input, the expected parts of croft.yaml or the node classes,
// the report's findings, and the problems.
type row struct {
	read     string
	options  draft.Options
	gives    []string
	not      []string
	findings []want
	problems []string
}

func (r row) checkMapping(t *testing.T) {
	t.Helper()
	objects, problems := source.Parse("read.yaml", []byte(r.read))
	result := migrate.Migrate(objects, problems, r.options)
	expectAccounted(t, objects, result)
	file, err := result.File.YAML()
	if err != nil {
		t.Fatal(err)
	}
	written := string(file)
	for _, m := range result.Manifests {
		written += formatFlow(t, m.Object)
	}
	written += formatFlow(t, decodeYAML(t, file))
	for _, text := range r.gives {
		if !strings.Contains(written, text) {
			t.Errorf("croft.yaml lacks %s:\n%s", text, written)
		}
	}
	for _, text := range r.not {
		if strings.Contains(written, text) {
			t.Errorf("croft.yaml has %s:\n%s", text, written)
		}
	}
	for _, w := range r.findings {
		if !slices.ContainsFunc(result.Findings, func(f source.Finding) bool {
			return f.Outcome == w.outcome && strings.HasSuffix(f.Object+" "+f.Field, w.field) && strings.Contains(f.Message+strings.Join(f.To, " "), w.message)
		}) {
			t.Errorf("no finding that %s is %s: %q\n%s", w.field, w.outcome, w.message, result.Markdown())
		}
	}
	var messages []string
	for _, p := range result.Problems {
		messages = append(messages, p.Error())
	}
	for _, text := range r.problems {
		if !slices.ContainsFunc(messages, func(line string) bool { return strings.Contains(line, text) }) {
			t.Errorf("no problem contains %q, only:\n%s", text, strings.Join(messages, "\n"))
		}
	}
	if len(r.problems) > 0 {
		return
	}
	if len(messages) > 0 {
		t.Errorf("there are problems:\n%s", strings.Join(messages, "\n"))
	}
	if err := result.File.Problems().Err(); err != nil {
		t.Errorf("croft check refuses croft.yaml: %v", err)
	}
}

const provisioner = `
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: jobs}
spec:
  provider:
    subnetSelector: {karpenter.sh/discovery: demo}
    securityGroupSelector: {karpenter.sh/discovery: demo}
    instanceProfile: nodes
  labels: {node-pool: jobs}
  taints: [{key: node-pool, value: jobs, effect: NoSchedule}]
`

// untied is a Provisioner whose nodes accept every pod.
var untied = strings.Split(provisioner, "  labels:")[0]

// buildInlineProvisioner returns a Provisioner with its node class inline.
func buildInlineProvisioner(spec string) string {
	return provisioner + "  " + strings.ReplaceAll(spec, "\n", "\n  ") + "\n"
}

// buildSharedProvisioner returns a Provisioner that refers to an AWSNodeTemplate.
func buildSharedProvisioner(template string) string {
	return `
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: jobs}
spec: {providerRef: {name: nodes}, labels: {node-pool: jobs}, taints: [{key: node-pool, value: jobs, effect: NoSchedule}]}
---
apiVersion: karpenter.k8s.aws/v1alpha1
kind: AWSNodeTemplate
metadata: {name: nodes}
spec:
  ` + strings.ReplaceAll(template, "\n", "\n  ") + "\n"
}

const selectors = "subnetSelector: {karpenter.sh/discovery: demo}\nsecurityGroupSelector: {karpenter.sh/discovery: demo}\ninstanceProfile: nodes\n"

func TestProvisioners(t *testing.T) {
	for name, r := range map[string]row{
		"unset times mean never": {read: provisioner, gives: []string{`"emptyTTL":"Never"`, `"ttl":"Never"`, `"terminationGracePeriod":"Never"`},
			findings: []want{{source.Kept, "spec.ttlSecondsAfterEmpty", "sets Never"}, {source.Kept, "spec.ttlSecondsUntilExpired", "sets Never"}}},
		"seconds":       {read: buildInlineProvisioner("ttlSecondsAfterEmpty: 600\nttlSecondsUntilExpired: 604800"), gives: []string{`"emptyTTL":"10m"`, `"ttl":"168h"`}, findings: []want{{source.Kept, "spec.ttlSecondsAfterEmpty", "pools.jobs.emptyTTL"}, {source.Changed, "spec.ttlSecondsUntilExpired", "budgets"}}},
		"consolidation": {read: buildInlineProvisioner("consolidation: {enabled: true}"), gives: []string{`"consolidation":"WhenEmptyOrUnderutilized"`, `"emptyTTL":"0s"`}},
		"none of both":  {read: buildInlineProvisioner("consolidation: {enabled: false}"), gives: []string{`"emptyTTL":"Never"`}},
		"webhook defaults": {read: provisioner, gives: []string{`"capacityTypes":["on-demand"]`, `"architectures":["amd64"]`, `{"key":"karpenter.k8s.aws/instance-category","operator":"In","values":["c","m","r"]}`,
			`{"key":"karpenter.k8s.aws/instance-generation","operator":"Gt","values":["2"]}`}},
		"no category where a type is given": {read: buildInlineProvisioner("requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [t3a.large]}]"), gives: []string{`"instanceTypes":["t3a.large"]`}, not: []string{"instance-category"}},
		"no category where a family is": {read: buildInlineProvisioner("requirements: [{key: karpenter.k8s.aws/instance-family, operator: NotIn, values: [t3]}]"),
			gives: []string{`{"key":"karpenter.k8s.aws/instance-family","operator":"NotIn","values":["t3"]}`}, not: []string{"instance-category"}},
		"requirements": {read: buildInlineProvisioner("requirements:\n- {key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand]}\n- {key: kubernetes.io/arch, operator: In, values: [arm64]}\n- {key: topology.kubernetes.io/zone, operator: In, values: [a, b]}\n- {key: kubernetes.io/os, operator: In, values: [linux]}"),
			gives: []string{`"capacityTypes":["spot","on-demand"]`, `"architectures":["arm64"]`, `{"key":"topology.kubernetes.io/zone","operator":"In","values":["a","b"]}`}},
		"a label's older name":              {read: buildInlineProvisioner("requirements: [{key: beta.kubernetes.io/arch, operator: In, values: [arm64]}]"), gives: []string{`"architectures":["arm64"]`}, findings: []want{{source.Changed, "requirements[0].key", "kubernetes.io/arch"}}},
		"a bound that a Pool does not know": {read: buildInlineProvisioner("requirements: [{key: karpenter.k8s.aws/instance-cpu, operator: Gte, values: [\"4\"]}]"), gives: []string{`{"key":"karpenter.k8s.aws/instance-cpu","operator":"Gt","values":["3"]}`}},
		"Windows":                           {read: buildInlineProvisioner("requirements: [{key: kubernetes.io/os, operator: In, values: [windows]}]"), findings: []want{{source.NotKept, "requirements[0]", "Linux"}}, problems: []string{"spec.requirements[0]: croft's nodes run only Linux"}},
		"limits and weight":                 {read: buildInlineProvisioner("limits: {resources: {cpu: 100, memory: 400Gi}}\nweight: 10"), gives: []string{`"limits":{"cpu":"100","memory":"400Gi"}`, `"weight":10`}},
		"a wrong limit":                     {read: buildInlineProvisioner("limits: {resources: {cpu: lots}}"), problems: []string{`read.yaml:12: Provisioner/jobs: spec.limits.resources.cpu: "lots" is not a quantity`}},
		"startup taints":                    {read: buildInlineProvisioner("startupTaints: [{key: cilium, effect: NoSchedule}]"), gives: []string{`"startupTaints":[{"effect":"NoSchedule","key":"cilium"}]`}, findings: []want{{source.Kept, "spec.startupTaints[0]", "pools.jobs.startupTaints"}}},
		"node annotations":                  {read: buildInlineProvisioner("annotations: {karpenter.sh/do-not-consolidate: \"true\"}"), gives: []string{`"budgets":[{"nodes":"10%"},{"nodes":"0","reasons":["Underutilized"]}]`}, findings: []want{{source.Kept, `spec.annotations["karpenter.sh/do-not-consolidate"]`, "budget"}}},
		"an unknown field":                  {read: buildInlineProvisioner("turbo: {level: 11}"), findings: []want{{source.NotKept, "spec.turbo.level", "does not know this field"}}},
		"another taint": {read: strings.Replace(provisioner, "taints: [", "taints: [{key: gpu, value: \"yes\", effect: NoSchedule}, ", 1),
			findings: []want{{source.NotKept, "spec.taints[0]", "only the taint of their pool"}, {source.Changed, "spec.taints[1].effect", "NoExecute"}}, problems: []string{"spec.taints[0]: a Pool's nodes have only the taint node-pool"}},
		"other labels": {read: strings.Replace(provisioner, "labels: {", "labels: {team: shop, example.org/cost-code: org1, ", 1),
			gives: []string{`{"key":"team","operator":"In","values":["shop"]}`, `"costCode":"org1"`}},
		"no tie": {read: untied, findings: []want{{source.Changed, "spec.taints", "lack the label or the taint"}}, gives: []string{`"jobs":{`}},
		"another value than the name": {read: strings.ReplaceAll(strings.ReplaceAll(provisioner, "node-pool: jobs", "node-pool: ci"), "value: jobs", "value: ci"),
			findings: []want{{source.Changed, `spec.labels.node-pool`, "no longer ci"}}},
		"dots in the name": {read: strings.Replace(provisioner, "name: jobs", "name: jobs.v1", 1), gives: []string{`"jobs-v1":{`}, findings: []want{{source.Changed, "metadata.name", "no dots"}}},
	} {
		t.Run(name, r.checkMapping)
	}
}

func TestNodeTemplates(t *testing.T) {
	for name, r := range map[string]row{
		"all that croft.yaml supports": {read: buildSharedProvisioner(selectors + "tags: {Team: shop, CostCode: org1}"),
			gives:    []string{`"nodeClass":{"aws":{"amiAlias":"al2023@latest","instanceProfile":"nodes"}}`, `"tags":{"Team":"shop"}`, `"costCode":"org1"`, `"clusterName":"demo"`},
			findings: []want{{source.Changed, "spec.amiFamily", "Amazon Linux 2"}, {source.Changed, "spec.metadataOptions", "hops"}}},
		"discovery of another tag": {read: buildSharedProvisioner("subnetSelector: {Name: \"*private*\"}\nsecurityGroupSelector: {Name: \"*private*\"}\ninstanceProfile: nodes"), options: draft.Options{ClusterName: "demo"},
			gives: []string{`"discovery":{"Name":"*private*"}`}},
		"Bottlerocket": {read: buildSharedProvisioner(selectors + "amiFamily: Bottlerocket"), gives: []string{`"amiAlias":"bottlerocket@latest"`}, findings: []want{{source.Kept, "spec.amiFamily", "amiAlias"}}},
		"a disk": {read: buildSharedProvisioner(selectors + "blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 100Gi}}]"),
			gives: []string{`"aws":{"amiAlias":"al2023@latest","blockDeviceMappings":[{"deviceName":"/dev/xvda","ebs":{"volumeSize":"100Gi"}}],"instanceProfile":"nodes"}`}, not: []string{"EC2NodeClass"},
			findings: []want{{source.Changed, "spec.blockDeviceMappings[0].ebs.encrypted", "croft sets true"}, {source.Changed, "spec.blockDeviceMappings[0].ebs.volumeType", "gp2"},
				{source.Kept, "spec.blockDeviceMappings", "nodeClass.aws.blockDeviceMappings"}}},
		"public addresses": {read: buildSharedProvisioner(selectors), findings: []want{{source.Changed, "spec.associatePublicIPAddress", "croft sets false"}}},
		"more than croft.yaml supports": {read: buildSharedProvisioner(selectors + "context: reserved"),
			gives: []string{`"nodeClass":{"ref":{"group":"karpenter.k8s.aws","kind":"EC2NodeClass","name":"nodes"}}`, `"context":"reserved"`,
				`"httpPutResponseHopLimit":2`, `"subnetSelectorTerms":[{"tags":{"karpenter.sh/discovery":"demo"}}]`, `"amiSelectorTerms":[{"alias":"al2023@latest"}]`}},
		"a value that croft check refuses": {read: buildSharedProvisioner(selectors + "blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 100}}]"),
			gives: []string{`"ref":{"group":"karpenter.k8s.aws","kind":"EC2NodeClass","name":"nodes"}`, `"volumeSize":100`}},
		"hops that were set stay": {read: buildSharedProvisioner(selectors + "metadataOptions: {httpPutResponseHopLimit: 3}"), gives: []string{`"httpPutResponseHopLimit":3`}, not: []string{`HopLimit":2`}},
		"a list of ids": {read: buildSharedProvisioner("subnetSelector: {aws-ids: \"subnet-1,subnet-2\"}\nsecurityGroupSelector: {\"aws::ids\": \"sg-1, sg-2\"}\ninstanceProfile: nodes"), options: draft.Options{ClusterName: "demo"},
			gives: []string{`"subnetSelectorTerms":[{"id":"subnet-1"},{"id":"subnet-2"}]`, `"securityGroupSelectorTerms":[{"id":"sg-1"},{"id":"sg-2"}]`}},
		"ids and tags never together": {read: buildSharedProvisioner("subnetSelector: {aws-ids: subnet-1, Name: private}\nsecurityGroupSelector: {a: b}\ninstanceProfile: nodes"), options: draft.Options{ClusterName: "demo"},
			gives: []string{`"subnetSelectorTerms":[{"id":"subnet-1"}]`}, findings: []want{{source.NotKept, "spec.subnetSelector.Name", "either an id or tags"}}},
		"a list of values":                {read: buildSharedProvisioner("subnetSelector: {Name: \"a,b\"}\nsecurityGroupSelector: {Name: c}\ninstanceProfile: nodes"), options: draft.Options{ClusterName: "demo"}, gives: []string{`"subnetSelectorTerms":[{"tags":{"Name":"a"}},{"tags":{"Name":"b"}}]`}},
		"a wildcard stays a value":        {read: buildSharedProvisioner("subnetSelector: {Name: \"*x\"}\nsecurityGroupSelector: {Name: \"*\"}\ninstanceProfile: nodes"), options: draft.Options{ClusterName: "demo"}, gives: []string{`"tags":{"Name":"*x"}`, `"tags":{"Name":"*"}`}},
		"images by name and owner":        {read: buildSharedProvisioner(selectors + "amiFamily: AL2\namiSelector: {\"aws::name\": \"a,b\", \"aws::owners\": self}"), gives: []string{`"amiSelectorTerms":[{"name":"a","owner":"self"},{"name":"b","owner":"self"}]`, `"amiFamily":"AL2"`}},
		"images of one's own, no family":  {read: buildSharedProvisioner(selectors + "amiSelector: {team: shop}"), gives: []string{`"amiFamily":"AL2"`}, findings: []want{{source.Kept, "spec.amiFamily", "is written"}}},
		"a family without images":         {read: buildSharedProvisioner(selectors + "amiFamily: Ubuntu"), problems: []string{"AWSNodeTemplate/nodes: spec.amiFamily: Karpenter v1 does not discover images of Ubuntu"}},
		"a script for Amazon Linux 2":     {read: buildSharedProvisioner(selectors + "userData: /etc/eks/bootstrap.sh $CLUSTER"), gives: []string{`"userData":"/etc/eks/bootstrap.sh $CLUSTER"`}, findings: []want{{source.Changed, "spec.userData", "nodeadm"}}},
		"a launch template":               {read: buildSharedProvisioner("launchTemplate: mine\nsubnetSelector: {a: b}"), options: draft.Options{ClusterName: "demo"}, problems: []string{"read.yaml:11: AWSNodeTemplate/nodes: spec.launchTemplate: launch templates cannot be converted", "platform.nodeClass"}},
		"a template that was not read":    {read: strings.Split(buildSharedProvisioner(selectors), "---")[0], options: draft.Options{ClusterName: "demo"}, problems: []string{"the input has no AWSNodeTemplate nodes", "platform.nodeClass"}},
		"no instance profile":             {read: buildSharedProvisioner("subnetSelector: {a: b}\nsecurityGroupSelector: {a: b}"), options: draft.Options{ClusterName: "demo"}, problems: []string{"Karpenter v1 needs role or instanceProfile"}},
		"the settings' profile":           {read: buildSharedProvisioner("subnetSelector: {a: b}\nsecurityGroupSelector: {a: b}") + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: karpenter-global-settings, namespace: karpenter}\ndata: {aws.clusterName: demo, aws.defaultInstanceProfile: theirs}\n", gives: []string{`"instanceProfile":"theirs"`, `"clusterName":"demo"`}},
		"kubelets of containerd":          {read: strings.Replace(buildSharedProvisioner(selectors), "{providerRef", "{kubeletConfiguration: {containerRuntime: containerd, maxPods: 20}, providerRef", 1), gives: []string{`"kubelet":{"maxPods":20}`}, findings: []want{{source.NotKept, "kubeletConfiguration.containerRuntime", "containerd"}}},
		"name servers that all pools ask": {read: strings.Replace(buildSharedProvisioner(selectors), "{providerRef", "{kubeletConfiguration: {clusterDNS: [10.0.0.10]}, providerRef", 1), gives: []string{`"clusterDNS":["10.0.0.10"]`, `"aws":{`}},
		"two kubelets on one template": {
			read: strings.Replace(buildSharedProvisioner(selectors), "{providerRef", "{kubeletConfiguration: {maxPods: 20}, providerRef", 1) + "---" +
				strings.ReplaceAll(strings.Replace(strings.Split(buildSharedProvisioner(selectors), "---")[0], "{providerRef", "{kubeletConfiguration: {maxPods: 50}, providerRef", 1), "jobs", "apps"),
			gives:    []string{`"kubelet":{"maxPods":20}`, `"nodeClass":{"aws":{"kubelet":{"maxPods":50}}}`},
			findings: []want{{source.Kept, "spec.instanceProfile", "platform.nodeClass.aws.instanceProfile"}, {source.Kept, "kubeletConfiguration.maxPods", "pools.apps.nodeClass.aws.kubelet.maxPods"}}},
		"two kubelets on one that croft does not support": {
			read: strings.Replace(buildSharedProvisioner(selectors+"context: reserved"), "{providerRef", "{kubeletConfiguration: {maxPods: 20}, providerRef", 1) + "---" +
				strings.ReplaceAll(strings.Replace(strings.Split(buildSharedProvisioner(selectors), "---")[0], "{providerRef", "{kubeletConfiguration: {maxPods: 50}, providerRef", 1), "jobs", "apps"),
			gives: []string{`"kubelet":{"maxPods":20}`, `"kubelet":{"maxPods":50}`, `"name":"nodes-apps"`}},
		"settings of one pool only": {
			read: strings.Replace(buildSharedProvisioner(selectors), "{providerRef", "{kubeletConfiguration: {maxPods: 20}, providerRef", 1) + "---" +
				strings.ReplaceAll(strings.ReplaceAll(provisioner, "name: jobs", "name: apps"), "instanceProfile: nodes", "instanceProfile: nodes\n    userData: echo"),
			gives: []string{`"platform":{"clusterName":"demo","nodeClass":{"aws":{}}`, `"kubelet":{"maxPods":20}`, `"userData":"echo"`}},
		"simulated nodes": {read: buildSharedProvisioner(selectors + "userData: x"), options: draft.Options{Kwok: true}, gives: []string{`"nodeClass":{"kwok":{}}`}, not: []string{"EC2NodeClass"}},
	} {
		t.Run(name, r.checkMapping)
	}
}

const nodePool = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: jobs}
spec:
  template:
    metadata: {labels: {node-pool: jobs}}
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      taints: [{key: node-pool, value: jobs, effect: NoSchedule}]
`

// TestFormerNames expects the report to list labels and annotations of an old Karpenter in
// workloads.
func TestFormerNames(t *testing.T) {
	row{read: nodePool + "---\n{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: shop}, spec: {template: {metadata: {annotations: {karpenter.sh/do-not-evict: \"true\"}}, spec: {nodeSelector: {karpenter.sh/provisioner-name: jobs}}}}}\n",
		options: draft.Options{ClusterName: "demo"}, findings: []want{
			{source.Other, "Deployment/shop/a ", "does not read"},
			{source.NotKept, `annotations["karpenter.sh/do-not-evict"]`, "doNotDisrupt: true"},
			{source.NotKept, `nodeSelector["karpenter.sh/provisioner-name"]`, "karpenter.sh/nodepool"},
		}}.checkMapping(t)
}

// TestMigrateCroftObjects expects croft's API objects to be copied, and the objects that croft
// made from them to be left out.
func TestMigrateCroftObjects(t *testing.T) {
	row{read: "{apiVersion: croft.dev/v1alpha1, kind: Platform, metadata: {name: default}, spec: {clusterName: demo, nodeClass: {kwok: {}}, admins: [us]}}\n---\n" +
		"{apiVersion: croft.dev/v1alpha1, kind: Pool, metadata: {name: jobs}, spec: {ttl: 48h}}\n---\n" +
		"{apiVersion: croft.dev/v1alpha1, kind: Tenant, metadata: {name: shop}, spec: {pool: jobs, namespaces: [web]}}\n---" +
		strings.Replace(nodePool, "{name: jobs}", "{name: jobs, labels: {app.kubernetes.io/managed-by: croft}}", 1),
		gives:    []string{`"admins":["us"]`, `"jobs":{"ttl":"48h"}`, `"shop":{"namespaces":["web"],"pool":"jobs"}`},
		findings: []want{{source.Other, "NodePool/jobs ", "from the declared objects"}}}.checkMapping(t)
}

// open is a NodePool whose nodes accept every pod.
const open = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: open}
spec: {template: {spec: {nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}}}}
---`

func TestNodePools(t *testing.T) {
	named := draft.Options{ClusterName: "demo"}
	for name, r := range map[string]row{
		"defaults are written out": {read: nodePool, options: named,
			gives: []string{`"ttl":"720h"`, `"terminationGracePeriod":"Never"`, `"consolidation":"WhenEmptyOrUnderutilized"`, `"emptyTTL":"0s"`, `"capacityTypes":["on-demand","spot","reserved"]`, `"architectures":["amd64","arm64"]`,
				`"ref":{"group":"karpenter.k8s.aws","kind":"EC2NodeClass","name":"default"}`},
			findings: []want{{source.Kept, "template.spec.expireAfter", "720h"}}},
		"times": {read: nodePool + "      expireAfter: Never\n      terminationGracePeriod: 1h30m0s\n  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 90s, budgets: [{nodes: 10%}]}\n", options: named,
			gives: []string{`"ttl":"Never"`, `"terminationGracePeriod":"90m"`, `"consolidation":"WhenEmpty"`, `"emptyTTL":"90s"`}, not: []string{"budgets"}},
		"budgets":             {read: nodePool + "  disruption: {budgets: [{nodes: \"3\", schedule: \"0 9 * * *\", duration: 8h0m0s, reasons: [Drifted]}]}\n", options: named, gives: []string{`"budgets":[{"duration":"8h","nodes":"3","reasons":["Drifted"],"schedule":"0 9 * * *"}]`}},
		"consolidation never": {read: nodePool + "  disruption: {consolidateAfter: Never}\n", options: named, gives: []string{`"consolidation":"WhenEmpty"`, `"emptyTTL":"Never"`}},
		"a fixed size": {read: nodePool + "  replicas: 3\n", options: named, gives: []string{`"jobs-dynamic":{`}, not: []string{`"jobs":{`},
			findings: []want{{source.NotKept, "spec.replicas", "as many nodes"}}, problems: []string{"NodePool/jobs: spec.replicas: a Pool has no fixed number of nodes, and Karpenter does not allow you to remove replicas from a NodePool: croft.yaml has the new pool jobs-dynamic"}},
		"running nodes are held": {read: nodePool, options: draft.Options{ClusterName: "demo", HoldNodes: true}, gives: []string{`"budgets":[{"nodes":"10%"},{"nodes":"0","reasons":["Drifted"]}]`},
			findings: []want{{source.Changed, "spec.disruption.budgets", "remove {nodes"}}},
		"v1beta1": {read: strings.Replace(strings.Replace(nodePool, "karpenter.sh/v1\n", "karpenter.sh/v1beta1\n", 1), "      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}\n", "      nodeClassRef: {name: default}\n      kubelet: {maxPods: 20}\n", 1) +
			"  disruption: {consolidationPolicy: WhenUnderutilized, expireAfter: 48h}\n---\napiVersion: karpenter.k8s.aws/v1beta1\nkind: EC2NodeClass\nmetadata: {name: default}\nspec: {amiFamily: AL2, role: nodes, subnetSelectorTerms: [{id: a}], securityGroupSelectorTerms: [{id: b}]}\n",
			options: named, gives: []string{`"ttl":"48h"`, `"consolidation":"WhenEmptyOrUnderutilized"`, `"kubelet":{"maxPods":20}`, `"httpPutResponseHopLimit":2`, `"alias":"al2023@latest"`, `"role":"nodes"`}},
		"v1beta1 in croft.yaml": {read: strings.Replace(strings.Replace(nodePool, "karpenter.sh/v1\n", "karpenter.sh/v1beta1\n", 1), "{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}", "{name: default}\n      kubelet: {maxPods: 20}", 1) +
			"---\napiVersion: karpenter.k8s.aws/v1beta1\nkind: EC2NodeClass\nmetadata: {name: default}\nspec: {amiFamily: Bottlerocket, role: nodes, subnetSelectorTerms: [{id: subnet-1}], securityGroupSelectorTerms: [{id: sg-1}], tags: {Team: shop}, instanceStorePolicy: RAID0}\n",
			options: named, gives: []string{`"nodeClass":{"aws":{"amiAlias":"bottlerocket@latest","instanceStorePolicy":"RAID0","kubelet":{"maxPods":20},"role":"nodes","securityGroupSelectorTerms":[{"id":"sg-1"}],"subnetSelectorTerms":[{"id":"subnet-1"}]}}`, `"tags":{"Team":"shop"}`},
			findings: []want{{source.Changed, "spec.metadataOptions", "hops"}, {source.Kept, "spec.instanceStorePolicy", "nodeClass.aws.instanceStorePolicy"}}},
		"a field added to croft's class": {read: strings.Replace(nodePool, "name: default", "name: jobs", 1) +
			"---\napiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: jobs, labels: {croft.dev/pool: jobs}}\nspec: {role: nodes, context: mine, userData: x}\n", options: named,
			gives: []string{`"nodeClass":{"aws":{"role":"nodes","userData":"x"}}`}, findings: []want{{source.NotKept, "spec.context", "nodeClass.ref"}}},
		"an existing node class":         {read: nodePool + "---\napiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: default}\nspec: {role: nodes}\n", options: named, findings: []want{{source.Kept, "EC2NodeClass/default ", "stays as it is"}}},
		"the platform's own":             {read: open + pools, options: named, findings: []want{{source.Other, "NodePool/open ", "belongs to the platform"}}, not: []string{"open"}},
		"no tie, but a tenant":           {read: open + pools + strings.ReplaceAll(onJobs, "node-pool: jobs", "node-pool: open"), options: named, findings: []want{{source.Changed, "NodePool/open spec.template.spec.taints", "lack the label or the taint"}}, gives: []string{`"shop":{"pool":"open"}`}},
		"a Provisioner of the same name": {read: nodePool + "---" + provisioner, options: named, problems: []string{"NodePool/jobs: Provisioner/jobs at read.yaml:"}},
		"simulated":                      {read: strings.Replace(nodePool, "group: karpenter.k8s.aws, kind: EC2NodeClass", "group: karpenter.kwok.sh, kind: KWOKNodeClass", 1), options: named, gives: []string{`"nodeClass":{"kwok":{}}`}},
		"another cloud":                  {read: strings.Replace(nodePool, "group: karpenter.k8s.aws, kind: EC2NodeClass", "group: karpenter.azure.com, kind: AKSNodeClass", 1), options: named, gives: []string{`"ref":{"group":"karpenter.azure.com","kind":"AKSNodeClass","name":"default"}`}},
	} {
		t.Run(name, r.checkMapping)
	}
}
