package policy

import (
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/admissionpolicy"
)

// buildPodPart returns the rules on pods apart from placement, and the patch that sets pull policies.
func buildPodPart(p *estate.Platform) admissionpolicy.Pods {
	pods, err := readPolicies()[admissionpolicy.PodsPolicy].BuildPods(p)
	utilruntime.Must(err)
	pods.PatchVariables, pods.Patch = setPullPolicy()
	// Match conditions cannot read the tenant's rules, so this condition assumes the pull
	// policy of most tenants. For other tenants the patch is evaluated again and changes
	// nothing.
	pods.SkipPatch = `object.spec.containers.all(c, c.imagePullPolicy == "Always") &&
		(!has(object.spec.initContainers) ||
			object.spec.initContainers.all(c, c.imagePullPolicy == "Always")) &&
		(!has(object.spec.volumes) ||
			object.spec.volumes.all(v, !has(v.image) ||
				has(v.image.pullPolicy) && v.image.pullPolicy == "Always"))`
	pods.PatchSummary = "containers and image volumes get the first of the tenant's imagePullPolicies, " +
		"unless theirs is one of them"
	pods.SettingPatch, pods.SkipSettingPatch = setMissingSettings, `has(object.spec.runtimeClassName) &&
		has(object.spec.securityContext.seccompProfile)`
	pods.SettingPatchSummary = "pods without a runtime class get the forced one, " +
		"and pods without a seccomp profile RuntimeDefault, if the tenant's policy has these settings"
	return pods
}

// setMissingSettings is the patch for pods of tenants with enforced settings. The API server sets an empty
// securityContext before. Pods of Windows have no seccomp profile.
const setMissingSettings = `(params.spec.runtimeClassForce == "" || "runtimeClass" in params.spec.trial ||
		has(object.spec.runtimeClassName) ? []
		: [JSONPatch{op: "add", path: "/spec/runtimeClassName", value: params.spec.runtimeClassForce}]) +
	(params.spec.seccomp != "RuntimeDefault" || has(object.spec.securityContext.seccompProfile) ||
		has(object.spec.os) && object.spec.os.name == "windows" ? []
		: [JSONPatch{op: "add", path: "/spec/securityContext/seccompProfile", value: {"type": "RuntimeDefault"}}])`

// setPullPolicy sets the tenant's first pull policy on containers whose pull policy is not
// allowed. With Always, the pull secret is checked at every start of a container.
func setPullPolicy() ([]admissionpolicy.Variable, string) {
	each := func(list string) string {
		return replaceWords(`(has(object.spec.LIST) ? object.spec.LIST.transformList(i, c,
			!(c.imagePullPolicy in params.spec.imagePullPolicies) && !(c.name in variables.before),
			JSONPatch{op: "replace", path: "/spec/LIST/" + string(i) + "/imagePullPolicy",
				value: string(params.spec.imagePullPolicies[0])}) : [])`, "LIST", list)
	}
	// In an existing pod, only new ephemeral containers can change.
	before := admissionpolicy.Variable{Name: "before", Expression: `variables.new ? [] :
		oldObject.spec.containers.map(c, c.name)
		+ (has(oldObject.spec.initContainers) ? oldObject.spec.initContainers.map(c, c.name) : [])
		+ (has(oldObject.spec.ephemeralContainers) ? oldObject.spec.ephemeralContainers.map(c, c.name) : [])`}
	volumes := `(variables.new && has(object.spec.volumes) ? object.spec.volumes.transformList(i, v,
		has(v.image) && !(has(v.image.pullPolicy) && v.image.pullPolicy in params.spec.imagePullPolicies),
		JSONPatch{op: "add", path: "/spec/volumes/" + string(i) + "/image/pullPolicy",
			value: string(params.spec.imagePullPolicies[0])}) : [])`
	return []admissionpolicy.Variable{before}, each("containers") + ` + ` + each("initContainers") + ` + ` +
		each("ephemeralContainers") + ` + ` + volumes
}
