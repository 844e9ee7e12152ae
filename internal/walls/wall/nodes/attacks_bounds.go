package nodes

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/rules/attack"
)

// buildBoundsAttacks are pods with lists that croft's own rules, the scheduler and Karpenter would take
// seconds to evaluate.
func (s scene) buildBoundsAttacks() []attack.Attack {
	tolerating := func(n int) []corev1.Toleration {
		list := make([]corev1.Toleration, n)
		for i := range list {
			list[i] = corev1.Toleration{Key: fmt.Sprintf("node.kubernetes.io/condition-%d", i), Operator: corev1.TolerationOpExists}
		}
		return list
	}
	terms := func(n int) *corev1.Affinity {
		affinity := requireLabel(corev1.LabelArchStable, "amd64")
		required := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		for len(required.NodeSelectorTerms) < n {
			required.NodeSelectorTerms = append(required.NodeSelectorTerms, required.NodeSelectorTerms[0])
		}
		return affinity
	}
	// Kubernetes adds tolerations, and croft adds one for the pool.
	const added = 10
	return attack.WithReason("all tenants share the API server and the scheduler, whose time grows with the square of a list's length", nil,
		s.makeBreach("tolerate-more", "write a pod with more tolerations than croft evaluates", admissionpolicy.BoundsRule, func(p *corev1.Pod) { p.Spec.Tolerations = tolerating(mostTolerations + 1) }),
		s.makeBreach("ask-for-more-nodes", "write a pod with more terms of node affinity than the scheduler should go through", admissionpolicy.BoundsRule, func(p *corev1.Pod) { p.Spec.Affinity = terms(21) }),
		attack.NewCreate("tolerate-more-in-template", "write a Deployment whose pods have more tolerations than croft evaluates", attack.ByWarning(admissionpolicy.PodTemplatesPolicy, admissionpolicy.BoundsRule),
			attack.NewDeployment(s.namespace, "croft-tolerate-more", attack.NewTemplate(func(t *corev1.PodTemplateSpec) { t.Spec.Tolerations = tolerating(mostTolerations + 1) }))),
		attack.NewCreate("tolerate-much", "write a pod with nearly as many tolerations as croft evaluates", attack.Nobody,
			attack.NewPod(s.namespace, "croft-tolerate-much", func(p *corev1.Pod) {
				p.Spec.Tolerations, p.Spec.Affinity = tolerating(mostTolerations-added), terms(maxTerms)
			})),
	)
}
