package iam

import (
	"slices"
	"strings"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
)

// needs collects the AWS resources that an estate's pools refer to.
type needs struct {
	cluster string
	// roles are the nodes' roles for which Karpenter creates instance profiles. profiles
	// are the existing instance profiles.
	roles, profiles []string
	// families are the AMI families whose images are found by an alias.
	families []v1alpha1.AMIFamily
	// parameters are the SSM parameters that contain image IDs.
	parameters []string
	// keys are the KMS keys that encrypt disks.
	keys []string
	// reserved reports whether a pool uses capacity reservations.
	reserved bool
	// subnets and groups belong to the secondary networks that pools use.
	subnets, groups []string
	// anyGroup reports whether a zone of a network names no security group.
	anyGroup bool
}

func collectNeeds(e *estate.Estate) *needs {
	n := &needs{cluster: e.Platform.ClusterName}
	for _, pool := range e.Pools {
		class := pool.Class.AWS
		if class == nil {
			continue
		}
		n.roles = insertSorted(n.roles, class.Role)
		n.profiles = insertSorted(n.profiles, class.InstanceProfile)
		n.reserved = n.reserved || len(class.CapacityReservationSelectorTerms) > 0
		for _, t := range class.AMISelectorTerms {
			n.parameters = insertSorted(n.parameters, t.SSMParameter)
			if strings.HasPrefix(string(t.Alias), "bottlerocket@") {
				n.families = insertSorted(n.families, v1alpha1.FamilyBottlerocket)
			} else if t.Alias != "" {
				n.families = insertSorted(n.families, v1alpha1.FamilyAL2023)
			}
		}
		for _, m := range class.BlockDeviceMappings {
			n.keys = insertSorted(n.keys, m.EBS.KMSKeyID)
		}
		for _, name := range pool.SecondaryNetworks {
			n.addNetwork(e, name)
		}
	}
	return n
}

// addNetwork adds the subnets and security groups of a secondary network. Interfaces without
// security groups get the default group of their VPC, whose ID is not in the file.
func (n *needs) addNetwork(e *estate.Estate, name string) {
	for _, network := range e.Networks {
		if network.Name != name {
			continue
		}
		for _, zone := range network.Spec.Zones {
			n.subnets = insertSorted(n.subnets, zone.Subnet)
			for _, id := range zone.SecurityGroups {
				n.groups = insertSorted(n.groups, id)
			}
			n.anyGroup = n.anyGroup || len(zone.SecurityGroups) == 0
		}
	}
}

// insertSorted inserts a string into a sorted list, unless it is empty or already present.
func insertSorted[S ~string](list []S, s S) []S {
	at, found := slices.BinarySearch(list, s)
	if s == "" || found {
		return list
	}
	return slices.Insert(list, at, s)
}

// hasNodeClass reports whether a pool on AWS has a node class that croft writes.
func (n *needs) hasNodeClass() bool { return len(n.roles) > 0 || len(n.profiles) > 0 }

// listNodeRoles returns the names of all nodes' roles. croft creates a role with the same name
// for each instance profile.
func (n *needs) listNodeRoles() []string {
	var all []string
	for _, name := range slices.Concat(n.roles, n.profiles) {
		all = insertSorted(all, name)
	}
	return all
}
