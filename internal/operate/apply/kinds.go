package apply

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// makeGatekeeperKinds returns kinds of one of Gatekeeper's API groups.
func makeGatekeeperKinds(group, version string, kinds ...string) []schema.GroupVersionKind {
	all := make([]schema.GroupVersionKind, len(kinds))
	for i, kind := range kinds {
		all[i] = schema.GroupVersionKind{Group: group + ".gatekeeper.sh", Version: version, Kind: kind}
	}
	return all
}

// The kinds of croft's objects, by scope, and so the kinds to prune. A kind that walls no
// longer use stays here, because older versions have written it.
var (
	// PlatformKinds exist once in the cluster.
	PlatformKinds = []schema.GroupVersionKind{
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicyBinding"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicy"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
	}
	// NativePlatformKinds exist once in the cluster if the API server is the engine.
	// Kubernetes before 1.36 serves them in the version that ServedKind returns, or not at
	// all.
	NativePlatformKinds = []schema.GroupVersionKind{
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingAdmissionPolicyBinding"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingAdmissionPolicy"},
	}
	// NativeBetaKinds are the same kinds in the same order, as Kubernetes 1.34 and 1.35
	// serve them.
	NativeBetaKinds = []schema.GroupVersionKind{
		{Group: "admissionregistration.k8s.io", Version: "v1beta1", Kind: "MutatingAdmissionPolicyBinding"},
		{Group: "admissionregistration.k8s.io", Version: "v1beta1", Kind: "MutatingAdmissionPolicy"},
	}
	// GatekeeperPlatformKinds exist once in the cluster if Gatekeeper is the engine.
	GatekeeperPlatformKinds = slices.Concat(GatekeeperConstraintKinds, makeGatekeeperKinds("templates", "v1", "ConstraintTemplate"))
	// GatekeeperConstraintKinds are the kinds among them that a cluster has only after
	// Gatekeeper has processed their templates.
	GatekeeperConstraintKinds = makeGatekeeperKinds("constraints", "v1beta1",
		"CroftPlacement", "CroftServices", "CroftIngresses", "CroftRoutes", "CroftGateways", "CroftCertificates", "CroftAnnotations")
	// GatekeeperMutatorKinds are the mutators of one tenant if Gatekeeper is the engine.
	// They are cluster-scoped.
	GatekeeperMutatorKinds = makeGatekeeperKinds("mutations", "v1", "Assign", "ModifySet")
	// GatekeeperTenantKinds are the mutators, and the constraints that each tenant once
	// had.
	GatekeeperTenantKinds = slices.Concat(GatekeeperMutatorKinds, GatekeeperConstraintKinds)
	// PoolKinds are the kinds of one pool's objects. A cluster has only some of them.
	// The NodePool is deleted before its node class.
	PoolKinds = []schema.GroupVersionKind{
		{Group: "karpenter.sh", Version: "v1", Kind: "NodePool"},
		{Group: "karpenter.kwok.sh", Version: "v1alpha1", Kind: "KWOKNodeClass"},
		{Group: "karpenter.k8s.aws", Version: "v1", Kind: "EC2NodeClass"},
	}
	// ReadinessKinds are the kinds of one pool's objects by which the node readiness
	// controller of kubernetes-sigs removes a startup taint. Clusters without it have none
	// of them.
	ReadinessKinds = []schema.GroupVersionKind{
		{Group: "readiness.node.x-k8s.io", Version: "v1alpha1", Kind: "NodeReadinessRule"},
	}
	// AccessKinds give people access to a tenant's namespaces.
	AccessKinds = []schema.GroupVersionKind{
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
	}
	// TenantKinds are the kinds in one tenant's namespaces. Access is deleted first, and
	// the rules last, because policies deny everything without them.
	TenantKinds = append(AccessKinds[:1:1],
		schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"},
		schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
		schema.GroupVersionKind{Version: "v1", Kind: "ResourceQuota"},
		schema.GroupVersionKind{Version: "v1", Kind: "LimitRange"},
		schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
		schema.GroupVersionKind{Group: "croft.dev", Version: "v1alpha1", Kind: "TenantRules"},
	)
	// DialectKinds are the network policies of other dialects in one tenant's
	// namespaces, and ClusterDialectKinds the cluster-scoped ones of one tenant. A
	// cluster has only some of them.
	DialectKinds = []schema.GroupVersionKind{
		{Group: "projectcalico.org", Version: "v3", Kind: "NetworkPolicy"},
		{Group: "crd.projectcalico.org", Version: "v1", Kind: "NetworkPolicy"},
	}
	ClusterDialectKinds = []schema.GroupVersionKind{
		{Group: "policy.networking.k8s.io", Version: "v1alpha2", Kind: "ClusterNetworkPolicy"},
		{Group: "networking.k8s.aws", Version: "v1alpha1", Kind: "ClusterNetworkPolicy"},
	}
	// NetworkPolicyKinds are Kubernetes' own network policies. AgreementKinds are the objects
	// of which a connection between tenants consists.
	NetworkPolicyKinds = []schema.GroupVersionKind{
		{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
	}
	AgreementKinds = slices.Concat(NetworkPolicyKinds, DialectKinds, ClusterDialectKinds, GrantKinds)
	// GrantKinds allow routes of other tenants to send requests to a tenant's Services. A
	// cluster without the Gateway API has none of them.
	GrantKinds = []schema.GroupVersionKind{
		{Group: "gateway.networking.k8s.io", Version: "v1beta1", Kind: "ReferenceGrant"},
	}
	// SourceKinds are the Flux kinds in one tenant's namespaces. A cluster without Flux
	// has none of them. The Kustomization is deleted before its source.
	SourceKinds = []schema.GroupVersionKind{
		{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"},
		{Group: "notification.toolkit.fluxcd.io", Version: "v1", Kind: "Receiver"},
		{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "GitRepository"},
		{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "OCIRepository"},
	}
	// NetworkKinds are the kinds by which Multus attaches pods, in one tenant's namespaces.
	// A cluster without Multus has none of them.
	NetworkKinds = []schema.GroupVersionKind{
		{Group: "k8s.cni.cncf.io", Version: "v1", Kind: "NetworkAttachmentDefinition"},
	}
	// OptionalKinds are the kinds in one tenant's namespaces on which the walls do not
	// depend.
	OptionalKinds = slices.Concat(SourceKinds, NetworkKinds, GrantKinds)
)
