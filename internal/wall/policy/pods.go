package policy

import (
	"croft.dev/croft/internal/admission"
)

// The rules of pods.
const (
	RegistryRule     = "registry"
	PullPolicyRule   = "pull-policy"
	PriorityRule     = "priority-class"
	GracePeriodRule  = "grace-period"
	InlineCSIRule    = "inline-csi"
	DoNotDisruptRule = "do-not-disrupt"
)

// podPart is what pods may ask for beside a place. Of what cannot change in a
// pod's life only new pods are asked.
func podPart(finalizers []string) admission.Pods {
	variables, patch := setPullPolicy()
	return admission.Pods{
		Variables: append([]admission.Variable{
			annotatedHosts(),
			// As a container runtime reads them: what has no registry is docker.io's.
			{Name: "images", Expression: `"*" in params.spec.registries ? [] : ` + images("variables.spec") + `.filter(i, !variables.specBefore.exists(s, i in ` + images("s") + `))`},
			{Name: "refusedImages", Expression: `variables.images.map(i,
					!i.contains("/") ? "docker.io/library/" + i : i.split("/")[0].matches("[.:A-Z]|^localhost$") ? i : "docker.io/" + i)
				.filter(i, !params.spec.registries.exists(r, i.startsWith(r + "/") || r.contains("/") && (i == r || i.startsWith(r + ":") || i.startsWith(r + "@"))))`},
			{Name: "refusedDrivers", Expression: `has(variables.spec.volumes) ? variables.spec.volumes.filter(v, has(v.csi) &&
				!` + allowed("csiDrivers", "v.csi.driver") + `).map(v, v.csi.driver) : []`},
			{Name: "gracePeriod", Expression: `has(variables.spec.terminationGracePeriodSeconds) ? variables.spec.terminationGracePeriodSeconds : 30`},
		}, refusedFinalizers(finalizers)...),
		Rules: podRules(),
		PodRules: []admission.Rule{{
			Name: PullPolicyRule, Says: "containers pull their image as the tenant's imagePullPolicies say, which is set for them",
			Holds: `variables.new
				? variables.spec.containers.all(c, c.imagePullPolicy in params.spec.imagePullPolicies) &&
				(!has(variables.spec.initContainers) || variables.spec.initContainers.all(c, c.imagePullPolicy in params.spec.imagePullPolicies))
				: !has(variables.spec.ephemeralContainers) || variables.spec.ephemeralContainers.all(c, c.imagePullPolicy in params.spec.imagePullPolicies ||
				variables.specBefore.exists(s, has(s.ephemeralContainers) && s.ephemeralContainers.exists(e, e.name == c.name)))`,
			Message: `"spec.containers[].imagePullPolicy: tenant " + params.spec.tenant + " may use " + ` + listed("imagePullPolicies") + ` + ": remove the field"`,
		}, finalizersRule()},
		PatchVariables: variables,
		Patch:          patch,
		Done: `object.spec.containers.all(c, c.imagePullPolicy in params.spec.imagePullPolicies) &&
			(!has(object.spec.initContainers) || object.spec.initContainers.all(c, c.imagePullPolicy in params.spec.imagePullPolicies))`,
		Says: "containers get the first of the tenant's imagePullPolicies, where theirs is none of them",
	}
}

// images are those of all containers of a pod spec.
func images(spec string) string {
	return with(`(SPEC.containers.map(c, c.image)
		+ (has(SPEC.initContainers) ? SPEC.initContainers.map(c, c.image) : [])
		+ (has(SPEC.ephemeralContainers) ? SPEC.ephemeralContainers.map(c, c.image) : [])
		+ (has(SPEC.volumes) ? SPEC.volumes.filter(v, has(v.image) && has(v.image.reference)).map(v, v.image.reference) : []))`, "SPEC", spec)
}

// podRules are asked of pods, and of the templates that pods are made from.
func podRules() []admission.Rule {
	return []admission.Rule{
		{
			Name: RegistryRule, Says: "images come from the tenant's registries",
			Holds: `variables.refusedImages.size() == 0`,
			Message: `"image " + ` + some("variables.refusedImages", 3) + ` + ": images of tenant " + params.spec.tenant + " come from " + ` + listed("registries") +
				` + ": use one of these; a platform admin allows others by policy.registries"`,
		},
		{
			Name: PriorityRule, Says: "pods ask for no priority class but the tenant's",
			Holds: `!variables.new || !has(variables.spec.priorityClassName) || variables.spec.priorityClassName == "" || ` + allowed("priorityClasses", "variables.spec.priorityClassName"),
			Message: `"spec.priorityClassName: " + variables.spec.priorityClassName + " is not among the priority classes of tenant " + params.spec.tenant + ": " + ` +
				listed("priorityClasses") + ` + "; leave the field out; a platform admin allows others by policy.priorityClasses"`,
		},
		{
			Name: GracePeriodRule, Says: "pods end within the tenant's maxTerminationGracePeriodSeconds",
			Holds: `!variables.new || variables.gracePeriod <= params.spec.maxTerminationGracePeriodSeconds`,
			Message: `"spec.terminationGracePeriodSeconds: " + string(variables.gracePeriod) + " is more than the " + string(params.spec.maxTerminationGracePeriodSeconds) +
				" that tenant " + params.spec.tenant + " may take: lower it; a platform admin allows more by policy.maxTerminationGracePeriodSeconds"`,
		},
		{
			Name: InlineCSIRule, Says: "pods mount inline volumes of the tenant's csiDrivers only",
			Holds: `!variables.new || variables.refusedDrivers.size() == 0`,
			Message: `"spec.volumes[].csi.driver: " + ` + some("variables.refusedDrivers", 3) + ` + " is not among the drivers that tenant " + params.spec.tenant + " may mount inline: " + ` +
				listed("csiDrivers") + ` + "; use a PersistentVolumeClaim; a platform admin allows others by policy.csiDrivers"`,
		},
		{
			Name: DoNotDisruptRule, Says: "pods do not keep their nodes from being disrupted, unless the tenant's doNotDisrupt says so",
			Holds: `params.spec.doNotDisrupt || !("karpenter.sh/do-not-disrupt" in variables.annotations) || "karpenter.sh/do-not-disrupt" in variables.annotationsBefore`,
			Message: `"metadata.annotations: pods of tenant " + params.spec.tenant +
				" may not carry karpenter.sh/do-not-disrupt: remove it, and use a PodDisruptionBudget; a platform admin allows it by policy.doNotDisrupt"`,
		},
		annotatedHostsRule(),
	}
}

// setPullPolicy gives containers the first of the tenant's pull policies, where
// they ask for one that is not among them: with Always, whoever runs an image has
// shown a secret that may pull it.
func setPullPolicy() ([]admission.Variable, string) {
	each := func(list string) string {
		return with(`(has(object.spec.LIST) ? object.spec.LIST.transformList(i, c, !(c.imagePullPolicy in params.spec.imagePullPolicies) && !(c.name in variables.before),
			JSONPatch{op: "replace", path: "/spec/LIST/" + string(i) + "/imagePullPolicy", value: string(params.spec.imagePullPolicies[0])}) : [])`, "LIST", list)
	}
	// Of a pod that is there, only the ephemeral containers to come can change.
	before := admission.Variable{Name: "before", Expression: `variables.new ? [] : oldObject.spec.containers.map(c, c.name)
		+ (has(oldObject.spec.initContainers) ? oldObject.spec.initContainers.map(c, c.name) : [])
		+ (has(oldObject.spec.ephemeralContainers) ? oldObject.spec.ephemeralContainers.map(c, c.name) : [])`}
	return []admission.Variable{before}, each("containers") + ` + ` + each("initContainers") + ` + ` + each("ephemeralContainers")
}
