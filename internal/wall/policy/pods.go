package policy

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"

	"croft.dev/croft/internal/admission"
)

// PodsPolicy is the name of the policy on what pods may ask for beside a place.
const PodsPolicy = "croft-pods"

// PodTemplatesPolicy warns of templates whose pods PodsPolicy would refuse.
const PodTemplatesPolicy = "croft-pod-templates"

// PullPolicy is the name of the policy that sets how images are pulled.
const PullPolicy = "croft-image-pull"

// The rules of the first two.
const (
	RegistryRule     = "registry"
	PullPolicyRule   = "pull-policy"
	PriorityRule     = "priority-class"
	GracePeriodRule  = "grace-period"
	InlineCSIRule    = "inline-csi"
	DoNotDisruptRule = "do-not-disrupt"
)

func checkPods() admission.Validating {
	return admission.Validating{
		Name: PodsPolicy,
		Resources: []admission.Resource{
			{Version: "v1", Resources: []string{"pods"}, Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update}},
			{Version: "v1", Resources: []string{"pods/ephemeralcontainers"}, Operations: []admissionv1.OperationType{admissionv1.Update}},
		},
		Variables: podVariables(
			admission.Variable{Name: "new", Expression: `request.operation == "CREATE"`},
			admission.Variable{Name: "spec", Expression: `object.spec`},
			admission.Variable{Name: "annotations", Expression: annotations("object.metadata")},
			admission.Variable{Name: "annotationsBefore", Expression: before(annotations("oldObject.metadata"), `{}`)},
			admission.Variable{Name: "imagesBefore", Expression: before(images("oldObject.spec"), `[]`)},
		),
		Rules: append(podRules(), admission.Rule{
			Name: PullPolicyRule, Says: "containers pull their image as imagePullPolicies of the tenant says; croft-image-pull sets it",
			Holds: `!variables.new && !has(variables.spec.ephemeralContainers) ||
				variables.spec.containers.all(c, c.imagePullPolicy in params.spec.imagePullPolicies) &&
				(!has(variables.spec.initContainers) || variables.spec.initContainers.all(c, c.imagePullPolicy in params.spec.imagePullPolicies)) &&
				(!has(variables.spec.ephemeralContainers) || variables.spec.ephemeralContainers.all(c, c.imagePullPolicy in params.spec.imagePullPolicies))`,
			Message: `"spec.containers[].imagePullPolicy: tenant " + params.spec.tenant + " may use " + ` + listed("imagePullPolicies") + ` + ": remove the field"`,
		}),
	}
}

// warnOfTemplates says at once what would otherwise be seen only when the pods of
// a Deployment or a Job do not come.
func warnOfTemplates() admission.Validating {
	rules := podRules()
	for i := range rules {
		rules[i].Message = admission.FromTemplate(rules[i].Message)
	}
	return admission.Validating{
		Name: PodTemplatesPolicy, Resources: admission.Templates(), Warns: true,
		Variables: podVariables(append(admission.TemplateVariables(),
			admission.Variable{Name: "new", Expression: `true`},
			admission.Variable{Name: "spec", Expression: `variables.template.spec`},
			admission.Variable{Name: "annotations", Expression: `has(variables.template.metadata) ? ` + annotations("variables.template.metadata") + ` : {}`},
			admission.Variable{Name: "annotationsBefore", Expression: `{}`},
			admission.Variable{Name: "imagesBefore", Expression: `[]`},
		)...),
		Rules: rules,
	}
}

// images are those of all containers of a pod spec.
func images(spec string) string {
	return with(`(SPEC.containers.map(c, c.image)
		+ (has(SPEC.initContainers) ? SPEC.initContainers.map(c, c.image) : [])
		+ (has(SPEC.ephemeralContainers) ? SPEC.ephemeralContainers.map(c, c.image) : [])
		+ (has(SPEC.volumes) ? SPEC.volumes.filter(v, has(v.image) && has(v.image.reference)).map(v, v.image.reference) : []))`, "SPEC", spec)
}

// podVariables are what podRules ask about. The first ones say what is a pod's
// spec and what it was: new, spec, annotations, annotationsBefore, imagesBefore.
func podVariables(first ...admission.Variable) []admission.Variable {
	return append(append(first, annotatedHosts()),
		// As a container runtime reads them: what has no registry is docker.io's.
		admission.Variable{Name: "images", Expression: `"*" in params.spec.registries ? [] : ` + images("variables.spec") + `.filter(i, !(i in variables.imagesBefore))`},
		admission.Variable{Name: "refusedImages", Expression: `variables.images.map(i,
				!i.contains("/") ? "docker.io/library/" + i : i.split("/")[0].matches("[.:]|^localhost$") ? i : "docker.io/" + i)
			.filter(i, !params.spec.registries.exists(r, i.startsWith(r + "/") || r.contains("/") && (i == r || i.startsWith(r + ":") || i.startsWith(r + "@"))))`},
		admission.Variable{Name: "refusedDrivers", Expression: `has(variables.spec.volumes) ? variables.spec.volumes.filter(v, has(v.csi) &&
			!` + allowed("csiDrivers", "v.csi.driver") + `).map(v, v.csi.driver) : []`},
		admission.Variable{Name: "gracePeriod", Expression: `has(variables.spec.terminationGracePeriodSeconds) ? variables.spec.terminationGracePeriodSeconds : 30`},
	)
}

// podRules are asked of pods, and of the templates that pods are made from. Of
// what cannot change in a pod's life only new pods are asked.
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
func setPullPolicy() admission.Mutating {
	each := func(list string) string {
		return with(`(has(object.spec.LIST) ? object.spec.LIST.transformList(i, c, !(c.imagePullPolicy in params.spec.imagePullPolicies) && !(c.name in variables.before),
			JSONPatch{op: "replace", path: "/spec/LIST/" + string(i) + "/imagePullPolicy", value: string(params.spec.imagePullPolicies[0])}) : [])`, "LIST", list)
	}
	return admission.Mutating{
		Name: PullPolicy,
		Says: "containers pull their image as the tenant's imagePullPolicies say, Always unless it says otherwise",
		Resources: []admission.Resource{
			{Version: "v1", Resources: []string{"pods"}, Operations: []admissionv1.OperationType{admissionv1.Create}},
			{Version: "v1", Resources: []string{"pods/ephemeralcontainers"}, Operations: []admissionv1.OperationType{admissionv1.Update}},
		},
		Variables: []admission.Variable{{
			// Of a pod that is there, only the ephemeral containers to come can change.
			Name: "before", Expression: `request.operation == "CREATE" ? [] : oldObject.spec.containers.map(c, c.name)
				+ (has(oldObject.spec.initContainers) ? oldObject.spec.initContainers.map(c, c.name) : [])
				+ (has(oldObject.spec.ephemeralContainers) ? oldObject.spec.ephemeralContainers.map(c, c.name) : [])`,
		}},
		Patch: each("containers") + ` + ` + each("initContainers") + ` + ` + each("ephemeralContainers"),
	}
}
