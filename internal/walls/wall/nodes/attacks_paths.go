package nodes

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/rules/attack"
)

// buildBindingAttacks bypass the scheduler.
func (s scene) buildBindingAttacks() []attack.Attack {
	pod := func(name string) *corev1.Pod { return attack.NewPod(s.namespace, "croft-"+name, removeSchedulingGate) }
	through := func(name, summary string, by attack.Stopper) attack.Attack {
		return attack.Attack{
			Name: name, Kind: attack.Breach, Summary: summary, StoppedBy: by,
			Setup: []client.Object{pod(name)},
			Request: &attack.Request{
				Verb: attack.Create, Object: pod(name), Subresource: "binding", Body: makeBinding(s.namespace, "croft-"+name),
			},
		}
	}
	legacy := func(name, summary string, by attack.Stopper) attack.Attack {
		a := attack.NewCreate(name, summary, by, makeBinding(s.namespace, "croft-"+name))
		a.Setup = []client.Object{pod(name)}
		return a
	}
	onlyTheScheduler := attack.ByPolicy(BindingPolicy, BindingRule)
	right := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/binding", "bindings"}, Verbs: []string{"create"}}
	return []attack.Attack{
		through("bind-pod", "bind a pod to a node through pods/binding", attack.ByRBAC),
		legacy("bind-pod-legacy", "bind a pod to a node through the older bindings", attack.ByRBAC),
		attack.GrantToEveryone(through("bind-pod-when-permitted", "bind a pod to a node through pods/binding", onlyTheScheduler), right),
		attack.GrantToEveryone(legacy("bind-pod-legacy-when-permitted", "bind a pod to a node through the older bindings", onlyTheScheduler), right),
	}
}

// buildOutsideMirrors are requests that are forbidden to tenants, sent in a namespace outside of all
// tenants. Every policy on tenants must allow them there.
func (s scene) buildOutsideMirrors() []attack.Attack {
	// A new namespace does not have its default service account yet.
	account := &corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: metav1.ObjectMeta{Name: "croft-verify"}}
	stray := attack.NewPod("", "croft-free-pod", addToleration(corev1.Toleration{Operator: corev1.TolerationOpExists}), func(p *corev1.Pod) { p.Spec.ServiceAccountName = account.Name })
	pod := attack.NewCreate("free-pod", "write a pod that tolerates every taint", attack.Nobody, stray)
	pod.Setup = []client.Object{account.DeepCopy()}
	pod.Outcome = attack.ExpectType(func(p *corev1.Pod) error {
		if len(p.Spec.NodeSelector) > 0 {
			return fmt.Errorf("the pod got the nodeSelector %v", p.Spec.NodeSelector)
		}
		return nil
	})
	bound := attack.NewPod("", "croft-free-binding", removeSchedulingGate, func(p *corev1.Pod) { p.Spec.ServiceAccountName = account.Name })
	bind := attack.Attack{
		Name: "free-binding", Kind: attack.Mirror, Summary: "bind a pod to a node", Setup: []client.Object{account.DeepCopy(), bound},
		Request: &attack.Request{Verb: attack.Create, Object: bound.DeepCopy(), Subresource: "binding", Body: makeBinding("", bound.Name)},
	}
	set := &appsv1.DaemonSet{TypeMeta: metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "DaemonSet"}, ObjectMeta: metav1.ObjectMeta{Name: "croft-free-daemonset"}}
	set.Spec.Template = attack.NewTemplate()
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: set.Spec.Template.Labels}
	daemonSet := attack.NewCreate("free-daemonset", "write a DaemonSet for every node", attack.Nobody, set)
	daemonSet.Outcome = attack.ExpectType(func(d *appsv1.DaemonSet) error {
		if len(d.Spec.Template.Spec.NodeSelector) > 0 {
			return fmt.Errorf("its pods got the nodeSelector %v", d.Spec.Template.Spec.NodeSelector)
		}
		return nil
	})
	right := func(group, resource string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"create"}}
	}
	return []attack.Attack{
		attack.SendOutsideTenants(s.namespace, pod, right("", "pods")),
		attack.SendOutsideTenants(s.namespace, bind, right("", "pods/binding")),
		attack.SendOutsideTenants(s.namespace, daemonSet, right("apps", "daemonsets")),
		attack.SendOutsideTenants(s.namespace, attack.NewCreate("free-capacity", "have Karpenter keep nodes for pods that do not exist", attack.Nobody, s.makeCapacityBuffer("free-capacity")),
			right("autoscaling.x-k8s.io", "capacitybuffers")),
	}
}

// buildTemplateAttacks have the same fields in the objects that pods are created from.
func (s scene) buildTemplateAttacks() []attack.Attack {
	all := []attack.Attack{s.removePlacement()}
	warned := func(name, summary, rule string, object client.Object) {
		all = append(all, attack.NewCreate(name, summary, attack.ByWarning(admissionpolicy.PodTemplatesPolicy, rule), object))
	}
	stray := attack.NewTemplate(func(t *corev1.PodTemplateSpec) {
		t.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	})
	for _, maker := range attack.NewPodControllers(s.namespace, "croft-stray", stray) {
		kind := maker.GetObjectKind().GroupVersionKind().Kind
		warned("tolerate-in-"+strings.ToLower(kind), "tolerate every taint in the template of a "+kind, TolerationsRule, maker)
	}
	all = append(all, attack.NewUpdate("tolerate-in-template-later", "tolerate every taint in an existing template", attack.ByWarning(admissionpolicy.PodTemplatesPolicy, TolerationsRule),
		&corev1.PodTemplate{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PodTemplate"},
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "croft-tolerate-later-in-template"}, Template: attack.NewTemplate(),
		}, func(t *corev1.PodTemplate) { t.Template.Spec.Tolerations = stray.Spec.Tolerations }))
	for _, maker := range attack.NewPodControllers(s.namespace, "croft-tolerate-later", attack.NewTemplate()) {
		by := attack.ByWarning(admissionpolicy.PodTemplatesPolicy, TolerationsRule)
		switch maker := maker.(type) {
		case *appsv1.Deployment:
			all = append(all, attack.NewUpdate("tolerate-in-deployment-later", "tolerate every taint in an existing Deployment", by, maker,
				func(d *appsv1.Deployment) { d.Spec.Template.Spec.Tolerations = stray.Spec.Tolerations }))
		case *batchv1.CronJob:
			all = append(all, attack.NewUpdate("tolerate-in-cronjob-later", "tolerate every taint in an existing CronJob", by, maker,
				func(c *batchv1.CronJob) { c.Spec.JobTemplate.Spec.Template.Spec.Tolerations = stray.Spec.Tolerations }))
		}
	}
	deployment := func(name string, edit func(*corev1.PodSpec)) client.Object {
		return attack.NewDeployment(s.namespace, "croft-"+name, attack.NewTemplate(func(t *corev1.PodTemplateSpec) { edit(&t.Spec) }))
	}
	warned("choose-node-in-template", "name a node in the template of a Deployment", NodeNameRule,
		deployment("choose-node", func(p *corev1.PodSpec) { p.NodeName = "some-node" }))
	warned("choose-scheduler-in-template", "name a scheduler in the template of a Deployment", SchedulerRule,
		deployment("choose-scheduler", func(p *corev1.PodSpec) { p.SchedulerName = "my-scheduler" }))
	warned("select-other-pool-in-template", "name another tenant's pool in the template of a Deployment", NodeSelectorRule,
		deployment("select-other-pool", func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{s.key: s.otherPool} }))
	if !slices.Contains(s.runtimeClasses, "*") {
		warned("choose-runtime-in-template", "name a RuntimeClass in the template of a Deployment", RuntimeClassRule,
			deployment("choose-runtime", func(p *corev1.PodSpec) { p.RuntimeClassName = ptr.To(s.namespace + "-class") }))
	}
	return all
}

// removeSchedulingGate removes a pod's scheduling gate, which would also refuse the binding. Instead the
// pod waits for a node that cannot exist.
func removeSchedulingGate(p *corev1.Pod) {
	p.Spec.SchedulingGates = nil
	p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "croft-verify"}
}

func makeBinding(namespace, pod string) *corev1.Binding {
	return &corev1.Binding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Binding"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod},
		Target:     corev1.ObjectReference{Kind: "Node", Name: "some-node"},
	}
}
