package admissionpolicy

import (
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
)

// The names of the policies on pods, which all walls share.
const (
	// PodsPolicy mutates pods when they are created, and validates the result.
	PodsPolicy = "croft-pods"
	// PodTemplatesPolicy warns about templates whose pods would be refused, or would differ
	// from the template.
	PodTemplatesPolicy = "croft-pod-templates"
	// PodSettingsPolicy enforces settings such as images on the pods of tenants that have
	// such settings. A policy of its own costs the pods of other tenants nothing.
	PodSettingsPolicy = "croft-pod-settings"
	// PodTrialsPolicy warns about pods that violate a rule in trial.
	PodTrialsPolicy = "croft-pod-trials"
)

// Pods is one wall's part of the policies on pods. For each policy, the API server spends
// most of the time on the conversion of the pod, independent of the number of rules. So the walls'
// parts are merged: a pod passes one policy that mutates it and one that validates it.
type Pods struct {
	// Bounds are the maximum numbers of entries of each list that an expression iterates
	// over. EarlyVariables are the variables that they use: see Validating.
	Bounds         []Bound
	EarlyVariables []Variable
	// Variables are for the rules. They may use the variables that the policies define:
	//   - new: whether the pod is being created
	//   - spec and annotations of the pod or the template
	//   - labels and finalizers of the pod or the template
	//   - specBefore, annotationsBefore, labelsBefore and finalizersBefore of the old pod. specBefore is a
	//     list with the old spec. For a new pod and for a template it is an empty list.
	//   - claimTemplates: the volumeClaimTemplates of a StatefulSet, and an empty list otherwise
	Variables []Variable
	// Rules apply to pods and, as warnings, to templates.
	Rules []Rule
	// PodRules apply to pods only, and TemplateRules to templates only.
	PodRules, TemplateRules []Rule
	// SettingRules apply to templates, and to pods of tenants with enforced settings.
	// SettingPatch and the fields after it mutate such pods, like Patch, PatchSummary and
	// SkipPatch.
	SettingRules                                        []Rule
	SettingPatch, SettingPatchSummary, SkipSettingPatch string
	// PatchVariables and Patch mutate a new pod, and new ephemeral containers: see Mutating.
	// PatchSummary describes the mutation. SkipPatch is a CEL expression that is true if a new
	// pod needs no mutation. It can use the object, but neither rules nor variables. If
	// SkipPatch is wrongly true, the pod is validated unchanged. If it is wrongly false, the
	// pod is evaluated twice, without other effects.
	PatchVariables                 []Variable
	Patch, PatchSummary, SkipPatch string
}

// BuildPodPolicies merges the walls' parts into the policies that mutate pods, validate them,
// and warn about templates.
func BuildPodPolicies(parts []Pods) []client.Object {
	policies := mutatePods(parts).Objects()
	if change := setSettings(parts); change.Patch != "" {
		policies = append(policies, change.Objects()...)
	}
	return append(policies, BuildPodChecks(parts)...)
}

// BuildPodChecks returns BuildPodPolicies without the mutating one, for use with another placement
// engine.
func BuildPodChecks(parts []Pods) []client.Object {
	return slices.Concat(CheckPods(parts...).Objects(), WarnOfTemplates(parts...).Objects(),
		checkSettings(parts).Objects(), warnInTrial(parts).Objects())
}

func mutatePods(parts []Pods) Mutating {
	change := Mutating{
		Name: PodsPolicy, inlinesVariables: true,
		Resources: []Resource{
			{
				Version: "v1", Resources: []string{"pods"},
				Operations: []admissionv1.OperationType{admissionv1.Create},
			},
			{
				Version: "v1", Resources: []string{"pods/ephemeralcontainers"},
				Operations: []admissionv1.OperationType{admissionv1.Update},
			},
		},
		Variables: []Variable{{Name: "new", Expression: `request.operation == "CREATE"`}},
	}
	var patches, summaries, done []string
	var patched []Bound
	for _, p := range parts {
		for _, b := range p.Bounds {
			if b.UsedByPatch {
				patched = append(patched, b)
			}
		}
		if p.Patch != "" {
			change.Variables = append(change.Variables, p.PatchVariables...)
			patches, summaries = append(patches, "("+p.Patch+")"), append(summaries, p.PatchSummary)
			done = append(done, "("+removeIndentation(p.SkipPatch)+")")
		}
	}
	change.MatchConditions = map[string]string{
		"not-done": BuildBoundsCondition(patched) +
			` && (request.operation != "CREATE" || !(` + strings.Join(done, " &&\n") + `))`,
		"not-of-another-engine": buildProbeCondition(v1alpha1.PlacementNative),
	}
	change.Patch, change.Summary = strings.Join(patches, " + "), strings.Join(summaries, "; ")
	return change
}

// setSettings returns the policy that sets fields of pods by enforced settings. One wall has such a patch.
func setSettings(parts []Pods) Mutating {
	change := Mutating{
		Name: PodSettingsPolicy, NamespaceLabels: map[string][]string{v1alpha1.SettingsLabel: nil},
		Resources: []Resource{{
			Version: "v1", Resources: []string{"pods"}, Operations: []admissionv1.OperationType{admissionv1.Create},
		}},
	}
	for _, p := range parts {
		if p.SettingPatch != "" {
			change.Patch, change.Summary = p.SettingPatch, p.SettingPatchSummary
			change.MatchConditions = map[string]string{"not-done": "!(" + removeIndentation(p.SkipSettingPatch) + ")"}
		}
	}
	return change
}

// buildProbeCondition returns a CEL expression that is false for the probe pods of other engines.
func buildProbeCondition(engine v1alpha1.PlacementEngine) string {
	return strings.NewReplacer("LABEL", Quote(v1alpha1.ProbeLabel), "ENGINE", Quote(string(engine))).Replace(
		`!has(object.metadata.labels) || !(LABEL in object.metadata.labels) || object.metadata.labels[LABEL] == ENGINE`)
}

// CheckPods merges the walls' parts into the policy that validates pods.
func CheckPods(parts ...Pods) Validating {
	check := Validating{
		Name: PodsPolicy, inlinesVariables: true,
		Resources: []Resource{
			{
				Version: "v1", Resources: []string{"pods"},
				Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
			},
			{
				Version: "v1", Resources: []string{"pods/ephemeralcontainers", "pods/resize"},
				Operations: []admissionv1.OperationType{admissionv1.Update},
			},
		},
		EarlyVariables: []Variable{
			{Name: "new", Expression: `request.operation == "CREATE"`},
			{Name: "spec", Expression: `object.spec`},
			{Name: "claimTemplates", Expression: `[]`},
			{Name: "annotations", Expression: `has(object.metadata.annotations) ? object.metadata.annotations : {}`},
			{Name: "labels", Expression: `has(object.metadata.labels) ? object.metadata.labels : {}`},
			{Name: "finalizers", Expression: `has(object.metadata.finalizers) ? object.metadata.finalizers : []`},
			// The removal of finalizers from a list over its bound is allowed.
			{Name: "finalizersBefore", Expression: `!variables.new && has(oldObject.metadata.finalizers)
				? oldObject.metadata.finalizers : []`},
		},
		Variables: []Variable{
			{Name: "specBefore", Expression: `!variables.new && ` + Comparable + ` ? [oldObject.spec] : []`},
			{Name: "annotationsBefore", Expression: `!variables.new && ` + Comparable + ` &&
				has(oldObject.metadata.annotations)
				? oldObject.metadata.annotations : {}`},
			{Name: "labelsBefore", Expression: `!variables.new && ` + Comparable + ` &&
				has(oldObject.metadata.labels)
				? oldObject.metadata.labels : {}`},
		},
	}
	for _, p := range parts {
		check.Bounds = append(check.Bounds, p.Bounds...)
		check.EarlyVariables = append(check.EarlyVariables, p.EarlyVariables...)
		check.Variables = append(check.Variables, p.Variables...)
		check.Rules = slices.Concat(check.Rules, p.Rules, p.PodRules)
	}
	check.Rules = exceptTrials(check.Rules)
	return check
}

// checkSettings merges the walls' rules on enforced settings into the policy that validates pods by
// them. CheckPods refuses objects beyond the bounds.
func checkSettings(parts []Pods) Validating {
	check := CheckPods(parts...)
	var patched []Bound
	for _, b := range check.Bounds {
		if b.UsedByPatch {
			patched = append(patched, b)
		}
	}
	check.Name, check.Bounds = PodSettingsPolicy, nil
	check.NamespaceLabels = map[string][]string{v1alpha1.SettingsLabel: nil}
	check.MatchConditions = map[string]string{"within-bounds": BuildBoundsCondition(patched)}
	check.Resources = []Resource{
		check.Resources[0],
		{
			Version: "v1", Resources: []string{"pods/ephemeralcontainers"},
			Operations: []admissionv1.OperationType{admissionv1.Update},
		},
	}
	check.Rules = nil
	for _, p := range parts {
		check.Rules = append(check.Rules, p.SettingRules...)
	}
	check.Rules = exceptTrials(check.Rules)
	return check
}

// warnInTrial merges the walls' rules that may be in trial into the policy that warns about pods.
func warnInTrial(parts []Pods) Validating {
	try := checkSettings(parts)
	try.Name, try.WarnOnly, try.Audits, try.Rules = PodTrialsPolicy, true, true, nil
	for _, p := range parts {
		for _, r := range slices.Concat(p.Rules, p.PodRules, p.SettingRules) {
			if r.Trial == "" {
				continue
			}
			r.Expression = "!(" + r.isInTrial() + ") || (" + removeIndentation(r.Expression) + ")"
			r.Message = Quote("would be refused without the trial of policy."+r.Trial+": ") + " + " + r.Message
			r.UsuallyFast = false
			try.Rules = append(try.Rules, r)
		}
	}
	return try
}

// exceptTrials returns rules that allow everything while they are in trial.
func exceptTrials(rules []Rule) []Rule {
	rules = slices.Clone(rules)
	for i, r := range rules {
		if r.Trial != "" {
			rules[i].Expression = "(" + removeIndentation(r.Expression) + ") || " + r.isInTrial()
		}
	}
	return rules
}

// isInTrial returns a CEL expression that is true if the rule is in trial.
func (r Rule) isInTrial() string { return Quote(r.Trial) + " in params.spec.trial" }

// WarnOfTemplates merges the walls' parts into the policy that warns about templates.
func WarnOfTemplates(parts ...Pods) Validating {
	warn := Validating{
		Name: PodTemplatesPolicy, Resources: listTemplateResources(), WarnOnly: true,
		// The object may be of several kinds, so its fields are looked up without type
		// checks.
		ofTemplates: true,
		EarlyVariables: []Variable{
			{Name: "object", Expression: `dyn(object)`},
			{Name: "template", Expression: `has(variables.object.template) ? variables.object.template :
				has(variables.object.spec.jobTemplate) ? variables.object.spec.jobTemplate.spec.template :
				variables.object.spec.template`},
			{Name: "new", Expression: `true`},
			{Name: "spec", Expression: `variables.template.spec`},
			{Name: "specBefore", Expression: `[]`},
			{Name: "claimTemplates", Expression: `has(variables.object.spec) &&
				has(variables.object.spec.volumeClaimTemplates)
				? variables.object.spec.volumeClaimTemplates : []`},
			{Name: "annotations", Expression: `has(variables.template.metadata) &&
				has(variables.template.metadata.annotations)
				? variables.template.metadata.annotations : {}`},
			{Name: "annotationsBefore", Expression: `{}`},
			{Name: "labels", Expression: `has(variables.template.metadata) &&
				has(variables.template.metadata.labels)
				? variables.template.metadata.labels : {}`},
			{Name: "labelsBefore", Expression: `{}`},
			{Name: "finalizers", Expression: `has(variables.template.metadata) &&
				has(variables.template.metadata.finalizers)
				? variables.template.metadata.finalizers : []`},
			{Name: "finalizersBefore", Expression: `[]`},
		},
	}
	warn.Bounds = []Bound{claimTemplates}
	for _, p := range parts {
		warn.EarlyVariables = append(warn.EarlyVariables, p.EarlyVariables...)
		warn.Bounds = append(warn.Bounds, selectTemplateBounds(p.Bounds)...)
		warn.Variables = append(warn.Variables, p.Variables...)
		rules := slices.Concat(p.Rules, p.SettingRules)
		warn.Rules = slices.Concat(warn.Rules, makeTemplateRules(rules), p.TemplateRules)
	}
	return warn
}

// ClaimTemplatesPath is the path of a StatefulSet's claims for its pods.
const ClaimTemplatesPath = "spec.volumeClaimTemplates"

// selectTemplateBounds returns the bounds of pods that apply to templates. No rule reads a template's
// owners.
func selectTemplateBounds(bounds []Bound) []Bound {
	return slices.DeleteFunc(slices.Clone(bounds), func(b Bound) bool { return b.Path == "metadata.ownerReferences" })
}

// claimTemplates is the bound of the variable claimTemplates, which pods have, too.
var claimTemplates = Bound{
	Path: ClaimTemplatesPath, Size: `variables.claimTemplates.size()`, Max: 50,
	Reason: "nodes attach some tens of disks to all of their pods",
	Advice: "claim fewer volumes for each pod",
	Sample: `{"metadata": {"name": "c%d"}, ` +
		`"spec": {"storageClassName": "s", "resources": {"requests": {"storage": "1Gi"}}}}`,
}

// makeTemplateRules turns rules on pods into rules on templates. Without them, pods would be
// refused only when a controller creates them, and the author of a Deployment would not
// notice.
func makeTemplateRules(rules []Rule) []Rule {
	all := slices.Clone(rules)
	for i := range all {
		prefix := `"its pods will be refused: "`
		if r := all[i]; r.Trial != "" {
			prefix = "(" + r.isInTrial() + ` ? "its pods would be refused without the trial: " : ` + prefix + ")"
		}
		all[i].Message = prefix + " + " + all[i].Message
	}
	return all
}

// listTemplateResources returns the kinds from which controllers create pods.
func listTemplateResources() []Resource {
	write := []admissionv1.OperationType{admissionv1.Create, admissionv1.Update}
	return []Resource{
		{
			Group: "apps", Version: "v1", Operations: write,
			Resources: []string{"deployments", "statefulsets", "daemonsets", "replicasets"},
		},
		{Group: "batch", Version: "v1", Resources: []string{"jobs", "cronjobs"}, Operations: write},
		{Version: "v1", Resources: []string{"replicationcontrollers", "podtemplates"}, Operations: write},
	}
}
