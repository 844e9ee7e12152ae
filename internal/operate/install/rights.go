package install

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/budget"
	"croft.dev/croft/internal/walls/wall/identity"
)

var (
	read = []string{"get", "list", "watch"}
	// keep are the verbs for server-side apply, taking over fields and pruning. croft does
	// not use update.
	keep = []string{"get", "list", "watch", "create", "patch", "delete"}
)

// listGrantableRoles returns the only roles that the operator may give more rights than it has
// itself, and the only ones that it may bind apart from the role of `croft copy-secrets`.
func listGrantableRoles(own []string) []string {
	var names []string
	for _, role := range identity.Roles {
		names = append(names, identity.ClusterRoleName(role))
	}
	names = append(names, identity.PlatformRoles...)
	names = append(names, identity.ProxyRole, identity.ElevatedRole)
	for _, role := range own {
		names = append(names, identity.ClusterRoleName(v1alpha1.Role(role)))
	}
	return names
}

// buildRules returns the operator's cluster-wide rights. own are the Platform's own roles.
func buildRules(own []string) []rbacv1.PolicyRule {
	croft := v1alpha1.GroupVersion.Group
	return []rbacv1.PolicyRule{
		// Declared objects: the operator reads the spec, and writes finalizers and status.
		newRule(croft, []string{"get", "list", "watch", "patch"}, "pools", "tenants"),
		newRule(croft, read, "platforms"),
		newRule(croft, []string{"list", "watch"}, "secondarynetworks"),
		// Requests for elevation: the operator writes their status, and deletes old ones.
		newRule(croft, []string{"get", "list", "watch", "delete"}, "elevations"),
		newRule(croft, []string{"patch"}, "elevations/status"),
		// Requests for namespaces: the operator writes whether they were granted, and deletes
		// them at their end.
		newRule(croft, []string{"get", "list", "watch", "delete"}, "tenantnamespaces"),
		newRule(croft, []string{"patch"}, "tenantnamespaces/status"),
		// Consents that teams give themselves: the operator writes its decisions.
		newRule(croft, []string{"list", "watch"}, "tenantcallers"),
		newRule(croft, []string{"patch"}, "tenantcallers/status"),
		// The cost of each tenant in a month, which croft ledger serves for budgets. No object has the resource.
		newRule(croft, []string{"get"}, "costs/"+budget.Subresource),
		newRule(croft, []string{"patch"}, "platforms/status", "pools/status", "tenants/status", "secondarynetworks/status"),

		// The walls.
		newRule("", keep, "namespaces", "resourcequotas", "limitranges"),
		newRule(croft, keep, "tenantrules"),
		newRule("networking.k8s.io", keep, "networkpolicies"),
		// Objects that croft.yaml declares for tenants' namespaces. The policy croft-config-maps
		// limits the writes to ConfigMaps with croft's label in these namespaces.
		newRule("", keep, "configmaps"),
		// Tenants' sources, and the service account with which Flux applies them.
		newRule("", keep, "serviceaccounts"),
		newRule("source.toolkit.fluxcd.io", keep, "gitrepositories", "ocirepositories"),
		newRule("kustomize.toolkit.fluxcd.io", keep, "kustomizations"),
		newRule("notification.toolkit.fluxcd.io", keep, "receivers"),
		// The kind by which Multus attaches pods to secondary networks.
		newRule("k8s.cni.cncf.io", keep, "network-attachment-definitions"),
		// The ReferenceGrants for routes between tenants.
		newRule("gateway.networking.k8s.io", keep, "referencegrants"),
		// The number of addresses of secondary networks that whereabouts has assigned to
		// pods.
		newRule("whereabouts.cni.cncf.io", []string{"list", "watch"}, "ippools"),
		// The network policies of other dialects. Calico's API server also requires rights
		// on the tier, and on the tier's policies by a resource that exists for
		// authorization only.
		newRule("projectcalico.org", keep, "networkpolicies", "tier.networkpolicies"),
		newRule("projectcalico.org", read, "tiers"),
		newRule("crd.projectcalico.org", keep, "networkpolicies"),
		newRule("policy.networking.k8s.io", keep, "clusternetworkpolicies"),
		newRule("networking.k8s.aws", keep, "clusternetworkpolicies"),
		newRule("admissionregistration.k8s.io", keep, "validatingadmissionpolicies", "validatingadmissionpolicybindings",
			"mutatingadmissionpolicies", "mutatingadmissionpolicybindings"),
		newRule("rbac.authorization.k8s.io", keep, "rolebindings"),
		newRule("rbac.authorization.k8s.io", append([]string{"create"}, read...), "clusterroles", "clusterrolebindings"),
		{
			APIGroups: []string{"rbac.authorization.k8s.io"}, Resources: []string{"clusterroles"},
			ResourceNames: listGrantableRoles(own), Verbs: []string{"patch", "delete", "escalate"},
		},
		// The operator also binds the role of `croft copy-secrets`, in namespaces with copies of Secrets.
		{
			APIGroups: []string{"rbac.authorization.k8s.io"}, Resources: []string{"clusterroles"},
			ResourceNames: append(listGrantableRoles(own), SecretsName), Verbs: []string{"bind"},
		},
		{
			APIGroups: []string{"rbac.authorization.k8s.io"}, Resources: []string{"clusterrolebindings"},
			ResourceNames: append([]string{identity.ProxyRole}, identity.PlatformRoles...), Verbs: []string{"patch", "delete"},
		},
		// Gatekeeper's objects and their status, if it is the placement engine.
		newRule("mutations.gatekeeper.sh", keep, "assign", "modifyset"),
		newRule("templates.gatekeeper.sh", keep, "constrainttemplates"),
		newRule("constraints.gatekeeper.sh", keep, "croftplacement", "croftservices", "croftingresses", "croftroutes", "croftgateways", "croftcertificates", "croftannotations"),
		newRule("config.gatekeeper.sh", []string{"list"}, "configs"),
		newRule("admissionregistration.k8s.io", []string{"list"}, "mutatingwebhookconfigurations", "validatingwebhookconfigurations"),
		newRule("karpenter.sh", keep, "nodepools"),
		// NodeClaims whose nodes are attached to secondary networks. The operator deletes
		// NodeClaims whose launch the cloud refuses.
		newRule("karpenter.sh", []string{"list", "watch", "delete"}, "nodeclaims"),
		newRule("karpenter.kwok.sh", keep, "kwoknodeclasses"),
		newRule("karpenter.k8s.aws", keep, "ec2nodeclasses"),
		// Rules by which the node readiness controller removes startup taints.
		newRule("readiness.node.x-k8s.io", keep, "nodereadinessrules"),

		// Probes of the walls create pods in dry runs. RBAC cannot distinguish dry runs;
		// the policy croft-probes does.
		newRule("", []string{"create"}, "pods"),

		newRule("events.k8s.io", []string{"create", "patch"}, "events"),
		// A new leader reports itself once in an event of the older API.
		newRule("", []string{"create"}, "events"),
		// Refusals of pods are in events of the refused controllers. The operator only
		// watches events with the reason FailedCreate.
		newRule("", []string{"list", "watch"}, "events"),
	}
}

// buildSystemRules returns the operator's rights in its own namespace: on the leader's lease and
// on the heartbeat.
func buildSystemRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{newRule("coordination.k8s.io", []string{"get", "create", "update", "patch"}, "leases")}
}

// buildEndpointRules returns the operator's rights in the namespace default: on the addresses
// of the API servers.
func buildEndpointRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, ResourceNames: []string{"kubernetes"}, Verbs: []string{"get"},
	}}
}

// buildElevationRules returns the operator's rights in the namespace of elevations.
func buildElevationRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{newRule("", []string{"create"}, "serviceaccounts/token")}
}

// Rights returns the rights that every installation grants to the operator, by namespace.
// Cluster-wide rights are under "". It omits rights on the Platform's own roles.
func Rights() map[string][]rbacv1.PolicyRule {
	return map[string][]rbacv1.PolicyRule{
		"": buildRules(nil), namespace: buildSystemRules(), metav1.NamespaceDefault: buildEndpointRules(),
		v1alpha1.ElevationsNamespace: buildElevationRules(),
	}
}

func newRule(group string, verbs []string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
}

// buildRights returns the operator's service account and its rights.
func buildRights(own []string) []client.Object {
	return slices.Concat(
		[]client.Object{newServiceAccount(namespace, name)},
		buildClusterRights(name, namespace, name, buildRules(own)...),
		// The leader's lease and the heartbeat are in the operator's own namespace.
		buildNamespaceRights(namespace, name, name, buildSystemRules()...),
		// The addresses of the API servers that confirm a tenant's rules.
		buildNamespaceRights(metav1.NamespaceDefault, name, name, buildEndpointRules()...),
		// Tokens of the elevations' service accounts. Only the operator may request them.
		buildNamespaceRights(v1alpha1.ElevationsNamespace, name, name, buildElevationRules()...),
	)
}

func newServiceAccount(in, account string) client.Object {
	return &corev1.ServiceAccount{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
		ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: account},
	}
}

// buildClusterRights returns a ClusterRole with rules, bound to a service account.
func buildClusterRights(role, ofNamespace, account string, rules ...rbacv1.PolicyRule) []client.Object {
	meta := metav1.ObjectMeta{Name: role}
	return []client.Object{
		&rbacv1.ClusterRole{TypeMeta: newRBACType("ClusterRole"), ObjectMeta: meta, Rules: rules},
		&rbacv1.ClusterRoleBinding{
			TypeMeta: newRBACType("ClusterRoleBinding"), ObjectMeta: meta,
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ofNamespace, Name: account}},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		},
	}
}

// buildNamespaceRights returns a Role with rules in a namespace, bound to a service account of
// croft's namespace.
func buildNamespaceRights(in, role, account string, rules ...rbacv1.PolicyRule) []client.Object {
	meta := metav1.ObjectMeta{Namespace: in, Name: role}
	return []client.Object{
		&rbacv1.Role{TypeMeta: newRBACType("Role"), ObjectMeta: meta, Rules: rules},
		&rbacv1.RoleBinding{
			TypeMeta: newRBACType("RoleBinding"), ObjectMeta: meta,
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
		},
	}
}

func newRBACType(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}
