package iam

import (
	"slices"
	"strings"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/estate"
)

// needs are what an estate's pools ask of AWS.
type needs struct {
	cluster string
	// roles are those of nodes that Karpenter makes instance profiles for, profiles
	// the instance profiles that are there.
	roles, profiles []string
	// families are those whose images are found by an alias.
	families []v1alpha1.AMIFamily
	// parameters hold ids of images.
	parameters []string
	// keys are those that disks are encrypted with.
	keys []string
	// reserved says that a pool uses capacity reservations.
	reserved bool
	// subnets and groups are those of the secondary networks that pools use.
	subnets, groups []string
	// anyGroup says that a part of a network names no security group.
	anyGroup bool
}

func needsOf(e *estate.Estate) *needs {
	n := &needs{cluster: e.Platform.ClusterName}
	for _, pool := range e.Pools {
		class := pool.Class.AWS
		if class == nil {
			continue
		}
		n.roles = with(n.roles, class.Role)
		n.profiles = with(n.profiles, class.InstanceProfile)
		n.reserved = n.reserved || len(class.CapacityReservationSelectorTerms) > 0
		for _, t := range class.AMISelectorTerms {
			n.parameters = with(n.parameters, t.SSMParameter)
			if strings.HasPrefix(string(t.Alias), "bottlerocket@") {
				n.families = with(n.families, v1alpha1.FamilyBottlerocket)
			} else if t.Alias != "" {
				n.families = with(n.families, v1alpha1.FamilyAL2023)
			}
		}
		for _, m := range class.BlockDeviceMappings {
			n.keys = with(n.keys, m.EBS.KMSKeyID)
		}
		for _, name := range pool.SecondaryNetworks {
			n.network(e, name)
		}
	}
	return n
}

// network adds what interfaces in a secondary network are made from. Without security
// groups they get the default one of their network, whose id the file does not say.
func (n *needs) network(e *estate.Estate, name string) {
	for _, network := range e.Networks {
		if network.Name != name {
			continue
		}
		for _, zone := range network.Spec.Zones {
			n.subnets = with(n.subnets, zone.Subnet)
			for _, id := range zone.SecurityGroups {
				n.groups = with(n.groups, id)
			}
			n.anyGroup = n.anyGroup || len(zone.SecurityGroups) == 0
		}
	}
}

// with adds what is not empty, and not there yet, in order.
func with[S ~string](list []S, s S) []S {
	at, found := slices.BinarySearch(list, s)
	if s == "" || found {
		return list
	}
	return slices.Insert(list, at, s)
}

// any says whether a pool is on AWS at all, by a class that croft writes.
func (n *needs) any() bool { return len(n.roles) > 0 || len(n.profiles) > 0 }

// nodeRoles are the names of all roles that nodes have: one is made for each
// instance profile, by its name.
func (n *needs) nodeRoles() []string {
	var all []string
	for _, name := range slices.Concat(n.roles, n.profiles) {
		all = with(all, name)
	}
	return all
}
