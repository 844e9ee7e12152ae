package estate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/wording"
)

// constraint is the requirement for one label that results from one field of a pool's
// instances.
type constraint struct {
	key    string
	values values
	// text is the constraint in the words of the pool, for messages.
	text string
}

// listConstraints returns all constraints, which an instance must meet together.
func listConstraints(in *v1alpha1.Instances) []constraint {
	all := []constraint{newConstraint(corev1.LabelOSStable, "linux, which croft's nodes run", "linux")}
	if len(in.CapacityTypes) > 0 {
		all = append(all, newListConstraint(karpenterv1.CapacityTypeLabelKey, "capacityTypes", in.CapacityTypes))
	}
	if len(in.InstanceTypes) > 0 {
		all = append(all, newListConstraint(corev1.LabelInstanceTypeStable, "instanceTypes", in.InstanceTypes))
	}
	switch {
	case len(in.Architectures) > 0:
		all = append(all, newListConstraint(corev1.LabelArchStable, "architectures", in.Architectures))
	case len(in.InstanceTypes) == 0:
		all = append(all, newConstraint(corev1.LabelArchStable, "architecture amd64, the default", karpenterv1.ArchitectureAmd64))
	}
	for i, r := range in.Requirements {
		text := strings.TrimSpace(fmt.Sprintf("requirements[%d] %s %s", i, r.Operator, abridgeList(r.Values)))
		all = append(all, constraint{normalizeLabel(r.Key), newValues(r.Operator, r.Values), text})
	}
	return all
}

func newConstraint(key, text string, list ...string) constraint {
	return constraint{key, newValues(corev1.NodeSelectorOpIn, list), text}
}

func newListConstraint[S ~string](key, name string, list []S) constraint {
	plain := make([]string, len(list))
	for i, v := range list {
		plain[i] = string(v)
	}
	return newConstraint(key, name+" "+abridgeList(plain), plain...)
}

// abridgeList shortens a long list, so that a message remains readable.
func abridgeList(list []string) string {
	switch {
	case len(list) == 0:
		return ""
	case len(list) > 6:
		return fmt.Sprintf("[%s, … %d more]", strings.Join(list[:5], ", "), len(list)-5)
	default:
		return "[" + strings.Join(list, ", ") + "]"
	}
}

// checkInstances refuses a pool whose requirements no instance can meet: pods would wait
// there for ever. It does not know which types the cloud offers; Karpenter reports that.
func checkInstances(w *checker, p *v1alpha1.Pool) []finding {
	at := field.NewPath("spec", "instances")
	byLabel := map[string][]constraint{}
	for _, c := range listConstraints(&p.Spec.Instances) {
		byLabel[c.key] = append(byLabel[c.key], c)
	}
	var all []finding
	for _, key := range slices.Sorted(maps.Keys(byLabel)) {
		if asked := byLabel[key]; intersectValues(asked).isEmpty() && !requiresAbsence(key, asked) {
			all = append(all, makeFinding(at, "no instance can become a node of this pool: no value of %s meets %s; leave one out, or change it",
				key, formatConstraints(asked))...)
		}
	}
	if len(all) > 0 || resolveClass(&w.platform, p).Ref != nil {
		return all
	}
	return checkArchitectures(at, byLabel[corev1.LabelInstanceTypeStable], byLabel[corev1.LabelArchStable])
}

// intersectValues returns the values that meet all constraints.
func intersectValues(constraints []constraint) values {
	rest := newAnyValues()
	for _, c := range constraints {
		rest = rest.intersect(c.values)
	}
	return rest
}

// requiresAbsence reports whether the only requirement is that nodes lack the label. Nodes can meet it
// unless the label is one that every node has.
func requiresAbsence(key string, constraints []constraint) bool {
	return !karpenterv1.WellKnownLabels.Has(key) && !slices.ContainsFunc(constraints, func(c constraint) bool { return !c.values.isEmpty() })
}

func formatConstraints(constraints []constraint) string {
	texts := make([]string, len(constraints))
	for i, c := range constraints {
		texts[i] = c.text
	}
	return wording.Enumerate(texts, "and")
}

// checkArchitectures refuses instance types if none of them has an architecture that the pool
// accepts. It accepts types whose name does not show their architecture.
func checkArchitectures(at *field.Path, askedTypes, askedArchitectures []constraint) []finding {
	types, architectures := intersectValues(askedTypes), intersectValues(askedArchitectures)
	if types.others {
		return nil
	}
	for t := range types.listed {
		if arch := ParseArchitecture(t); arch == "" || architectures.has(arch) {
			return nil
		}
	}
	return makeFinding(at, "no instance can become a node of this pool: none of the instance types %s fits %s; name other types, or require their architecture",
		abridgeList(types.listSorted()), formatConstraints(askedArchitectures))
}
