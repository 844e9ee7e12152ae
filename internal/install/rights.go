package install

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/wall/identity"
)

var (
	read = []string{"get", "list", "watch"}
	// keep is what server-side apply, taking over fields and pruning need. Nothing is
	// written by update.
	keep = []string{"get", "list", "watch", "create", "patch", "delete"}
)

// givenRoles are the only roles that the operator may write more into than it
// has itself, and the only ones that it may bind.
func givenRoles(own []string) []string {
	var names []string
	for _, role := range identity.Roles {
		names = append(names, identity.ClusterRole(role))
	}
	names = append(names, identity.PlatformRoles...)
	names = append(names, identity.ProxyRole, identity.ElevatedRole)
	for _, role := range own {
		names = append(names, identity.ClusterRole(v1alpha1.Role(role)))
	}
	return names
}

// rules are the operator's cluster-wide rights, if the Platform has roles of its own.
func rules(own []string) []rbacv1.PolicyRule {
	croft := v1alpha1.GroupVersion.Group
	return []rbacv1.PolicyRule{
		// What people declare: it reads the specification, and writes finalizers
		// and status.
		rule(croft, []string{"get", "list", "watch", "patch"}, "pools", "tenants"),
		rule(croft, read, "platforms"),
		rule(croft, []string{"list", "watch"}, "secondarynetworks"),
		// Requests for elevation: it writes their status, and deletes old ones.
		rule(croft, []string{"get", "list", "watch", "delete"}, "elevations"),
		rule(croft, []string{"patch"}, "elevations/status"),
		// Namespaces that tenants ask for: it writes whether they were granted.
		rule(croft, read, "tenantnamespaces"),
		rule(croft, []string{"patch"}, "tenantnamespaces/status"),
		rule(croft, []string{"patch"}, "platforms/status", "pools/status", "tenants/status", "secondarynetworks/status"),

		// The walls.
		rule("", keep, "namespaces", "resourcequotas", "limitranges"),
		rule(croft, keep, "tenantrules"),
		rule("networking.k8s.io", keep, "networkpolicies"),
		// Tenants' sources, and the account that Flux applies them as.
		rule("", keep, "serviceaccounts"),
		rule("source.toolkit.fluxcd.io", keep, "gitrepositories", "ocirepositories"),
		rule("kustomize.toolkit.fluxcd.io", keep, "kustomizations"),
		rule("notification.toolkit.fluxcd.io", keep, "receivers"),
		// What Multus attaches pods to secondary networks by.
		rule("k8s.cni.cncf.io", keep, "network-attachment-definitions"),
		// How many of a secondary network's addresses whereabouts has given to pods.
		rule("whereabouts.cni.cncf.io", []string{"list", "watch"}, "ippools"),
		// Those of other dialects. Calico's API server also requires a right to the
		// tier, and to its policies by a resource that exists for rights only.
		rule("projectcalico.org", keep, "networkpolicies", "tier.networkpolicies"),
		rule("projectcalico.org", read, "tiers"),
		rule("crd.projectcalico.org", keep, "networkpolicies"),
		rule("policy.networking.k8s.io", keep, "clusternetworkpolicies"),
		rule("networking.k8s.aws", keep, "clusternetworkpolicies"),
		rule("admissionregistration.k8s.io", keep, "validatingadmissionpolicies", "validatingadmissionpolicybindings",
			"mutatingadmissionpolicies", "mutatingadmissionpolicybindings"),
		rule("rbac.authorization.k8s.io", keep, "rolebindings"),
		rule("rbac.authorization.k8s.io", append([]string{"create"}, read...), "clusterroles", "clusterrolebindings"),
		{
			APIGroups: []string{"rbac.authorization.k8s.io"}, Resources: []string{"clusterroles"},
			ResourceNames: givenRoles(own), Verbs: []string{"patch", "delete", "bind", "escalate"},
		},
		{
			APIGroups: []string{"rbac.authorization.k8s.io"}, Resources: []string{"clusterrolebindings"},
			ResourceNames: append([]string{identity.ProxyRole}, identity.PlatformRoles...), Verbs: []string{"patch", "delete"},
		},
		// For Gatekeeper as the engine: its objects, and their status.
		rule("mutations.gatekeeper.sh", keep, "assign", "modifyset"),
		rule("templates.gatekeeper.sh", keep, "constrainttemplates"),
		rule("constraints.gatekeeper.sh", keep, "croftplacement", "croftservices", "croftingresses", "croftroutes", "croftgateways", "croftcertificates", "croftannotations"),
		rule("config.gatekeeper.sh", []string{"list"}, "configs"),
		rule("admissionregistration.k8s.io", []string{"list"}, "mutatingwebhookconfigurations", "validatingwebhookconfigurations"),
		rule("karpenter.sh", keep, "nodepools"),
		// Which nodes are to be attached to secondary networks.
		rule("karpenter.sh", []string{"list", "watch"}, "nodeclaims"),
		rule("karpenter.kwok.sh", keep, "kwoknodeclasses"),
		rule("karpenter.k8s.aws", keep, "ec2nodeclasses"),
		// Rules by which the node readiness controller removes startup taints.
		rule("readiness.node.x-k8s.io", keep, "nodereadinessrules"),

		// To probe whether the walls hold: a pod is created in a dry run, which RBAC
		// cannot tell from any other; the policy croft-probes can.
		rule("", []string{"create"}, "pods"),

		rule("events.k8s.io", []string{"create", "patch"}, "events"),
		// Who becomes the leader says so once, in an event of the older kind.
		rule("", []string{"create"}, "events"),
		// Refusals of pods are in events of the refused controllers. The operator only
		// watches those with reason FailedCreate.
		rule("", []string{"list", "watch"}, "events"),
	}
}

// systemRules are the operator's rights in its own namespace: to the leader's lease and to
// the heartbeat.
func systemRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{rule("coordination.k8s.io", []string{"get", "create", "update", "patch"}, "leases")}
}

// endpointRules are the operator's rights in the namespace default: to the addresses of the
// API servers.
func endpointRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, ResourceNames: []string{"kubernetes"}, Verbs: []string{"get"},
	}}
}

// elevationRules are the operator's rights in the namespace of elevations.
func elevationRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{rule("", []string{"create"}, "serviceaccounts/token")}
}

// Rights are the rights that every installation gives to the operator, by namespace; those
// in the whole cluster are under "". Those to roles of the Platform's own are left out.
func Rights() map[string][]rbacv1.PolicyRule {
	return map[string][]rbacv1.PolicyRule{
		"": rules(nil), namespace: systemRules(), metav1.NamespaceDefault: endpointRules(), v1alpha1.ElevationsNamespace: elevationRules(),
	}
}

func rule(group string, verbs []string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
}

// rights are the operator's account and its rights.
func rights(own []string) []client.Object {
	rbac := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
	}
	operator := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}}
	return []client.Object{
		&corev1.ServiceAccount{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		},
		&rbacv1.ClusterRole{
			TypeMeta:   rbac("ClusterRole"),
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Rules:      rules(own),
		},
		&rbacv1.ClusterRoleBinding{
			TypeMeta:   rbac("ClusterRoleBinding"),
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Subjects:   operator,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		},
		// The lease of the leader and the heartbeat are in the operator's own namespace.
		&rbacv1.Role{
			TypeMeta:   rbac("Role"),
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Rules:      systemRules(),
		},
		&rbacv1.RoleBinding{
			TypeMeta:   rbac("RoleBinding"),
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Subjects:   operator,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		},
		// Which API servers have to confirm a tenant's rules.
		&rbacv1.Role{
			TypeMeta:   rbac("Role"),
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name},
			Rules:      endpointRules(),
		},
		&rbacv1.RoleBinding{
			TypeMeta:   rbac("RoleBinding"),
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name},
			Subjects:   operator,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		},
		// Tokens of the service accounts of elevations. Nobody else may request them.
		&rbacv1.Role{
			TypeMeta:   rbac("Role"),
			ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.ElevationsNamespace, Name: name},
			Rules:      elevationRules(),
		},
		&rbacv1.RoleBinding{
			TypeMeta:   rbac("RoleBinding"),
			ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.ElevationsNamespace, Name: name},
			Subjects:   operator,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		},
	}
}
