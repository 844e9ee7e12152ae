package nodes

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/admissionpolicy"
	"croft.dev/croft/internal/attack"
)

type terms = []corev1.PodAffinityTerm

// avoid returns required anti-affinity, and follow required affinity. preferAvoiding and
// preferFollowing return the preferred forms.
func avoid(t ...corev1.PodAffinityTerm) *corev1.Affinity {
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: t}}
}

func follow(t ...corev1.PodAffinityTerm) *corev1.Affinity {
	return &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: t}}
}

func rather(t ...corev1.PodAffinityTerm) []corev1.WeightedPodAffinityTerm {
	var all []corev1.WeightedPodAffinityTerm
	for _, term := range t {
		all = append(all, corev1.WeightedPodAffinityTerm{Weight: 1, PodAffinityTerm: term})
	}
	return all
}

func preferAvoiding(t ...corev1.PodAffinityTerm) *corev1.Affinity {
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: rather(t...)}}
}

func preferFollowing(t ...corev1.PodAffinityTerm) *corev1.Affinity {
	return &corev1.Affinity{PodAffinity: &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: rather(t...)}}
}

// in returns a term on pods of the named namespaces. where returns a term on pods of selected
// namespaces.
func in(namespaces ...string) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{TopologyKey: corev1.LabelOSStable, LabelSelector: &metav1.LabelSelector{}, Namespaces: namespaces}
}

func where(selector metav1.LabelSelector) corev1.PodAffinityTerm {
	term := in()
	term.NamespaceSelector = &selector
	return term
}

func expression(key string, operator metav1.LabelSelectorOperator, values ...string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
}

func label(key, value string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

// many returns n terms on the tenant's own pods.
func many(n int) terms {
	var all terms
	for i := range n {
		all = append(all, corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprint("none-", i)}}})
	}
	return all
}

func nodeSelectorTerms(n int) []corev1.NodeSelectorTerm {
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
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: nodeSelectorTerms(n)},
	}}
}

func preferNodes(n int) *corev1.Affinity {
	affinity := &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}
	for _, term := range nodeSelectorTerms(n) {
		affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.PreferredSchedulingTerm{Weight: 1, Preference: term})
	}
	return affinity
}

func spread(n int) []corev1.TopologySpreadConstraint {
	var all []corev1.TopologySpreadConstraint
	for i := range n {
		all = append(all, corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: fmt.Sprint("example.org/rack-", i), WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "none"}},
		})
	}
	return all
}

func affine(affinity *corev1.Affinity) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Affinity = affinity }
}

// scheduling are pods that decide where other tenants' pods run, or that occupy the
// scheduler.
func (s scene) scheduling() []attack.Attack {
	foreign := func(name, summary string, affinity *corev1.Affinity) attack.Attack {
		return s.create(name, summary, AffinityRule, affine(affinity))
	}
	strangers := where(expression(corev1.LabelMetadataName, metav1.LabelSelectorOpNotIn, s.namespace))
	all := attack.Because("anti-affinity also applies to later pods: one pod keeps those of others Pending in the whole cluster; and affinity reveals where others' pods run", nil,
		foreign("repel-others", "keep all pods of others off all nodes, by anti-affinity to every namespace but one's own", avoid(strangers)),
		foreign("repel-every-namespace", "keep all pods off all nodes, by anti-affinity to every namespace", avoid(where(metav1.LabelSelector{}))),
		foreign("repel-other-tenant", "keep another tenant's pods off all nodes, by the name of its namespace", avoid(in(s.other))),
		foreign("repel-other-tenant-among-own", "keep another tenant's pods off all nodes, by a namespace beside one's own", avoid(in(s.namespace, s.other))),
		foreign("repel-other-tenant-beside-own-selector", "keep another tenant's pods off all nodes, by a namespace beside a selector of one's own", avoid(func() corev1.PodAffinityTerm {
			term := where(label(v1alpha1.TenantLabel, s.tenant))
			term.Namespaces = []string{s.other}
			return term
		}())),
		foreign("repel-other-tenant-second", "keep another tenant's pods off all nodes, by the second of two terms", avoid(in(s.namespace), in(s.other))),
		foreign("repel-by-tenant-label", "keep another tenant's pods off all nodes, by the label of its namespaces", avoid(where(label(v1alpha1.TenantLabel, s.otherTenant)))),
		foreign("repel-every-tenant", "keep all tenants' pods off all nodes", avoid(where(expression(v1alpha1.TenantLabel, metav1.LabelSelectorOpExists)))),
		foreign("repel-tenants-in-list", "keep another tenant's pods off all nodes, by a list of tenants with one's own in it",
			avoid(where(expression(v1alpha1.TenantLabel, metav1.LabelSelectorOpIn, s.tenant, s.otherTenant)))),
		foreign("repel-namespaces-in-list", "keep another tenant's pods off all nodes, by a list of namespaces with one's own in it",
			avoid(where(expression(corev1.LabelMetadataName, metav1.LabelSelectorOpIn, s.namespace, s.other)))),
		foreign("repel-by-namespace-label", "keep another tenant's pods off all nodes, by the name label of its namespace", avoid(where(label(corev1.LabelMetadataName, s.other)))),
		foreign("prefer-to-repel-others", "prefer nodes without pods of others", preferAvoiding(strangers)),
		foreign("ask-what-other-tenant-runs", "find out whether another tenant has a pod with a label, by affinity to it", follow(in(s.other))),
		foreign("ask-what-every-tenant-runs", "find out whether anybody has a pod with a label, by affinity to every namespace", follow(where(metav1.LabelSelector{}))),
		foreign("ask-by-preference-what-other-tenant-runs", "find out where another tenant has pods, by preferred affinity to them", preferFollowing(in(s.other))),
	)
	tooMany := func(name, summary string, edit func(*corev1.Pod)) attack.Attack {
		return s.create(name, summary, TermsRule, edit)
	}
	all = append(all, attack.Because("the scheduler and Karpenter evaluate the terms of all pods for every tenant's pod", nil,
		tooMany("ask-with-many-terms", "write more terms of anti-affinity than a pod may have", affine(avoid(many(maxTerms+1)...))),
		tooMany("ask-with-many-terms-of-all-kinds", "write more terms of pod affinity than a pod may have, a few of each kind", func(p *corev1.Pod) {
			three := many(3)
			p.Spec.Affinity = &corev1.Affinity{PodAffinity: follow(three...).PodAffinity, PodAntiAffinity: avoid(three...).PodAntiAffinity}
			p.Spec.Affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution = rather(three...)
			p.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution = rather(three...)
		}),
		tooMany("ask-with-many-node-terms", "write more terms of node affinity than a pod may have", affine(requireNodes(maxTerms+1))),
		tooMany("ask-with-many-preferred-node-terms", "write more preferred terms of node affinity than a pod may have", affine(preferNodes(maxTerms+1))),
		tooMany("ask-with-many-spreads", "write more spread constraints than a pod may have", func(p *corev1.Pod) { p.Spec.TopologySpreadConstraints = spread(maxTerms + 1) }),
		attack.Changing("ask-with-many-node-terms-later", "add terms of node affinity to a pod that waits behind a gate", attack.ByPolicy(admissionpolicy.PodsPolicy, TermsRule),
			attack.Pod(s.namespace, "croft-ask-with-many-node-terms-later"), affine(requireNodes(maxTerms+1))),
	)...)
	return all
}

// schedulingTemplates have the same constraints in templates, which lead to warnings.
func (s scene) schedulingTemplates() []attack.Attack {
	var all []attack.Attack
	template := attack.Template(func(t *corev1.PodTemplateSpec) { t.Spec.Affinity = avoid(where(metav1.LabelSelector{})) })
	for _, maker := range attack.Makers(s.namespace, "croft-repellent", template) {
		kind := maker.GetObjectKind().GroupVersionKind().Kind
		all = append(all, attack.Creating("repel-others-in-"+strings.ToLower(kind), "keep all pods off all nodes by the template of a "+kind,
			attack.ByWarning(admissionpolicy.PodTemplatesPolicy, AffinityRule), maker))
	}
	return append(all, attack.Creating("ask-with-many-terms-in-template", "write more terms of anti-affinity than a pod may have in the template of a Deployment",
		attack.ByWarning(admissionpolicy.PodTemplatesPolicy, TermsRule),
		attack.Deployment(s.namespace, "croft-many-terms", attack.Template(func(t *corev1.PodTemplateSpec) { t.Spec.Affinity = avoid(many(maxTerms + 1)...) }))))
}

// schedulingMirrors are legitimate constraints for the scheduler.
func (s scene) schedulingMirrors() []attack.Attack {
	may := func(name, summary string, edit func(*corev1.Pod)) attack.Attack {
		return attack.Creating(name, summary, attack.Nobody, attack.Pod(s.namespace, "croft-"+name, edit))
	}
	two := metav1.LabelSelector{MatchLabels: map[string]string{"team": "any"}, MatchExpressions: expression(v1alpha1.TenantLabel, metav1.LabelSelectorOpIn, s.tenant).MatchExpressions}
	return []attack.Attack{
		may("spread-own-pods", "keep pods apart by anti-affinity, and spread them over zones", func(p *corev1.Pod) {
			p.Spec.Affinity = avoid(corev1.PodAffinityTerm{
				TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "own"}}, MatchLabelKeys: []string{"version"},
			})
			p.Spec.Affinity.PodAffinity = preferFollowing(in()).PodAffinity
			p.Spec.TopologySpreadConstraints = spread(maxTerms)
		}),
		may("avoid-own-namespaces", "write anti-affinity to pods of one's own namespaces, by their names", affine(avoid(in(s.namespaces...)))),
		may("avoid-own-tenant", "write anti-affinity to pods of all of the tenant's namespaces, by their label", affine(avoid(where(label(v1alpha1.TenantLabel, s.tenant))))),
		may("follow-own-namespaces", "write affinity to pods of one's own namespaces, by the labels of their names",
			affine(preferFollowing(where(label(corev1.LabelMetadataName, s.namespace)), where(expression(corev1.LabelMetadataName, metav1.LabelSelectorOpIn, s.namespaces...)), where(two)))),
		may("ask-with-some-terms", "write as many terms of affinity as a pod may have", func(p *corev1.Pod) {
			p.Spec.Affinity = avoid(many(maxTerms)...)
			p.Spec.Affinity.NodeAffinity = preferNodes(maxTerms).NodeAffinity
		}),
	}
}

// capacity requests nodes by objects other than pods.
func (s scene) capacity() []attack.Attack {
	buffer := s.buffer
	const name, summary = "reserve-nodes", "have Karpenter keep nodes for pods that are not there, by a template that no rule on pods has judged"
	right := rbacv1.PolicyRule{APIGroups: []string{"autoscaling.x-k8s.io"}, Resources: []string{"capacitybuffers"}, Verbs: []string{"create", "get", "update"}}
	byPolicy := attack.ByPolicy(CapacityPolicy, CapacityRule)
	return append(s.groups(), attack.Because("Karpenter and the scheduler read such objects without any rule on pods", []string{"https://karpenter.sh/docs/concepts/"},
		attack.Creating(name, summary, attack.ByRBAC, buffer(name)),
		attack.Mistake(attack.Creating(name+"-when-permitted", summary, byPolicy, buffer(name+"-when-permitted")), right),
		attack.Mistake(attack.Changing(name+"-later-when-permitted", "have Karpenter keep more nodes for pods that are not there", byPolicy, buffer(name+"-later"), func(u *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(u.Object, int64(2), "spec", "replicas")
		}), right),
		attack.Mistake(attack.Changing("label-a-capacity-buffer", "label a CapacityBuffer that the platform has written", attack.Nobody, buffer("label-a-capacity-buffer"), func(u *unstructured.Unstructured) {
			u.SetLabels(map[string]string{"team": "web"})
		}), right),
	)...)
}

// buffer returns a CapacityBuffer, which has Karpenter provision spare nodes.
func (s scene) buffer(name string) *unstructured.Unstructured {
	return attack.Custom("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer", s.namespace, "croft-"+name, map[string]any{
		"podTemplateRef": map[string]any{"name": "croft-" + name}, "replicas": int64(1),
	})
}

// groups request nodes, or occupy the scheduler, by kinds that few clusters serve.
func (s scene) groups() []attack.Attack {
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
			return attack.Custom(k.group+"/"+k.version, k.kind, s.namespace, "croft-"+name, map[string]any{"count": int64(1)})
		}
		all = append(all,
			attack.Mistake(attack.Creating("write-"+lower+"-when-permitted", "write a "+k.kind, byPolicy, object("write")), right(k.group, lower+"s")),
			attack.Mistake(attack.Changing("change-"+lower+"-when-permitted", "change a "+k.kind+" that is there", byPolicy, object("change"), func(u *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(u.Object, int64(2), "spec", "count")
			}), right(k.group, lower+"s")))
	}
	return attack.Because("the scheduler and cluster-autoscaler read such objects without any rule on pods", nil, all...)
}
