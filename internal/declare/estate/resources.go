package estate

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"croft.dev/croft/api/v1alpha1"
)

// checkAmounts refuses negative quantities, which the schema accepts.
func checkAmounts(at *field.Path, list corev1.ResourceList) []finding {
	var all []finding
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if q := list[name]; q.Sign() < 0 {
			all = append(all, makeFinding(at.Key(string(name)), "must not be below zero, as %s is", q.String())...)
		}
	}
	return all
}

// checkResources applies all rules for a quota and for containers' limits.
func checkResources(quotaAt *field.Path, quota corev1.ResourceList, limitsAt *field.Path, limits *v1alpha1.ContainerLimits) []finding {
	return slices.Concat(checkAmounts(quotaAt, quota), checkQuota(quotaAt, quota), checkLimitsOrder(limitsAt, limits), checkContainerLimits(limitsAt, limits))
}

// limitsPart is one of the lists of containers' limits, by the name of its field.
type limitsPart struct {
	name string
	list corev1.ResourceList
}

// listParts returns the lists from the lowest to the highest.
func listParts(limits *v1alpha1.ContainerLimits) []limitsPart {
	return []limitsPart{
		{"min", limits.Min},
		{"defaultRequest", limits.DefaultRequest},
		{"default", limits.Default},
		{"max", limits.Max},
	}
}

// checkLimitsOrder refuses containers' limits that no container could meet. It compares every pair,
// since any of the four may be missing.
func checkLimitsOrder(at *field.Path, limits *v1alpha1.ContainerLimits) []finding {
	if limits == nil {
		return nil
	}
	steps := listParts(limits)
	var all []finding
	for i, low := range steps {
		all = append(all, checkAmounts(at.Child(low.name), low.list)...)
		for _, high := range steps[i+1:] {
			for _, name := range slices.Sorted(maps.Keys(low.list)) {
				lower := low.list[name]
				if upper, ok := high.list[name]; ok && lower.Cmp(upper) > 0 {
					all = append(all, makeFinding(at.Child(low.name).Key(string(name)), "%s is more than the %s of %s; lower it, or raise %s",
						lower.String(), high.name, upper.String(), high.name)...)
				}
			}
		}
	}
	return all
}
