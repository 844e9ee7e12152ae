package estate

import (
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// values are the possible values of a label, computed as in Karpenter's package scheduling.
// That package also covers volumes, ports and the options of its operator, none of which croft
// needs.
type values struct {
	// listed are the only possible values or, if others is set, the only impossible ones.
	listed map[string]bool
	others bool
	// above and under are the bounds of others, both exclusive. Nil means no bound.
	above, under *int
}

func newAnyValues() values { return values{others: true} }

func newValues(operator corev1.NodeSelectorOperator, list []string) values {
	v := values{listed: map[string]bool{}}
	switch operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		for _, value := range list {
			v.listed[value] = true
		}
		v.others = operator == corev1.NodeSelectorOpNotIn
	case corev1.NodeSelectorOpExists:
		v.others = true
	case corev1.NodeSelectorOpGt:
		v.others, v.above = true, parseNumber(list)
	case corev1.NodeSelectorOpLt:
		v.others, v.under = true, parseNumber(list)
	case corev1.NodeSelectorOpDoesNotExist: // no value at all
	}
	return v
}

func parseNumber(list []string) *int {
	if len(list) == 0 {
		return nil
	}
	n, err := strconv.Atoi(list[0])
	if err != nil {
		return nil
	}
	return &n
}

// intersect returns the values in both.
func (v values) intersect(w values) values {
	both := values{listed: map[string]bool{}, others: v.others && w.others}
	if both.others {
		maps.Copy(both.listed, v.listed)
		maps.Copy(both.listed, w.listed)
		both.above, both.under = stricterBound(v.above, w.above, true), stricterBound(v.under, w.under, false)
		return both
	}
	if v.others {
		v, w = w, v
	}
	for value := range v.listed {
		if w.has(value) {
			both.listed[value] = true
		}
	}
	return both
}

func stricterBound(a, b *int, higher bool) *int {
	if a == nil || b != nil && (*b > *a) == higher {
		return b
	}
	return a
}

func (v values) has(value string) bool {
	if !v.others {
		return v.listed[value]
	}
	if v.listed[value] {
		return false
	}
	if v.above == nil && v.under == nil {
		return true
	}
	n, err := strconv.Atoi(value)
	return err == nil && (v.above == nil || n > *v.above) && (v.under == nil || n < *v.under)
}

func (v values) isEmpty() bool {
	if !v.others {
		return len(v.listed) == 0
	}
	return v.above != nil && v.under != nil && *v.under-*v.above < 2
}

func (v values) listSorted() []string { return slices.Sorted(maps.Keys(v.listed)) }
