package nodes

import (
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/admissionpolicy"
)

// DaemonSetPolicy is the name of the policy that places the pods of a tenant's DaemonSets.
const DaemonSetPolicy = "croft-placement-daemonsets"

// BindingPolicy is the name of the policy on requests that bind pods to nodes.
const BindingPolicy = "croft-binding"

// CapacityPolicy is the name of the policy on objects other than pods that request nodes.
const CapacityPolicy = "croft-capacity"

// The names of the rules that other code refers to.
const (
	NodeSelectorRule = "node-selector"
	TolerationsRule  = "tolerations"
	BindingRule      = "scheduler-binds"
	RuntimeClassRule = "runtime-class"
	NodeNameRule     = "node-name"
	SchedulerRule    = "scheduler"
	CapacityRule     = "pods-alone"
)

// buildPodPart returns the first two of the four layers of placement: pods are placed at creation,
// and the result is validated. The other two layers, the taints and a label that a node
// cannot forge, belong to each pool.
func buildPodPart(p *estate.Platform) admissionpolicy.Pods {
	poolKey := p.NodePoolKey
	variables, patch := buildPlacement(poolKey, "spec")
	asked, scheduling := buildSchedulingPart()
	// A CEL variable costs more than its value.
	keyed := func(expression string) string {
		return strings.ReplaceAll(expression, "KEY", admissionpolicy.Quote(poolKey))
	}
	return admissionpolicy.Pods{
		Bounds: podBounds,
		Variables: append([]admissionpolicy.Variable{
			{Name: "key", Expression: admissionpolicy.Quote(poolKey)},
			{Name: "pools", Expression: `params.spec.pools.map(p, string(p)).join(", ")`},
			{Name: "selected", Expression: keyed(`has(variables.spec.nodeSelector) && KEY in variables.spec.nodeSelector
				? variables.spec.nodeSelector[KEY] : ""`)},
		}, asked...),
		Rules: append([]admissionpolicy.Rule{
			{
				Name: TolerationsRule,
				Summary: "pods tolerate only the taint of the tenant's pools, the life cycle of nodes, " +
					"devices that they request and the platform's tolerations",
				Expression: `!has(variables.spec.tolerations) ||
					variables.spec.tolerations.all(t, ` + keyed(matchTolerated(p.Tolerations)) + `)`,
				Message: `"spec.tolerations: pods tolerate only keys below node.kubernetes.io/, ` +
					`the taint of their tenant's pools, which croft adds, ` +
					`taints of devices that they request, and platform.tolerations: ` +
					`remove tolerations of other keys, of every taint and of other pools. ` +
					`If you wrote none: the API server may add one for a device of which a container requests 0: ` +
					`remove the device"`,
			},
			{
				LoopFree: true,
				Name:     NodeNameRule, Summary: "pods do not choose their node",
				UsuallyFast: true, FastPath: `!has(variables.spec.nodeName)`,
				Expression: `!variables.new || !has(variables.spec.nodeName) || variables.spec.nodeName == ""`,
				Message: `"spec.nodeName: the scheduler chooses the node: remove the field, ` +
					`and require the kind of node by nodeAffinity"`,
			},
			{
				LoopFree: true,
				Name:     RuntimeClassRule,
				Summary: "pods use only the tenant's runtime classes, " +
					"since a class can add tolerations and a nodeSelector",
				UsuallyFast: true, FastPath: `!has(variables.spec.runtimeClassName)`,
				Expression: `!variables.new ||
					(params.spec.runtimeClassForce == "" || "runtimeClass" in params.spec.trial) &&
					("*" in params.spec.runtimeClasses ||
						variables.spec.runtimeClassName in params.spec.runtimeClasses) ||
					params.spec.runtimeClassForce != "" &&
					variables.spec.runtimeClassName == params.spec.runtimeClassForce`,
				Exception: "policy.runtimeClasses",
				Message: `"spec.runtimeClassName: " + variables.spec.runtimeClassName
					+ " is not among the runtime classes of tenant " + params.spec.tenant + ": "
					+ (params.spec.runtimeClassForce != "" ? params.spec.runtimeClassForce
						: params.spec.runtimeClasses.size() == 0
						? "none"
						: params.spec.runtimeClasses.map(c, string(c)).join(", "))
					+ "; leave the field out; a platform admin allows others by policy.runtimeClasses"`,
			},
			{
				LoopFree: true,
				Name:     SchedulerRule, Summary: "pods are scheduled by the default scheduler",
				UsuallyFast: true,
				FastPath: `!has(variables.spec.schedulerName) || ` +
					`variables.spec.schedulerName == "default-scheduler"`,
				Expression: `!variables.new`,
				Message: `"spec.schedulerName: pods of tenants are scheduled by default-scheduler: ` +
					`remove the field"`,
			},
		}, scheduling...),
		// An update is validated for changed fields only, so that pods which existed before
		// the policy can still be labelled, finished and deleted.
		PodRules: []admissionpolicy.Rule{{
			Name: NodeSelectorRule, Summary: "pods select one of the tenant's pools",
			// Most tenants have one pool.
			FastPath: keyed(`has(variables.spec.nodeSelector) && KEY in variables.spec.nodeSelector &&
				variables.spec.nodeSelector[KEY] == params.written.pools`),
			Expression: `variables.selected in params.spec.pools ||
				variables.specBefore.exists(s, variables.selected ==
					(has(s.nodeSelector) && variables.key in s.nodeSelector ? s.nodeSelector[variables.key] : ""))`,
			Message: `"spec.nodeSelector: pods of tenant " + params.spec.tenant + " run on pool " + variables.pools
				+ ": leave out " + variables.key + ", or set it to one of these"`,
		}},
		TemplateRules: []admissionpolicy.Rule{{
			Name: NodeSelectorRule,
			Summary: "templates name no pool that is not the tenant's: " +
				"their pods run on the tenant's default pool instead",
			Expression: `variables.selected == "" || variables.selected in params.spec.pools`,
			Message: `"its pods will run elsewhere: spec.nodeSelector: " + variables.selected
				+ " is not a pool of tenant " + params.spec.tenant + ": " + variables.pools
				+ ": leave out " + variables.key + ", or set it to one of these"`,
		}},
		PatchVariables: variables,
		Patch:          `!variables.new ? [] : ` + patch,
		PatchSummary:   "pods get the nodeSelector and the toleration of the tenant's pool",
		SkipPatch:      keyed(alreadyPlaced),
	}
}

// alreadyPlaced is the condition that a pod has the placement that place sets. In a changed
// pod, the pool's toleration is the last one. In other pods it hardly ever is, since the API
// server adds some of its own tolerations first. If the condition is true for a pod that has
// not been placed, the validation refuses the pod unless the pool is its tenant's.
const alreadyPlaced = `has(object.spec.nodeSelector) && KEY in object.spec.nodeSelector &&
	has(object.spec.tolerations) && object.spec.tolerations.size() > 0 &&
	[object.spec.tolerations[object.spec.tolerations.size() - 1]].all(t,
		has(t.key) && t.key == KEY && has(t.value) && t.value == object.spec.nodeSelector[KEY] &&
		(!has(t.operator) || t.operator == "Equal") && !has(t.effect))`

// matchTolerated returns the condition that pods of the tenant may have a toleration t. Most
// tolerations have the key KEY, or are the API server's own.
func matchTolerated(keys []string) string {
	listed := make([]string, len(keys))
	for i, key := range keys {
		listed[i] = admissionpolicy.Quote(key)
	}
	return `has(t.key) && (t.key.startsWith("node.kubernetes.io/") ||
		t.key == KEY && (!has(t.operator) || t.operator == "Equal") &&
		has(t.value) && (t.value == params.written.pools || t.value in params.spec.pools) ||
		t.key in [` + strings.Join(listed, ", ") + `] ||
		` + ofDevice + `) ||
	variables.specBefore.exists(s, has(s.tolerations) && t in s.tolerations)`
}

// ofDevice is the condition that t is the toleration which the API server's plugin
// ExtendedResourceToleration adds for a device, and that a container requests one or more of
// the device. Such a pod fits only on nodes with the device, so the toleration admits it to
// no other nodes, such as nodes with the taint karpenter.sh/disrupted, which is not a device.
// For a request of 0, the plugin would add any key that a pod names.
const ofDevice = `has(t.operator) && t.operator == "Exists" && has(t.effect) && t.effect == "NoSchedule" &&
	t.key != KEY && t.key.contains("/") && !t.key.contains("kubernetes.io/") &&
	(variables.spec.containers.exists(c, ` + requests + `) ||
		has(variables.spec.initContainers) && variables.spec.initContainers.exists(c, ` + requests + `))`

// requests is the condition that a container c has a limit of one or more of the device
// t.key. The API server requires limits for devices, and requests equal to the limits.
const requests = `has(c.resources) && has(c.resources.limits) && t.key in c.resources.limits &&
	sign(quantity(string(c.resources.limits[t.key]))) > 0`

// placeDaemonSets places the pods in the templates of DaemonSets. The DaemonSet controller
// creates a pod for every node that matches the template's own selector and tolerations,
// before any pod is admitted. Without placement in the template, it would create pods only
// for nodes that the tenant may not use.
func placeDaemonSets(poolKey string) admissionpolicy.Mutating {
	variables, patch := buildPlacement(poolKey, "spec", "template", "spec")
	return admissionpolicy.Mutating{
		Name:    DaemonSetPolicy,
		Summary: "DaemonSets get the nodeSelector and the toleration of the tenant's pool in their template",
		Resources: []admissionpolicy.Resource{{
			Group: "apps", Version: "v1", Resources: []string{"daemonsets"},
			Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
		}},
		MatchConditions: map[string]string{"within-bounds": admissionpolicy.BuildBoundsCondition(listTemplateBounds())},
		Variables:       variables,
		Patch:           patch,
	}
}

// buildPlacement sets the nodeSelector and adds the toleration of the tenant's pool in the pod spec at
// path. A pod may choose among its tenant's pools by a nodeSelector of its own. Affinity is
// not changed, so that a team can still request spot, arm64 or an instance type.
//
// The values are plain CEL maps: an Object{} inside a list can panic the request
// (kubernetes/kubernetes#139032), and an ApplyConfiguration may not change the atomic
// nodeSelector and tolerations at all.
func buildPlacement(poolKey string, path ...string) ([]admissionpolicy.Variable, string) {
	object, pointer := "object", ""
	for _, p := range path {
		object += "." + p
		pointer += "/" + p
	}
	variables := []admissionpolicy.Variable{
		{Name: "key", Expression: admissionpolicy.Quote(poolKey)},
		{Name: "pod", Expression: object},
		{Name: "asked", Expression: `has(variables.pod.nodeSelector) && variables.key in variables.pod.nodeSelector
			? variables.pod.nodeSelector[variables.key] : ""`},
		{Name: "pool", Expression: `variables.asked in params.spec.pools
			? variables.asked : string(params.spec.pools[0])`},
		{Name: "tolerated", Expression: `has(variables.pod.tolerations) && variables.pod.tolerations.exists(t,
			has(t.key) && t.key == variables.key && has(t.value) && t.value == variables.pool &&
			(!has(t.operator) || t.operator == "Equal") && !has(t.effect))`},
	}
	patch := `
		(has(variables.pod.nodeSelector)
			? [JSONPatch{op: "add", path: "` + pointer + `/nodeSelector/" + jsonpatch.escapeKey(variables.key),
				value: string(variables.pool)}]
			: [JSONPatch{op: "add", path: "` + pointer + `/nodeSelector",
				value: {variables.key: string(variables.pool)}}])
		+ (variables.tolerated
			? []
			: has(variables.pod.tolerations)
			? [JSONPatch{op: "add", path: "` + pointer + `/tolerations/-",
				value: {"key": variables.key, "operator": "Equal", "value": string(variables.pool)}}]
			: [JSONPatch{op: "add", path: "` + pointer + `/tolerations",
				value: [{"key": variables.key, "operator": "Equal", "value": string(variables.pool)}]}])`
	return variables, patch
}

// checkBinding allows only the scheduler to bind pods. A Binding has no data about its pod,
// so the policy can only compare the user.
func checkBinding() admissionpolicy.Validating {
	return admissionpolicy.Validating{
		Name: BindingPolicy,
		Resources: []admissionpolicy.Resource{{
			Version: "v1", Resources: []string{"pods/binding", "bindings"},
			Operations: []admissionv1.OperationType{admissionv1.Create},
		}},
		Rules: []admissionpolicy.Rule{{
			Name: BindingRule, Summary: "only the scheduler binds pods to nodes",
			Expression: `request.userInfo.username == "system:kube-scheduler"`,
			Message: `"only the scheduler binds pods of tenant " + params.spec.tenant
				+ " to nodes: create the pod without spec.nodeName and let it be scheduled"`,
		}},
	}
}

const (
	// everywhere calls the authorizer for the request's resource, in all namespaces.
	everywhere = `authorizer.group(request.resource.group).resource(request.resource.resource)`
	// clusterWide is the condition that the user may update or patch the resource in every
	// namespace.
	clusterWide = everywhere + `.check("update").allowed() ||
		` + everywhere + `.check("patch").allowed()`
)

// checkCapacity prevents tenants from requesting nodes, or occupying the scheduler, by
// objects other than pods. Karpenter and the scheduler read these objects and the templates
// that they name, and no rule on pods applies to them.
func checkCapacity() admissionpolicy.Validating {
	write := []admissionv1.OperationType{admissionv1.Create, admissionv1.Update}
	return admissionpolicy.Validating{
		Name:               CapacityPolicy,
		IgnoresTenantRules: true,
		Resources: []admissionpolicy.Resource{
			{
				Group: "autoscaling.x-k8s.io", Version: "*", Operations: write,
				Resources: []string{"capacitybuffers", "provisioningrequests"},
			},
			{
				Group: "scheduling.k8s.io", Version: "*", Operations: write,
				Resources: []string{"workloads", "podgroups"},
			},
		},
		Rules: []admissionpolicy.Rule{{
			Name: CapacityRule,
			Summary: "tenants request nodes only by pods: " +
				"only the platform writes CapacityBuffers, ProvisioningRequests, Workloads and PodGroups",
			Expression: `request.operation == "UPDATE" && dyn(object).spec == dyn(oldObject).spec || ` + clusterWide,
			Message: `request.kind.kind + ": it creates nodes or groups pods, ` +
				`and no rule on pods applies to it: ` +
				`create the pods themselves, with a low priority to reserve room; ` +
				`a platform admin may write it for you"`,
		}},
	}
}
