package policy

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/rules/attack"
)

// buildEscapeAttacks are attacks from the pod on its node, which Pod Security stops.
func (s scene) buildEscapeAttacks() []attack.Attack {
	if s.attacker.PodSecurity == v1alpha1.PodSecurityPrivileged {
		return nil // such a tenant may access its nodes
	}
	container := func(edit func(*corev1.SecurityContext)) func(*corev1.Pod) {
		return func(p *corev1.Pod) { edit(p.Spec.Containers[0].SecurityContext) }
	}
	escape := func(name, summary string, edit func(*corev1.Pod)) attack.Attack {
		return attack.NewCreate(name, summary, attack.ByPodSecurity, s.makePod(name, edit))
	}
	share := func(name, summary string, edit func(*corev1.Pod)) attack.Attack {
		return attack.NewCreate(name, summary, s.stopSharedNode(), s.makePod(name, edit))
	}
	privileged := container(func(c *corev1.SecurityContext) { c.Privileged, c.AllowPrivilegeEscalation = ptr.To(true), nil })
	debug := func(name, summary string, c corev1.EphemeralContainer) attack.Attack {
		a := attack.NewUpdate(name, summary, attack.ByPodSecurity, s.makePod(name), func(p *corev1.Pod) {
			p.Spec.EphemeralContainers = []corev1.EphemeralContainer{c}
		})
		a.Request.Subresource = "ephemeralcontainers"
		return a
	}
	all := []attack.Attack{
		escape("run-privileged", "run a privileged container", privileged),
		escape("init-privileged", "run a privileged init container", func(p *corev1.Pod) {
			privileged(p)
			p.Spec.InitContainers = []corev1.Container{*p.Spec.Containers[0].DeepCopy()}
			p.Spec.InitContainers[0].Name = "init"
			p.Spec.Containers[0].SecurityContext = attack.NewPodSpec().Containers[0].SecurityContext
		}),
		escape("add-capability", "add the capability SYS_ADMIN", container(func(c *corev1.SecurityContext) {
			c.Capabilities.Add = []corev1.Capability{"SYS_ADMIN"}
		})),
		escape("run-unconfined", "run without seccomp", func(p *corev1.Pod) {
			p.Spec.SecurityContext.SeccompProfile.Type = corev1.SeccompProfileTypeUnconfined
		}),
		escape("mount-host-path", "mount the node's file system", func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
		}),
		share("use-host-network", "use the node's network", func(p *corev1.Pod) { p.Spec.HostNetwork = true }),
		share("use-host-processes", "view the node's processes", func(p *corev1.Pod) { p.Spec.HostPID = true }),
		share("use-host-ipc", "share memory with the node", func(p *corev1.Pod) { p.Spec.HostIPC = true }),
		escape("use-host-port", "take a port of the node", func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 8080, HostPort: 8080}}
		}),
		escape("set-sysctl", "set a sysctl of the kernel", func(p *corev1.Pod) {
			p.Spec.SecurityContext.Sysctls = []corev1.Sysctl{{Name: "kernel.msgmax", Value: "65536"}}
		}),
		debug("debug-privileged", "add a privileged ephemeral container to a running pod", makeEphemeralContainer(func(c *corev1.EphemeralContainer) {
			c.SecurityContext.Privileged, c.SecurityContext.AllowPrivilegeEscalation = ptr.To(true), nil
		})),
		debug("debug-with-capability", "add an ephemeral container with the capability NET_ADMIN to a running pod", makeEphemeralContainer(func(c *corev1.EphemeralContainer) {
			c.SecurityContext.Capabilities.Add = []corev1.Capability{"NET_ADMIN"}
		})),
		attack.NewCreate("privileged-in-template", "run a privileged container by a Deployment, whose pods would be refused later", attack.ByPodSecurityWarning, s.makeDeployment("privileged-in-template",
			func(t *corev1.PodTemplateSpec) {
				t.Spec.Containers[0].SecurityContext.Privileged, t.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation = ptr.To(true), nil
			})),
	}
	if s.attacker.PodSecurity == v1alpha1.PodSecurityRestricted {
		all = append(all,
			attack.NewCreate("root-in-template", "run as root by a Deployment, whose pods would be refused later", attack.ByPodSecurityWarning, s.makeDeployment("root-in-template",
				func(t *corev1.PodTemplateSpec) {
					t.Spec.SecurityContext.RunAsNonRoot, t.Spec.SecurityContext.RunAsUser = nil, ptr.To[int64](0)
				})),
			escape("escalate-privileges", "run a container that can gain privileges", container(func(c *corev1.SecurityContext) { c.AllowPrivilegeEscalation = ptr.To(true) })),
			escape("keep-capabilities", "keep the default capabilities of containers", container(func(c *corev1.SecurityContext) { c.Capabilities.Drop = nil })),
		)
	}
	// In a user namespace root has no rights on the node, and from Kubernetes 1.35 on Pod Security allows it.
	if s.attacker.PodSecurity == v1alpha1.PodSecurityRestricted && !forbidsHostUsers(s.attacker) {
		all = append(all, escape("run-as-root", "run as root", func(p *corev1.Pod) {
			p.Spec.SecurityContext.RunAsNonRoot, p.Spec.SecurityContext.RunAsUser = nil, ptr.To[int64](0)
		}))
	}
	return attack.WithReason("an escaped container controls the node, its credentials and every pod on it", []string{podSecurityStandards}, all...)
}

// makeEphemeralContainer returns a container that even the restricted level allows in a pod.
func makeEphemeralContainer(edit func(*corev1.EphemeralContainer)) corev1.EphemeralContainer {
	spec := attack.NewPodSpec().Containers[0]
	c := corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
		Name: "debug", Image: spec.Image, TerminationMessagePolicy: corev1.TerminationMessageReadFile, SecurityContext: spec.SecurityContext,
	}}
	edit(&c)
	return c
}
