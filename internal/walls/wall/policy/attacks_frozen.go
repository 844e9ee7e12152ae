package policy

import (
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/rules/attack"
)

// buildFrozenAttacks returns the attacks on a frozen tenant whose requests have another kind than
// their object.
func (s scene) buildFrozenAttacks() []attack.Attack {
	stopped := attack.ByPolicy("croft-frozen", "frozen")
	scale := func(name, summary string, by attack.Stopper) attack.Attack {
		deployment := attack.NewDeployment("", "croft-"+name, attack.NewTemplate())
		a := attack.NewUpdate(name, summary, by, deployment, func(*appsv1.Deployment) {})
		a.Request.Subresource = "scale"
		a.Request.Body = &autoscalingv1.Scale{
			TypeMeta:   metav1.TypeMeta{APIVersion: autoscalingv1.SchemeGroupVersion.String(), Kind: "Scale"},
			ObjectMeta: metav1.ObjectMeta{Name: deployment.Name}, Spec: autoscalingv1.ScaleSpec{Replicas: 3},
		}
		return a
	}
	scales := makePolicyRule("apps", "deployments/scale", "get", "update")
	account := &corev1.ServiceAccount{TypeMeta: makeCoreMeta("ServiceAccount"), ObjectMeta: metav1.ObjectMeta{Name: "croft-verify"}}
	makePod := func(name string) *corev1.Pod {
		return attack.NewPod("", "croft-"+name, func(p *corev1.Pod) { p.Spec.ServiceAccountName = account.Name })
	}
	pod := makePod("evict-while-frozen")
	evict := attack.NewCreate("evict-while-frozen", "evict a pod of a frozen tenant", stopped, pod)
	evict.Setup = []client.Object{account.DeepCopy(), pod}
	evict.Request.Subresource = "eviction"
	evict.Request.Body = &policyv1.Eviction{
		TypeMeta:   metav1.TypeMeta{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "Eviction"},
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name},
	}
	debug := attack.NewUpdate("debug-while-frozen", "add a container to a pod of a frozen tenant", stopped,
		makePod("debug-while-frozen"), func(p *corev1.Pod) {
			p.Spec.EphemeralContainers = []corev1.EphemeralContainer{makeEphemeralContainer(func(*corev1.EphemeralContainer) {})}
		})
	debug.Setup = append([]client.Object{account.DeepCopy()}, debug.Setup...)
	debug.Request.Subresource = "ephemeralcontainers"
	const harm = "a change during the freeze can interrupt the event or the migration for which the platform froze the tenant"
	return attack.WithReason(harm, nil,
		s.sendFrozen(scale("scale-while-frozen", "scale a Deployment of a frozen tenant", stopped), v1alpha1.FrozenCompletely, scales),
		s.sendFrozen(scale("scale-by-exception", "scale a Deployment of a tenant that is frozen except for scale", attack.Nobody),
			v1alpha1.FrozenExceptScale, scales),
		s.sendFrozen(evict, v1alpha1.FrozenExceptScale, makePolicyRule("", "pods/eviction", "create")),
		s.sendFrozen(debug, v1alpha1.FrozenCompletely, makePolicyRule("", "pods/ephemeralcontainers", "update")),
	)
}

// sendFrozen sends a request in a namespace that is created for it, as one of a frozen tenant.
func (s scene) sendFrozen(a attack.Attack, frozen string, right rbacv1.PolicyRule) attack.Attack {
	return attack.SendInNamespace(&corev1.Namespace{
		TypeMeta: makeCoreMeta("Namespace"),
		ObjectMeta: metav1.ObjectMeta{
			Name: s.own + "-" + a.Name, Labels: map[string]string{v1alpha1.FrozenLabel: frozen},
			Annotations: map[string]string{v1alpha1.FrozenLabel: "tenant verify is frozen until a platform admin ends the freeze: croft verify"},
		},
	}, a, right)
}
