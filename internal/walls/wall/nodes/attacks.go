package nodes

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/rules/attack"
)

// Attacks try to run pods on nodes of other tenants or the platform.
func (Wall) Attacks(p *estate.Platform, by, on *estate.Tenant) []attack.Attack {
	s := scene{
		key: p.NodePoolKey, namespace: by.Namespaces[0], pool: by.Pools[0], pools: by.Pools, otherPool: on.Pools[0],
		runtimeClasses: by.Allowances.RuntimeClasses, tolerations: p.Tolerations, engine: p.Placement,
		tenant: by.Name, otherTenant: on.Name, namespaces: by.Namespaces, other: on.Namespaces[0],
	}
	if class := by.Allowances.RuntimeClass; class != nil && class.Force != "" && !slices.Contains(by.Allowances.Trial, "runtimeClass") {
		s.runtimeClass = &class.Force
	}
	attacks := slices.Concat(s.buildBreaches(), s.buildBoundsAttacks(), s.buildMirrors(), s.buildOutsideMirrors())
	if len(by.Pools) > 1 {
		attacks = append(attacks, s.chooseOwnPool(by.Pools[1]))
	}
	return attacks
}

// scene has the tenants and pools of the attacks.
type scene struct {
	key, namespace, pool, otherPool string
	pools, runtimeClasses           []string
	tolerations                     []string // of the platform
	// runtimeClass is the class of all of the tenant's pods, or nil.
	runtimeClass *string
	engine       v1alpha1.PlacementEngine
	// tenant owns namespaces, and otherTenant owns other.
	tenant, otherTenant, other string
	namespaces                 []string
}

// findOtherEngine returns the engine that does not place pods on this platform.
func (s scene) findOtherEngine() string {
	if s.engine == v1alpha1.PlacementGatekeeper {
		return string(v1alpha1.PlacementNative)
	}
	return string(v1alpha1.PlacementGatekeeper)
}

func (s scene) buildBreaches() []attack.Attack {
	all := attack.WithReason("a pod that chooses its node can run on nodes of other tenants, or of the platform, next to their Secrets", nil, s.buildMisplacementAttacks()...)
	all = append(all, attack.WithReason("a pod that bypasses the scheduler runs on any node that its author chooses", nil, s.buildBindingAttacks()...)...)
	all = append(all, attack.WithReason("a mistake in a template shows only later, when its pods are created", nil,
		append(s.buildTemplateAttacks(), s.buildSchedulingTemplateAttacks()...)...)...)
	return slices.Concat(all, s.buildSchedulingAttacks(), s.buildCapacityAttacks())
}

func addToleration(t corev1.Toleration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Tolerations = append(p.Spec.Tolerations, t) }
}

// device is the toleration that the API server's plugin ExtendedResourceToleration adds to a
// pod with such a device.
var device = corev1.Toleration{Key: "croft-verify.example/device", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}

// requestDevice requests count of a device and tolerates its taint.
func requestDevice(name string, count int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		limits := corev1.ResourceList{corev1.ResourceName(name): *resource.NewQuantity(count, resource.DecimalSI)}
		p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: limits, Requests: limits.DeepCopy()}
		own := device
		own.Key = name
		addToleration(own)(p)
	}
}

// buildMisplacementAttacks are pods that would run outside of the tenant's pools.
func (s scene) buildMisplacementAttacks() []attack.Attack {
	everything := corev1.Toleration{Operator: corev1.TolerationOpExists}
	otherPool := corev1.Toleration{Key: s.key, Operator: corev1.TolerationOpEqual, Value: s.otherPool}
	own := func(kind, apiVersion string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: "some", UID: "forged", Controller: ptr.To(true)}}
			addToleration(everything)(p)
		}
	}
	afterwards := func(name, summary string, t corev1.Toleration) attack.Attack {
		return attack.NewUpdate(name, summary, attack.ByPolicy(admissionpolicy.PodsPolicy, TolerationsRule),
			attack.NewPod(s.namespace, "croft-"+name), addToleration(t))
	}
	all := []attack.Attack{
		s.makeBreach("choose-node", "create a pod with spec.nodeName, which bypasses the scheduler", NodeNameRule, func(p *corev1.Pod) {
			p.Spec.NodeName, p.Spec.SchedulingGates = "some-node", nil
		}),
		s.makeBreach("tolerate-every-taint", "tolerate every taint with operator Exists and no key", TolerationsRule, addToleration(everything)),
		s.makeBreach("tolerate-every-eviction", "tolerate every NoExecute taint with operator Exists and no key", TolerationsRule,
			addToleration(corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute})),
		s.makeBreach("tolerate-every-pool", "tolerate the taint of every pool with operator Exists", TolerationsRule,
			addToleration(corev1.Toleration{Key: s.key, Operator: corev1.TolerationOpExists})),
		s.makeBreach("tolerate-other-pool", "tolerate the taint of another tenant's pool", TolerationsRule, addToleration(otherPool)),
		s.makeBreach("pose-as-placed", "imitate a pod that was already placed, on another tenant's pool", TolerationsRule, func(p *corev1.Pod) {
			addToleration(otherPool)(p)
			p.Spec.NodeSelector = map[string]string{s.key: s.otherPool}
		}),
		s.makeBreach("tolerate-control-plane", "tolerate the control plane's taint", TolerationsRule,
			addToleration(corev1.Toleration{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists})),
		s.makeBreach("tolerate-unregistered-node", "tolerate the taint of nodes that are not ready for any pod", TolerationsRule,
			addToleration(corev1.Toleration{Key: "karpenter.sh/unregistered", Operator: corev1.TolerationOpExists})),
		s.makeBreach("tolerate-device-unasked", "tolerate the taint of a device that the pod does not request", TolerationsRule, addToleration(device)),
		s.makeBreach("tolerate-device-of-none", "tolerate the taint of a device of which the pod requests 0", TolerationsRule, requestDevice(device.Key, 0)),
		s.makeBreach("tolerate-disruption", "tolerate the taint of nodes that Karpenter is about to remove, as that of a device", TolerationsRule, requestDevice("karpenter.sh/disrupted", 0)),
		s.makeBreach("tolerate-device-eviction", "tolerate the taint of a device in every effect", TolerationsRule, func(p *corev1.Pod) {
			requestDevice(device.Key, 1)(p)
			p.Spec.Tolerations[0].Effect = ""
		}),
		s.makeBreach("forge-owner-node", "tolerate every taint as a pod that claims to belong to a Node", TolerationsRule, func(p *corev1.Pod) {
			own("Node", "v1")(p)
			p.OwnerReferences[0].Controller = nil
		}),
		s.makeBreach("forge-owner-daemonset", "tolerate every taint as a pod that claims to belong to a DaemonSet", TolerationsRule, own("DaemonSet", "apps/v1")),
		s.makeBreach("choose-scheduler", "ask for a scheduler of one's own", SchedulerRule, func(p *corev1.Pod) {
			p.Spec.SchedulerName = "my-scheduler"
		}),
		attack.NewCreate("pass-for-probe", "disguise a pod as a probe of another engine, which no engine places", attack.ByPolicy(admissionpolicy.PodsPolicy, NodeSelectorRule),
			attack.NewPod(s.namespace, "croft-pass-for-probe", func(p *corev1.Pod) {
				p.Labels = map[string]string{v1alpha1.ProbeLabel: s.findOtherEngine()}
				// The engine sets nothing on a probe.
				p.Spec.RuntimeClassName, p.Spec.HostUsers = s.runtimeClass, ptr.To(false)
				p.Spec.Containers[0].ImagePullPolicy = corev1.PullAlways
			})),
		afterwards("tolerate-later", "add a toleration of another pool's taint to an existing pod", otherPool),
		afterwards("tolerate-everything-later", "add a toleration of every taint to an existing pod", everything),
		s.selectOtherPool(),
		s.makePlacedAttack("select-no-pool", "select no pool, with labels of one's own", func(p *corev1.Pod) {
			p.Spec.NodeSelector = map[string]string{corev1.LabelArchStable: "amd64"}
		}),
		s.makePlacedAttack("prefer-other-pool", "ask for another tenant's pool by node affinity", func(p *corev1.Pod) {
			p.Spec.Affinity = requireLabel(s.key, s.otherPool)
		}),
		s.makePlacedAttack("prefer-either-pool", "ask for another tenant's pool or one's own, by alternative terms of node affinity", func(p *corev1.Pod) {
			p.Spec.Affinity = requireLabel(s.key, s.otherPool)
			selector := p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
			selector.NodeSelectorTerms = append(selector.NodeSelectorTerms, requireLabel(s.key, s.pool).NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms...)
		}),
		s.makePlacedAttack("prefer-node-by-name", "ask for a node by its name, by node affinity on metadata.name", func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
					{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"some-node"}},
				}}},
			}}}
		}),
		s.makePlacedAttack("ask-for-costly-instance", "ask for an instance type that the pool does not have: only the tenant's pool may create it", func(p *corev1.Pod) {
			p.Spec.Affinity = requireLabel(corev1.LabelInstanceTypeStable, "p5.48xlarge")
		}),
	}
	if !slices.Contains(s.runtimeClasses, "*") {
		class := &nodev1.RuntimeClass{
			TypeMeta: metav1.TypeMeta{APIVersion: nodev1.SchemeGroupVersion.String(), Kind: "RuntimeClass"}, ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-class"},
			Handler: "runc", Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"croft.dev/verify": "true"}},
		}
		a := s.makeBreach("choose-runtime", "ask for a RuntimeClass that adds a nodeSelector", RuntimeClassRule, func(p *corev1.Pod) {
			p.Spec.RuntimeClassName = ptr.To(class.Name)
		})
		a.Setup = []client.Object{class}
		all = append(all, a)
	}
	return all
}

// removePlacement removes the placement from an existing DaemonSet. The policy restores it.
func (s scene) removePlacement() attack.Attack {
	own := attack.NewTemplate()
	a := attack.NewUpdate("unplace-daemonset-later", "remove the node selector and the tolerations from an existing DaemonSet", attack.ByEngine(s.engine, DaemonSetPolicy),
		&appsv1.DaemonSet{
			TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"},
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "croft-unplace-later"},
			Spec:       appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: own.Labels}, Template: own},
		}, func(d *appsv1.DaemonSet) {
			d.Spec.Template.Spec.NodeSelector, d.Spec.Template.Spec.Tolerations = nil, nil
		})
	a.Outcome = attack.ExpectType(func(d *appsv1.DaemonSet) error { return s.checkPlacement(&d.Spec.Template.Spec) })
	return a
}

// selectOtherPool selects another tenant's pool. Gatekeeper cannot distinguish it from one of
// several own pools: it leaves the pod unchanged, and the validation refuses it.
func (s scene) selectOtherPool() attack.Attack {
	const name, summary = "select-other-pool", "select another tenant's pool by nodeSelector"
	other := func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{s.key: s.otherPool} }
	if s.engine == v1alpha1.PlacementGatekeeper && len(s.pools) > 1 {
		return s.makeBreach(name, summary, NodeSelectorRule, other)
	}
	return s.makePlacedAttack(name, summary, other)
}

// makePlacedAttack returns an attack by a pod that is admitted and placed on the tenant's pool.
func (s scene) makePlacedAttack(name, summary string, edit func(*corev1.Pod)) attack.Attack {
	a := attack.NewCreate(name, summary, attack.ByEngine(s.engine, admissionpolicy.PodsPolicy), attack.NewPod(s.namespace, "croft-"+name, edit))
	a.Outcome = attack.ExpectType(func(p *corev1.Pod) error { return s.checkPlacement(&p.Spec) })
	return a
}

func (s scene) buildMirrors() []attack.Attack {
	labels := map[string]string{"app": "croft-agent"}
	daemonSet := &appsv1.DaemonSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"},
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "croft-agent"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: attack.NewPodSpec()},
		},
	}
	all := []attack.Attack{
		{
			Name: "run-a-pod", Kind: attack.Mirror, Summary: "run a pod, which lands on the tenant's pool",
			Request: &attack.Request{Verb: attack.Create, Object: attack.NewPod(s.namespace, "croft-run-a-pod")},
			Outcome: attack.ExpectType(func(p *corev1.Pod) error { return s.checkPlacement(&p.Spec) }),
		},
		{
			Name: "ask-for-an-instance-type", Kind: attack.Mirror, Summary: "ask for an instance type by node affinity",
			Request: &attack.Request{Verb: attack.Create, Object: attack.NewPod(s.namespace, "croft-ask-for-a-type", func(p *corev1.Pod) {
				p.Spec.Affinity = requireLabel(corev1.LabelInstanceTypeStable, "m5.large")
			})},
			Outcome: attack.ExpectType(func(p *corev1.Pod) error {
				if p.Spec.Affinity == nil || p.Spec.Affinity.NodeAffinity == nil {
					return fmt.Errorf("the pod's node affinity was removed")
				}
				return s.checkPlacement(&p.Spec)
			}),
		},
		{
			Name: "tolerate-a-failing-node", Kind: attack.Mirror, Summary: "tolerate for longer that a node is not ready",
			Request: &attack.Request{Verb: attack.Create, Object: attack.NewPod(s.namespace, "croft-tolerate-failing", func(p *corev1.Pod) {
				p.Spec.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}}
			})},
			Outcome: attack.ExpectType(func(p *corev1.Pod) error { return s.checkPlacement(&p.Spec) }),
		},
		{
			Name: "label-a-pod", Kind: attack.Mirror, Summary: "label an existing pod",
			Setup: []client.Object{attack.NewPod(s.namespace, "croft-label-a-pod")},
			Request: &attack.Request{
				Verb: attack.Update, Object: attack.NewPod(s.namespace, "croft-label-a-pod"),
				Change: attack.ExpectType(func(p *corev1.Pod) error { p.Labels = labels; return nil }),
			},
		},
		{
			Name: "run-a-daemonset", Kind: attack.Mirror, Summary: "run a DaemonSet, which covers the tenant's pool",
			Request: &attack.Request{Verb: attack.Create, Object: daemonSet},
			Outcome: attack.ExpectType(func(d *appsv1.DaemonSet) error { return s.checkPlacement(&d.Spec.Template.Spec) }),
		},
	}
	all = append(all, attack.NewCreate("request-a-device", "request a device, for which the API server adds a toleration", attack.Nobody,
		attack.NewPod(s.namespace, "croft-request-a-device", requestDevice(device.Key, 1))))
	for _, key := range s.tolerations[:min(1, len(s.tolerations))] {
		all = append(all, attack.NewCreate("tolerate-a-listed-taint", "tolerate a taint of the platform's list", attack.Nobody,
			attack.NewPod(s.namespace, "croft-tolerate-a-listed-taint", addToleration(corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists}))))
	}
	for _, maker := range attack.NewPodControllers(s.namespace, "croft-worker", attack.NewTemplate()) {
		if kind := maker.GetObjectKind().GroupVersionKind().Kind; kind != "DaemonSet" {
			all = append(all, attack.NewCreate("run-a-"+strings.ToLower(kind), "write a "+kind, attack.Nobody, maker))
		}
	}
	all = append(all, s.makePlacedMirror())
	return append(all, s.buildSchedulingMirrors()...)
}

// makePlacedMirror returns a pod in the form that a DaemonSet's controller, or a user who copies
// a pod, writes it. The pod has its placement already, and still needs the other walls'
// mutations.
func (s scene) makePlacedMirror() attack.Attack {
	return attack.NewCreate("write-own-place", "write a pod that is placed already, with an image that need not be pulled", attack.Nobody, attack.NewPod(s.namespace, "croft-write-own-place", func(p *corev1.Pod) {
		p.Spec.NodeSelector = map[string]string{s.key: s.pool}
		p.Spec.Tolerations = []corev1.Toleration{{Key: s.key, Operator: corev1.TolerationOpEqual, Value: s.pool}}
		p.Spec.Containers[0].ImagePullPolicy = corev1.PullIfNotPresent
	}))
}

// chooseOwnPool returns a legitimate request of a tenant with several pools.
func (s scene) chooseOwnPool(pool string) attack.Attack {
	chosen := s
	chosen.pool = pool
	return attack.Attack{
		Name: "choose-among-own-pools", Kind: attack.Mirror, Summary: "choose by nodeSelector among the tenant's own pools",
		Request: &attack.Request{Verb: attack.Create, Object: attack.NewPod(s.namespace, "croft-choose-own-pool", func(p *corev1.Pod) {
			p.Spec.NodeSelector = map[string]string{s.key: pool}
		})},
		Outcome: attack.ExpectType(func(p *corev1.Pod) error { return chosen.checkPlacement(&p.Spec) }),
	}
}

// makeBreach returns an attack that creates a pod which a rule of the placement policy refuses.
func (s scene) makeBreach(name, summary, rule string, edit func(*corev1.Pod)) attack.Attack {
	return attack.Attack{
		Name: name, Kind: attack.Breach, Summary: summary,
		Request:   &attack.Request{Verb: attack.Create, Object: attack.NewPod(s.namespace, "croft-"+name, edit)},
		StoppedBy: attack.ByPolicy(admissionpolicy.PodsPolicy, rule),
	}
}

// checkPlacement returns an error if a pod could run anywhere but on the tenant's pool.
func (s scene) checkPlacement(spec *corev1.PodSpec) error {
	if got := spec.NodeSelector[s.key]; got != s.pool {
		return fmt.Errorf("its nodeSelector asks for pool %q, not %q", got, s.pool)
	}
	tolerated := false
	for _, t := range spec.Tolerations {
		switch {
		case t.Key != s.key:
		case t.Operator == corev1.TolerationOpExists || !slices.Contains(s.pools, t.Value):
			return fmt.Errorf("it tolerates the taint of pool %q", t.Value)
		default:
			tolerated = tolerated || t.Value == s.pool
		}
	}
	if !tolerated {
		return fmt.Errorf("it does not tolerate the taint of pool %q", s.pool)
	}
	return nil
}

// requireLabel returns node affinity that requires a label.
func requireLabel(key, value string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}},
		}}},
	}}}
}
