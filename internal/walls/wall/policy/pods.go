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
	addSettingPatch(&pods)
	return pods
}

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
