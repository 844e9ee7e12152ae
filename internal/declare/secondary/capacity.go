package secondary

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/api/v1alpha1"
)

// PossibleTypes returns the sorted instance types that a pool's nodes may have, as far as names
// determine them: the listed types, or otherwise all known ones, without types that
// requirements on the type, the family or the size exclude. listed is false if the pool
// lists no types.
func PossibleTypes(instances *v1alpha1.Instances) (types []string, listed bool) {
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
		types = slices.DeleteFunc(types, func(t string) bool { return !meetsRequirement(r, part(t)) })
	}
	return types, listed
}

// partOf maps labels to the part of an instance type's name that they contain.
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

func meetsRequirement(r *v1alpha1.Requirement, value string) bool {
	switch r.Operator {
	case corev1.NodeSelectorOpIn:
		return slices.Contains(r.Values, value)
	case corev1.NodeSelectorOpNotIn:
		return !slices.Contains(r.Values, value)
	default:
		return true
	}
}

// FindTooSmall returns the instance types that have too few interfaces for a number of
// networks. It omits unknown types.
func FindTooSmall(types []string, networks int) []string {
	var all []string
	for _, t := range types {
		if l, known := LimitsOf(t); known && !l.Carries(networks) {
			all = append(all, t)
		}
	}
	return all
}

// CommonZones returns the sorted zones that all of the networks have.
func CommonZones(networks ...*v1alpha1.SecondaryNetworkSpec) []string {
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
