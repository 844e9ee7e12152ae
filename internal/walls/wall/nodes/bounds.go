package nodes

import "croft.dev/croft/internal/rules/admissionpolicy"

const (
	required  = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
	preferred = "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution"

	preferredPods  = "spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution"
	preferredApart = "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution"

	fewTerms = "the scheduler and Karpenter evaluate them for every node and instance type"
)

// podBounds are the bounds of fields that place a pod. No rule reads terms of node affinity,
// but the scheduler and Karpenter do, and all tenants share them.
var podBounds = []admissionpolicy.Bound{
	{
		Path: "spec.tolerations", Max: mostTolerations, UsedByPatch: true,
		Reason: "a tenant's pods tolerate its pools and the dozen conditions of nodes",
		Advice: "remove those that repeat others",
		Sample: `{"key": "node.kubernetes.io/condition-%d", "operator": "Exists"}`,
	},
	{
		Path: required, Max: 20,
		Reason: fewTerms,
		Advice: "write several values in one expression",
		Sample: `{}`,
	},
	{
		Path: required + "[].matchExpressions", Max: 100,
		Reason: fewTerms,
		Advice: "write several values in one expression",
		Sample: `{"key": "node.kubernetes.io/instance-type", "operator": "In"}`,
	},
	{
		Path: required + "[].matchFields", Max: 20,
		Reason: "metadata.name is the only field",
		Advice: "use matchExpressions",
		Sample: `{"key": "metadata.name", "operator": "In", "values": ["node-%d"]}`,
	},
	{
		Path: required + "[].matchExpressions[].values", Max: 2000,
		Reason: "AWS has about 1,000 types of instances",
		Advice: "use a label that several types share, such as the instance family",
		Sample: `"m%d.large"`,
	},
	{
		Path: preferredPods, Max: 20,
		Reason: fewTerms,
		Advice: "prefer by fewer terms",
		Sample: `{"weight": 1, "podAffinityTerm": {}}`,
	},
	{
		Path: preferredApart, Max: 20,
		Reason: fewTerms,
		Advice: "prefer by fewer terms",
		Sample: `{"weight": 1, "podAffinityTerm": {}}`,
	},
	{
		Path: preferred, Max: 20,
		Reason: fewTerms,
		Advice: "prefer several values in one expression",
		Sample: `{"weight": 1, "preference": {}}`,
	},
	{
		Path: preferred + "[].preference.matchExpressions", Max: 100,
		Reason: fewTerms,
		Advice: "prefer several values in one expression",
		Sample: `{"key": "node.kubernetes.io/instance-type", "operator": "In"}`,
	},
	{
		Path: preferred + "[].preference.matchFields", Max: 20,
		Reason: "metadata.name is the only field",
		Advice: "prefer by matchExpressions",
		Sample: `{"key": "metadata.name", "operator": "In", "values": ["node-%d"]}`,
	},
	{
		Path: preferred + "[].preference.matchExpressions[].values", Max: 2000,
		Reason: "AWS has about 1,000 types of instances",
		Advice: "prefer by a label that several share, such as the instance family",
		Sample: `"m%d.large"`,
	},
}

const mostTolerations = 100

// listTemplateBounds are the bounds of the lists that placeDaemonSets iterates over.
func listTemplateBounds() []admissionpolicy.Bound {
	return []admissionpolicy.Bound{{Path: "spec.template.spec.tolerations", Max: mostTolerations}}
}
