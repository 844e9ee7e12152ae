package estate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// Karpenter's provider for AWS derives these labels from the name of an instance type.
const (
	awsFamily = awsGroup + "/instance-family"
	awsSize   = awsGroup + "/instance-size"
)

// ExplainUnschedulable explains why no node of the pool can run a pod with these requirements,
// or returns "" if some node may. It uses only the labels that follow from the Pool: neither
// the types that the cloud offers at the moment, nor labels that an administrator sets on a
// node.
func (p *Pool) ExplainUnschedulable(nodePoolKey string, pod *corev1.PodSpec) string {
	labels := p.buildNodeLabels(nodePoolKey)
	for _, key := range slices.Sorted(maps.Keys(pod.NodeSelector)) {
		if why := labels.explainMismatch("spec.nodeSelector", key, corev1.NodeSelectorOpIn, []string{pod.NodeSelector[key]}); why != "" {
			return why + " in pool " + p.Name
		}
		labels[normalizeLabel(key)] = newValues(corev1.NodeSelectorOpIn, []string{pod.NodeSelector[key]})
	}
	if pod.Affinity == nil || pod.Affinity.NodeAffinity == nil || pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	first := ""
	for _, term := range pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		why := ""
		for _, r := range term.MatchExpressions {
			if why = labels.explainMismatch("spec.affinity.nodeAffinity", r.Key, r.Operator, r.Values); why != "" {
				break
			}
		}
		if why == "" {
			return "" // the terms are alternatives
		}
		if first == "" {
			first = why + " in pool " + p.Name
		}
	}
	return first
}

// nodeLabels maps labels of a pool's nodes to their possible values.
type nodeLabels map[string]values

func (p *Pool) buildNodeLabels(nodePoolKey string) nodeLabels {
	labels := nodeLabels{}
	for _, c := range listConstraints(&p.Instances) {
		before, ok := labels[c.key]
		if !ok {
			before = newAnyValues()
		}
		labels[c.key] = before.intersect(c.values)
	}
	labels[nodePoolKey] = newValues(corev1.NodeSelectorOpIn, []string{p.Name})
	labels[karpenterv1.NodePoolLabelKey] = newValues(corev1.NodeSelectorOpIn, []string{p.Name})
	types, ok := labels[corev1.LabelInstanceTypeStable]
	if !ok || types.others || p.Class.Ref != nil && p.Class.Ref.Group != awsGroup {
		return labels
	}
	var architectures, families, sizes []string
	for name := range types.listed {
		architecture := ParseArchitecture(name)
		if architecture == "" {
			return labels
		}
		family, size, _ := strings.Cut(name, ".")
		architectures, families, sizes = append(architectures, architecture), append(families, family), append(sizes, size)
	}
	for key, list := range map[string][]string{corev1.LabelArchStable: architectures, awsFamily: families, awsSize: sizes} {
		before, ok := labels[key]
		if !ok {
			before = newAnyValues()
		}
		labels[key] = before.intersect(newValues(corev1.NodeSelectorOpIn, list))
	}
	return labels
}

// explainMismatch explains why no value of a label meets a requirement, or returns "" if one does.
func (l nodeLabels) explainMismatch(field, key string, operator corev1.NodeSelectorOperator, list []string) string {
	asked := strings.TrimSpace(fmt.Sprintf("%s %s %s", key, operator, abridgeList(list)))
	possible, ok := l[normalizeLabel(key)]
	if !ok {
		if isProviderLabel(normalizeLabel(key)) || operator == corev1.NodeSelectorOpNotIn || operator == corev1.NodeSelectorOpDoesNotExist {
			return ""
		}
		return fmt.Sprintf("%s: %s: no node has the label %s", field, asked, key)
	}
	if !possible.intersect(newValues(operator, list)).isEmpty() {
		return ""
	}
	if possible.others {
		return fmt.Sprintf("%s: %s: no node has such a value", field, asked)
	}
	return fmt.Sprintf("%s: %s: nodes have %s", field, asked, abridgeList(possible.listSorted()))
}

// isProviderLabel reports whether Karpenter, its providers, the kubelet or a storage driver set a
// label on nodes with values that the Pool does not determine.
func isProviderLabel(key string) bool {
	if karpenterv1.WellKnownLabels.Has(key) || key == corev1.LabelHostname {
		return true
	}
	domain, _, qualified := strings.Cut(key, "/")
	return qualified && (strings.HasPrefix(domain, "karpenter.") || strings.HasPrefix(domain, "topology.") ||
		strings.HasSuffix(domain, "kubernetes.io") || strings.HasSuffix(domain, "k8s.io"))
}
