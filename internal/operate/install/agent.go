package install

import (
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/secondary"
	"croft.dev/croft/internal/network/boot"
	"croft.dev/croft/internal/rules/admissionpolicy"
)

const (
	// AgentName is the name of the agent's objects.
	AgentName = "croft-agent"
	// NodesName is the name of the operator's rights on Nodes, which are only installed
	// with the agent, and of the policy that limits them.
	NodesName = "croft-nodes"
	// agentUser is the user name of the agent.
	agentUser = "system:serviceaccount:" + v1alpha1.AgentNamespace + ":" + AgentName
)

// buildAgentObjects returns the objects that run croft agent on the nodes of pools that wait for
// their networks, and the operator's rights to release these nodes to pods. With journal,
// the agent may read the node's journal.
func buildAgentObjects(image string, journal bool) []client.Object {
	meta := metav1.ObjectMeta{Namespace: v1alpha1.AgentNamespace, Name: AgentName}
	spec := buildAgentPod(image)
	if journal {
		mountJournal(&spec)
	}
	own := map[string]string{"app.kubernetes.io/name": AgentName}
	all := []client.Object{
		// The agent's pods use the node's network and write to a directory of the node, so
		// they need the privileged level.
		&corev1.Namespace{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{
				Name: v1alpha1.AgentNamespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "privileged"},
			},
		},
		newServiceAccount(v1alpha1.AgentNamespace, AgentName),
		&appsv1.DaemonSet{
			TypeMeta: metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "DaemonSet"}, ObjectMeta: meta,
			Spec: appsv1.DaemonSetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: own},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: own}, Spec: spec},
			},
		},
	}
	// RBAC cannot express "its own Node". Reading all Nodes reveals nothing about tenants,
	// and the policy limits writes.
	all = append(all, buildClusterRights(AgentName, v1alpha1.AgentNamespace, AgentName,
		newRule("", read, "nodes"), newRule("", []string{"patch"}, "nodes/status"))...)
	all = append(all, buildClusterRights(NodesName, namespace, name,
		newRule("", []string{"list", "watch", "patch"}, "nodes"), newRule("", []string{"patch"}, "nodes/status"))...)
	return append(append(all, buildAgentPolicy().Objects()...), buildNodesPolicy().Objects()...)
}

// buildAgentPod returns a pod on the node's own network. It runs as root, because a container
// that does not cannot get a capability. It has the one that configuring interfaces
// requires.
func buildAgentPod(image string) corev1.PodSpec {
	const directory = "files"
	spec := buildPod(image)
	spec.ServiceAccountName = AgentName
	spec.PriorityClassName = "system-node-critical"
	spec.HostNetwork = true
	spec.TopologySpreadConstraints = nil
	spec.SecurityContext.RunAsNonRoot, spec.SecurityContext.RunAsUser = nil, ptr.To[int64](0)
	spec.NodeSelector = map[string]string{v1alpha1.NodeNetworksLabel: "true"}
	// Tolerate all taints: the pool's, the one that the agent helps to remove, and the
	// taints of a node that is not ready yet.
	spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	spec.Volumes = []corev1.Volume{{Name: directory, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{
		Path: strings.TrimSuffix(secondary.ZoneFiles, "/"), Type: ptr.To(corev1.HostPathDirectoryOrCreate),
	}}}}
	c := &spec.Containers[0]
	c.Name = AgentName
	c.Args = []string{"agent", "--node=$(NODE_NAME)"}
	c.Env = []corev1.EnvVar{{Name: "NODE_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "spec.nodeName"}}}}
	c.Ports, c.LivenessProbe, c.ReadinessProbe = nil, nil, nil
	c.VolumeMounts = []corev1.VolumeMount{{Name: directory, MountPath: strings.TrimSuffix(secondary.ZoneFiles, "/")}}
	c.SecurityContext.Capabilities.Add = []corev1.Capability{"NET_ADMIN"}
	c.Resources = corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")},
	}
	return spec
}

// JournalName is the name of the volume with the node's journal.
const JournalName = "journal"

// mountJournal allows a pod to read the journal of its node. It mounts no other logs,
// because the logs of tenants' containers are next to it. The kubelet does not check
// whether the directory exists: the networks need the agent even if it cannot report the
// boot.
func mountJournal(spec *corev1.PodSpec) {
	const directory = "/var/log/journal"
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: JournalName, VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: directory, Type: ptr.To(corev1.HostPathUnset)},
	}})
	c := &spec.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: JournalName, MountPath: directory, ReadOnly: true})
	c.Args = append(c.Args, "--"+JournalName+"="+directory)
}

// limitNodeWrites returns a policy for one user's writes to Nodes.
func limitNodeWrites(policy, user string, rules ...admissionpolicy.Rule) admissionpolicy.Validating {
	return admissionpolicy.Validating{
		Name: policy, IgnoresTenantRules: true, ClusterWide: true,
		Resources: []admissionpolicy.Resource{{
			Version: "v1", Resources: []string{"nodes", "nodes/status"}, Operations: []admissionv1.OperationType{admissionv1.Update},
		}},
		MatchConditions: map[string]string{"by-" + policy: "request.userInfo.username == " + admissionpolicy.Quote(user)},
		Rules:           rules,
	}
}

// buildAgentPolicy limits the agent to the Node of its pod, by the claim that the API server
// adds to a pod's token, and there to its own condition and annotation. The API server
// accepts annotations in writes to the status, too.
func buildAgentPolicy() admissionpolicy.Validating {
	const node = `"authentication.kubernetes.io/node-name"`
	maxBoot := strconv.Itoa(boot.MaxEncoded)
	return limitNodeWrites(AgentName, agentUser,
		admissionpolicy.Rule{
			Name: "own-node", Summary: "croft's agent writes only the Node that its pod runs on",
			Expression: `has(request.userInfo.extra) && ` + node + ` in request.userInfo.extra &&
				request.name in request.userInfo.extra[` + node + `]`,
			Message: `"croft's agent may write only the Node that its pod runs on"`,
		},
		admissionpolicy.Rule{
			Name: "own-condition", Summary: "croft's agent writes only the condition " + v1alpha1.ConditionNetworksReady + " of a Node's status",
			Expression: onStatus + ` && ` + otherConditionsStay(v1alpha1.ConditionNetworksReady),
			Message:    `"croft's agent may write only the condition ` + v1alpha1.ConditionNetworksReady + ` of a Node's status"`,
		},
		admissionpolicy.Rule{
			Name: "own-annotation", Summary: "croft's agent writes only the annotation " + v1alpha1.BootAnnotation + " of a Node, with at most " + maxBoot + " characters",
			Expression: otherAnnotationsStay(v1alpha1.BootAnnotation) + ` &&
				size(object.metadata.?annotations[?"` + v1alpha1.BootAnnotation + `"].orValue("")) <= ` + maxBoot,
			Message: `"croft's agent may write only the annotation ` + v1alpha1.BootAnnotation + ` of a Node, with at most ` + maxBoot + ` characters"`,
		},
	)
}

// onStatus is true for a write to the status.
const onStatus = `has(request.subResource) && request.subResource == "status"`

// buildNodesPolicy limits the operator's writes to Nodes to the necessary fields.
func buildNodesPolicy() admissionpolicy.Validating {
	return limitNodeWrites(NodesName, admissionpolicy.OperatorUser,
		admissionpolicy.Rule{
			Name: "networks-only",
			Summary: "croft's operator writes only the annotation " + v1alpha1.NodeNetworksAnnotation + " of a Node, and removes only the taint " +
				v1alpha1.NetworksTaint,
			Expression: strings.NewReplacer("TAINT", v1alpha1.NetworksTaint).Replace(
				requireSame("metadata", "labels", "finalizers", "ownerReferences") + ` && ` +
					requireSame("spec", "podCIDR", "podCIDRs", "providerID", "unschedulable", "configSource", "externalID") + ` &&
			` + otherAnnotationsStay(v1alpha1.NodeNetworksAnnotation) + ` &&
			object.spec.?taints.orValue([]).all(t, t in oldObject.spec.?taints.orValue([])) &&
			oldObject.spec.?taints.orValue([]).all(t, t.key == "TAINT" || t in object.spec.?taints.orValue([]))`),
			Message: `"croft's operator may write only the annotation ` + v1alpha1.NodeNetworksAnnotation +
				` of a Node, and remove only the taint ` + v1alpha1.NetworksTaint + `"`,
		},
		admissionpolicy.Rule{
			Name:       "own-condition",
			Summary:    "croft's operator writes only the condition " + v1alpha1.ConditionPodNetworksReady + " of a Node's status",
			Expression: `!(` + onStatus + `) || ` + otherConditionsStay(v1alpha1.ConditionPodNetworksReady),
			Message:    `"croft's operator may write only the condition ` + v1alpha1.ConditionPodNetworksReady + ` of a Node's status"`,
		},
	)
}

// otherConditionsStay is true if a write to the status leaves labels and the status
// unchanged, except for one condition.
func otherConditionsStay(but string) string {
	return strings.ReplaceAll(requireSame("metadata", "labels", "finalizers", "ownerReferences")+` && `+
		requireSame("status", "capacity", "allocatable", "phase", "addresses", "daemonEndpoints", "nodeInfo", "images", "volumesInUse",
			"volumesAttached", "config", "runtimeHandlers", "features", "declaredFeatures")+` &&
				object.status.?conditions.orValue([]).filter(c, c.type != "CONDITION") ==
				oldObject.status.?conditions.orValue([]).filter(c, c.type != "CONDITION")`, "CONDITION", but)
}

// otherAnnotationsStay is true if a request leaves all annotations but one unchanged.
func otherAnnotationsStay(but string) string {
	return strings.ReplaceAll(`object.metadata.?annotations.orValue({}).all(k, k == "ANNOTATION" ||
				oldObject.metadata.?annotations[?k] == object.metadata.?annotations[?k]) &&
			oldObject.metadata.?annotations.orValue({}).all(k, k == "ANNOTATION" || k in object.metadata.?annotations.orValue({}))`,
		"ANNOTATION", but)
}

// requireSame is true if a request leaves fields unchanged.
func requireSame(parent string, fields ...string) string {
	all := make([]string, len(fields))
	for i, f := range fields {
		all[i] = "object." + parent + ".?" + f + " == oldObject." + parent + ".?" + f
	}
	return strings.Join(all, " && ")
}
