package policy

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/attack"
)

// buildMarkAttacks are attacks on croft's own objects.
func (s scene) buildMarkAttacks() []attack.Attack {
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
	limits := &corev1.LimitRange{TypeMeta: makeCoreMeta("LimitRange"), ObjectMeta: meta(Name)}
	quota := &corev1.ResourceQuota{TypeMeta: makeCoreMeta("ResourceQuota"), ObjectMeta: meta(Name)}
	byPolicy := attack.ByPolicy(ProtectionPolicy, ProtectionRule)
	widen := func(r *v1alpha1.TenantRules) { r.Spec.Pools = []string{"any"} }
	raise := func(q *corev1.ResourceQuota) { q.Spec.Hard = corev1.ResourceList{} }
	loosen := func(l *corev1.LimitRange) { l.Spec.Limits = nil }
	var all []attack.Attack
	if s.platform.Network.Dialect == v1alpha1.DialectCalico {
		all = s.buildCalicoMarkAttacks()
	} else {
		all = []attack.Attack{
			attack.NewDelete("delete-network-policy", "delete the NetworkPolicy that isolates the tenant", byPolicy, isolation),
			withoutSetup(attack.NewUpdate("edit-network-policy", "let everybody in by editing croft's NetworkPolicy", byPolicy, isolation, func(np *networkingv1.NetworkPolicy) {
				np.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{}}
			})),
			withoutSetup(attack.NewUpdate("unmark-network-policy", "remove croft's mark from its NetworkPolicy", byPolicy, isolation, func(np *networkingv1.NetworkPolicy) { np.Labels = nil })),
		}
	}
	all = append(all,
		withoutSetup(attack.NewUpdate("edit-access", "give others access by editing croft's RoleBinding", byPolicy, access, func(rb *rbacv1.RoleBinding) {
			rb.Subjects = append(rb.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "mallory"})
		})),
		attack.NewDelete("delete-access", "remove others' access by deleting croft's RoleBinding", byPolicy, access),
		attack.NewDelete("delete-limits", "delete the LimitRange", attack.ByRBAC, limits),
		withoutSetup(attack.NewUpdate("edit-rules", "edit the TenantRules", attack.ByRBAC, rules, widen)),
		attack.NewDelete("delete-rules", "delete the TenantRules", attack.ByRBAC, rules),
		attack.NewCreate("write-second-rules", "write more TenantRules", attack.ByRBAC, makeSecondRules(rules)),
		attack.GrantToEveryone(withoutSetup(attack.NewUpdate("edit-rules-when-permitted", "edit the TenantRules", byPolicy, rules, widen)), makePolicyRule("croft.dev", "tenantrules", "get", "update")),
		attack.GrantToEveryone(attack.NewDelete("delete-rules-when-permitted", "delete the TenantRules", byPolicy, rules), makePolicyRule("croft.dev", "tenantrules", "delete")),
		attack.GrantToEveryone(withoutSetup(attack.NewUpdate("edit-limits-when-permitted", "edit the LimitRange", byPolicy, limits, loosen)), makePolicyRule("", "limitranges", "get", "update")),
	)
	own := buildTenantRules(s.platform, s.attacker, s.own)
	own.SetLabels(map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy})
	all = append(all,
		attack.GrantToEveryone(attack.NewDelete("delete-limits-when-permitted", "delete the LimitRange", byPolicy, limits), makePolicyRule("", "limitranges", "delete")),
		attack.GrantToEveryone(attack.NewCreate("forge-rules-when-permitted", "write TenantRules with croft's mark", byPolicy, own), makePolicyRule("croft.dev", "tenantrules", "create")),
		attack.SendAsAdmin(withoutSetup(attack.NewUpdate("edit-limits-as-platform", "edit the LimitRange", attack.Nobody, limits, func(l *corev1.LimitRange) {
			l.Annotations = map[string]string{"example.com/note": "raised"}
		}))),
	)
	if len(s.attacker.Quota) > 0 {
		all = append(all,
			attack.NewDelete("delete-quota", "delete the ResourceQuota", attack.ByRBAC, quota),
			attack.GrantToEveryone(withoutSetup(attack.NewUpdate("edit-quota-when-permitted", "edit the ResourceQuota", byPolicy, quota, raise)), makePolicyRule("", "resourcequotas", "get", "update")))
	}
	return attack.WithReason("a tenant that can remove a wall is not isolated", nil, all...)
}

// buildCalicoMarkAttacks are attacks on the guard, which croft writes in Calico's API. RBAC stops them
// where tenants may write no policies in that API.
func (s scene) buildCalicoMarkAttacks() []attack.Attack {
	by, version, name := attack.ByRBAC, "projectcalico.org/v3", "croft-guard"
	if calico := s.platform.Network.Calico; calico != nil {
		if calico.TenantPolicies {
			by = attack.ByPolicy(ProtectionPolicy, ProtectionRule)
		}
		if calico.APIGroup == v1alpha1.CalicoStorageGroup {
			version, name = "crd.projectcalico.org/v1", "default.croft-guard"
		}
	}
	guard := attack.NewCustomObject(version, "NetworkPolicy", s.own, name, nil)
	open := func(np *unstructured.Unstructured) {
		np.Object["spec"] = map[string]any{"order": int64(1), "ingress": []any{map[string]any{"action": "Allow"}}}
	}
	forged := attack.NewCustomObject(version, "NetworkPolicy", s.own, strings.TrimSuffix(name, "guard")+"forged", map[string]any{"order": int64(500), "ingress": []any{map[string]any{"action": "Deny"}}})
	forged.SetLabels(map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy})
	byPolicy, group := attack.ByPolicy(ProtectionPolicy, ProtectionRule), strings.Split(version, "/")[0]
	return []attack.Attack{
		attack.GrantToEveryone(attack.NewDelete("delete-calico-guard-when-permitted", "delete the Calico NetworkPolicy that denies other tenants", byPolicy, guard), makePolicyRule(group, "networkpolicies", "delete")),
		attack.GrantToEveryone(withoutSetup(attack.NewUpdate("edit-calico-guard-when-permitted", "let everybody in by editing croft's Calico NetworkPolicy", byPolicy, guard, open)), makePolicyRule(group, "networkpolicies", "get", "update")),
		attack.GrantToEveryone(attack.NewCreate("forge-calico-guard-when-permitted", "put croft's mark on a Calico NetworkPolicy of one's own", byPolicy, forged), makePolicyRule(group, "networkpolicies", "create")),
		attack.NewDelete("delete-calico-guard", "delete the Calico NetworkPolicy that denies other tenants", by, guard),
		withoutSetup(attack.NewUpdate("edit-calico-guard", "let everybody in by editing croft's Calico NetworkPolicy", by, guard, open)),
		// With a legitimate spec, so that only the change of the label is refused.
		withoutSetup(attack.NewUpdate("unmark-calico-guard", "remove croft's mark from its Calico NetworkPolicy", by, guard, func(np *unstructured.Unstructured) {
			np.SetLabels(nil)
			np.Object["spec"] = map[string]any{"order": int64(500), "ingress": []any{map[string]any{"action": "Deny"}}}
		})),
	}
}

// withoutSetup returns an attack on an existing object, such as croft's own: the object is not
// created before the attack.
func withoutSetup(a attack.Attack) attack.Attack {
	a.Setup = nil
	return a
}

func makeSecondRules(rules *v1alpha1.TenantRules) *v1alpha1.TenantRules {
	more := rules.DeepCopy()
	more.Name = "more"
	return more
}

// buildNamespaceAttacks are attacks on the labels and annotations of the namespace itself.
func (s scene) buildNamespaceAttacks() []attack.Attack {
	own := &corev1.Namespace{TypeMeta: makeCoreMeta("Namespace"), ObjectMeta: metav1.ObjectMeta{Name: s.own}}
	weaken := func(n *corev1.Namespace) { n.Labels["pod-security.kubernetes.io/enforce"] = "privileged" }
	leave := func(n *corev1.Namespace) { delete(n.Labels, v1alpha1.TenantLabel) }
	widen := func(n *corev1.Namespace) { n.Annotations[v1alpha1.RulesAnnotationPrefix+"pools"] = "any" }
	change := func(name, summary string, by attack.Stopper, edit func(*corev1.Namespace)) attack.Attack {
		return withoutSetup(attack.NewUpdate(name, summary, by, own, edit))
	}
	update := makePolicyRule("", "namespaces", "get", "update")
	byMarks := attack.ByPolicy(NamespacesPolicy, NamespaceMarksRule)
	permitted := func(name, summary string, edit func(*corev1.Namespace)) attack.Attack {
		return attack.GrantToEveryone(change(name+"-when-permitted", summary, byMarks, edit), update)
	}
	status := attack.GrantToEveryone(change("leave-by-status-when-permitted", "remove the tenant label from the namespace through its status", byMarks, leave),
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces", "namespaces/status"}, Verbs: []string{"get", "update"}})
	status.Request.Subresource = "status"
	finalize := attack.GrantToEveryone(change("leave-by-finalize-when-permitted", "remove the tenant label from the namespace by finalizing it", attack.ByPolicy(NamespacesPolicy, NamespaceFinalizeRule), leave),
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces", "namespaces/finalize"}, Verbs: []string{"get", "update"}})
	finalize.Request.Subresource = "finalize"
	free := &corev1.Namespace{TypeMeta: makeCoreMeta("Namespace"), ObjectMeta: metav1.ObjectMeta{Name: s.own + "-free"}}
	seize := attack.GrantToEveryone(attack.NewUpdate("seize-namespace-when-permitted", "take a namespace without a tenant by labelling it", byMarks, free,
		func(n *corev1.Namespace) { n.Labels[v1alpha1.TenantLabel] = s.attacker.Name }), update)
	seize.References = []string{"CVE-2024-39690", "CVE-2025-55205"}
	// The namespace must be created before its objects.
	slices.SortStableFunc(seize.Setup, func(a, b client.Object) int { return rankObject(a) - rankObject(b) })
	// The tenant's members need permission in the whole cluster: a Namespace is
	// cluster-scoped.
	made := &corev1.Namespace{TypeMeta: makeCoreMeta("Namespace"), ObjectMeta: metav1.ObjectMeta{Name: s.own + "-made", Labels: map[string]string{v1alpha1.TenantLabel: s.target.Name}}}
	make := attack.NewCreate("make-namespace-of-other-when-permitted", "create a namespace with another tenant's label, after receiving the right by mistake", byMarks, made)
	maker := metav1.ObjectMeta{Name: s.attacker.Name + "-makes-namespaces"}
	make.Setup = []client.Object{
		&rbacv1.ClusterRole{TypeMeta: makeRBACMeta("ClusterRole"), ObjectMeta: maker, Rules: []rbacv1.PolicyRule{makePolicyRule("", "namespaces", "create")}},
		&rbacv1.ClusterRoleBinding{TypeMeta: makeRBACMeta("ClusterRoleBinding"), ObjectMeta: maker, Subjects: []rbacv1.Subject{findMember(s.attacker)},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: maker.Name}},
	}
	relabelled := &corev1.Namespace{TypeMeta: makeCoreMeta("Namespace"), ObjectMeta: metav1.ObjectMeta{Name: s.own + "-relabelled"}}
	relabel := attack.GrantToEveryone(attack.NewUpdate("label-nobodys-namespace", "label a namespace without a tenant with a Pod Security level", attack.Nobody, relabelled,
		func(n *corev1.Namespace) { n.Labels["pod-security.kubernetes.io/enforce"] = "privileged" }), update)
	slices.SortStableFunc(relabel.Setup, func(a, b client.Object) int { return rankObject(a) - rankObject(b) })
	leaveOwn := permitted("leave", "remove the tenant label from the namespace", leave)
	leaveOwn.References = []string{"CVE-2022-46167"}
	return attack.WithReason("a namespace without its marks has no walls", nil,
		change("weaken-pod-security", "label the namespace with a weaker Pod Security level", attack.ByRBAC, weaken),
		change("leave", "remove the tenant label from the namespace", attack.ByRBAC, leave),
		change("widen-rules", "annotate the namespace with wider rules", attack.ByRBAC, widen),
		change("relabel-namespace", "change a label of the namespace, such as one that the platform sets", attack.ByRBAC, func(n *corev1.Namespace) { n.Labels["team"] = "other" }),
		permitted("widen-rules", "annotate the namespace with wider rules", widen),
		permitted("drop-rules", "remove the rules from the namespace", func(n *corev1.Namespace) {
			maps.DeleteFunc(n.Annotations, func(key, _ string) bool { return strings.HasPrefix(key, v1alpha1.RulesAnnotationPrefix) })
		}),
		permitted("annotate-in-place-of-label", "write the tenant label as an annotation, and remove it", func(n *corev1.Namespace) {
			leave(n)
			n.Annotations[v1alpha1.TenantLabel] = s.attacker.Name
		}),
		permitted("weaken-pod-security", "label the namespace with a weaker Pod Security level", weaken),
		leaveOwn,
		permitted("become-other-tenant", "label the namespace as another tenant's", func(n *corev1.Namespace) { n.Labels[v1alpha1.TenantLabel] = s.target.Name }),
		permitted("ask-for-adoption", "annotate the namespace for adoption by another tenant", func(n *corev1.Namespace) {
			n.Annotations = map[string]string{v1alpha1.AdoptAnnotation: s.target.Name}
		}),
		permitted("attach-namespace-to-other-gateway", "label the namespace so that another tenant's Gateway selects it", func(n *corev1.Namespace) {
			n.Labels[estate.BuildReferenceLabel(v1alpha1.GatewayLabelPrefix, s.other+"/web")] = v1alpha1.Agreed
		}),
		permitted("get-admin-access-to-devices", "label the namespace for administrators' access to devices", func(n *corev1.Namespace) {
			n.Labels["resource.kubernetes.io/admin-access"] = "true"
		}),
		permitted("select-nodes-by-namespace", "annotate the namespace with a node selector", func(n *corev1.Namespace) {
			n.Annotations = map[string]string{"scheduler.alpha.kubernetes.io/node-selector": "pool=other"}
		}),
		status, finalize, seize, make, relabel,
		attack.SendAsAdmin(change("relabel-namespace-as-platform", "label the namespace with another Pod Security level", attack.Nobody, weaken)),
		attack.GrantToEveryone(attack.NewDelete("delete-namespace-when-permitted", "delete the namespace", attack.ByPolicy(NamespacesPolicy, NamespaceDeletionRule), own), makePolicyRule("", "namespaces", "delete")),
		attack.GrantToEveryone(change("label-namespace-otherwise", "put a label on the namespace that has no effect on walls", attack.Nobody, func(n *corev1.Namespace) { n.Labels["team"] = "web" }), update),
	)
}

func rankObject(o client.Object) int {
	if o.GetObjectKind().GroupVersionKind().Kind == "Namespace" {
		return 0
	}
	return 1
}
