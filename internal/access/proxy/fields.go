package proxy

import (
	"slices"
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
// field in neither list is hidden, and fails TestEveryFieldDecided. The decisions about the specs
// of Tenants and Pools are markers at their fields in api/v1alpha1: hack/fields writes them to
// zz_generated.fields.go.
type fieldPolicy struct{ shown, hidden []field }

// identityFields are shown for each kind: clients cannot work without them.
var identityFields = []field{
	{"metadata.name", "identifies the object"},
	{"metadata.uid", "identifies the object in ownerReferences and caches"},
	{"metadata.resourceVersion", "lists and watches need it"},
	{"metadata.creationTimestamp", "the age"},
	{"metadata.deletionTimestamp", "the object is being deleted"},
}

// hiddenMetadata are hidden for each kind.
var hiddenMetadata = []field{
	{"metadata.annotations", "any controller or person may write there, for example last-applied configurations"},
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
	{"status.observedGeneration", "shows whether the status describes the current spec"},
	{"status.conditions[].type", "the subject of the condition"},
	{"status.conditions[].status", "the state of the condition"},
	{"status.conditions[].reason", "the reason, as a documented constant"},
	{"status.conditions[].observedGeneration", "shows whether the condition describes the current spec"},
	{"status.conditions[].lastTransitionTime", "the time of the last change"},
}

var hiddenConditions = []field{
	{"status.conditions[].message", "names other tenants, such as the owner of a domain, and quotes errors of the cloud"},
}

var tenantFields = fieldPolicy{
	shown: slices.Concat([]field{
		{"metadata.generation", "detects a stale status"},
		{"status.pool", "the default pool"},
		{"status.pools", "all pools of the team"},
		{"status.namespaces", "the existing namespaces"},
		{"status.domains", "the team's hosts"},
		{"status.placement", "the engine that places the team's pods"},
		{"status.shares", "the share of each namespace in the quota"},
		{"status.refusedPods", "the team's workloads with refused pods, and the first reason"},
		{"status.budget", "the team's own cost, as the ledger shows it to the team, and the stage of its budget"},
	}, tenantSpecFields.shown, identityFields, conditionFields),
	hidden: slices.Concat([]field{
		{"metadata.labels", "the platform's own bookkeeping"},
		{"status.consents", "the UIDs of other teams' Tenants"},
	}, tenantSpecFields.hidden, hiddenMetadata, hiddenConditions),
}

var poolFields = fieldPolicy{
	shown: slices.Concat([]field{
		{"metadata.generation", "detects a stale status"},
		{"status.nodes", "the size of the pool"},
		{"status.resources", "the size of the pool"},
	}, poolSpecFields.shown, identityFields, conditionFields),
	hidden: slices.Concat([]field{
		{"metadata.labels", "the platform's own bookkeeping"},
		{"status.tenants", "counts other tenants"},
	}, poolSpecFields.hidden, hiddenMetadata, hiddenConditions),
}

var nodeFields = fieldPolicy{
	shown: append([]field{
		{"metadata.labels", "pods select nodes by them; only those of nodeLabels"},
		{"spec.unschedulable", "explains why the node gets no pods"},
		{"spec.taints", "explains why the node gets no pods, or why pods are evicted"},
		{"status.capacity", "the size of the node"},
		{"status.allocatable", "the maximum size of a pod"},
		{"status.conditions[].type", "the subject of the condition"},
		{"status.conditions[].status", "the state of the condition"},
		{"status.conditions[].reason", "the reason, as a constant"},
		{"status.conditions[].lastTransitionTime", "the time of the last change"},
		{"status.addresses", "pods have their node's address as hostIP"},
		{"status.nodeInfo.architecture", "images are built for one architecture or system"},
		{"status.nodeInfo.operatingSystem", "images are built for one architecture or system"},
		{"status.nodeInfo.kernelVersion", "the kernel of workloads; a pod can read it anyway"},
		{"status.nodeInfo.osImage", "the software that workloads run on"},
		{"status.nodeInfo.containerRuntimeVersion", "the software that workloads run on"},
		{"status.nodeInfo.kubeletVersion", "the features that pods can use"},
	}, identityFields...),
	hidden: append([]field{
		{"metadata.generation", "never set"},
		{"spec.podCIDR", "the network of every tenant's pods on the node"},
		{"spec.podCIDRs", "the network of every tenant's pods on the node"},
		{"spec.providerID", "the instance in the cloud account"},
		{"spec.configSource", "a removed feature"},
		{"spec.externalID", "a removed feature"},
		{"status.phase", "never set"},
		{"status.conditions[].message", "names other tenants' processes and pods, for example after they ran out of memory"},
		{"status.conditions[].lastHeartbeatTime", "changes constantly without meaning"},
		{"status.daemonEndpoints", "the port of the kubelet"},
		{"status.nodeInfo.machineID", "identifies the machine outside of the cluster"},
		{"status.nodeInfo.systemUUID", "identifies the machine outside of the cluster"},
		{"status.nodeInfo.bootID", "identifies the machine outside of the cluster"},
		{"status.nodeInfo.kubeProxyVersion", "a removed feature"},
		{"status.nodeInfo.swap", "irrelevant to teams"},
		{"status.images", "names images of every tenant on the node"},
		{"status.volumesInUse", "names volumes of every tenant on the node"},
		{"status.volumesAttached", "names volumes of every tenant on the node"},
		{"status.config", "a removed feature"},
		{"status.runtimeHandlers", "only needed to create RuntimeClasses, which the platform does"},
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
	{corev1.LabelInstanceTypeStable, "pods may request one"},
	{"topology.kubernetes.io/", "affinity and topology spread"},
	{nodeRolePrefix, "kubectl shows it"},
	{"karpenter.sh/capacity-type", "pods may request spot or on-demand"},
	{"karpenter.k8s.aws/instance-", "pods may request sizes and families"},
	{v1alpha1.CostCodeLabel, "cost allocation"},
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
	content, err := toContent(o)
	if err != nil {
		return err
	}
	kept, _ := t.pick(content).(map[string]any)
	return runtime.DefaultUnstructuredConverter.FromUnstructured(kept, into)
}

func toContent(o runtime.Object) (map[string]any, error) {
	if u, ok := o.(runtime.Unstructured); ok {
		return u.UnstructuredContent(), nil
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(o)
}

// pickLabels returns the labels of a node that teams see. key is the Platform's
// nodePoolKey.
func pickLabels(labels map[string]string, key string) map[string]string {
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
