package nodes

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/rules/attack"
)

type terms = []corev1.PodAffinityTerm

// requireAntiAffinity returns required anti-affinity, and follow required affinity. preferAntiAffinity and
// preferAffinity return the preferred forms.
func requireAntiAffinity(t ...corev1.PodAffinityTerm) *corev1.Affinity {
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: t}}
}

func requireAffinity(t ...corev1.PodAffinityTerm) *corev1.Affinity {
	return &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: t}}
}

func weighTerms(t ...corev1.PodAffinityTerm) []corev1.WeightedPodAffinityTerm {
	var all []corev1.WeightedPodAffinityTerm
	for _, term := range t {
		all = append(all, corev1.WeightedPodAffinityTerm{Weight: 1, PodAffinityTerm: term})
	}
	return all
}

func preferAntiAffinity(t ...corev1.PodAffinityTerm) *corev1.Affinity {
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: weighTerms(t...)}}
}

func preferAffinity(t ...corev1.PodAffinityTerm) *corev1.Affinity {
	return &corev1.Affinity{PodAffinity: &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: weighTerms(t...)}}
}

// makeNamespaceTerm returns a term on pods of the named namespaces. where returns a term on pods of selected
// namespaces.
func makeNamespaceTerm(namespaces ...string) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{TopologyKey: corev1.LabelOSStable, LabelSelector: &metav1.LabelSelector{}, Namespaces: namespaces}
}

func makeSelectorTerm(selector metav1.LabelSelector) corev1.PodAffinityTerm {
	term := makeNamespaceTerm()
	term.NamespaceSelector = &selector
	return term
}

func selectExpression(key string, operator metav1.LabelSelectorOperator, values ...string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
}

func selectLabel(key, value string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

// makeTerms returns n terms on the tenant's own pods.
func makeTerms(n int) terms {
	var all terms
	for i := range n {
		all = append(all, corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprint("none-", i)}}})
	}
	return all
}

func makeNodeSelectorTerms(n int) []corev1.NodeSelectorTerm {
	var all []corev1.NodeSelectorTerm
	for i := range n {
		all = append(all, corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{fmt.Sprint("zone-", i)}},
		}})
	}
	return all
}

func requireNodes(n int) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: makeNodeSelectorTerms(n)},
	}}
}

func preferNodes(n int) *corev1.Affinity {
	affinity := &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}
	for _, term := range makeNodeSelectorTerms(n) {
		affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.PreferredSchedulingTerm{Weight: 1, Preference: term})
	}
	return affinity
}

func makeSpreadConstraints(n int) []corev1.TopologySpreadConstraint {
	var all []corev1.TopologySpreadConstraint
	for i := range n {
		all = append(all, corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: fmt.Sprint("example.org/rack-", i), WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "none"}},
		})
	}
	return all
}

func setAffinity(affinity *corev1.Affinity) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Affinity = affinity }
}

// buildSchedulingAttacks are pods that decide where other tenants' pods run, or that occupy the
// scheduler.
func (s scene) buildSchedulingAttacks() []attack.Attack {
	foreign := func(name, summary string, affinity *corev1.Affinity) attack.Attack {
		return s.makeBreach(name, summary, AffinityRule, setAffinity(affinity))
	}
	strangers := makeSelectorTerm(selectExpression(corev1.LabelMetadataName, metav1.LabelSelectorOpNotIn, s.namespace))
	all := attack.WithReason("anti-affinity also applies to later pods: one pod keeps those of others Pending in the whole cluster; and affinity reveals where others' pods run", nil,
		foreign("repel-others", "keep all pods of others off all nodes, by anti-affinity to every namespace but one's own", requireAntiAffinity(strangers)),
		foreign("repel-every-namespace", "keep all pods off all nodes, by anti-affinity to every namespace", requireAntiAffinity(makeSelectorTerm(metav1.LabelSelector{}))),
		foreign("repel-other-tenant", "keep another tenant's pods off all nodes, by the name of its namespace", requireAntiAffinity(makeNamespaceTerm(s.other))),
		foreign("repel-other-tenant-among-own", "keep another tenant's pods off all nodes, by a namespace together with one's own", requireAntiAffinity(makeNamespaceTerm(s.namespace, s.other))),
		foreign("repel-other-tenant-beside-own-selector", "keep another tenant's pods off all nodes, by a namespace together with a selector of one's own", requireAntiAffinity(func() corev1.PodAffinityTerm {
			term := makeSelectorTerm(selectLabel(v1alpha1.TenantLabel, s.tenant))
			term.Namespaces = []string{s.other}
			return term
		}())),
		foreign("repel-other-tenant-second", "keep another tenant's pods off all nodes, by the second of two terms", requireAntiAffinity(makeNamespaceTerm(s.namespace), makeNamespaceTerm(s.other))),
		foreign("repel-by-tenant-label", "keep another tenant's pods off all nodes, by the label of its namespaces", requireAntiAffinity(makeSelectorTerm(selectLabel(v1alpha1.TenantLabel, s.otherTenant)))),
		foreign("repel-every-tenant", "keep all tenants' pods off all nodes", requireAntiAffinity(makeSelectorTerm(selectExpression(v1alpha1.TenantLabel, metav1.LabelSelectorOpExists)))),
		foreign("repel-tenants-in-list", "keep another tenant's pods off all nodes, by a list of tenants with one's own in it",
			requireAntiAffinity(makeSelectorTerm(selectExpression(v1alpha1.TenantLabel, metav1.LabelSelectorOpIn, s.tenant, s.otherTenant)))),
		foreign("repel-namespaces-in-list", "keep another tenant's pods off all nodes, by a list of namespaces with one's own in it",
			requireAntiAffinity(makeSelectorTerm(selectExpression(corev1.LabelMetadataName, metav1.LabelSelectorOpIn, s.namespace, s.other)))),
		foreign("repel-by-namespace-label", "keep another tenant's pods off all nodes, by the name label of its namespace", requireAntiAffinity(makeSelectorTerm(selectLabel(corev1.LabelMetadataName, s.other)))),
		foreign("prefer-to-repel-others", "prefer nodes without pods of others", preferAntiAffinity(strangers)),
		foreign("ask-what-other-tenant-runs", "find out whether another tenant has a pod with a label, by affinity to it", requireAffinity(makeNamespaceTerm(s.other))),
		foreign("ask-what-every-tenant-runs", "find out whether any tenant has a pod with a label, by affinity to every namespace", requireAffinity(makeSelectorTerm(metav1.LabelSelector{}))),
		foreign("ask-by-preference-what-other-tenant-runs", "find out where another tenant has pods, by preferred affinity to them", preferAffinity(makeNamespaceTerm(s.other))),
	)
	tooMany := func(name, summary string, edit func(*corev1.Pod)) attack.Attack {
		return s.makeBreach(name, summary, TermsRule, edit)
	}
	all = append(all, attack.WithReason("the scheduler and Karpenter evaluate the terms of all pods for every tenant's pod", nil,
		tooMany("ask-with-many-terms", "write more terms of anti-affinity than a pod may have", setAffinity(requireAntiAffinity(makeTerms(maxTerms+1)...))),
		tooMany("ask-with-many-terms-of-all-kinds", "write more terms of pod affinity than a pod may have, a few of each kind", func(p *corev1.Pod) {
			three := makeTerms(3)
			p.Spec.Affinity = &corev1.Affinity{PodAffinity: requireAffinity(three...).PodAffinity, PodAntiAffinity: requireAntiAffinity(three...).PodAntiAffinity}
			p.Spec.Affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution = weighTerms(three...)
			p.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution = weighTerms(three...)
		}),
		tooMany("ask-with-many-node-terms", "write more terms of node affinity than a pod may have", setAffinity(requireNodes(maxTerms+1))),
		tooMany("ask-with-many-preferred-node-terms", "write more preferred terms of node affinity than a pod may have", setAffinity(preferNodes(maxTerms+1))),
		tooMany("ask-with-many-spreads", "write more spread constraints than a pod may have", func(p *corev1.Pod) { p.Spec.TopologySpreadConstraints = makeSpreadConstraints(maxTerms + 1) }),
		attack.NewUpdate("ask-with-many-node-terms-later", "add terms of node affinity to a pod that waits behind a gate", attack.ByPolicy(admissionpolicy.PodsPolicy, TermsRule),
			attack.NewPod(s.namespace, "croft-ask-with-many-node-terms-later"), setAffinity(requireNodes(maxTerms+1))),
	)...)
	return all
}

// buildSchedulingTemplateAttacks have the same constraints in templates, which lead to warnings.
func (s scene) buildSchedulingTemplateAttacks() []attack.Attack {
	var all []attack.Attack
	template := attack.NewTemplate(func(t *corev1.PodTemplateSpec) {
		t.Spec.Affinity = requireAntiAffinity(makeSelectorTerm(metav1.LabelSelector{}))
	})
	for _, maker := range attack.NewPodControllers(s.namespace, "croft-repellent", template) {
		kind := maker.GetObjectKind().GroupVersionKind().Kind
		all = append(all, attack.NewCreate("repel-others-in-"+strings.ToLower(kind), "keep all pods off all nodes by the template of a "+kind,
			attack.ByWarning(admissionpolicy.PodTemplatesPolicy, AffinityRule), maker))
	}
	return append(all, attack.NewCreate("ask-with-many-terms-in-template", "write more terms of anti-affinity than a pod may have in the template of a Deployment",
		attack.ByWarning(admissionpolicy.PodTemplatesPolicy, TermsRule),
		attack.NewDeployment(s.namespace, "croft-many-terms", attack.NewTemplate(func(t *corev1.PodTemplateSpec) { t.Spec.Affinity = requireAntiAffinity(makeTerms(maxTerms + 1)...) }))))
}

// buildSchedulingMirrors are legitimate constraints for the scheduler.
func (s scene) buildSchedulingMirrors() []attack.Attack {
	may := func(name, summary string, edit func(*corev1.Pod)) attack.Attack {
		return attack.NewCreate(name, summary, attack.Nobody, attack.NewPod(s.namespace, "croft-"+name, edit))
	}
	two := metav1.LabelSelector{MatchLabels: map[string]string{"team": "any"}, MatchExpressions: selectExpression(v1alpha1.TenantLabel, metav1.LabelSelectorOpIn, s.tenant).MatchExpressions}
	return []attack.Attack{
		may("spread-own-pods", "keep pods apart by anti-affinity, and spread them over zones", func(p *corev1.Pod) {
			p.Spec.Affinity = requireAntiAffinity(corev1.PodAffinityTerm{
				TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "own"}}, MatchLabelKeys: []string{"version"},
			})
			p.Spec.Affinity.PodAffinity = preferAffinity(makeNamespaceTerm()).PodAffinity
			p.Spec.TopologySpreadConstraints = makeSpreadConstraints(maxTerms)
		}),
		may("avoid-own-namespaces", "write anti-affinity to pods of one's own namespaces, by their names", setAffinity(requireAntiAffinity(makeNamespaceTerm(s.namespaces...)))),
		may("avoid-own-tenant", "write anti-affinity to pods of all of the tenant's namespaces, by their label", setAffinity(requireAntiAffinity(makeSelectorTerm(selectLabel(v1alpha1.TenantLabel, s.tenant))))),
		may("follow-own-namespaces", "write affinity to pods of one's own namespaces, by the labels of their names",
			setAffinity(preferAffinity(makeSelectorTerm(selectLabel(corev1.LabelMetadataName, s.namespace)), makeSelectorTerm(selectExpression(corev1.LabelMetadataName, metav1.LabelSelectorOpIn, s.namespaces...)), makeSelectorTerm(two)))),
		may("ask-with-some-terms", "write as many terms of affinity as a pod may have", func(p *corev1.Pod) {
			p.Spec.Affinity = requireAntiAffinity(makeTerms(maxTerms)...)
			p.Spec.Affinity.NodeAffinity = preferNodes(maxTerms).NodeAffinity
		}),
	}
}

// buildCapacityAttacks requests nodes by objects other than pods.
func (s scene) buildCapacityAttacks() []attack.Attack {
	buffer := s.makeCapacityBuffer
	const name, summary = "reserve-nodes", "have Karpenter keep nodes for pods that do not exist, by a template that no rule on pods has evaluated"
	right := rbacv1.PolicyRule{APIGroups: []string{"autoscaling.x-k8s.io"}, Resources: []string{"capacitybuffers"}, Verbs: []string{"create", "get", "update"}}
	byPolicy := attack.ByPolicy(CapacityPolicy, CapacityRule)
	return append(s.buildGroupAttacks(), attack.WithReason("Karpenter and the scheduler read such objects without any rule on pods", []string{"https://karpenter.sh/docs/concepts/"},
		attack.NewCreate(name, summary, attack.ByRBAC, buffer(name)),
		attack.GrantToEveryone(attack.NewCreate(name+"-when-permitted", summary, byPolicy, buffer(name+"-when-permitted")), right),
		attack.GrantToEveryone(attack.NewUpdate(name+"-later-when-permitted", "have Karpenter keep more nodes for pods that do not exist", byPolicy, buffer(name+"-later"), func(u *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(u.Object, int64(2), "spec", "replicas")
		}), right),
		attack.GrantToEveryone(attack.NewUpdate("label-a-capacity-buffer", "label a CapacityBuffer that the platform has written", attack.Nobody, buffer("label-a-capacity-buffer"), func(u *unstructured.Unstructured) {
			u.SetLabels(map[string]string{"team": "web"})
		}), right),
	)...)
}

// makeCapacityBuffer returns a CapacityBuffer, which has Karpenter provision spare nodes.
func (s scene) makeCapacityBuffer(name string) *unstructured.Unstructured {
	return attack.NewCustomObject("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer", s.namespace, "croft-"+name, map[string]any{
		"podTemplateRef": map[string]any{"name": "croft-" + name}, "replicas": int64(1),
	})
}

// buildGroupAttacks request nodes, or occupy the scheduler, by kinds that few clusters serve.
func (s scene) buildGroupAttacks() []attack.Attack {
	byPolicy := attack.ByPolicy(CapacityPolicy, CapacityRule)
	right := func(group, resource string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"create", "get", "update"}}
	}
	var all []attack.Attack
	for _, k := range []struct{ group, version, kind string }{
		{"autoscaling.x-k8s.io", "v1", "ProvisioningRequest"}, {"scheduling.k8s.io", "v1alpha1", "Workload"}, {"scheduling.k8s.io", "v1alpha2", "PodGroup"},
	} {
		lower := strings.ToLower(k.kind)
		object := func(name string) *unstructured.Unstructured {
			return attack.NewCustomObject(k.group+"/"+k.version, k.kind, s.namespace, "croft-"+name, map[string]any{"count": int64(1)})
		}
		all = append(all,
			attack.GrantToEveryone(attack.NewCreate("write-"+lower+"-when-permitted", "write a "+k.kind, byPolicy, object("write")), right(k.group, lower+"s")),
			attack.GrantToEveryone(attack.NewUpdate("change-"+lower+"-when-permitted", "change an existing "+k.kind, byPolicy, object("change"), func(u *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(u.Object, int64(2), "spec", "count")
			}), right(k.group, lower+"s")))
	}
	return attack.WithReason("the scheduler and cluster-autoscaler read such objects without any rule on pods", nil, all...)
}
