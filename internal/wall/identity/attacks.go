package identity

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/attack"
	"croft.dev/croft/internal/estate"
)

// Attacks try to read, to write and to become what the roles do not give.
func (Wall) Attacks(_ *estate.Platform, by, on *estate.Tenant) []attack.Attack {
	own, other := by.Namespaces[0], on.Namespaces[0]
	attacks := []attack.Attack{
		breach("list-pods-elsewhere", "list another tenant's pods", attack.List, pod(other)),
		breach("read-secret-elsewhere", "read another tenant's Secret", attack.Get, secret(other)),
		breach("write-secret-elsewhere", "write a Secret into another tenant's namespace", attack.Create, secret(other)),
		breach("delete-pod-elsewhere", "delete another tenant's pod", attack.Delete, pod(other)),
		breach("read-nodes", "read the cluster's nodes", attack.List, &corev1.Node{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}}),
		breach("create-namespace", "create a namespace", attack.Create, &corev1.Namespace{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: own + "-more"}}),
		breach("become-cluster-admin", "bind oneself to cluster-admin for the whole cluster", attack.Create, &rbacv1.ClusterRoleBinding{
			TypeMeta:   typeMeta("ClusterRoleBinding"),
			ObjectMeta: metav1.ObjectMeta{Name: "croft-become-cluster-admin"},
			Subjects:   everybody,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		}),
		breach("become-namespace-admin", "bind oneself to cluster-admin in one's own namespace", attack.Create,
			roleBinding(own, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"})),
		breach("widen-a-role", "write a Role with more rights than one's own", attack.Create,
			role(own, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"resourcequotas"}, Verbs: []string{"update"}})),
		breach("widen-croft-role", "edit the ClusterRole that one is bound to", attack.Update, &rbacv1.ClusterRole{
			TypeMeta: typeMeta("ClusterRole"), ObjectMeta: metav1.ObjectMeta{Name: ClusterRole(v1alpha1.RoleOperator)}}),
		as(v1alpha1.RoleViewer, breach("viewer-reads-secret", "read a Secret as a viewer", attack.Get, secret(own))),
		as(v1alpha1.RoleViewer, breach("viewer-runs-pod", "create a pod as a viewer", attack.Create, pod(own))),

		as(v1alpha1.RoleViewer, mirror("viewer-lists-pods", "list pods as a viewer", attack.List, pod(own))),
		mirror("write-secret", "write a Secret", attack.Create, secret(own)),
		mirror("list-secrets", "list one's own Secrets", attack.List, secret(own)),
		mirror("write-a-role", "write a Role within one's own rights", attack.Create,
			role(own, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}})),
		mirror("share-a-role", "bind the operator's role to a colleague", attack.Create,
			roleBinding(own, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: ClusterRole(v1alpha1.RoleOperator)})),
		mirror("list-rules", "see the tenant's own rules", attack.List, &v1alpha1.TenantRules{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "TenantRules"},
			ObjectMeta: metav1.ObjectMeta{Namespace: own}}),
	}
	return slices.Concat(attacks, sweeps(own, other), questions(own))
}

var everybody = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:authenticated"}}

func breach(name, summary string, verb attack.Verb, object client.Object) attack.Attack {
	return attack.Attack{
		Name: name, Kind: attack.Breach, Summary: summary,
		Request: &attack.Request{Verb: verb, Object: object}, StoppedBy: attack.ByRBAC,
	}
}

func mirror(name, summary string, verb attack.Verb, object client.Object) attack.Attack {
	return attack.Attack{Name: name, Kind: attack.Mirror, Summary: summary, Request: &attack.Request{Verb: verb, Object: object}}
}

func as(role v1alpha1.Role, a attack.Attack) attack.Attack {
	a.As = role
	return a
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}

func pod(namespace string) client.Object { return attack.Pod(namespace, "croft-verify") }

func secret(namespace string) client.Object {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "croft-verify"},
	}
}

func role(namespace string, rule rbacv1.PolicyRule) client.Object {
	return &rbacv1.Role{
		TypeMeta:   typeMeta("Role"),
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "croft-verify"},
		Rules:      []rbacv1.PolicyRule{rule},
	}
}

func roleBinding(namespace string, ref rbacv1.RoleRef) client.Object {
	return &rbacv1.RoleBinding{
		TypeMeta:   typeMeta("RoleBinding"),
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "croft-verify"},
		Subjects:   everybody,
		RoleRef:    ref,
	}
}
