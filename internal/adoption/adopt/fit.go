package adopt

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"croft.dev/croft/internal/walls/wall"
)

// checkFit reports workloads whose pods fit on no new node of their pool: existing nodes may have
// labels that new ones will not have.
func (a *Adoption) checkFit(p *Plan) {
	for i := range p.Pods {
		w := &p.Pods[i]
		w.PendingReason = ""
		if w.NextPool != "" && w.Refusal == "" {
			w.PendingReason = a.explainMisfit(w.pod, w.NextPool)
		}
	}
}

// explainMisfit returns why no node that Karpenter creates for a pool fits a pod, or "" if one may
// fit. It calls Karpenter's own comparison, without the labels of instances, which only the
// cloud knows.
func (a *Adoption) explainMisfit(pod *corev1.Pod, pool string) string {
	var nodes *karpenterv1.NodePool
	if declared := a.estate.FindPool(pool); declared != nil {
		for _, o := range wall.PoolObjects(&a.estate.Platform, declared) {
			if pool, ok := o.(*karpenterv1.NodePool); ok {
				nodes = pool
			}
		}
	}
	if nodes == nil {
		return "" // the pool exists only in the cluster, and its settings are unknown
	}
	template := nodes.Spec.Template
	offered := scheduling.NewNodeSelectorRequirementsWithMinValues(template.Spec.Requirements...)
	offered.Add(scheduling.NewLabelRequirements(template.Labels).Values()...)
	offered.Add(scheduling.NewLabelRequirements(map[string]string{karpenterv1.NodePoolLabelKey: nodes.Name}).Values()...)
	reason := ""
	for _, asking := range a.listAlternatives(pod, pool) {
		requirements := scheduling.NewStrictPodRequirements(asking)
		err := offered.Compatible(requirements, func(o *scheduling.CompatibilityOptions) {
			o.AllowUndefined = karpenterv1.WellKnownLabels.Union(listProviderLabels(requirements, template.Spec.NodeClassRef.Group))
		})
		if err == nil {
			return ""
		}
		if reason == "" {
			reason = err.Error()
		}
	}
	return reason
}

// listAlternatives returns copies of the placed pod, one for each term of its required node
// affinity. One of them has to fit.
func (a *Adoption) listAlternatives(pod *corev1.Pod, pool string) []*corev1.Pod {
	placed := pod.DeepCopy()
	if placed.Spec.NodeSelector == nil {
		placed.Spec.NodeSelector = map[string]string{}
	}
	placed.Spec.NodeSelector[a.estate.Platform.NodePoolKey] = pool
	if placed.Spec.Affinity == nil || placed.Spec.Affinity.NodeAffinity == nil || placed.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return []*corev1.Pod{placed}
	}
	var all []*corev1.Pod
	for _, term := range placed.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		one := placed.DeepCopy()
		one.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms = []corev1.NodeSelectorTerm{term}
		all = append(all, one)
	}
	return all
}

// listProviderLabels returns the labels that a provider sets on its nodes, which are below the group of
// its node classes. AWS also uses other domains (topology.k8s.aws).
func listProviderLabels(requirements scheduling.Requirements, group string) sets.Set[string] {
	all := sets.New[string]()
	for key := range requirements {
		domain, _, _ := strings.Cut(key, "/")
		if domain == group || strings.HasSuffix(group, ".k8s.aws") && strings.HasSuffix(domain, ".k8s.aws") {
			all.Insert(key)
		}
	}
	return all
}
