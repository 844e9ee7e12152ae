package draft

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"croft.dev/croft/internal/adoption/migrate/source"
)

// Selection is a requirement of pods for a label of their nodes.
type Selection struct {
	Key      string
	Operator corev1.NodeSelectorOperator
	Values   []string
	// ByNamespace means that the value is the name of the pod's namespace.
	ByNamespace bool
	At          source.Field
}

// NewSelection returns a selection of one value.
func NewSelection(key, value string, at source.Field) Selection {
	return Selection{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}, At: at}
}

// ListSelections returns the selections of a nodeSelector.
func ListSelections(nodeSelector map[string]string, at source.Field) []Selection {
	var all []Selection
	for _, key := range slices.Sorted(maps.Keys(nodeSelector)) {
		all = append(all, NewSelection(key, nodeSelector[key], at))
	}
	return all
}

// ParseSelection reads a requirement: its key, operator and values.
func ParseSelection(f source.Field) (Selection, bool) {
	s := Selection{Key: f.At("key").Text(), Operator: corev1.NodeSelectorOperator(f.At("operator").Text()), Values: f.At("values").Texts(), At: f}
	switch s.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		return s, s.Key != "" && len(s.Values) > 0
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		return s, s.Key != ""
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt, karpenterv1.NodeSelectorOpGte, karpenterv1.NodeSelectorOpLte:
		if len(s.Values) != 1 {
			return s, false
		}
		_, err := strconv.Atoi(s.Values[0])
		return s, s.Key != "" && err == nil
	}
	return s, false
}

func (s Selection) buildRequirement() *scheduling.Requirement {
	return scheduling.NewRequirement(s.Key, s.Operator, slices.Clone(s.Values)...)
}

// String returns the selection for messages.
func (s Selection) String() string {
	if s.Operator == corev1.NodeSelectorOpIn && len(s.Values) == 1 {
		return s.Key + "=" + s.Values[0]
	}
	return strings.TrimSpace(s.Key + " " + string(s.Operator) + " " + strings.Join(s.Values, ","))
}

// ChoosesPools reports whether a selection can distinguish pools. Labels of instances, such as
// the architecture, cannot: nodes of any pool may have them.
func (s Selection) ChoosesPools() bool {
	return s.Operator == corev1.NodeSelectorOpIn && (IsPoolLabel(s.Key) || !isInstanceLabel(s.Key))
}

// IsPoolLabel reports whether Karpenter sets a label to the name of the pool.
func IsPoolLabel(key string) bool {
	return key == karpenterv1.NodePoolLabelKey || key == formerPoolLabel
}

// isInstanceLabel reports whether Karpenter or its provider derives a label from the instance.
func isInstanceLabel(key string) bool {
	if now, ok := karpenterv1.NormalizedLabels[key]; ok {
		key = now
	}
	domain, _, _ := strings.Cut(key, "/")
	return karpenterv1.WellKnownLabels.Has(key) || key == corev1.LabelHostname || strings.HasPrefix(domain, "karpenter.") ||
		slices.Contains([]string{"eks.amazonaws.com", "kubernetes.azure.com", "cloud.google.com"}, domain)
}

// Fit describes how many nodes of a pool meet a selection.
type Fit int

// These are the values of Fit: no node, only some of them, or every node meets a selection.
const (
	NoNode Fit = iota
	SomeNodes
	EveryNode
)

// MatchSelection compares the nodes with a selection.
func (n *Nodes) MatchSelection(s Selection) Fit {
	requirement := s.buildRequirement()
	if !n.offered.Has(requirement.Key) {
		switch {
		case isInstanceLabel(requirement.Key) && !IsPoolLabel(requirement.Key):
			return SomeNodes
		case s.Operator == corev1.NodeSelectorOpNotIn || s.Operator == corev1.NodeSelectorOpDoesNotExist:
			return EveryNode
		default:
			return NoNode
		}
	}
	offered := n.offered.Get(requirement.Key)
	switch {
	case offered.Intersection(requirement).Len() == 0:
		return NoNode
	case offered.Operator() == corev1.NodeSelectorOpIn && !slices.ContainsFunc(offered.Values(), func(v string) bool { return !requirement.Has(v) }):
		return EveryNode
	default:
		return SomeNodes
	}
}
