package policy

import (
	"slices"
	"strings"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/rules/addons"
	"croft.dev/croft/internal/rules/admissionpolicy"
)

// The names of the rules on pods.
const (
	RegistryRule     = "registry"
	PullPolicyRule   = "pull-policy"
	PriorityRule     = "priority-class"
	GracePeriodRule  = "grace-period"
	InlineCSIRule    = "inline-csi"
	VolumeTypesRule  = "volume-types"
	DoNotDisruptRule = "do-not-disrupt"
	PodMarksRule     = "marks"
	// ClaimTemplatesRule is on the claim templates of a pod's ephemeral volumes and of a
	// StatefulSet.
	ClaimTemplatesRule = "claim-templates"
)

// plainVolumes are the volume types that every pod may mount unchecked: they contain data of
// the namespace or the pod. Pod Security decides about hostPath, and allows it at the level
// privileged only.
var plainVolumes = []string{
	"projected", "configMap", "secret", "downwardAPI", "emptyDir", "persistentVolumeClaim", "hostPath",
}

// examinedVolumes are the volume types that other rules check.
var examinedVolumes = []string{"csi", "ephemeral", "image"}

// buildPodPart returns the rules on pods apart from placement. Immutable fields are checked for
// new pods only.
func buildPodPart(finalizers []string) admissionpolicy.Pods {
	variables, patch := setPullPolicy()
	onPods, harmless := addons.BuildTable(addons.Pods), addons.ListHarmlessPrefixes(addons.Pods)
	return admissionpolicy.Pods{
		Bounds:         slices.Concat(listAnnotationBounds(), podBounds, finalizerBounds),
		EarlyVariables: append(buildEarlyVariables(harmless, onPods), usual),
		Variables: slices.Concat([]admissionpolicy.Variable{
			// References as a container runtime interprets them: an image without a registry
			// is on docker.io.
			{
				Name:       "imagesBefore",
				Expression: `variables.specBefore.size() == 0 ? [] : ` + readImages("variables.specBefore[0]"),
			},
			{Name: "images", Expression: readImages("variables.spec") + `.filter(i, !(i in variables.imagesBefore))`},
			{Name: "refusedImages", Expression: `variables.images.map(i,
					!i.contains("/") ? "docker.io/library/" + i :
					i.split("/")[0].matches("[.:A-Z]|^localhost$") ? i :
					"docker.io/" + i)
				.filter(i, !params.spec.registries.exists(r,
					i.startsWith(r + "/") ||
					r.contains("/") && (i == r || i.startsWith(r + ":") || i.startsWith(r + "@"))))`},
			// A volume has two fields: its name, and a field whose name is the type. The
			// expression reads the keys instead of known fields, so a type that a later
			// version of Kubernetes adds is refused.
			{Name: "volumes", Expression: `variables.new && has(variables.spec.volumes)
				? variables.spec.volumes.filter(v,
					!(dyn(v).size() == 2 && (` + matchAnyField("v", plainVolumes) + `)))
				: []`},
			{Name: "refusedVolumes", Expression: `"*" in params.spec.volumeTypes ? [] : variables.volumes.filter(v,
				!(dyn(v).size() == 2 &&
					dyn(v).exists(k, k in ` + formatQuoted(examinedVolumes) + ` || k in params.spec.volumeTypes)))`},
			{Name: "refusedDrivers", Expression: `variables.volumes.filter(v,
				has(v.csi) && !` + matchAllowed("csiDrivers", "v.csi.driver") + `).map(v, v.csi.driver)`},
			{Name: "claims", Expression: `variables.claimTemplates +
				variables.volumes.filter(v, has(v.ephemeral) && has(v.ephemeral.volumeClaimTemplate))
				.map(v, v.ephemeral.volumeClaimTemplate)`},
			buildRefusedClaimFields(),
			podTexts[0], podTexts[1],
			{Name: "gracePeriod", Expression: `has(variables.spec.terminationGracePeriodSeconds)
				? variables.spec.terminationGracePeriodSeconds : 30`},
		},
			buildAddonVariables(formatTable(onPods, harmless), formatSet(harmless), listValueClasses(onPods), false),
			[]admissionpolicy.Variable{
				buildRefusedLabels(addons.Pods, "labels"), buildRefusedPodFinalizers(finalizers),
			},
		),
		Rules: append(buildPodRules(), buildPodDeviceRules()...),
		PodRules: []admissionpolicy.Rule{{
			Name: PullPolicyRule,
			Summary: "containers and image volumes have one of the tenant's imagePullPolicies, " +
				"which croft sets",
			Expression: pulledAsSaid,
			Message: `"spec.containers[].imagePullPolicy, spec.volumes[].image.pullPolicy: ` +
				`the value is not among the tenant's imagePullPolicies, ` +
				`and croft sets the first of these for you: remove the field"`,
		}, buildPodSizeRule(), buildOwnerCountRule(), buildOwnersRule()},
		TemplateRules:  []admissionpolicy.Rule{buildUnknownWarning(unannotated)},
		PatchVariables: variables,
		Patch:          patch,
		// Match conditions cannot read the tenant's rules, so this condition assumes the pull
		// policy of most tenants. For other tenants the patch is evaluated again and changes
		// nothing.
		SkipPatch: `object.spec.containers.all(c, c.imagePullPolicy == "Always") &&
			(!has(object.spec.initContainers) ||
				object.spec.initContainers.all(c, c.imagePullPolicy == "Always")) &&
			(!has(object.spec.volumes) ||
				object.spec.volumes.all(v, !has(v.image) ||
					has(v.image.pullPolicy) && v.image.pullPolicy == "Always"))`,
		PatchSummary: "containers and image volumes get the first of the tenant's imagePullPolicies, " +
			"unless theirs is one of them",
	}
}

// pulledAsSaid is the condition that a pod's pull policies are in the tenant's
// imagePullPolicies. In an existing pod only new ephemeral containers are checked, because
// the other pull policies are immutable.
const pulledAsSaid = `variables.new
	? variables.spec.containers.all(c,
		c.imagePullPolicy == params.written.imagePullPolicies || c.imagePullPolicy in params.spec.imagePullPolicies) &&
	(!has(variables.spec.initContainers) || variables.spec.initContainers.all(c,
		c.imagePullPolicy == params.written.imagePullPolicies || c.imagePullPolicy in params.spec.imagePullPolicies)) &&
	variables.volumes.all(v, !has(v.image) ||
		has(v.image.pullPolicy) && v.image.pullPolicy in params.spec.imagePullPolicies)
	: !has(variables.spec.ephemeralContainers) || variables.spec.ephemeralContainers.all(c,
		c.imagePullPolicy in params.spec.imagePullPolicies ||
		variables.specBefore.exists(s,
			has(s.ephemeralContainers) && s.ephemeralContainers.exists(e, e.name == c.name)))`

// usual is true if no container sets fields that are rare: a probe's grace period, and limits
// of resources other than CPU and memory.
var usual = admissionpolicy.Variable{Name: "usual", Expression: matchEveryContainer(
	`(!has(c.livenessProbe) || !has(c.livenessProbe.terminationGracePeriodSeconds)) &&
		(!has(c.startupProbe) || !has(c.startupProbe.terminationGracePeriodSeconds)) &&
		(!has(c.resources) || !has(c.resources.limits) ||
			c.resources.limits.size() == 2 && "cpu" in c.resources.limits && "memory" in c.resources.limits)`)}

// matchAnyField returns the condition that an object has one of the fields.
func matchAnyField(object string, fields []string) string {
	each := make([]string, len(fields))
	for i, field := range fields {
		each[i] = "has(" + object + "." + field + ")"
	}
	return strings.Join(each, " || ")
}

// readImages returns an expression for the images of all containers of a pod spec.
func readImages(spec string) string {
	return replaceWords(`(SPEC.containers.map(c, c.image)
		+ (has(SPEC.initContainers) ? SPEC.initContainers.map(c, c.image) : [])
		+ (has(SPEC.ephemeralContainers) ? SPEC.ephemeralContainers.map(c, c.image) : [])
		+ (has(SPEC.volumes)
			? SPEC.volumes.filter(v, has(v.image) && has(v.image.reference)).map(v, v.image.reference) : []))`,
		"SPEC", spec)
}

// buildPodRules returns the rules for pods and pod templates.
func buildPodRules() []admissionpolicy.Rule {
	return slices.Concat([]admissionpolicy.Rule{
		{
			Name: RegistryRule, Summary: "images come from the tenant's registries",
			FastPath:   `params.written.registries == "*"`,
			Expression: `"*" in params.spec.registries || variables.refusedImages.size() == 0`,
			Exception:  "policy.registries",
			Message: `"image " + ` + formatFirst("variables.refusedImages", 3) +
				` + ": images of tenant " + params.spec.tenant + " come from " + ` + formatAllowed("registries") +
				` + ": use one of these; a platform admin allows others by policy.registries"`,
		},
		{
			LoopFree: true,
			Name:     PriorityRule, Summary: "pods use only the tenant's priority classes",
			UsuallyFast: true, FastPath: `!has(variables.spec.priorityClassName)`,
			Expression: `!variables.new || variables.spec.priorityClassName == "" ||
				` + matchAllowed("priorityClasses", "variables.spec.priorityClassName"),
			Exception: "policy.priorityClasses",
			Message: `"spec.priorityClassName: " + variables.spec.priorityClassName +
				" is not among the priority classes of tenant " + params.spec.tenant + ": " + ` +
				formatAllowed("priorityClasses") +
				` + "; leave the field out; a platform admin allows others by policy.priorityClasses"`,
		},
		{
			Name: GracePeriodRule, Summary: "pods terminate within the tenant's maxTerminationGracePeriodSeconds",
			UsuallyFast: true,
			FastPath:    `variables.usual && variables.gracePeriod <= params.spec.maxTerminationGracePeriodSeconds`,
			Expression: `!variables.new || variables.gracePeriod <= params.spec.maxTerminationGracePeriodSeconds &&
				(variables.usual ||
				` + matchEveryContainer(matchProbeGracePeriod("livenessProbe")+` && `+
				matchProbeGracePeriod("startupProbe")) + `)`,
			Exception: "policy.maxTerminationGracePeriodSeconds",
			Message: `(variables.gracePeriod > params.spec.maxTerminationGracePeriodSeconds
					? "spec.terminationGracePeriodSeconds: " + string(variables.gracePeriod)
					: "spec.containers[]: terminationGracePeriodSeconds of a probe") +
				" is more than the " + string(params.spec.maxTerminationGracePeriodSeconds) +
				" that tenant " + params.spec.tenant +
				" may take: lower it; a platform admin allows more by policy.maxTerminationGracePeriodSeconds"`,
		},
		{
			Name: InlineCSIRule, Summary: "pods mount inline volumes of the tenant's csiDrivers only",
			UsuallyFast: true, FastPath: plainVolumed,
			Expression: `variables.refusedDrivers.size() == 0`,
			Exception:  "policy.csiDrivers",
			Message: `"spec.volumes[].csi.driver: " + ` + formatFirst("variables.refusedDrivers", 3) +
				` + " is not among the drivers that tenant " + params.spec.tenant + " may mount inline: " + ` +
				formatAllowed("csiDrivers") +
				` + "; use a PersistentVolumeClaim; a platform admin allows others by policy.csiDrivers"`,
		},
		{
			Name: VolumeTypesRule,
			Summary: "pods mount only volumes of the tenant's volumeTypes, " +
				"and of types that reach neither disks of others nor the node's network",
			UsuallyFast: true, FastPath: plainVolumed,
			Expression: `variables.refusedVolumes.size() == 0`,
			Exception:  "policy.volumeTypes",
			Message: `"spec.volumes: " + ` + formatFirst(`variables.refusedVolumes.map(v, v.name + " is of type " +
				dyn(v).filter(k, k != "name").map(k, string(k)).join(" and "))`, 3) + ` +
				", which mounts any disk by its name, or connects from the node's network: ` +
				`use a PersistentVolumeClaim; tenant " + params.spec.tenant + " may also use " + ` +
				formatAllowed("volumeTypes") + ` + "; a platform admin allows others by policy.volumeTypes"`,
		},
		buildClaimTemplatesRule(),
		{
			Name:     DoNotDisruptRule,
			Summary:  "pods do not keep their nodes from being disrupted, unless the tenant's doNotDisrupt allows it",
			FastPath: unannotated,
			Expression: `params.spec.doNotDisrupt ||
				` + anyRefused + `variables.refused.filter(a, a[2].startsWith("keeps-node")).size() == 0`,
			Exception: "policy.doNotDisrupt",
			Message: `"metadata.annotations: pods of tenant " + params.spec.tenant + " may not carry " + ` +
				formatAnnotations(`variables.refused.filter(a, a[2].startsWith("keeps-node"))`) +
				` + ": remove it, and use a PodDisruptionBudget; a platform admin allows it by policy.doNotDisrupt"`,
		},
		// A controller of the whole cluster creates pods from a tenant's template, with the
		// template's finalizers. So the rule applies to controllers, too, when they create a
		// pod.
		buildFinalizersRule(`!variables.new`),
		{
			Name: PodMarksRule,
			Summary: "pods have no labels below croft.dev/, which are reserved for croft, " +
				"and no labels that let an add-on use resources outside of the tenant",
			UsuallyFast: true,
			FastPath:    `variables.labels.all(k, !k.startsWith("croft.dev/")) && ` + matchNoLabels(addons.Pods),
			Expression: `variables.labels.all(k,
					!k.startsWith("croft.dev/") || k == "` + v1alpha1.ProbeLabel + `" ||
					k in variables.labelsBefore && variables.labelsBefore[k] == variables.labels[k]) &&
				(` + matchNoLabels(addons.Pods) + ` || variables.refusedLabels.size() == 0)`,
			Exception: byAnnotations,
			Message: `(variables.refusedLabels.size() > 0 ? ` + labelsMessage + `
				: "metadata.labels: " + ` +
				formatFirst(`variables.labels.transformList(k, v, k.startsWith("croft.dev/"), k)`, 3) +
				` + ": labels below croft.dev/ are reserved for croft: use a label of your own")`,
		},
		buildPodAnnotationsRule(listValueClasses(addons.BuildTable(addons.Pods))),
	})
}

// plainVolumed skips the rules on volumes for most pods.
const plainVolumed = `variables.volumes.size() == 0`

// unannotated skips the rules on annotations for most pods.
const unannotated = `variables.annotations.size() == 0 || variables.within && variables.plain`

// ofAddonsThemselves is the condition that an add-on writes an existing pod: it may change
// pods in the whole cluster, and tenants may not. A new pod is checked regardless of its
// creator, since controllers create pods from tenants' templates.
const ofAddonsThemselves = ` || !variables.new && (` + clusterWide + `)`

// matchEveryContainer returns the condition that a condition on c is true for all containers and
// init containers.
func matchEveryContainer(condition string) string {
	return replaceWords(`(variables.spec.containers.all(c, CONDITION) &&
		(!has(variables.spec.initContainers) || variables.spec.initContainers.all(c, CONDITION)))`,
		"CONDITION", condition)
}

// matchProbeGracePeriod returns the condition that a probe of container c sets no longer grace period
// than the tenant's maximum. Only two kinds of probes terminate a container.
func matchProbeGracePeriod(probe string) string {
	return replaceWords(`(!has(c.PROBE) || !has(c.PROBE.terminationGracePeriodSeconds) ||
		c.PROBE.terminationGracePeriodSeconds <= params.spec.maxTerminationGracePeriodSeconds)`, "PROBE", probe)
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
