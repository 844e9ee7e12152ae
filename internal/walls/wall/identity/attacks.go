package identity

import (
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/attack"
)

// Attacks try to read, write and gain more than the roles grant.
func (Wall) Attacks(p *estate.Platform, by, on *estate.Tenant) []attack.Attack {
	own, other := by.Namespaces[0], on.Namespaces[0]
	colleagues := findColleagues(by)
	return slices.Concat(
		buildCrossTenantAttacks(other),
		buildClusterWideAttacks(by),
		buildEscalationAttacks(own, other, colleagues),
		buildViewerAttacks(own, colleagues),
		buildMirrors(own, colleagues),
		buildSweeps(p, own, other),
		buildAuthorizerQuestions(own),
		buildCostQuestions(p, own, other),
		buildElevationAttacks(p, by, on),
		buildSelfServiceAttacks(by, on),
		buildCallerAttacks(by, on),
	)
}

// buildCrossTenantAttacks returns requests in another tenant's namespace, and in the system's.
func buildCrossTenantAttacks(other string) []attack.Attack {
	return attack.WithReason("another tenant's Secrets are the keys to its data", nil,
		makeBreach("list-pods-elsewhere", "list another tenant's pods", attack.List, makePod(other)),
		makeBreach("read-secret-elsewhere", "read another tenant's Secret", attack.Get, makeSecret(other)),
		makeBreach("list-secrets-elsewhere", "list another tenant's Secrets", attack.List, makeSecret(other)),
		makeBreach("list-secrets-everywhere", "list the Secrets of the whole cluster", attack.List, makeSecret("")),
		makeBreach("write-secret-elsewhere", "write a Secret into another tenant's namespace", attack.Create, makeSecret(other)),
		makeBreach("run-pod-elsewhere", "create a pod in another tenant's namespace", attack.Create, makePod(other)),
		makeBreach("delete-pod-elsewhere", "delete another tenant's pod", attack.Delete, makePod(other)),
		makeBreach("list-system-pods", "list the pods of kube-system", attack.List, makePod(metav1.NamespaceSystem)),
		makeBreach("read-system-secrets", "list the Secrets of kube-system", attack.List, makeSecret(metav1.NamespaceSystem)),
		makeSubresourceBreach("exec-elsewhere", "run a command in another tenant's pod", "exec", makePod(other)),
		makeSubresourceBreach("attach-elsewhere", "attach to another tenant's pod", "attach", makePod(other)),
		makeSubresourceBreach("forward-port-elsewhere", "forward a port of another tenant's pod", "portforward", makePod(other)),
	)
}

// buildClusterWideAttacks returns requests for cluster-scoped objects.
func buildClusterWideAttacks(by *estate.Tenant) []attack.Attack {
	own := by.Namespaces[0]
	return attack.WithReason("cluster-scoped objects affect every tenant: a change of them can change the walls", nil,
		makeBreach("read-nodes", "read the cluster's nodes", attack.List, &corev1.Node{TypeMeta: makeCoreMeta("Node")}),
		makeBreach("read-volumes", "read the cluster's volumes", attack.List, &corev1.PersistentVolume{TypeMeta: makeCoreMeta("PersistentVolume")}),
		makeBreach("list-namespaces", "list the cluster's namespaces", attack.List, &corev1.Namespace{TypeMeta: makeCoreMeta("Namespace")}),
		makeBreach("read-tenants", "list the other tenants", attack.List, &v1alpha1.Tenant{
			TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Tenant"}}),
		makeBreach("create-namespace", "create a namespace", attack.Create, &corev1.Namespace{
			TypeMeta: makeCoreMeta("Namespace"), ObjectMeta: metav1.ObjectMeta{Name: own + "-more"}}),
		makeBreach("create-volume", "create a volume of a node's directory", attack.Create, &corev1.PersistentVolume{
			TypeMeta: makeCoreMeta("PersistentVolume"), ObjectMeta: metav1.ObjectMeta{Name: own},
			Spec: corev1.PersistentVolumeSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
				PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}},
			}}),
		makeBreach("create-priority-class", "create a PriorityClass that pre-empts others", attack.Create, &schedulingv1.PriorityClass{
			TypeMeta:   metav1.TypeMeta{APIVersion: schedulingv1.SchemeGroupVersion.String(), Kind: "PriorityClass"},
			ObjectMeta: metav1.ObjectMeta{Name: own}, Value: 1000000}),
		makeBreach("create-webhook", "create a webhook that sees every request of the cluster", attack.Create, &admissionv1.MutatingWebhookConfiguration{
			TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "MutatingWebhookConfiguration"},
			ObjectMeta: metav1.ObjectMeta{Name: own}}),
		makeBreach("delete-policy", "delete the policy that places pods", attack.Delete, &admissionv1.ValidatingAdmissionPolicy{
			TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicy"},
			ObjectMeta: metav1.ObjectMeta{Name: "croft-pods"}}),
		makeBreach("unbind-policy", "delete the binding of the policy that places pods", attack.Delete, &admissionv1.ValidatingAdmissionPolicyBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicyBinding"},
			ObjectMeta: metav1.ObjectMeta{Name: "croft-pods"}}),
		makeBreach("declare-tenant", "declare a Tenant of one's own", attack.Create, &v1alpha1.Tenant{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Tenant"},
			ObjectMeta: metav1.ObjectMeta{Name: own + "-more"}, Spec: v1alpha1.TenantSpec{Pool: by.Pools[0]}}),
	)
}

// buildEscalationAttacks write roles and bindings with more permissions than the member's own.
func buildEscalationAttacks(own, other string, colleagues []rbacv1.Subject) []attack.Attack {
	narrow := makeRole(own, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}})
	narrow.Name = "croft-widen-own-role"
	return attack.WithReason("a user who may grant rights to themselves has every right", []string{"https://kubernetes.io/docs/reference/access-authn-authz/rbac/#privilege-escalation-prevention-and-bootstrapping"},
		makeBreach("become-cluster-admin", "bind oneself to cluster-admin for the whole cluster", attack.Create, &rbacv1.ClusterRoleBinding{
			TypeMeta:   makeRBACMeta("ClusterRoleBinding"),
			ObjectMeta: metav1.ObjectMeta{Name: "croft-become-cluster-admin"},
			Subjects:   colleagues,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		}),
		makeBreach("become-namespace-admin", "bind oneself to cluster-admin in one's own namespace", attack.Create,
			makeRoleBinding(own, colleagues, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"})),
		makeBreach("become-kubernetes-admin", "bind oneself to the ClusterRole admin, which writes Endpoints", attack.Create,
			makeRoleBinding(own, colleagues, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"})),
		makeBreach("become-node", "bind oneself to the role of nodes in one's own namespace", attack.Create,
			makeRoleBinding(own, colleagues, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:node"})),
		makeBreach("widen-a-role", "write a Role with more rights than one's own", attack.Create,
			makeRole(own, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"resourcequotas"}, Verbs: []string{"update"}})),
		makeBreach("write-a-role-of-everything", "write a Role that may do everything", attack.Create,
			makeRole(own, rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}})),
		makeBreach("write-a-role-to-escalate", "write a Role with the right to escalate", attack.Create,
			makeRole(own, rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"}, Verbs: []string{"escalate"}})),
		makeBreach("write-a-role-to-impersonate", "write a Role that may act as others", attack.Create,
			makeRole(own, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"impersonate"}})),
		attack.NewUpdate("widen-own-role", "widen a Role of one's own later", attack.ByRBAC,
			narrow, func(r *rbacv1.Role) {
				r.Rules[0].Resources = []string{"resourcequotas"}
				r.Rules[0].Verbs = []string{"update"}
			}),
		makeBreach("widen-croft-role", "edit the ClusterRole that one is bound to", attack.Update, &rbacv1.ClusterRole{
			TypeMeta: makeRBACMeta("ClusterRole"), ObjectMeta: metav1.ObjectMeta{Name: ClusterRoleName(v1alpha1.RoleOperator)}}),
		makeBreach("bind-role-elsewhere", "grant oneself access to another tenant's namespace", attack.Create,
			makeRoleBinding(other, colleagues, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: ClusterRoleName(v1alpha1.RoleOperator)})),
	)
}

// buildViewerAttacks are requests of a viewer for more than read access.
func buildViewerAttacks(own string, colleagues []rbacv1.Subject) []attack.Attack {
	return attack.WithReason("a viewer may read objects, but not Secrets", nil,
		sendAsViewer(makeBreach("viewer-reads-secret", "read a Secret as a viewer", attack.Get, makeSecret(own))),
		sendAsViewer(makeBreach("viewer-lists-secrets", "list Secrets as a viewer", attack.List, makeSecret(own))),
		sendAsViewer(makeBreach("viewer-runs-pod", "create a pod as a viewer", attack.Create, makePod(own))),
		sendAsViewer(makeSubresourceBreach("viewer-execs", "run a command in a pod as a viewer", "exec", makePod(own))),
		sendAsViewer(makeBreach("viewer-shares", "bind the viewer's role to a colleague as a viewer", attack.Create,
			makeRoleBinding(own, colleagues, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: ClusterRoleName(v1alpha1.RoleViewer)}))),
	)
}

// buildMirrors are requests that resemble attacks but that a tenant's users need.
func buildMirrors(own string, colleagues []rbacv1.Subject) []attack.Attack {
	return []attack.Attack{
		sendAsViewer(makeMirror("viewer-lists-pods", "list pods as a viewer", attack.List, makePod(own))),
		makeMirror("write-secret", "write a Secret", attack.Create, makeSecret(own)),
		makeMirror("list-secrets", "list one's own Secrets", attack.List, makeSecret(own)),
		makeMirror("list-events", "list events", attack.List, &corev1.Event{TypeMeta: makeCoreMeta("Event"), ObjectMeta: metav1.ObjectMeta{Namespace: own}}),
		makeMirror("see-quota", "see the namespace's quotas", attack.List, &corev1.ResourceQuota{TypeMeta: makeCoreMeta("ResourceQuota"), ObjectMeta: metav1.ObjectMeta{Namespace: own}}),
		makeMirror("write-a-service-account", "write a ServiceAccount", attack.Create, &corev1.ServiceAccount{
			TypeMeta: makeCoreMeta("ServiceAccount"), ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "croft-verify"}}),
		makeMirror("write-a-role", "write a Role within one's own rights", attack.Create,
			makeRole(own, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}})),
		makeMirror("share-a-role", "bind the operator's role to a colleague", attack.Create,
			makeRoleBinding(own, colleagues, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: ClusterRoleName(v1alpha1.RoleOperator)})),
		makeMirror("bind-own-service-account", "bind a Role to a ServiceAccount", attack.Create,
			makeRoleBinding(own, []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: own, Name: "default"}},
				rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: ClusterRoleName(v1alpha1.RoleViewer)})),
		makeMirror("see-own-namespace", "see one's own Namespace", attack.Get, &corev1.Namespace{TypeMeta: makeCoreMeta("Namespace"), ObjectMeta: metav1.ObjectMeta{Name: own}}),
		makeMirror("list-rules", "see the tenant's own rules", attack.List, &v1alpha1.TenantRules{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "TenantRules"},
			ObjectMeta: metav1.ObjectMeta{Namespace: own}}),
	}
}

// findColleagues returns one user or group with access to the tenant, or, if it has none, one of its
// service accounts.
func findColleagues(t *estate.Tenant) []rbacv1.Subject {
	for _, role := range listRoles(t) {
		if all := listSubjects(t, role); len(all) > 0 {
			return all[:1]
		}
	}
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: t.Namespaces[0], Name: "default"}}
}

func makeCoreMeta(kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "v1", Kind: kind} }

// makeSubresourceBreach returns an attack through a subresource of a pod.
func makeSubresourceBreach(name, summary, subresource string, pod client.Object) attack.Attack {
	a := makeBreach(name, summary, attack.Create, pod)
	a.Request.Subresource, a.Request.Body = subresource, pod
	return a
}

func makeBreach(name, summary string, verb attack.Verb, object client.Object) attack.Attack {
	return attack.Attack{
		Name: name, Kind: attack.Breach, Summary: summary,
		Request: &attack.Request{Verb: verb, Object: object}, StoppedBy: attack.ByRBAC,
	}
}

func makeMirror(name, summary string, verb attack.Verb, object client.Object) attack.Attack {
	return attack.Attack{Name: name, Kind: attack.Mirror, Summary: summary, Request: &attack.Request{Verb: verb, Object: object}}
}

func sendAsViewer(a attack.Attack) attack.Attack {
	a.Role = v1alpha1.RoleViewer
	return a
}

func makeRBACMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}

func makePod(namespace string) client.Object { return attack.NewPod(namespace, "croft-verify") }

func makeSecret(namespace string) client.Object {
	return &corev1.Secret{
		TypeMeta:   makeCoreMeta("Secret"),
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "croft-verify"},
	}
}

func makeRole(namespace string, rule rbacv1.PolicyRule) *rbacv1.Role {
	return &rbacv1.Role{
		TypeMeta:   makeRBACMeta("Role"),
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "croft-verify"},
		Rules:      []rbacv1.PolicyRule{rule},
	}
}

func makeRoleBinding(namespace string, subjects []rbacv1.Subject, ref rbacv1.RoleRef) client.Object {
	return &rbacv1.RoleBinding{
		TypeMeta:   makeRBACMeta("RoleBinding"),
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "croft-verify"},
		Subjects:   subjects,
		RoleRef:    ref,
	}
}
