package nodes

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/rules/admissionpolicy"
)

// The names of the rules on pods' scheduling constraints, apart from the node.
const (
	AffinityRule = "affinity-namespaces"
	TermsRule    = "scheduling-terms"
)

// maxTerms is the maximum number of terms of each kind in a pod. For every pod that they
// place, the scheduler and Karpenter evaluate the terms of all pods, of any tenant.
const maxTerms = 10

// buildSchedulingPart returns the rules on scheduling constraints. Required anti-affinity also
// applies to later pods: a term that selects other namespaces keeps their pods off nodes.
// Affinity to other tenants' pods reveals where they run.
func buildSchedulingPart() ([]admissionpolicy.Variable, []admissionpolicy.Rule) {
	variables := []admissionpolicy.Variable{
		// A pod's affinity to pods is immutable.
		{Name: "podTerms", Expression: `!variables.new || !has(variables.spec.affinity) ? [] :
			` + readPodTerms("podAffinity") + ` + ` + readPodTerms("podAntiAffinity")},
		// Affinity to nodes may still be added to a pod with a scheduling gate.
		{Name: "nodeTerms", Expression: countNodeTerms("variables.spec")},
		{Name: "spreads", Expression: `variables.new && has(variables.spec.topologySpreadConstraints)
			? variables.spec.topologySpreadConstraints.size() : 0`},
		// Another rule refuses too many terms, so they are not evaluated here.
		{Name: "foreignTerms", Expression: `variables.podTerms.size() > MOST ? [] : variables.podTerms.filter(t,
			has(t.namespaces) && !t.namespaces.all(n, n in params.spec.namespaces) ||
			has(t.namespaceSelector) && !(` + matchOwnNamespaces("t.namespaceSelector") + `))`},
	}
	rules := []admissionpolicy.Rule{
		{
			Name: AffinityRule, Summary: "affinity and anti-affinity select only pods of the tenant's own namespaces",
			UsuallyFast: true, FastPath: `!has(variables.spec.affinity)`,
			Expression: `variables.foreignTerms.size() == 0`,
			Message: `"spec.affinity: podAffinity and podAntiAffinity of tenant " + params.spec.tenant
				+ " may name its own namespaces only, since they decide where other tenants' pods can run: "
				+ "leave out namespaces and namespaceSelector (topologyKey " + variables.foreignTerms[0].topologyKey
				+ "), or select all of the tenant's namespaces by namespaceSelector {matchLabels: {TENANT: "
				+ params.spec.tenant + "}}"`,
		},
		{
			Name: TermsRule,
			Summary: "pods have at most " + strconv.Itoa(maxTerms) + " terms of pod affinity and anti-affinity, " +
				"as many of node affinity and as many spread constraints",
			UsuallyFast: true,
			FastPath:    `!has(variables.spec.affinity) && !has(variables.spec.topologySpreadConstraints)`,
			Expression: `variables.podTerms.size() <= MOST && variables.spreads <= MOST &&
				(variables.nodeTerms <= MOST ||
					variables.specBefore.exists(s, ` + countNodeTerms("s") + ` >= variables.nodeTerms))`,
			Message: `"spec: a pod may have MOST terms of pod affinity and anti-affinity (this one has "
				+ string(variables.podTerms.size()) + "), MOST of node affinity ("
				+ string(variables.nodeTerms) + ") and MOST topologySpreadConstraints ("
				+ string(variables.spreads) + "), since every pod in the cluster waits for them: "
				+ "write one term with several matchExpressions or values instead of many terms"`,
		},
	}
	replace := strings.NewReplacer("MOST", strconv.Itoa(maxTerms), "TENANT", v1alpha1.TenantLabel)
	for i := range variables {
		variables[i].Expression = replace.Replace(variables[i].Expression)
	}
	for i := range rules {
		rules[i].Expression, rules[i].Message = replace.Replace(rules[i].Expression), replace.Replace(rules[i].Message)
	}
	return variables, rules
}

// readPodTerms returns an expression for the required and preferred terms of a pod's affinity or
// anti-affinity.
func readPodTerms(kind string) string {
	return strings.ReplaceAll(`(!has(variables.spec.affinity.KIND) ? [] :
		(has(variables.spec.affinity.KIND.requiredDuringSchedulingIgnoredDuringExecution) ?
			variables.spec.affinity.KIND.requiredDuringSchedulingIgnoredDuringExecution : []) +
		(has(variables.spec.affinity.KIND.preferredDuringSchedulingIgnoredDuringExecution) ?
			variables.spec.affinity.KIND.preferredDuringSchedulingIgnoredDuringExecution.map(p, p.podAffinityTerm) :
			[]))`, "KIND", kind)
}

// countNodeTerms returns an expression for the number of node affinity terms of a pod spec.
func countNodeTerms(spec string) string {
	return strings.ReplaceAll(`(!has(SPEC.affinity) || !has(SPEC.affinity.nodeAffinity) ? 0 :
		(has(SPEC.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution) ?
			SPEC.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms.size() : 0) +
		(has(SPEC.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution) ?
			SPEC.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution.size() : 0))`, "SPEC", spec)
}

// matchOwnNamespaces returns the condition that a selector can match the tenant's namespaces only.
// All requirements of a selector must match, so one that ensures this is enough.
func matchOwnNamespaces(selector string) string {
	return strings.NewReplacer("SELECTOR", selector, "NAME", corev1.LabelMetadataName).Replace(
		`has(SELECTOR.matchLabels) && (
			"NAME" in SELECTOR.matchLabels && SELECTOR.matchLabels["NAME"] in params.spec.namespaces ||
			"TENANT" in SELECTOR.matchLabels && SELECTOR.matchLabels["TENANT"] == params.spec.tenant) ||
		has(SELECTOR.matchExpressions) && SELECTOR.matchExpressions.exists(e, e.operator == "In" && has(e.values) && (
			e.key == "NAME" && e.values.all(v, v in params.spec.namespaces) ||
			e.key == "TENANT" && e.values.all(v, v == params.spec.tenant)))`)
}
