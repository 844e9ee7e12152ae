package policy

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/rules/attack"
)

const podSecurityStandards = "https://kubernetes.io/docs/concepts/security/pod-security-standards/"

// buildPodAttacks are pods with forbidden fields, apart from placement.
func (s scene) buildPodAttacks() []attack.Attack {
	may, asking := s.attacker.Allowances, &podAttacks{scene: s}
	if !slices.Contains(may.ImagePullPolicies, corev1.PullNever) {
		asking.addCachedImageAttacks()
	}
	asking.addGracePeriodAttacks()
	all := slices.Concat(asking.all, s.buildSettingAttacks(), s.buildTerminationAttacks())
	return attack.WithReason("a tenant that takes more than its share takes it from others", nil, all...)
}

// podAttacks collects attacks by fields of pods.
type podAttacks struct {
	scene
	all []attack.Attack
}

// addSlow adds an attack by a pod whose termination takes too long.
func (s *podAttacks) addSlow(name, summary string, edit func(*corev1.Pod)) {
	s.all = append(s.all, attack.NewCreate(name, summary, attack.ByPolicy(admissionpolicy.PodsPolicy, GracePeriodRule), s.makePod(name, edit)))
}

func (s *podAttacks) addTemplateWarning(name, summary, rule string, edit func(*corev1.PodTemplateSpec)) {
	s.all = append(s.all, attack.NewCreate(name, summary, attack.ByWarning(admissionpolicy.PodTemplatesPolicy, rule), s.makeDeployment(name, edit)))
}

func (s *podAttacks) addMirror(name, summary string, edit func(*corev1.Pod)) {
	s.all = append(s.all, attack.NewCreate(name, summary, attack.Nobody, s.makePod(name, edit)))
}

// addCachedImageAttacks are images that another tenant has pulled to the node.
func (s *podAttacks) addCachedImageAttacks() {
	pulled := func(name, summary string, a attack.Attack, containers func(*corev1.Pod) []corev1.PullPolicy) attack.Attack {
		a.Name, a.Summary, a.Kind = name, summary, attack.Breach
		if s.platform.Placement == v1alpha1.PlacementGatekeeper && len(s.attacker.Allowances.ImagePullPolicies) > 1 {
			// Gatekeeper cannot choose among several pull policies, so only the validation
			// applies.
			a.StoppedBy = attack.ByPolicy(admissionpolicy.PodsPolicy, PullPolicyRule)
			return a
		}
		a.StoppedBy = attack.ByEngine(s.platform.Placement, admissionpolicy.PodsPolicy)
		a.Outcome = attack.ExpectType(func(p *corev1.Pod) error {
			for _, policy := range containers(p) {
				if !slices.Contains(s.attacker.Allowances.ImagePullPolicies, policy) {
					return fmt.Errorf("a container has imagePullPolicy %s", policy)
				}
			}
			return nil
		})
		return a
	}
	s.all = append(s.all, pulled("use-cached-image", "run an image that another tenant pulled to the node", attack.NewCreate("", "", attack.Nobody,
		s.makePod("use-cached-image", func(p *corev1.Pod) { p.Spec.Containers[0].ImagePullPolicy = corev1.PullNever })),
		func(p *corev1.Pod) []corev1.PullPolicy {
			return []corev1.PullPolicy{p.Spec.Containers[0].ImagePullPolicy}
		}))
	s.all = append(s.all, pulled("use-cached-image-in-init", "run an image that another tenant pulled to the node, as an init container", attack.NewCreate("", "", attack.Nobody,
		s.makePod("use-cached-image-in-init", func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{*p.Spec.Containers[0].DeepCopy()}
			p.Spec.InitContainers[0].Name, p.Spec.InitContainers[0].ImagePullPolicy = "init", corev1.PullNever
		})),
		func(p *corev1.Pod) []corev1.PullPolicy {
			return []corev1.PullPolicy{p.Spec.InitContainers[0].ImagePullPolicy}
		}))
	s.all = append(s.all, pulled("use-cached-image-as-volume", "mount an image that another tenant pulled to the node", attack.NewCreate("", "", attack.Nobody,
		s.makePod("use-cached-image-as-volume", func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "image", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{
				Reference: attack.ChooseImage(&s.attacker.Allowances), PullPolicy: corev1.PullNever,
			}}}}
		})),
		func(p *corev1.Pod) []corev1.PullPolicy {
			return []corev1.PullPolicy{p.Spec.Volumes[0].Image.PullPolicy}
		}))
	debug := attack.NewUpdate("", "", attack.Nobody, s.makePod("use-cached-image-to-debug"), func(p *corev1.Pod) {
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{makeEphemeralContainer(func(c *corev1.EphemeralContainer) { c.ImagePullPolicy = corev1.PullNever })}
	})
	debug.Request.Subresource = "ephemeralcontainers"
	s.all = append(s.all, pulled("use-cached-image-to-debug", "debug a pod by an image that another tenant pulled to the node", debug,
		func(p *corev1.Pod) []corev1.PullPolicy {
			return []corev1.PullPolicy{p.Spec.EphemeralContainers[0].ImagePullPolicy}
		}))
}

// addGracePeriodAttacks exceed the tenant's maximum.
func (s *podAttacks) addGracePeriodAttacks() {
	s.addSlow("end-never", "take longer to terminate than the tenant may", func(p *corev1.Pod) {
		p.Spec.TerminationGracePeriodSeconds = ptr.To(*s.attacker.Allowances.MaxTerminationGracePeriodSeconds + 1)
	})
	s.addTemplateWarning("end-never-in-template", "take longer to terminate than the tenant may, by a Deployment", GracePeriodRule, func(t *corev1.PodTemplateSpec) {
		t.Spec.TerminationGracePeriodSeconds = ptr.To(*s.attacker.Allowances.MaxTerminationGracePeriodSeconds + 1)
	})
	s.addMirror("end-late", "take as long to terminate as the tenant may", func(p *corev1.Pod) {
		p.Spec.TerminationGracePeriodSeconds = s.attacker.Allowances.MaxTerminationGracePeriodSeconds
	})
	slow := func(probe func(*corev1.Container, *corev1.Probe)) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			probe(&p.Spec.Containers[0], &corev1.Probe{
				ProbeHandler:                  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8080)}},
				TerminationGracePeriodSeconds: ptr.To(*s.attacker.Allowances.MaxTerminationGracePeriodSeconds + 1),
			})
		}
	}
	live := func(c *corev1.Container, probe *corev1.Probe) { c.LivenessProbe = probe }
	s.addSlow("end-never-by-probe", "take longer to terminate than the tenant may, once a liveness probe fails", slow(live))
	s.addSlow("end-never-by-startup-probe", "take longer to terminate than the tenant may, once a startup probe fails",
		slow(func(c *corev1.Container, probe *corev1.Probe) { c.StartupProbe = probe }))
	s.addSlow("end-never-by-probe-of-sidecar", "take longer to terminate than the tenant may, once a sidecar's liveness probe fails", func(p *corev1.Pod) {
		sidecar := *p.Spec.Containers[0].DeepCopy()
		sidecar.Name, sidecar.RestartPolicy = "sidecar", ptr.To(corev1.ContainerRestartPolicyAlways)
		slow(live)(p)
		sidecar.LivenessProbe, p.Spec.Containers[0].LivenessProbe = p.Spec.Containers[0].LivenessProbe, nil
		p.Spec.InitContainers = []corev1.Container{sidecar}
	})
	s.addMirror("end-late-by-probe", "take as long to terminate as the tenant may, once a liveness probe fails", func(p *corev1.Pod) {
		slow(live)(p)
		p.Spec.Containers[0].LivenessProbe.TerminationGracePeriodSeconds = s.attacker.Allowances.MaxTerminationGracePeriodSeconds
	})
}

// buildTerminationAttacks delay the end of pods, and so the removal of their nodes.
func (s scene) buildTerminationAttacks() []attack.Attack {
	late := *s.attacker.Allowances.MaxTerminationGracePeriodSeconds + 1
	// For a pod without a node, the API server ignores the grace period of the request.
	slow := s.makePod("delete-never", func(p *corev1.Pod) {
		p.Spec.SchedulingGates = nil
		p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "croft-verify"}
	})
	remove := attack.NewDelete("delete-never", "delete a pod with more time to terminate than the tenant may take", attack.ByPolicy(TerminationPolicy, GracePeriodRule), slow)
	remove.Setup = []client.Object{slow, &corev1.Binding{
		TypeMeta: makeCoreMeta("Binding"), ObjectMeta: slow.ObjectMeta, Target: corev1.ObjectReference{Kind: "Node", Name: "croft-verify"},
	}}
	remove.Request.GracePeriodSeconds = &late
	evict := attack.NewCreate("evict-never", "evict a pod with more time to terminate than the tenant may take", attack.ByPolicy(TerminationPolicy, GracePeriodRule), s.makePod("evict-never"))
	evict.Setup = []client.Object{s.makePod("evict-never")}
	evict.Request.Subresource = "eviction"
	evict.Request.Body = &policyv1.Eviction{
		TypeMeta:      metav1.TypeMeta{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "Eviction"},
		ObjectMeta:    metav1.ObjectMeta{Namespace: s.own, Name: "croft-evict-never"},
		DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: &late},
	}
	debug := attack.NewUpdate("debug-own-pod", "add an ephemeral container to an existing pod", attack.Nobody, s.makePod("debug-own-pod"), func(p *corev1.Pod) {
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{makeEphemeralContainer(func(*corev1.EphemeralContainer) {})}
	})
	debug.Request.Subresource = "ephemeralcontainers"
	initial := attack.NewCreate("run-an-init-container", "run a pod with an init container", attack.Nobody, s.makePod("run-an-init-container", func(p *corev1.Pod) {
		first := *p.Spec.Containers[0].DeepCopy()
		first.Name = "first"
		p.Spec.InitContainers = []corev1.Container{first}
	}))
	// Not every tenant may pull this image, so the mirror runs on scratch tenants only.
	initial.Setup = []client.Object{s.makePod("run-beside-an-init-container")}
	mounted := attack.NewCreate("mount-an-image", "run a pod with an image as a volume", attack.Nobody, s.makePod("mount-an-image", func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "image", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: p.Spec.Containers[0].Image}}}}
	}))
	mounted.Setup = []client.Object{s.makePod("run-beside-a-mounted-image")}
	deletion := attack.NewDelete("delete-a-pod", "delete a pod", attack.Nobody, s.makePod("delete-a-pod"))
	deletion.Setup = []client.Object{s.makePod("delete-a-pod")}
	evicted := attack.NewCreate("evict-a-pod", "evict a pod", attack.Nobody, s.makePod("evict-a-pod"))
	evicted.Setup = []client.Object{s.makePod("evict-a-pod")}
	evicted.Request.Subresource = "eviction"
	evicted.Request.Body = &policyv1.Eviction{
		TypeMeta:   metav1.TypeMeta{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "Eviction"},
		ObjectMeta: metav1.ObjectMeta{Namespace: s.own, Name: "croft-evict-a-pod"},
	}
	return []attack.Attack{
		remove, evict, deletion, evicted, debug, initial, mounted,
	}
}

func (s scene) makePod(name string, edits ...func(*corev1.Pod)) *corev1.Pod {
	return attack.NewPod(s.own, "croft-"+name, edits...)
}

func (s scene) makeDeployment(name string, edit func(*corev1.PodTemplateSpec)) client.Object {
	return attack.NewDeployment(s.own, "croft-"+name, attack.NewTemplate(edit))
}
