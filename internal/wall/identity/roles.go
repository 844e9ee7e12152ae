package identity

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/estate"
)

// ClusterRole is the name of the ClusterRole that a role of a Tenant's access is
// bound as. Each is bound by a RoleBinding of the same name.
func ClusterRole(role v1alpha1.Role) string { return "croft-" + string(role) }

// Roles are all roles that a Tenant's access can name.
var Roles = []v1alpha1.Role{v1alpha1.RoleViewer, v1alpha1.RoleOperator}

// resources are what teams work with, by API group: the viewer reads them, the
// operator writes them. Kinds that a cluster does not have are harmless here.
//
// What is missing is missing on purpose: Endpoints and EndpointSlices, through
// which a Service could be pointed anywhere (CVE-2021-25740); ResourceQuotas,
// LimitRanges and TenantRules, which are croft's; pods/binding, which is the
// scheduler's; CertificateRequests, whose names no policy can read; and everything
// that is cluster-scoped.
var resources = []rbacv1.PolicyRule{
	{APIGroups: []string{""}, Resources: []string{"pods", "services", "configmaps", "persistentvolumeclaims", "serviceaccounts", "replicationcontrollers", "replicationcontrollers/scale", "podtemplates"}},
	{APIGroups: []string{"apps"}, Resources: []string{"deployments", "deployments/scale", "statefulsets", "statefulsets/scale", "replicasets", "replicasets/scale", "daemonsets", "controllerrevisions"}},
	{APIGroups: []string{"batch"}, Resources: []string{"jobs", "cronjobs"}},
	{APIGroups: []string{"autoscaling"}, Resources: []string{"horizontalpodautoscalers"}},
	{APIGroups: []string{"policy"}, Resources: []string{"poddisruptionbudgets"}},
	{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}},
	{APIGroups: []string{"networking.k8s.io"}, Resources: []string{"ingresses", "networkpolicies"}},
	{APIGroups: []string{"rbac.authorization.k8s.io"}, Resources: []string{"roles", "rolebindings"}},
	{APIGroups: []string{"gateway.networking.k8s.io"}, Resources: []string{"gateways", "httproutes", "grpcroutes", "tlsroutes", "referencegrants"}},
	{APIGroups: []string{"cert-manager.io"}, Resources: []string{"certificates", "issuers"}},
	{APIGroups: []string{"resource.k8s.io"}, Resources: []string{"resourceclaims", "resourceclaimtemplates"}},
	{APIGroups: []string{"source.toolkit.fluxcd.io"}, Resources: []string{"gitrepositories", "ocirepositories", "helmrepositories", "helmcharts", "buckets"}},
	{APIGroups: []string{"kustomize.toolkit.fluxcd.io"}, Resources: []string{"kustomizations"}},
	{APIGroups: []string{"helm.toolkit.fluxcd.io"}, Resources: []string{"helmreleases"}},
}

// readOnly are what both roles may look at beyond that, and neither write.
var readOnly = []rbacv1.PolicyRule{
	{APIGroups: []string{""}, Resources: []string{"pods/log", "pods/status", "events", "endpoints", "resourcequotas", "limitranges"}},
	{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}},
	{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}},
	{APIGroups: []string{"cert-manager.io"}, Resources: []string{"certificaterequests"}},
	{APIGroups: []string{"metrics.k8s.io"}, Resources: []string{"pods"}},
	{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"tenantrules"}},
}

// operatorOnly are what the operator may do and the viewer may not even read.
var operatorOnly = []rbacv1.PolicyRule{
	{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: append(slices.Clone(read), write...)},
	// As Kubernetes' own role edit has them, since charts write Roles like it.
	{APIGroups: []string{""}, Resources: []string{"pods/exec", "pods/attach", "pods/portforward"}, Verbs: append(slices.Clone(read), write...)},
	{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch", "update"}},
	{APIGroups: []string{""}, Resources: []string{"pods/eviction", "serviceaccounts/token"}, Verbs: []string{"create"}},
	{APIGroups: []string{""}, Resources: []string{"pods/ephemeralcontainers", "pods/resize"}, Verbs: []string{"get", "update", "patch"}},
}

var (
	read  = []string{"get", "list", "watch"}
	write = []string{"create", "update", "patch", "delete", "deletecollection"}
)

func roles(n *v1alpha1.PlatformNetwork) []client.Object {
	return []client.Object{
		clusterRole(v1alpha1.RoleViewer, rulesOf(v1alpha1.RoleViewer, n)),
		clusterRole(v1alpha1.RoleOperator, rulesOf(v1alpha1.RoleOperator, n)),
	}
}

// rulesOf are the rights that a role gives. The attacks read them too: whatever
// is not in them must be refused.
func rulesOf(role v1alpha1.Role, n *v1alpha1.PlatformNetwork) []rbacv1.PolicyRule {
	if role == v1alpha1.RoleViewer {
		return slices.Concat(withVerbs(resources, read), withVerbs(readOnly, read), calicoRules(n, false))
	}
	operator := append(withVerbs(resources, append(slices.Clone(read), write...)), withVerbs(readOnly, read)...)
	return slices.Concat(operator, operatorOnly, calicoRules(n, n.Calico != nil && n.Calico.TenantPolicies))
}

func withVerbs(rules []rbacv1.PolicyRule, verbs []string) []rbacv1.PolicyRule {
	all := slices.Clone(rules)
	for i := range all {
		all[i].Verbs = verbs
	}
	return all
}

func clusterRole(role v1alpha1.Role, rules []rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: ClusterRole(role)},
		Rules:      rules,
	}
}

// bindings bind each role that somebody has, in each namespace.
func bindings(t *estate.Tenant) []client.Object {
	var all []client.Object
	for _, namespace := range t.Namespaces {
		for _, role := range Roles {
			subjects := subjects(t, role)
			if len(subjects) == 0 {
				continue
			}
			all = append(all, &rbacv1.RoleBinding{
				TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: ClusterRole(role)},
				Subjects:   subjects,
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: ClusterRole(role)},
			})
		}
	}
	return all
}

func subjects(t *estate.Tenant, role v1alpha1.Role) []rbacv1.Subject {
	var all []rbacv1.Subject
	for _, a := range t.Access {
		switch {
		case a.Role != role:
		case a.Group != "":
			all = append(all, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: a.Group})
		default:
			all = append(all, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: a.User})
		}
	}
	return all
}
