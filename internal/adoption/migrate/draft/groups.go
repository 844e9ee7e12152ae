package draft

import (
	"slices"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/migrate/source"
)

// These are the API groups that are read, in addition to croft's own.
const (
	KarpenterGroup       = "karpenter.sh"
	AWSGroup             = "karpenter.k8s.aws"
	KwokGroup            = "karpenter.kwok.sh"
	MutationsGroup       = "mutations.gatekeeper.sh"
	ConstraintsGroup     = "constraints.gatekeeper.sh"
	CapsuleGroup         = "capsule.clastix.io"
	RBACGroup            = "rbac.authorization.k8s.io"
	ClusterPoliciesGroup = "policy.networking.k8s.io"
	AWSPoliciesGroup     = "networking.k8s.aws"
	MultusGroup          = "k8s.cni.cncf.io"
	HNCGroup             = "hnc.x-k8s.io"
)

// DiscoveryTag is the tag with which Karpenter's own guides mark a cluster's resources.
const DiscoveryTag = "karpenter.sh/discovery"

// KarpenterPools returns all objects that become pools.
func (d *Draft) KarpenterPools() []*source.Object {
	return append(d.List(KarpenterGroup, "Provisioner"), d.List(KarpenterGroup, "NodePool")...)
}

// handled are the kinds that migrate reads, by group.
var handled = map[string][]string{
	"":                          {"Namespace", "ResourceQuota", "LimitRange"},
	RBACGroup:                   {"RoleBinding", "ClusterRole", "Role"},
	"networking.k8s.io":         {"NetworkPolicy"},
	"crd.projectcalico.org":     {"NetworkPolicy", "GlobalNetworkPolicy"},
	"projectcalico.org":         {"NetworkPolicy", "GlobalNetworkPolicy"},
	ClusterPoliciesGroup:        {"ClusterNetworkPolicy"},
	AWSPoliciesGroup:            {"ClusterNetworkPolicy"},
	KarpenterGroup:              {"Provisioner", "NodePool"},
	AWSGroup:                    {"AWSNodeTemplate", "EC2NodeClass"},
	KwokGroup:                   {"KWOKNodeClass"},
	MutationsGroup:              {"Assign", "ModifySet", "AssignMetadata", "AssignImage"},
	CapsuleGroup:                {"Tenant"},
	MultusGroup:                 {"NetworkAttachmentDefinition"},
	HNCGroup:                    {"HierarchyConfiguration", "SubnamespaceAnchor", "HNCConfiguration", "HierarchicalResourceQuota"},
	v1alpha1.GroupVersion.Group: {"Platform", "Pool", "Tenant", "SecondaryNetwork", "TenantRules"},
	"templates.gatekeeper.sh":   {"ConstraintTemplate"},
}

// IsRead reports whether migrate reads objects of this kind.
func IsRead(o *source.Object) bool {
	if o.Kind == source.KindValues || o.Group() == ConstraintsGroup {
		return true
	}
	return slices.Contains(handled[o.Group()], o.Kind)
}

// ValuesFiles returns the values files of charts of tenants and pools.
func (d *Draft) ValuesFiles() []*source.Object {
	var all []*source.Object
	for _, o := range d.Objects {
		if o.Kind == source.KindValues && !o.Skip {
			all = append(all, o)
		}
	}
	return all
}

// IsManaged reports whether croft wrote an object.
func IsManaged(o *source.Object) bool {
	return o.At("metadata", "labels", v1alpha1.ManagedByLabel).Text() == v1alpha1.ManagedBy
}
