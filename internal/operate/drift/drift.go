// Package drift predicts which nodes Karpenter replaces when the objects of a pool change; no
// I/O. It uses Karpenter's own hash of a NodePool and its own comparison of requirements, so
// that it agrees with Karpenter on the nodes that drift.
package drift

import (
	"slices"
	"strings"

	"github.com/mitchellh/hashstructure/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/scheduling"
)

// Pool is the NodePool and the node class of a pool.
type Pool struct {
	NodePool *karpenterv1.NodePool
	// Class is the pool's EC2NodeClass. It is nil for other classes: a KWOKNodeClass has no
	// fields, and a class that the pool refers to is not croft's.
	Class *unstructured.Unstructured
}

// FindPool returns the NodePool and the node class among a pool's objects.
func FindPool(objects []client.Object) Pool {
	var p Pool
	for _, o := range objects {
		switch o := o.(type) {
		case *karpenterv1.NodePool:
			p.NodePool = o
		case *unstructured.Unstructured:
			if o.GetKind() == "EC2NodeClass" {
				p.Class = o
			}
		}
	}
	return p
}

// Effect is the effect of a change on the existing nodes of a pool.
type Effect struct {
	// Fields are the changed fields after which Karpenter replaces every node.
	Fields []string
	// Dynamic are the changed fields after which Karpenter replaces the nodes that the
	// cloud no longer selects; only the cloud knows them.
	Dynamic []string
	// Replaced is the number of NodeClaims that Karpenter replaces for Fields, or since
	// their nodes do not match the new requirements.
	Replaced int
	// HeldByBudget reports whether a budget keeps Karpenter from replacing drifted nodes.
	HeldByBudget bool
	// Consolidates reports whether Karpenter starts to consolidate pods on fewer nodes.
	Consolidates bool
}

// Compare returns the effect of changing a pool's objects, given the pool's NodeClaims. A
// pool without a NodePool has no nodes yet.
func Compare(live, desired Pool, claims []karpenterv1.NodeClaim) Effect {
	if live.NodePool == nil || desired.NodePool == nil {
		return Effect{}
	}
	effect := Effect{
		Fields:       findTemplateChanges(live.NodePool, desired.NodePool),
		HeldByBudget: blocksDrifted(desired.NodePool),
		Consolidates: enablesConsolidation(live.NodePool, desired.NodePool),
	}
	static, dynamic := findClassChanges(live.Class, desired.Class)
	effect.Fields, effect.Dynamic = append(effect.Fields, static...), dynamic
	effect.Replaced = len(claims)
	if len(effect.Fields) == 0 {
		effect.Replaced = countUnmatched(live.NodePool, desired.NodePool, claims)
	}
	return effect
}

// templateParts are the parts of a NodePool's template that Karpenter hashes. They do not
// include requirements: see countUnmatched.
var templateParts = []struct {
	name string
	copy func(from, to *karpenterv1.NodeClaimTemplate)
}{
	{"labels", func(from, to *karpenterv1.NodeClaimTemplate) { to.Labels = from.Labels }},
	{"annotations", func(from, to *karpenterv1.NodeClaimTemplate) { to.Annotations = from.Annotations }},
	{"taints", func(from, to *karpenterv1.NodeClaimTemplate) { to.Spec.Taints = from.Spec.Taints }},
	{"startupTaints", func(from, to *karpenterv1.NodeClaimTemplate) { to.Spec.StartupTaints = from.Spec.StartupTaints }},
	{"nodeClassRef", func(from, to *karpenterv1.NodeClaimTemplate) { to.Spec.NodeClassRef = from.Spec.NodeClassRef }},
	{"terminationGracePeriod", func(from, to *karpenterv1.NodeClaimTemplate) {
		to.Spec.TerminationGracePeriod = from.Spec.TerminationGracePeriod
	}},
	{"expireAfter", func(from, to *karpenterv1.NodeClaimTemplate) { to.Spec.ExpireAfter = from.Spec.ExpireAfter }},
}

func findTemplateChanges(live, desired *karpenterv1.NodePool) []string {
	var changed []string
	before := live.Hash()
	for _, part := range templateParts {
		mixed := live.DeepCopy()
		part.copy(&desired.Spec.Template, &mixed.Spec.Template)
		if mixed.Hash() != before {
			changed = append(changed, part.name)
		}
	}
	return changed
}

// dynamicFields are the fields of an EC2NodeClass that Karpenter does not hash. It compares
// instances with the resources that these fields select.
var dynamicFields = []string{"subnetSelectorTerms", "securityGroupSelectorTerms", "amiSelectorTerms", "capacityReservationSelectorTerms"}

// familyField is the field that Karpenter hashes by its effective value: without it, the family
// is the one of the alias in amiSelectorTerms.
const familyField = "amiFamily"

// findClassChanges returns the changed fields of an EC2NodeClass. If only one of the two exists, it
// returns none: then nodeClassRef changes too.
func findClassChanges(live, desired *unstructured.Unstructured) (static, dynamic []string) {
	if live == nil || desired == nil {
		return nil, nil
	}
	before, after := readClassSpec(live), readClassSpec(desired)
	names := map[string]bool{}
	for _, spec := range []map[string]any{before, after} {
		for name := range spec {
			names[name] = true
		}
	}
	for name := range names {
		switch {
		case hasSameHash(before[name], after[name]):
		case slices.Contains(dynamicFields, name):
			dynamic = append(dynamic, name)
		default:
			static = append(static, name)
		}
	}
	slices.Sort(static)
	slices.Sort(dynamic)
	return static, dynamic
}

// readClassSpec returns the fields of an EC2NodeClass, with the effective family.
func readClassSpec(class *unstructured.Unstructured) map[string]any {
	spec, _, _ := unstructured.NestedMap(class.Object, "spec")
	family, _ := spec[familyField].(string)
	if terms, _ := spec["amiSelectorTerms"].([]any); family == "" && len(terms) > 0 {
		term, _ := terms[0].(map[string]any)
		alias, _ := term["alias"].(string)
		family, _, _ = strings.Cut(alias, "@")
	}
	if family != "" {
		spec[familyField] = strings.ToLower(family)
	}
	return spec
}

// hasSameHash compares two values as Karpenter does: the order of lists does not matter.
func hasSameHash(before, after any) bool {
	o := &hashstructure.HashOptions{SlicesAsSets: true, IgnoreZeroValue: true, ZeroNil: true}
	b, err := hashstructure.Hash(before, hashstructure.FormatV2, o)
	if err != nil {
		return false
	}
	a, err := hashstructure.Hash(after, hashstructure.FormatV2, o)
	return err == nil && a == b
}

// countUnmatched counts the nodes whose labels match the requirements now and will not
// match the new ones: Karpenter keeps all others.
func countUnmatched(live, desired *karpenterv1.NodePool, claims []karpenterv1.NodeClaim) int {
	n := 0
	for i := range claims {
		if matchesRequirements(live, &claims[i]) && !matchesRequirements(desired, &claims[i]) {
			n++
		}
	}
	return n
}

func matchesRequirements(pool *karpenterv1.NodePool, claim *karpenterv1.NodeClaim) bool {
	required := scheduling.NewNodeSelectorRequirementsWithMinValues(pool.Spec.Template.Spec.Requirements...)
	return scheduling.NewLabelRequirements(claim.Labels).Compatible(required) == nil
}

// blocksDrifted reports whether a budget keeps Karpenter from replacing drifted nodes at
// any time.
func blocksDrifted(pool *karpenterv1.NodePool) bool {
	return slices.ContainsFunc(pool.Spec.Disruption.Budgets, func(b karpenterv1.Budget) bool {
		return (b.Nodes == "0" || b.Nodes == "0%") && b.Schedule == nil && (len(b.Reasons) == 0 || slices.Contains(b.Reasons, karpenterv1.DisruptionReasonDrifted))
	})
}

func enablesConsolidation(live, desired *karpenterv1.NodePool) bool {
	return live.Spec.Disruption.ConsolidationPolicy == karpenterv1.ConsolidationPolicyWhenEmpty &&
		desired.Spec.Disruption.ConsolidationPolicy != karpenterv1.ConsolidationPolicyWhenEmpty
}
