package policy

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// marks are attacks on what croft put there.
func (s scene) marks() []attack.Attack {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: s.own, Name: name} }
	isolation := &networkingv1.NetworkPolicy{
		TypeMeta: metav1.TypeMeta{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: "NetworkPolicy"}, ObjectMeta: meta("croft-isolation"),
	}
	access := &rbacv1.RoleBinding{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"}, ObjectMeta: meta("croft-operator"),
	}
	rules := &v1alpha1.TenantRules{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "TenantRules"}, ObjectMeta: meta(v1alpha1.TenantRulesName),
	}
	limits := &corev1.LimitRange{TypeMeta: core("LimitRange"), ObjectMeta: meta(Name)}
	quota := &corev1.ResourceQuota{TypeMeta: core("ResourceQuota"), ObjectMeta: meta(Name)}
	byPolicy := attack.ByPolicy(ProtectionPolicy, ProtectionRule)
	forged := &networkingv1.NetworkPolicy{
		TypeMeta:   isolation.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{Namespace: s.own, Name: "croft-forge-mark", Labels: map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy}},
		Spec:       networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}},
	}
	widen := func(r *v1alpha1.TenantRules) { r.Spec.Pools = []string{"any"} }
	raise := func(q *corev1.ResourceQuota) { q.Spec.Hard = corev1.ResourceList{} }
	loosen := func(l *corev1.LimitRange) { l.Spec.Limits = nil }
	all := []attack.Attack{
		attack.Deleting("delete-network-policy", "delete the NetworkPolicy that isolates the tenant", byPolicy, isolation),
		present(attack.Changing("edit-network-policy", "let everybody in by editing croft's NetworkPolicy", byPolicy, isolation, func(np *networkingv1.NetworkPolicy) {
			np.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{}}
		})),
		present(attack.Changing("unmark-network-policy", "take croft's mark off its NetworkPolicy", byPolicy, isolation, func(np *networkingv1.NetworkPolicy) { np.Labels = nil })),
		present(attack.Changing("edit-access", "give others access by editing croft's RoleBinding", byPolicy, access, func(rb *rbacv1.RoleBinding) {
			rb.Subjects = append(rb.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "mallory"})
		})),
		attack.Deleting("delete-access", "take others' access away by deleting croft's RoleBinding", byPolicy, access),
		attack.Creating("forge-mark", "put croft's mark on an object of one's own", byPolicy, forged),
		attack.Deleting("delete-limits", "delete the LimitRange", attack.ByRBAC, limits),
		present(attack.Changing("edit-rules", "edit the rules that the policies read", attack.ByRBAC, rules, widen)),
		attack.Deleting("delete-rules", "delete the rules that the policies read", attack.ByRBAC, rules),
		attack.Creating("write-second-rules", "write more rules beside those that the policies read", attack.ByRBAC, second(rules)),
		attack.Mistake(present(attack.Changing("edit-rules-when-permitted", "edit the rules that the policies read", byPolicy, rules, widen)), right("croft.dev", "tenantrules", "get", "update")),
		attack.Mistake(attack.Deleting("delete-rules-when-permitted", "delete the rules that the policies read", byPolicy, rules), right("croft.dev", "tenantrules", "delete")),
		attack.Mistake(present(attack.Changing("edit-limits-when-permitted", "edit the LimitRange", byPolicy, limits, loosen)), right("", "limitranges", "get", "update")),
	}
	if len(s.by.Quota) > 0 {
		all = append(all,
			attack.Deleting("delete-quota", "delete the ResourceQuota", attack.ByRBAC, quota),
			attack.Mistake(present(attack.Changing("edit-quota-when-permitted", "edit the ResourceQuota", byPolicy, quota, raise)), right("", "resourcequotas", "get", "update")))
	}
	return attack.Because("whoever can undo a wall has none around them", nil, all...)
}

// present is an attack on something that stands: it is not made beforehand.
func present(a attack.Attack) attack.Attack {
	a.Setup = nil
	return a
}

func second(rules *v1alpha1.TenantRules) *v1alpha1.TenantRules {
	more := rules.DeepCopy()
	more.Name = "more"
	return more
}

// namespaces are attacks on the marks of the namespace itself.
func (s scene) namespaces() []attack.Attack {
	own := &corev1.Namespace{TypeMeta: core("Namespace"), ObjectMeta: metav1.ObjectMeta{Name: s.own}}
	weaken := func(n *corev1.Namespace) { n.Labels["pod-security.kubernetes.io/enforce"] = "privileged" }
	leave := func(n *corev1.Namespace) { delete(n.Labels, v1alpha1.TenantLabel) }
	change := func(name, summary string, by attack.Stopper, edit func(*corev1.Namespace)) attack.Attack {
		return present(attack.Changing(name, summary, by, own, edit))
	}
	update := right("", "namespaces", "get", "update")
	byMarks := attack.ByPolicy(NamespacesPolicy, NamespaceMarksRule)
	permitted := func(name, summary string, edit func(*corev1.Namespace)) attack.Attack {
		return attack.Mistake(change(name+"-when-permitted", summary, byMarks, edit), update)
	}
	status := attack.Mistake(change("leave-by-status-when-permitted", "take the tenant label off the namespace through its status", byMarks, leave),
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces", "namespaces/status"}, Verbs: []string{"get", "update"}})
	status.Request.Subresource = "status"
	finalize := attack.Mistake(change("leave-by-finalize-when-permitted", "take the tenant label off the namespace by finalizing it", attack.ByPolicy(NamespacesPolicy, NamespaceFinalizeRule), leave),
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces", "namespaces/finalize"}, Verbs: []string{"get", "update"}})
	finalize.Request.Subresource = "finalize"
	free := &corev1.Namespace{TypeMeta: core("Namespace"), ObjectMeta: metav1.ObjectMeta{Name: s.own + "-free"}}
	seize := attack.Mistake(attack.Changing("seize-namespace-when-permitted", "take a namespace that is nobody's by labelling it", byMarks, free,
		func(n *corev1.Namespace) { n.Labels[v1alpha1.TenantLabel] = s.by.Name }), update)
	seize.References = []string{"CVE-2024-39690", "CVE-2025-55205"}
	// The namespace before what is in it.
	slices.SortStableFunc(seize.Setup, func(a, b client.Object) int { return rank(a) - rank(b) })
	leaveOwn := permitted("leave", "take the tenant label off the namespace", leave)
	leaveOwn.References = []string{"CVE-2022-46167"}
	return attack.Because("a namespace without its marks has no walls", nil,
		change("weaken-pod-security", "label the namespace with a weaker Pod Security level", attack.ByRBAC, weaken),
		change("leave", "take the tenant label off the namespace", attack.ByRBAC, leave),
		permitted("weaken-pod-security", "label the namespace with a weaker Pod Security level", weaken),
		leaveOwn,
		permitted("become-other-tenant", "label the namespace as another tenant's", func(n *corev1.Namespace) { n.Labels[v1alpha1.TenantLabel] = s.on.Name }),
		permitted("ask-for-adoption", "annotate the namespace for adoption by another tenant", func(n *corev1.Namespace) {
			n.Annotations = map[string]string{v1alpha1.AdoptAnnotation: s.on.Name}
		}),
		permitted("get-admin-access-to-devices", "label the namespace for administrators' access to devices", func(n *corev1.Namespace) {
			n.Labels["resource.kubernetes.io/admin-access"] = "true"
		}),
		permitted("select-nodes-by-namespace", "annotate the namespace with a node selector", func(n *corev1.Namespace) {
			n.Annotations = map[string]string{"scheduler.alpha.kubernetes.io/node-selector": "pool=other"}
		}),
		status, finalize, seize,
		attack.Mistake(attack.Deleting("delete-namespace-when-permitted", "delete the namespace", attack.ByPolicy(NamespacesPolicy, NamespaceDeletionRule), own), right("", "namespaces", "delete")),
		attack.Mistake(change("label-namespace-otherwise", "put a label on the namespace that says nothing of walls", attack.Nobody, func(n *corev1.Namespace) { n.Labels["team"] = "web" }), update),
	)
}

func rank(o client.Object) int {
	if o.GetObjectKind().GroupVersionKind().Kind == "Namespace" {
		return 0
	}
	return 1
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

// flux is what Flux would do on the tenant's behalf, where the cluster has it.
func (s scene) flux() []attack.Attack {
	const kustomize, helm, source = "kustomize.toolkit.fluxcd.io/v1", "helm.toolkit.fluxcd.io/v2", "source.toolkit.fluxcd.io/v1"
	kustomization := func(name string, edit func(map[string]any)) *unstructured.Unstructured {
		spec := map[string]any{"interval": "1m", "prune": true, "serviceAccountName": "flux", "sourceRef": map[string]any{"kind": "GitRepository", "name": "app"}}
		edit(spec)
		return attack.Custom(kustomize, "Kustomization", s.own, "croft-"+name, spec)
	}
	release := func(name string, edit func(map[string]any)) client.Object {
		spec := map[string]any{"interval": "1m", "serviceAccountName": "flux", "chartRef": map[string]any{"kind": "OCIRepository", "name": "app"}}
		edit(spec)
		return attack.Custom(helm, "HelmRelease", s.own, "croft-"+name, spec)
	}
	ref := func(kind string) map[string]any {
		return map[string]any{"kind": kind, "name": "app", "namespace": s.other}
	}
	by := func(rule string) attack.Stopper { return attack.ByPolicy(FluxPolicy, rule) }
	repository := func(name string, spec map[string]any) *unstructured.Unstructured {
		return attack.Custom(source, "OCIRepository", s.own, "croft-"+name, spec)
	}
	none := func(map[string]any) {}
	return attack.Because("Flux applies with the rights of the cluster's administrator unless it is told whose to use", []string{"https://fluxcd.io/flux/installation/configuration/multitenancy/"},
		attack.Creating("apply-as-flux", "have Flux apply manifests with its own rights", by(ServiceAccountRule), kustomization("apply-as-flux", func(m map[string]any) { delete(m, "serviceAccountName") })),
		attack.Creating("install-as-flux", "have Flux install a chart with its own rights", by(ServiceAccountRule), release("install-as-flux", func(m map[string]any) { delete(m, "serviceAccountName") })),
		attack.Creating("apply-by-kubeconfig", "have Flux apply manifests by a kubeconfig", by(KubeConfigRule), kustomization("apply-by-kubeconfig", func(m map[string]any) {
			m["kubeConfig"] = map[string]any{"secretRef": map[string]any{"name": "kubeconfig"}}
		})),
		attack.Creating("apply-other-source", "have Flux apply another tenant's source", by(SourceNamespaceRule), kustomization("apply-other-source", func(m map[string]any) { m["sourceRef"] = ref("GitRepository") })),
		attack.Creating("install-other-source", "have Flux install another tenant's chart", by(SourceNamespaceRule), release("install-other-source", func(m map[string]any) { m["chartRef"] = ref("OCIRepository") })),
		attack.Creating("fetch-as-platform", "have Flux fetch with the platform's cloud identity", attack.ByPolicy(FluxSourcesPolicy, ProviderRule),
			repository("fetch-as-platform", map[string]any{"interval": "1m", "url": "oci://registry.example.com/other/app", "provider": "aws"})),
		attack.Changing("apply-as-flux-later", "have Flux apply manifests with its own rights, by a Kustomization that is there", by(ServiceAccountRule),
			kustomization("apply-as-flux-later", none), func(u *unstructured.Unstructured) {
				unstructured.RemoveNestedField(u.Object, "spec", "serviceAccountName")
			}),
		attack.Changing("fetch-as-platform-later", "have Flux fetch with the platform's cloud identity, by a source that is there", attack.ByPolicy(FluxSourcesPolicy, ProviderRule),
			repository("fetch-as-platform-later", map[string]any{"interval": "1m", "url": "oci://registry.example.com/other/app"}),
			func(u *unstructured.Unstructured) { set(u, "aws", "spec", "provider") }),
		attack.Creating("apply-by-flux", "have Flux apply manifests as a service account", attack.Nobody, kustomization("apply-by-flux", none)),
		attack.Creating("install-by-flux", "have Flux install a chart as a service account", attack.Nobody, release("install-by-flux", none)),
		attack.Creating("fetch-by-flux", "have Flux fetch with a secret", attack.Nobody, repository("fetch-by-flux", map[string]any{"interval": "1m", "url": "oci://registry.example.com/own/app"})),
	)
}

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
	return attack.Because("what one tenant takes, the others cannot have", nil, all...)
}
