package nodes

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/attack"
	"croft.dev/croft/internal/estate"
)

// Attacks try to get onto nodes that are not the tenant's.
func (Wall) Attacks(p *estate.Platform, by, on *estate.Tenant) []attack.Attack {
	s := scene{key: p.NodePoolKey, namespace: by.Namespaces[0], pool: by.Pools[0], otherPool: on.Pools[0]}
	attacks := append(s.breaches(), s.mirrors()...)
	if len(by.Pools) > 1 {
		attacks = append(attacks, s.choose(by.Pools[1]))
	}
	return attacks
}

type scene struct{ key, namespace, pool, otherPool string }

func (s scene) breaches() []attack.Attack {
	toleration := func(t corev1.Toleration) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Tolerations = append(p.Spec.Tolerations, t) }
	}
	otherPool := corev1.Toleration{Key: s.key, Operator: corev1.TolerationOpEqual, Value: s.otherPool}
	return []attack.Attack{
		s.create("choose-node", "create a pod with spec.nodeName, around the scheduler", NodeNameRule, func(p *corev1.Pod) {
			p.Spec.NodeName, p.Spec.SchedulingGates = "some-node", nil
		}),
		s.create("tolerate-every-taint", "tolerate every taint with operator Exists and no key", TolerationsRule,
			toleration(corev1.Toleration{Operator: corev1.TolerationOpExists})),
		s.create("tolerate-every-pool", "tolerate the taint of every pool with operator Exists", TolerationsRule,
			toleration(corev1.Toleration{Key: s.key, Operator: corev1.TolerationOpExists})),
		s.create("tolerate-other-pool", "tolerate the taint of another tenant's pool", TolerationsRule, toleration(otherPool)),
		s.create("tolerate-control-plane", "tolerate the control plane's taint", TolerationsRule,
			toleration(corev1.Toleration{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists})),
		s.create("forge-owner", "tolerate every taint as a pod that claims to belong to a Node", TolerationsRule, func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "some-node", UID: "forged"}}
			toleration(corev1.Toleration{Operator: corev1.TolerationOpExists})(p)
		}),
		s.create("choose-scheduler", "ask for a scheduler of one's own", SchedulerRule, func(p *corev1.Pod) {
			p.Spec.SchedulerName = "my-scheduler"
		}),
		{
			Name: "tolerate-later", Kind: attack.Breach, Summary: "add a toleration to a pod that is there already",
			Setup: []client.Object{attack.Pod(s.namespace, "croft-tolerate-later")},
			Request: &attack.Request{
				Verb: attack.Update, Object: attack.Pod(s.namespace, "croft-tolerate-later"),
				Change: attack.As(func(p *corev1.Pod) error { toleration(otherPool)(p); return nil }),
			},
			StoppedBy: attack.ByPolicy(PlacementPolicy, TolerationsRule),
		},
		{
			Name: "select-other-pool", Kind: attack.Breach, Summary: "select another tenant's pool by nodeSelector",
			Request: &attack.Request{Verb: attack.Create, Object: attack.Pod(s.namespace, "croft-select-other-pool", func(p *corev1.Pod) {
				p.Spec.NodeSelector = map[string]string{s.key: s.otherPool}
			})},
			StoppedBy: attack.ByMutation(PlacementPolicy),
			Outcome:   attack.As(func(p *corev1.Pod) error { return s.placed(&p.Spec) }),
		},
		{
			Name: "prefer-other-pool", Kind: attack.Breach, Summary: "ask for another tenant's pool by node affinity",
			Request: &attack.Request{Verb: attack.Create, Object: attack.Pod(s.namespace, "croft-prefer-other-pool", func(p *corev1.Pod) {
				p.Spec.Affinity = require(s.key, s.otherPool)
			})},
			StoppedBy: attack.ByMutation(PlacementPolicy),
			Outcome:   attack.As(func(p *corev1.Pod) error { return s.placed(&p.Spec) }),
		},
		{
			Name: "bind-pod", Kind: attack.Breach, Summary: "bind a pod to a node through pods/binding",
			Setup: []client.Object{attack.Pod(s.namespace, "croft-bind-pod")},
			Request: &attack.Request{
				Verb: attack.Create, Object: attack.Pod(s.namespace, "croft-bind-pod"), Subresource: "binding",
				Body: binding(s.namespace, "croft-bind-pod"),
			},
			StoppedBy: attack.ByRBAC,
		},
		{
			Name: "bind-pod-when-permitted", Kind: attack.Breach, Summary: "bind a pod to a node after being given the right to by mistake",
			Setup: append(s.mistake("croft-bind-when-permitted"), attack.Pod(s.namespace, "croft-bind-when-permitted", waiting)),
			Request: &attack.Request{
				Verb: attack.Create, Object: attack.Pod(s.namespace, "croft-bind-when-permitted"), Subresource: "binding",
				Body: binding(s.namespace, "croft-bind-when-permitted"),
			},
			StoppedBy: attack.ByPolicy(BindingPolicy, BindingRule),
		},
	}
}

func (s scene) mirrors() []attack.Attack {
	labels := map[string]string{"app": "croft-agent"}
	daemonSet := &appsv1.DaemonSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"},
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "croft-agent"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: attack.PodSpec()},
		},
	}
	return []attack.Attack{
		{
			Name: "run-a-pod", Kind: attack.Mirror, Summary: "run a pod, which lands on the tenant's pool",
			Request: &attack.Request{Verb: attack.Create, Object: attack.Pod(s.namespace, "croft-run-a-pod")},
			Outcome: attack.As(func(p *corev1.Pod) error { return s.placed(&p.Spec) }),
		},
		{
			Name: "ask-for-an-instance-type", Kind: attack.Mirror, Summary: "ask for an instance type by node affinity",
			Request: &attack.Request{Verb: attack.Create, Object: attack.Pod(s.namespace, "croft-ask-for-a-type", func(p *corev1.Pod) {
				p.Spec.Affinity = require(corev1.LabelInstanceTypeStable, "m5.large")
			})},
			Outcome: attack.As(func(p *corev1.Pod) error {
				if p.Spec.Affinity == nil || p.Spec.Affinity.NodeAffinity == nil {
					return fmt.Errorf("the pod's node affinity was taken away")
				}
				return s.placed(&p.Spec)
			}),
		},
		{
			Name: "tolerate-a-failing-node", Kind: attack.Mirror, Summary: "tolerate for longer that a node is not ready",
			Request: &attack.Request{Verb: attack.Create, Object: attack.Pod(s.namespace, "croft-tolerate-failing", func(p *corev1.Pod) {
				p.Spec.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}}
			})},
			Outcome: attack.As(func(p *corev1.Pod) error { return s.placed(&p.Spec) }),
		},
		{
			Name: "label-a-pod", Kind: attack.Mirror, Summary: "label a pod that is there already",
			Setup: []client.Object{attack.Pod(s.namespace, "croft-label-a-pod")},
			Request: &attack.Request{
				Verb: attack.Update, Object: attack.Pod(s.namespace, "croft-label-a-pod"),
				Change: attack.As(func(p *corev1.Pod) error { p.Labels = labels; return nil }),
			},
		},
		{
			Name: "run-a-daemonset", Kind: attack.Mirror, Summary: "run a DaemonSet, which covers the tenant's pool",
			Request: &attack.Request{Verb: attack.Create, Object: daemonSet},
			Outcome: attack.As(func(d *appsv1.DaemonSet) error { return s.placed(&d.Spec.Template.Spec) }),
		},
	}
}

// choose is what a tenant with several pools may do.
func (s scene) choose(pool string) attack.Attack {
	chosen := s
	chosen.pool = pool
	return attack.Attack{
		Name: "choose-among-own-pools", Kind: attack.Mirror, Summary: "choose by nodeSelector among the tenant's own pools",
		Request: &attack.Request{Verb: attack.Create, Object: attack.Pod(s.namespace, "croft-choose-own-pool", func(p *corev1.Pod) {
			p.Spec.NodeSelector = map[string]string{s.key: pool}
		})},
		Outcome: attack.As(func(p *corev1.Pod) error { return chosen.placed(&p.Spec) }),
	}
}

// create is an attack by creating a pod that a rule of the placement policy
// refuses.
func (s scene) create(name, summary, rule string, edit func(*corev1.Pod)) attack.Attack {
	return attack.Attack{
		Name: name, Kind: attack.Breach, Summary: summary,
		Request:   &attack.Request{Verb: attack.Create, Object: attack.Pod(s.namespace, "croft-"+name, edit)},
		StoppedBy: attack.ByPolicy(PlacementPolicy, rule),
	}
}

// placed reports why a pod would not run on the tenant's pool and nowhere else.
func (s scene) placed(spec *corev1.PodSpec) error {
	if got := spec.NodeSelector[s.key]; got != s.pool {
		return fmt.Errorf("its nodeSelector asks for pool %q, not %q", got, s.pool)
	}
	tolerated := false
	for _, t := range spec.Tolerations {
		if t.Key == s.key {
			tolerated = t.Value == s.pool && t.Operator != corev1.TolerationOpExists
		}
	}
	if !tolerated {
		return fmt.Errorf("it does not tolerate the taint of pool %q", s.pool)
	}
	return nil
}

// mistake gives every authenticated user the right to bind pods of the
// namespace, as a careless platform might.
func (s scene) mistake(name string) []client.Object {
	meta := metav1.ObjectMeta{Namespace: s.namespace, Name: name}
	return []client.Object{
		&rbacv1.Role{
			TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"}, ObjectMeta: meta,
			Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods/binding", "bindings"}, Verbs: []string{"create"}}},
		},
		&rbacv1.RoleBinding{
			TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"}, ObjectMeta: meta,
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:authenticated"}},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		},
	}
}

// waiting takes a pod's scheduling gate away, which would refuse the binding too,
// and lets it wait for a node that nobody can make instead.
func waiting(p *corev1.Pod) {
	p.Spec.SchedulingGates = nil
	p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "croft-verify"}
}

func binding(namespace, pod string) *corev1.Binding {
	return &corev1.Binding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Binding"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod},
		Target:     corev1.ObjectReference{Kind: "Node", Name: "some-node"},
	}
}

func require(key, value string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}},
		}}},
	}}}
}
