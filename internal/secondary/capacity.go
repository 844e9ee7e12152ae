package secondary

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/api/v1alpha1"
)

// Types are the instance types that may become nodes of a pool, sorted, as far as their
// names tell: those that are listed, or otherwise all that are known, less those that
// requirements on the type, the family or the size rule out. listed is false where the
// pool names no type itself.
func Types(instances *v1alpha1.Instances) (types []string, listed bool) {
	types, listed = slices.Sorted(slices.Values(instances.InstanceTypes)), len(instances.InstanceTypes) > 0
	if !listed {
		types = InstanceTypes()
	}
	for i := range instances.Requirements {
		r := &instances.Requirements[i]
		part, ok := partOf[r.Key]
		if !ok {
			continue
		}
		listed = listed || r.Key == corev1.LabelInstanceTypeStable && r.Operator == corev1.NodeSelectorOpIn
		types = slices.DeleteFunc(types, func(t string) bool { return !meets(r, part(t)) })
	}
	return types, listed
}

// partOf are the labels that are parts of an instance type's name.
var partOf = map[string]func(string) string{
	corev1.LabelInstanceTypeStable: func(t string) string { return t },
	"karpenter.k8s.aws/instance-family": func(t string) string {
		family, _, _ := strings.Cut(t, ".")
		return family
	},
	"karpenter.k8s.aws/instance-size": func(t string) string {
		_, size, _ := strings.Cut(t, ".")
		return size
	},
}

func meets(r *v1alpha1.Requirement, value string) bool {
	switch r.Operator {
	case corev1.NodeSelectorOpIn:
		return slices.Contains(r.Values, value)
	case corev1.NodeSelectorOpNotIn:
		return !slices.Contains(r.Values, value)
	default:
		return true
	}
}

// TooSmall are those of some instance types that have too few interfaces for a number of
// networks. Types that are not known are not among them.
func TooSmall(types []string, networks int) []string {
	var all []string
	for _, t := range types {
		if l, known := LimitsOf(t); known && !l.Carries(networks) {
			all = append(all, t)
		}
	}
	return all
}

// Zones are the zones that all of some networks have, sorted.
func Zones(networks ...*v1alpha1.SecondaryNetworkSpec) []string {
	count := map[string]int{}
	for _, n := range networks {
		for i := range n.Zones {
			count[n.Zones[i].Zone]++
		}
	}
	var all []string
	for zone, n := range count {
		if n == len(networks) {
			all = append(all, zone)
		}
	}
	slices.Sort(all)
	return all
}
