package nodes

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/internal/admissionpolicy"
	"croft.dev/croft/internal/attack"
)

// bounds are pods with lists that croft's own rules, the scheduler and Karpenter would take
// seconds to evaluate.
func (s scene) bounds() []attack.Attack {
	tolerating := func(n int) []corev1.Toleration {
		list := make([]corev1.Toleration, n)
		for i := range list {
			list[i] = corev1.Toleration{Key: fmt.Sprintf("node.kubernetes.io/condition-%d", i), Operator: corev1.TolerationOpExists}
		}
		return list
	}
	terms := func(n int) *corev1.Affinity {
		affinity := require(corev1.LabelArchStable, "amd64")
		required := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		for len(required.NodeSelectorTerms) < n {
			required.NodeSelectorTerms = append(required.NodeSelectorTerms, required.NodeSelectorTerms[0])
		}
		return affinity
	}
	// Kubernetes adds tolerations, and croft adds one for the pool.
	const added = 10
	return attack.Because("all tenants share the API server and the scheduler, whose time grows with the square of a list's length", nil,
		s.create("tolerate-more", "write a pod with more tolerations than croft goes through", admissionpolicy.BoundsRule, func(p *corev1.Pod) { p.Spec.Tolerations = tolerating(mostTolerations + 1) }),
		s.create("ask-for-more-nodes", "write a pod with more terms of node affinity than the scheduler should go through", admissionpolicy.BoundsRule, func(p *corev1.Pod) { p.Spec.Affinity = terms(21) }),
		attack.Creating("tolerate-more-in-template", "write a Deployment whose pods have more tolerations than croft goes through", attack.ByWarning(admissionpolicy.PodTemplatesPolicy, admissionpolicy.BoundsRule),
			attack.Deployment(s.namespace, "croft-tolerate-more", attack.Template(func(t *corev1.PodTemplateSpec) { t.Spec.Tolerations = tolerating(mostTolerations + 1) }))),
		attack.Creating("tolerate-much", "write a pod with nearly as many tolerations as croft goes through", attack.Nobody,
			attack.Pod(s.namespace, "croft-tolerate-much", func(p *corev1.Pod) {
				p.Spec.Tolerations, p.Spec.Affinity = tolerating(mostTolerations-added), terms(maxTerms)
			})),
	)
}
