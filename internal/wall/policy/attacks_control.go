package policy

import (
	"fmt"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/admission"
	"croft.dev/croft/internal/attack"
)

func core(kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "v1", Kind: kind} }

func right(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// claims take volumes that are not the tenant's.
func (s scene) claims() []attack.Attack {
	class := "croft-verify"
	if len(s.by.Allowances.StorageClasses) > 0 && s.by.Allowances.StorageClasses[0] != "*" {
		class = s.by.Allowances.StorageClasses[0]
	}
	claim := func(name string, edits ...func(*corev1.PersistentVolumeClaimSpec)) *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{
			TypeMeta: core("PersistentVolumeClaim"), ObjectMeta: s.meta(name),
			Spec: corev1.PersistentVolumeClaimSpec{
				StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			},
		}
		for _, edit := range edits {
			edit(&c.Spec)
		}
		return c
	}
	refused := func(name, summary, rule string, edit func(*corev1.PersistentVolumeClaimSpec)) attack.Attack {
		return attack.Creating(name, summary, attack.ByPolicy(ClaimsPolicy, rule), claim(name, edit))
	}
	all := []attack.Attack{
		refused("claim-other-volume", "claim a volume by its name, which may be another tenant's", VolumeRule, func(c *corev1.PersistentVolumeClaimSpec) { c.VolumeName = "pvc-of-another" }),
		attack.Changing("claim-other-volume-later", "claim a volume by its name by a claim that is there", attack.ByPolicy(ClaimsPolicy, VolumeRule), claim("claim-other-volume-later"),
			func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pvc-of-another" }),
		refused("select-other-volume", "select a volume by its labels, which may be another tenant's", SelectorRule, func(c *corev1.PersistentVolumeClaimSpec) {
			c.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "postgres"}}
		}),
		attack.Creating("write-a-claim", "claim a volume of a class", attack.Nobody, claim("write-a-claim")),
	}
	if !slices.Contains(s.by.Allowances.StorageClasses, "") {
		all = append(all, refused("claim-leftover-volume", "claim whatever volume is left over, by the empty class", StorageClassRule, func(c *corev1.PersistentVolumeClaimSpec) { c.StorageClassName = ptr.To("") }))
	}
	if !slices.Contains(s.by.Allowances.StorageClasses, "*") {
		all = append(all, refused("claim-costly-class", "claim a volume of a class that is not the tenant's", StorageClassRule, func(c *corev1.PersistentVolumeClaimSpec) { c.StorageClassName = ptr.To("io2-block-express") }))
	}
	return attack.Because("a volume holds another tenant's data, or costs what the tenant was not given", nil, all...)
}

// controls undo what holds the tenant, or write what controllers act upon.
func (s scene) controls() []attack.Attack {
	endpoints := func(name string) *corev1.Endpoints { //nolint:staticcheck // the older API does the same, and is as dangerous
		return &corev1.Endpoints{ //nolint:staticcheck // see above
			TypeMeta: core("Endpoints"), ObjectMeta: s.meta(name),
			Subsets: []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{{IP: "10.244.7.7"}}, Ports: []corev1.EndpointPort{{Port: 80}}}}, //nolint:staticcheck // see above
		}
	}
	slice := func(name string) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{
			TypeMeta:    metav1.TypeMeta{APIVersion: discoveryv1.SchemeGroupVersion.String(), Kind: "EndpointSlice"},
			ObjectMeta:  s.meta(name),
			AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.244.7.7"}}},
		}
	}
	byController := attack.ByPolicy(EndpointsPolicy, EndpointsRule)
	relabel := func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Addresses = []string{"10.244.8.8"} }
	all := attack.Because("a Service would send its traffic to another tenant's pods, from which it is let in", []string{"CVE-2021-25740"},
		attack.Creating("write-endpoints", "write the addresses behind a Service as Endpoints", attack.ByRBAC, endpoints("write-endpoints")),
		attack.Creating("write-endpointslice", "write the addresses behind a Service as an EndpointSlice", attack.ByRBAC, slice("write-endpointslice")),
		attack.Mistake(attack.Creating("write-endpoints-when-permitted", "write the addresses behind a Service as Endpoints", byController, endpoints("endpoints-when-permitted")),
			right("", "endpoints", "create")),
		attack.Mistake(attack.Creating("write-endpointslice-when-permitted", "write the addresses behind a Service as an EndpointSlice", byController, slice("slice-when-permitted")),
			right("discovery.k8s.io", "endpointslices", "create")),
		attack.Mistake(attack.Changing("change-endpointslice-when-permitted", "change the addresses behind a Service in an EndpointSlice", byController, slice("change-slice-when-permitted"), relabel),
			right("discovery.k8s.io", "endpointslices", "get", "update")),
	)

	held := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{TypeMeta: core("ConfigMap"), ObjectMeta: s.meta(name)}
	}
	stay := func(o client.Object) { o.SetFinalizers([]string{"example.com/stay"}) }
	pod, config := s.pod("stay"), held("stay")
	stay(pod)
	stay(config)
	byFinalizers := attack.ByPolicy(FinalizersPolicy, FinalizersRule)
	protected := s.pod("protected")
	protected.Finalizers = []string{"kubernetes.io/pvc-protection"}
	all = append(all, attack.Because("a finalizer that nobody takes off keeps its namespace, and the tenant's name, for ever", nil,
		attack.Creating("stay-for-ever", "write an object that cannot be deleted, by a finalizer", byFinalizers, config),
		attack.Creating("stay-for-ever-as-pod", "write a pod that cannot be deleted, by a finalizer", attack.ByPolicy(admission.PodsPolicy, FinalizersRule), pod),
		attack.Changing("stay-for-ever-later", "keep an object that is there from being deleted, by a finalizer", byFinalizers, held("stay-for-ever-later"),
			func(c *corev1.ConfigMap) { stay(c) }),
		attack.Creating("use-known-finalizer", "write an object with a finalizer of Kubernetes", attack.Nobody, protected),
		attack.Creating("write-a-configmap", "write a ConfigMap", attack.Nobody, held("write-a-configmap")),
	)...)

	binding := func(name string, subject rbacv1.Subject) *rbacv1.RoleBinding {
		return &rbacv1.RoleBinding{
			TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"}, ObjectMeta: s.meta(name),
			Subjects: []rbacv1.Subject{subject},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "croft-" + string(v1alpha1.RoleViewer)},
		}
	}
	group := func(name string) rbacv1.Subject {
		return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: name}
	}
	byEverybody := attack.ByPolicy(RoleBindingsPolicy, EverybodyRule)
	all = append(all, attack.Because("what is open to everybody is open to every other tenant", nil,
		attack.Creating("let-everybody-read", "bind a role to everybody who is signed in", byEverybody, binding("let-everybody-read", group("system:authenticated"))),
		attack.Creating("let-strangers-read", "bind a role to everybody who is not signed in", byEverybody, binding("let-strangers-read", group("system:unauthenticated"))),
		attack.Creating("let-anonymous-read", "bind a role to the anonymous user", byEverybody, binding("let-anonymous-read", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "system:anonymous"})),
		attack.Creating("let-every-account-read", "bind a role to every service account of the cluster", byEverybody, binding("let-every-account-read", group("system:serviceaccounts"))),
		attack.Changing("let-everybody-read-later", "bind a role to everybody by a binding that is there", byEverybody, binding("let-everybody-read-later", group(s.by.Name+"-colleagues")),
			func(b *rbacv1.RoleBinding) { b.Subjects = append(b.Subjects, group("system:authenticated")) }),
	)...)
	return append(append(append(all, s.marks()...), s.namespaces()...), s.devices()...)
}

// devices are asked for as a team does, and as only an administrator may.
func (s scene) devices() []attack.Attack {
	claim := func(name string, admin *bool) *resourcev1.ResourceClaim {
		return &resourcev1.ResourceClaim{
			TypeMeta: metav1.TypeMeta{APIVersion: resourcev1.SchemeGroupVersion.String(), Kind: "ResourceClaim"}, ObjectMeta: s.meta(name),
			Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
				Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.example.com", AdminAccess: admin},
			}}}},
		}
	}
	return attack.Because("an administrator's access reaches devices that are in use by others", []string{"https://github.com/kubernetes/enhancements/issues/5018"},
		attack.Creating("claim-device-as-admin", "claim devices that others use, as an administrator", attack.ByAdminAccess, claim("claim-device-as-admin", ptr.To(true))),
		attack.Creating("claim-a-device", "claim a device", attack.Nobody, claim("claim-a-device", nil)),
	)
}

// LeaseCount is the kind of object whose number is tried by a tenant that may have
// none.
const LeaseCount corev1.ResourceName = "count/leases.coordination.k8s.io"

// shares are what a tenant takes beside others.
func (s scene) shares() []attack.Attack {
	var all []attack.Attack
	open := attack.Creating("leave-memory-open", "run a container without a memory request or limit, which could take the whole node", attack.ByMutation("LimitRange"),
		s.pod("leave-memory-open", func(p *corev1.Pod) {
			delete(p.Spec.Containers[0].Resources.Requests, corev1.ResourceMemory)
			delete(p.Spec.Containers[0].Resources.Limits, corev1.ResourceMemory)
		}))
	open.Outcome = attack.As(func(p *corev1.Pod) error {
		if p.Spec.Containers[0].Resources.Requests.Memory().IsZero() {
			return fmt.Errorf("the container still requests no memory")
		}
		return nil
	})
	idle := attack.Creating("run-without-requests", "run a container that says nothing of CPU and memory, and gets what the LimitRange gives", attack.Nobody,
		s.pod("run-without-requests", func(p *corev1.Pod) { p.Spec.Containers[0].Resources = corev1.ResourceRequirements{} }))
	given := s.by.Limits.DefaultRequest
	idle.Outcome = attack.As(func(p *corev1.Pod) error {
		for name := range given {
			if _, ok := p.Spec.Containers[0].Resources.Requests[name]; !ok {
				return fmt.Errorf("the container requests no %s", name)
			}
		}
		return nil
	})
	all = append(all, open, idle)
	_, cpu := s.by.Quota[corev1.ResourceRequestsCPU]
	if cpu {
		all = append(all, attack.Creating("exceed-quota", "ask for more CPU than the quota", attack.ByQuota, s.pod("exceed-quota", func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1M")
			p.Spec.Containers[0].Resources.Limits[corev1.ResourceCPU] = resource.MustParse("1M")
		})))
	}
	lease := &coordinationv1.Lease{
		TypeMeta: metav1.TypeMeta{APIVersion: coordinationv1.SchemeGroupVersion.String(), Kind: "Lease"}, ObjectMeta: s.meta("lease"),
	}
	if leases, ok := s.by.Quota[LeaseCount]; ok && leases.IsZero() {
		all = append(all, attack.Creating("exceed-object-count", "write more objects of a kind than the quota, and fill the control plane", attack.ByQuota, lease))
	} else {
		all = append(all, attack.Creating("hold-a-lease", "hold a Lease, as whoever elects a leader does", attack.Nobody, lease))
	}
	return attack.Because("what one tenant takes, the others cannot have", nil, all...)
}
