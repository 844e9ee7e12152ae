package proxy

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"croft.dev/croft/api/v1alpha1"
)

// field is a decision about a field of a kind and everything below it. Brackets denote the
// elements of a list.
type field struct {
	path string
	// why is the teams' use of the field, or the reason to hide it.
	why string
}

// fieldPolicy lists the fields of a kind that teams see and the fields that are hidden. A
// field in neither list is hidden, and fails TestEveryFieldDecided.
type fieldPolicy struct{ shown, hidden []field }

// identityFields are shown for each kind: clients cannot work without them.
var identityFields = []field{
	{"metadata.name", "identifies the object"},
	{"metadata.uid", "identifies the object in ownerReferences and caches"},
	{"metadata.resourceVersion", "lists and watches need it"},
	{"metadata.creationTimestamp", "the age"},
	{"metadata.deletionTimestamp", "the object is about to go"},
}

// hiddenMetadata are hidden for each kind.
var hiddenMetadata = []field{
	{"metadata.annotations", "any controller writes there, and so do people: last-applied configurations, other parts' notes"},
	{"metadata.managedFields", "names the platform's people and controllers, and the fields that are hidden"},
	{"metadata.ownerReferences", "names objects that teams cannot read"},
	{"metadata.finalizers", "names the platform's controllers"},
	{"metadata.deletionGracePeriodSeconds", "irrelevant to teams"},
	{"metadata.generateName", "never set"},
	{"metadata.selfLink", "never set"},
	{"metadata.namespace", "the kind has none"},
}

// conditionFields are shown for the conditions of croft's kinds.
var conditionFields = []field{
	{"status.observedGeneration", "whether the status is about the current spec"},
	{"status.conditions[].type", "what the condition is about"},
	{"status.conditions[].status", "whether it holds"},
	{"status.conditions[].reason", "why, as a documented constant"},
	{"status.conditions[].observedGeneration", "whether it is about the current spec"},
	{"status.conditions[].lastTransitionTime", "since when"},
}

var hiddenConditions = []field{
	{"status.conditions[].message", "names other tenants, such as the owner of a domain, and quotes errors of the cloud"},
}

var tenantFields = fieldPolicy{
	shown: append([]field{
		{"metadata.generation", "tells a stale status"},
		{"spec.pool", "where the team's pods run"},
		{"spec.pools", "where the team's pods may run"},
		{"spec.namespaces", "the team's own"},
		{"spec.access", "who of the team may do what; RoleBindings say the same"},
		{"spec.domains", "the hosts that the team may serve"},
		{"spec.quota", "what the team may use; ResourceQuotas say the same"},
		{"spec.quotaMinimums", "how the quota is divided"},
		{"spec.limits", "the defaults of the team's containers; LimitRanges say the same"},
		{"spec.network", "where the team's pods may connect to; TenantRules say the same"},
		{"spec.networks", "the secondary networks that the team's pods may be attached to"},
		{"spec.policy", "what the team's objects may ask for; TenantRules say the same"},
		{"spec.sources", "what Flux applies for the team"},
		{"spec.selfService", "how many namespaces the team may make itself; TenantRules say the same"},
		{"spec.costCode", "who pays; a label of the team's namespaces"},
		{"spec.deletion", "what becomes of the team's namespaces"},
		{"status.pool", "the default pool"},
		{"status.pools", "all pools of the team"},
		{"status.namespaces", "the namespaces that stand"},
		{"status.domains", "the hosts that are granted"},
		{"status.placement", "the engine that places the team's pods"},
		{"status.shares", "the share of each namespace in the quota"},
		{"status.refusedPods", "the team's workloads whose pods are refused, and the first reason"},
	}, append(identityFields, conditionFields...)...),
	hidden: append([]field{
		{"metadata.labels", "the platform's own bookkeeping"},
	}, append(hiddenMetadata, hiddenConditions...)...),
}

var poolFields = fieldPolicy{
	shown: append([]field{
		{"metadata.generation", "tells a stale status"},
		{"spec.instances", "which instances a pod may ask for"},
		{"spec.limits", "why no more nodes come"},
		{"spec.emptyTTL", "how long an empty node stays"},
		{"spec.consolidation", "whether pods are moved to save money"},
		{"spec.ttl", "how long a pod may stay on a node"},
		{"spec.terminationGracePeriod", "how long a node waits for its pods"},
		{"spec.budgets", "how many nodes go at once"},
		{"spec.costCode", "who pays; a label of the nodes"},
		{"spec.startupTaints", "why a new node takes no pods yet"},
		{"spec.waitForNetworks", "why a new node takes no pods yet"},
		{"status.nodes", "how large the pool is"},
		{"status.resources", "how large the pool is"},
	}, append(identityFields, conditionFields...)...),
	hidden: append([]field{
		{"metadata.labels", "the platform's own bookkeeping"},
		{"spec.weight", "orders the platform's pools among themselves"},
		{"spec.tags", "the cloud account's bookkeeping"},
		{"spec.nodeClass", "subnets, security groups, images and roles of the cloud account"},
		{"spec.secondaryNetworks", "names networks of the platform, which teams cannot read"},
		{"status.tenants", "counts other tenants"},
	}, append(hiddenMetadata, hiddenConditions...)...),
}

var nodeFields = fieldPolicy{
	shown: append([]field{
		{"metadata.labels", "pods select nodes by them; only those of nodeLabels"},
		{"spec.unschedulable", "why no pod comes to the node"},
		{"spec.taints", "why no pod comes to the node, or why pods leave"},
		{"status.capacity", "how large the node is"},
		{"status.allocatable", "how large a pod may be"},
		{"status.conditions[].type", "what the condition is about"},
		{"status.conditions[].status", "whether it holds"},
		{"status.conditions[].reason", "why, as a constant"},
		{"status.conditions[].lastTransitionTime", "since when"},
		{"status.addresses", "pods have their node's address as hostIP"},
		{"status.nodeInfo.architecture", "images are built for one"},
		{"status.nodeInfo.operatingSystem", "images are built for one"},
		{"status.nodeInfo.kernelVersion", "what workloads run on; a pod can ask the kernel"},
		{"status.nodeInfo.osImage", "what workloads run on"},
		{"status.nodeInfo.containerRuntimeVersion", "what workloads run on"},
		{"status.nodeInfo.kubeletVersion", "which features pods can use"},
	}, identityFields...),
	hidden: append([]field{
		{"metadata.generation", "never set"},
		{"spec.podCIDR", "the network of every tenant's pods on the node"},
		{"spec.podCIDRs", "the network of every tenant's pods on the node"},
		{"spec.providerID", "the instance in the cloud account"},
		{"spec.configSource", "a removed feature"},
		{"spec.externalID", "a removed feature"},
		{"status.phase", "never set"},
		{"status.conditions[].message", "names processes and pods of others, such as those that ran out of memory"},
		{"status.conditions[].lastHeartbeatTime", "changes constantly without meaning"},
		{"status.daemonEndpoints", "how to reach the kubelet"},
		{"status.nodeInfo.machineID", "identifies the machine beyond the cluster"},
		{"status.nodeInfo.systemUUID", "identifies the machine beyond the cluster"},
		{"status.nodeInfo.bootID", "identifies the machine beyond the cluster"},
		{"status.nodeInfo.kubeProxyVersion", "a removed feature"},
		{"status.nodeInfo.swap", "irrelevant to teams"},
		{"status.images", "names images of every tenant on the node"},
		{"status.volumesInUse", "names volumes of every tenant on the node"},
		{"status.volumesAttached", "names volumes of every tenant on the node"},
		{"status.config", "a removed feature"},
		{"status.runtimeHandlers", "what RuntimeClasses can be made of: the platform makes them"},
		{"status.features", "irrelevant to teams"},
		{"status.declaredFeatures", "irrelevant to teams"},
	}, hiddenMetadata...),
}

// nodeLabels are the labels of nodes that teams see, in addition to the Platform's
// nodePoolKey: the labels that pods select nodes by. A key that ends in a dash or slash is
// a prefix. Other labels are the platform's own bookkeeping.
var nodeLabels = []field{
	{corev1.LabelHostname, "affinity and topology spread"},
	{corev1.LabelArchStable, "images are built for one"},
	{corev1.LabelOSStable, "images are built for one"},
	{corev1.LabelInstanceTypeStable, "pods may ask for one"},
	{"topology.kubernetes.io/", "affinity and topology spread"},
	{nodeRolePrefix, "kubectl shows it"},
	{"karpenter.sh/capacity-type", "pods may ask for spot or on-demand"},
	{"karpenter.k8s.aws/instance-", "pods may ask for sizes and families"},
	{v1alpha1.CostCodeLabel, "who pays"},
}

// fieldTree is the set of paths that pick keeps. A tree without branches keeps everything
// below it.
type fieldTree map[string]fieldTree

func newFieldTree(shown []field) fieldTree {
	root := fieldTree{}
	for _, f := range shown {
		at := root
		for name := range strings.SplitSeq(strings.ReplaceAll(f.path, "[]", ""), ".") {
			if at[name] == nil {
				at[name] = fieldTree{}
			}
			at = at[name]
		}
	}
	return root
}

// pick returns the fields of value that are in the tree.
func (t fieldTree) pick(value any) any {
	if len(t) == 0 {
		return value
	}
	switch value := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for name, below := range t {
			if v, ok := value[name]; ok {
				kept[name] = below.pick(v)
			}
		}
		return kept
	case []any:
		kept := make([]any, len(value))
		for i, v := range value {
			kept[i] = t.pick(v)
		}
		return kept
	default:
		return nil // a scalar where the policy expects fields
	}
}

// pickFields fills into from the shown fields of a typed or unstructured object.
func (t fieldTree) pickFields(o runtime.Object, into any) error {
	content, err := contentOf(o)
	if err != nil {
		return err
	}
	kept, _ := t.pick(content).(map[string]any)
	return runtime.DefaultUnstructuredConverter.FromUnstructured(kept, into)
}

func contentOf(o runtime.Object) (map[string]any, error) {
	if u, ok := o.(runtime.Unstructured); ok {
		return u.UnstructuredContent(), nil
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(o)
}

// shownLabels returns the labels of a node that teams see. key is the Platform's
// nodePoolKey.
func shownLabels(labels map[string]string, key string) map[string]string {
	kept := map[string]string{}
	for name, value := range labels {
		if name == key || isShownLabel(name) {
			kept[name] = value
		}
	}
	return kept
}

func isShownLabel(name string) bool {
	for _, l := range nodeLabels {
		isPrefix := strings.HasSuffix(l.path, "/") || strings.HasSuffix(l.path, "-")
		if name == l.path || isPrefix && strings.HasPrefix(name, l.path) {
			return true
		}
	}
	return false
}
