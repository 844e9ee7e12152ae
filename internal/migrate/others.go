package migrate

import (
	"strings"

	"croft.dev/croft/api/v1alpha1"
)

// handled are the kinds that croft reads, by their group.
var handled = map[string][]string{
	"":                          {"Namespace", "ResourceQuota", "LimitRange"},
	"rbac.authorization.k8s.io": {"RoleBinding", "ClusterRole", "Role"},
	"networking.k8s.io":         {"NetworkPolicy"},
	"crd.projectcalico.org":     {"NetworkPolicy", "GlobalNetworkPolicy"},
	"projectcalico.org":         {"NetworkPolicy", "GlobalNetworkPolicy"},
	clusterPoliciesGroup:        {"ClusterNetworkPolicy"},
	awsPoliciesGroup:            {"ClusterNetworkPolicy"},
	karpenterGroup:              {"Provisioner", "NodePool"},
	awsGroup:                    {"AWSNodeTemplate", "EC2NodeClass"},
	kwokGroup:                   {"KWOKNodeClass"},
	mutationsGroup:              {"Assign", "ModifySet", "AssignMetadata", "AssignImage"},
	capsuleGroup:                {"Tenant"},
	v1alpha1.GroupVersion.Group: {"Platform", "Pool", "Tenant", "SecondaryNetwork", "TenantRules"},
	"templates.gatekeeper.sh":   {"ConstraintTemplate"},
}

// reads says whether croft reads objects of this kind.
func reads(o *Object) bool {
	if o.Kind == kindValues || o.Group() == constraintsGroup {
		return true
	}
	for _, kind := range handled[o.Group()] {
		if kind == o.Kind {
			return true
		}
	}
	return false
}

// others accounts for objects of other kinds, and for what in them speaks to a
// Karpenter that is no more.
func (d *draft) others() {
	for _, o := range d.objects {
		if o.skip || len(o.entries) > 0 {
			continue
		}
		if reads(o) && o.Kind != "ConstraintTemplate" && o.Kind != "Role" && o.Kind != "ClusterRole" {
			continue
		}
		if strings.HasSuffix(o.Kind, "Role") && o.Group() == rbacGroup {
			o.Root().Other("no binding of a tenant's namespace becomes access by it: it stays as it is")
			continue
		}
		o.Root().Other("croft does not read %s: it stays as it is", o.Kind)
		o.leaves(func(path []string) { former(o, path) })
	}
}

// former finds the names of old that a workload may still say.
func former(o *Object, path []string) {
	f := o.At()
	for _, step := range path {
		f = Field{o, append(f.path[:len(f.path):len(f.path)], step), nil, true}
	}
	switch key := path[len(path)-1]; {
	case key == "karpenter.sh/do-not-evict":
		f.NotKept("Karpenter v1 reads karpenter.sh/do-not-disrupt in its place: write that, and give the tenant policy.doNotDisrupt: true, without which croft refuses it")
	case key == "karpenter.sh/do-not-disrupt":
		f.NotKept("croft refuses it to tenants' pods unless the tenant has policy.doNotDisrupt: true")
	case strings.HasPrefix(key, "karpenter.sh/provisioner-name"):
		f.NotKept("Karpenter v1 has karpenter.sh/nodepool in its place; pods of tenants need neither, since croft places them")
	}
}
