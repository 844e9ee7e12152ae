package policy

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/attack"
	"croft.dev/croft/internal/estate"
)

// Attacks try to get out of the pod, to take more than the tenant's share, and
// to undo what croft put there.
func (Wall) Attacks(_ *estate.Platform, by, _ *estate.Tenant) []attack.Attack {
	own := by.Namespaces[0]
	mark := map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy}
	isolation := &networkingv1.NetworkPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: "NetworkPolicy"},
		ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "croft-isolation"},
	}
	access := &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "croft-operator"},
	}
	relabel := attack.As(func(n *corev1.Namespace) error {
		n.Labels["pod-security.kubernetes.io/enforce"] = "privileged"
		return nil
	})
	shared := func(name, summary string, verb attack.Verb, object client.Object, change func(client.Object) error) attack.Attack {
		return attack.Attack{
			Name: name, Kind: attack.Breach, Summary: summary,
			Request:   &attack.Request{Verb: verb, Object: object, Change: change},
			StoppedBy: attack.ByPolicy(ProtectionPolicy, ProtectionRule),
		}
	}
	forbidden := func(name, summary string, verb attack.Verb, object client.Object, change func(client.Object) error) attack.Attack {
		a := shared(name, summary, verb, object, change)
		a.StoppedBy = attack.ByRBAC
		return a
	}
	attacks := []attack.Attack{
		{
			Name: "leave-memory-open", Kind: attack.Breach, Summary: "run a container without a memory request or limit, which could take the whole node",
			Request: &attack.Request{Verb: attack.Create, Object: attack.Pod(own, "croft-leave-memory-open", func(p *corev1.Pod) {
				delete(p.Spec.Containers[0].Resources.Requests, corev1.ResourceMemory)
				delete(p.Spec.Containers[0].Resources.Limits, corev1.ResourceMemory)
			})},
			StoppedBy: attack.ByMutation("LimitRange"),
			Outcome: attack.As(func(p *corev1.Pod) error {
				if p.Spec.Containers[0].Resources.Requests.Memory().IsZero() {
					return fmt.Errorf("the container still requests no memory")
				}
				return nil
			}),
		},
		shared("delete-network-policy", "delete the NetworkPolicy that isolates the tenant", attack.Delete, isolation, nil),
		shared("edit-network-policy", "let everybody in by editing croft's NetworkPolicy", attack.Update, isolation,
			attack.As(func(np *networkingv1.NetworkPolicy) error {
				np.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{}}
				return nil
			})),
		shared("unmark-network-policy", "take croft's mark off its NetworkPolicy", attack.Update, isolation,
			attack.As(func(np *networkingv1.NetworkPolicy) error { np.Labels = nil; return nil })),
		shared("edit-access", "give others access by editing croft's RoleBinding", attack.Update, access,
			attack.As(func(rb *rbacv1.RoleBinding) error {
				rb.Subjects = append(rb.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "mallory"})
				return nil
			})),
		shared("forge-mark", "put croft's mark on an object of one's own", attack.Create, &networkingv1.NetworkPolicy{
			TypeMeta:   isolation.TypeMeta,
			ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "croft-forge-mark", Labels: mark},
			Spec:       networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}},
		}, nil),
		forbidden("delete-limits", "delete the LimitRange", attack.Delete, &corev1.LimitRange{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "LimitRange"}, ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: Name}}, nil),
		forbidden("edit-rules", "edit the rules that the policies read", attack.Update, &v1alpha1.TenantRules{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "TenantRules"},
			ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: v1alpha1.TenantRulesName}},
			attack.As(func(r *v1alpha1.TenantRules) error { r.Spec.Pools = []string{"any"}; return nil })),
		forbidden("weaken-pod-security", "label the namespace with a weaker Pod Security level", attack.Update, &corev1.Namespace{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: own}}, relabel),
	}
	// A tenant that was declared privileged is let out of the pod on purpose.
	if by.PodSecurity != v1alpha1.PodSecurityPrivileged {
		attacks = append(attacks, escapes(own)...)
	}
	if len(by.Quota) > 0 {
		attacks = append(attacks, attack.Attack{
			Name: "exceed-quota", Kind: attack.Breach, Summary: "ask for more than the quota",
			Request: &attack.Request{Verb: attack.Create, Object: attack.Pod(own, "croft-exceed-quota", func(p *corev1.Pod) {
				huge := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1M"), corev1.ResourceMemory: resource.MustParse("1Pi")}
				p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: huge, Limits: huge}
			})},
			StoppedBy: attack.ByQuota,
		})
	}
	return append(attacks, mirrors(own)...)
}

// escapes are attacks out of the pod onto its node.
func escapes(own string) []attack.Attack {
	return []attack.Attack{
		escape(own, "run-privileged", "run a privileged container", func(p *corev1.Pod) {
			p.Spec.Containers[0].SecurityContext.Privileged = ptr.To(true)
			p.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation = nil
		}),
		escape(own, "add-capability", "add the capability SYS_ADMIN", func(p *corev1.Pod) {
			p.Spec.Containers[0].SecurityContext.Capabilities.Add = []corev1.Capability{"SYS_ADMIN"}
		}),
		escape(own, "mount-host-path", "mount the node's file system", func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
		}),
		escape(own, "use-host-network", "use the node's network", func(p *corev1.Pod) { p.Spec.HostNetwork = true }),
		escape(own, "use-host-processes", "see the node's processes", func(p *corev1.Pod) { p.Spec.HostPID = true }),
		{
			Name: "debug-privileged", Kind: attack.Breach, Summary: "add a privileged ephemeral container to a running pod",
			Setup: []client.Object{attack.Pod(own, "croft-debug-privileged")},
			Request: &attack.Request{
				Verb: attack.Update, Object: attack.Pod(own, "croft-debug-privileged"), Subresource: "ephemeralcontainers",
				Change: attack.As(func(p *corev1.Pod) error {
					p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
						Name: "debug", Image: "pause:3.10", TerminationMessagePolicy: corev1.TerminationMessageReadFile,
						SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true)},
					}}}
					return nil
				}),
			},
			StoppedBy: attack.ByPodSecurity,
		},
	}
}

// mirrors are objects that every team writes.
func mirrors(namespace string) []attack.Attack {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "croft-verify"}
	write := func(name, summary string, object client.Object) attack.Attack {
		return attack.Attack{Name: name, Kind: attack.Mirror, Summary: summary, Request: &attack.Request{Verb: attack.Create, Object: object}}
	}
	return []attack.Attack{
		write("write-a-configmap", "write a ConfigMap", &corev1.ConfigMap{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: meta}),
		write("write-a-service", "write a Service", &corev1.Service{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: meta,
			Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}}}}),
		write("write-own-network-policy", "write a NetworkPolicy that is not croft's", &networkingv1.NetworkPolicy{
			TypeMeta: metav1.TypeMeta{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: "NetworkPolicy"}, ObjectMeta: meta,
			Spec: networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}}}),
	}
}

// escape is an attack by a pod that Pod Security refuses.
func escape(namespace, name, summary string, edit func(*corev1.Pod)) attack.Attack {
	return attack.Attack{
		Name: name, Kind: attack.Breach, Summary: summary,
		Request:   &attack.Request{Verb: attack.Create, Object: attack.Pod(namespace, "croft-"+name, edit)},
		StoppedBy: attack.ByPodSecurity,
	}
}
