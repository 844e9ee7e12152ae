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
	"croft.dev/croft/internal/attack"
	"croft.dev/croft/internal/estate"
)

// Attacks try to read, write and gain more than the roles grant.
func (Wall) Attacks(p *estate.Platform, by, on *estate.Tenant) []attack.Attack {
	own, other := by.Namespaces[0], on.Namespaces[0]
	colleagues := people(by)
	return slices.Concat(
		elsewhere(other),
		clusterWide(by),
		escalations(own, other, colleagues),
		viewers(own, colleagues),
		mirrors(own, colleagues),
		sweeps(p, own, other),
		questions(own),
		elevationAttacks(p, by, on),
		selfServiceAttacks(by, on),
	)
}

// elsewhere returns requests in another tenant's namespace, and in the system's.
func elsewhere(other string) []attack.Attack {
	return attack.Because("another tenant's Secrets are the keys to its data", nil,
		breach("list-pods-elsewhere", "list another tenant's pods", attack.List, pod(other)),
		breach("read-secret-elsewhere", "read another tenant's Secret", attack.Get, secret(other)),
		breach("list-secrets-elsewhere", "list another tenant's Secrets", attack.List, secret(other)),
		breach("list-secrets-everywhere", "list the Secrets of the whole cluster", attack.List, secret("")),
		breach("write-secret-elsewhere", "write a Secret into another tenant's namespace", attack.Create, secret(other)),
		breach("run-pod-elsewhere", "create a pod in another tenant's namespace", attack.Create, pod(other)),
		breach("delete-pod-elsewhere", "delete another tenant's pod", attack.Delete, pod(other)),
		breach("list-system-pods", "list the pods of kube-system", attack.List, pod(metav1.NamespaceSystem)),
		breach("read-system-secrets", "list the Secrets of kube-system", attack.List, secret(metav1.NamespaceSystem)),
		through("exec-elsewhere", "run a command in another tenant's pod", "exec", pod(other)),
		through("attach-elsewhere", "attach to another tenant's pod", "attach", pod(other)),
		through("forward-port-elsewhere", "forward a port of another tenant's pod", "portforward", pod(other)),
	)
}

// clusterWide returns requests for cluster-scoped objects.
func clusterWide(by *estate.Tenant) []attack.Attack {
	own := by.Namespaces[0]
	return attack.Because("cluster-scoped objects affect every tenant: a change of them can change the walls", nil,
		breach("read-nodes", "read the cluster's nodes", attack.List, &corev1.Node{TypeMeta: core("Node")}),
		breach("read-volumes", "read the cluster's volumes", attack.List, &corev1.PersistentVolume{TypeMeta: core("PersistentVolume")}),
		breach("list-namespaces", "list the cluster's namespaces", attack.List, &corev1.Namespace{TypeMeta: core("Namespace")}),
		breach("read-tenants", "read who else is a tenant", attack.List, &v1alpha1.Tenant{
			TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Tenant"}}),
		breach("create-namespace", "create a namespace", attack.Create, &corev1.Namespace{
			TypeMeta: core("Namespace"), ObjectMeta: metav1.ObjectMeta{Name: own + "-more"}}),
		breach("create-volume", "create a volume of a node's directory", attack.Create, &corev1.PersistentVolume{
			TypeMeta: core("PersistentVolume"), ObjectMeta: metav1.ObjectMeta{Name: own},
			Spec: corev1.PersistentVolumeSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
				PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}},
			}}),
		breach("create-priority-class", "create a PriorityClass that pre-empts others", attack.Create, &schedulingv1.PriorityClass{
			TypeMeta:   metav1.TypeMeta{APIVersion: schedulingv1.SchemeGroupVersion.String(), Kind: "PriorityClass"},
			ObjectMeta: metav1.ObjectMeta{Name: own}, Value: 1000000}),
		breach("create-webhook", "create a webhook that sees every request of the cluster", attack.Create, &admissionv1.MutatingWebhookConfiguration{
			TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "MutatingWebhookConfiguration"},
			ObjectMeta: metav1.ObjectMeta{Name: own}}),
		breach("delete-policy", "delete the policy that places pods", attack.Delete, &admissionv1.ValidatingAdmissionPolicy{
			TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicy"},
			ObjectMeta: metav1.ObjectMeta{Name: "croft-pods"}}),
		breach("unbind-policy", "delete the binding of the policy that places pods", attack.Delete, &admissionv1.ValidatingAdmissionPolicyBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicyBinding"},
			ObjectMeta: metav1.ObjectMeta{Name: "croft-pods"}}),
		breach("declare-tenant", "declare a Tenant of one's own", attack.Create, &v1alpha1.Tenant{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Tenant"},
			ObjectMeta: metav1.ObjectMeta{Name: own + "-more"}, Spec: v1alpha1.TenantSpec{Pool: by.Pools[0]}}),
	)
}

// escalations write roles and bindings with more permissions than the member's own.
func escalations(own, other string, colleagues []rbacv1.Subject) []attack.Attack {
	narrow := role(own, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}})
	narrow.Name = "croft-widen-own-role"
	return attack.Because("a user who may grant rights to themselves has every right", []string{"https://kubernetes.io/docs/reference/access-authn-authz/rbac/#privilege-escalation-prevention-and-bootstrapping"},
		breach("become-cluster-admin", "bind oneself to cluster-admin for the whole cluster", attack.Create, &rbacv1.ClusterRoleBinding{
			TypeMeta:   typeMeta("ClusterRoleBinding"),
			ObjectMeta: metav1.ObjectMeta{Name: "croft-become-cluster-admin"},
			Subjects:   colleagues,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		}),
		breach("become-namespace-admin", "bind oneself to cluster-admin in one's own namespace", attack.Create,
			roleBinding(own, colleagues, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"})),
		breach("become-kubernetes-admin", "bind oneself to the ClusterRole admin, which writes Endpoints", attack.Create,
			roleBinding(own, colleagues, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"})),
		breach("become-node", "bind oneself to the role of nodes in one's own namespace", attack.Create,
			roleBinding(own, colleagues, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:node"})),
		breach("widen-a-role", "write a Role with more rights than one's own", attack.Create,
			role(own, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"resourcequotas"}, Verbs: []string{"update"}})),
		breach("write-a-role-of-everything", "write a Role that may do everything", attack.Create,
			role(own, rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}})),
		breach("write-a-role-to-escalate", "write a Role that may write more than it has", attack.Create,
			role(own, rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"}, Verbs: []string{"escalate"}})),
		breach("write-a-role-to-impersonate", "write a Role that may act as others", attack.Create,
			role(own, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"impersonate"}})),
		attack.Changing("widen-own-role", "widen a Role of one's own later", attack.ByRBAC,
			narrow, func(r *rbacv1.Role) {
				r.Rules[0].Resources = []string{"resourcequotas"}
				r.Rules[0].Verbs = []string{"update"}
			}),
		breach("widen-croft-role", "edit the ClusterRole that one is bound to", attack.Update, &rbacv1.ClusterRole{
			TypeMeta: typeMeta("ClusterRole"), ObjectMeta: metav1.ObjectMeta{Name: ClusterRole(v1alpha1.RoleOperator)}}),
		breach("bind-role-elsewhere", "let oneself into another tenant's namespace", attack.Create,
			roleBinding(other, colleagues, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: ClusterRole(v1alpha1.RoleOperator)})),
	)
}

// viewers are requests of a viewer for more than read access.
func viewers(own string, colleagues []rbacv1.Subject) []attack.Attack {
	return attack.Because("a viewer may read objects, but not Secrets", nil,
		asViewer(breach("viewer-reads-secret", "read a Secret as a viewer", attack.Get, secret(own))),
		asViewer(breach("viewer-lists-secrets", "list Secrets as a viewer", attack.List, secret(own))),
		asViewer(breach("viewer-runs-pod", "create a pod as a viewer", attack.Create, pod(own))),
		asViewer(through("viewer-execs", "run a command in a pod as a viewer", "exec", pod(own))),
		asViewer(breach("viewer-shares", "bind the viewer's role to a colleague as a viewer", attack.Create,
			roleBinding(own, colleagues, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: ClusterRole(v1alpha1.RoleViewer)}))),
	)
}

// mirrors are requests that resemble attacks but that a tenant's users need.
func mirrors(own string, colleagues []rbacv1.Subject) []attack.Attack {
	return []attack.Attack{
		asViewer(mirror("viewer-lists-pods", "list pods as a viewer", attack.List, pod(own))),
		mirror("write-secret", "write a Secret", attack.Create, secret(own)),
		mirror("list-secrets", "list one's own Secrets", attack.List, secret(own)),
		mirror("list-events", "list events", attack.List, &corev1.Event{TypeMeta: core("Event"), ObjectMeta: metav1.ObjectMeta{Namespace: own}}),
		mirror("see-quota", "see the namespace's quotas", attack.List, &corev1.ResourceQuota{TypeMeta: core("ResourceQuota"), ObjectMeta: metav1.ObjectMeta{Namespace: own}}),
		mirror("write-a-service-account", "write a ServiceAccount", attack.Create, &corev1.ServiceAccount{
			TypeMeta: core("ServiceAccount"), ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "croft-verify"}}),
		mirror("write-a-role", "write a Role within one's own rights", attack.Create,
			role(own, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}})),
		mirror("share-a-role", "bind the operator's role to a colleague", attack.Create,
			roleBinding(own, colleagues, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: ClusterRole(v1alpha1.RoleOperator)})),
		mirror("bind-own-service-account", "bind a Role to a ServiceAccount", attack.Create,
			roleBinding(own, []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: own, Name: "default"}},
				rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: ClusterRole(v1alpha1.RoleViewer)})),
		mirror("see-own-namespace", "see one's own Namespace", attack.Get, &corev1.Namespace{TypeMeta: core("Namespace"), ObjectMeta: metav1.ObjectMeta{Name: own}}),
		mirror("list-rules", "see the tenant's own rules", attack.List, &v1alpha1.TenantRules{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "TenantRules"},
			ObjectMeta: metav1.ObjectMeta{Namespace: own}}),
	}
}

// people returns one user or group with access to the tenant, or, if it has none, one of its
// service accounts.
func people(t *estate.Tenant) []rbacv1.Subject {
	for _, role := range rolesOf(t) {
		if all := subjects(t, role); len(all) > 0 {
			return all[:1]
		}
	}
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: t.Namespaces[0], Name: "default"}}
}

func core(kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "v1", Kind: kind} }

// through returns an attack through a subresource of a pod.
func through(name, summary, subresource string, pod client.Object) attack.Attack {
	a := breach(name, summary, attack.Create, pod)
	a.Request.Subresource, a.Request.Body = subresource, pod
	return a
}

func breach(name, summary string, verb attack.Verb, object client.Object) attack.Attack {
	return attack.Attack{
		Name: name, Kind: attack.Breach, Summary: summary,
		Request: &attack.Request{Verb: verb, Object: object}, StoppedBy: attack.ByRBAC,
	}
}

func mirror(name, summary string, verb attack.Verb, object client.Object) attack.Attack {
	return attack.Attack{Name: name, Kind: attack.Mirror, Summary: summary, Request: &attack.Request{Verb: verb, Object: object}}
}

func asViewer(a attack.Attack) attack.Attack {
	a.As = v1alpha1.RoleViewer
	return a
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}

func pod(namespace string) client.Object { return attack.Pod(namespace, "croft-verify") }

func secret(namespace string) client.Object {
	return &corev1.Secret{
		TypeMeta:   core("Secret"),
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "croft-verify"},
	}
}

func role(namespace string, rule rbacv1.PolicyRule) *rbacv1.Role {
	return &rbacv1.Role{
		TypeMeta:   typeMeta("Role"),
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "croft-verify"},
		Rules:      []rbacv1.PolicyRule{rule},
	}
}

func roleBinding(namespace string, subjects []rbacv1.Subject, ref rbacv1.RoleRef) client.Object {
	return &rbacv1.RoleBinding{
		TypeMeta:   typeMeta("RoleBinding"),
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "croft-verify"},
		Subjects:   subjects,
		RoleRef:    ref,
	}
}
