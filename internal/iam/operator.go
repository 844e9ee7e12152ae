package iam

import (
	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/estate"
	"croft.dev/croft/internal/secondary/attach"
)

// Operator is what croft's own operator may do for the estate: keep the network
// interfaces of pools with secondary networks. It is empty if there are none.
func Operator(e *estate.Estate) []Statement { return operating(needsOf(e)) }

// operatorAccount is the service account of croft's operator, as `croft install` makes it.
const operatorNamespace, operatorAccount = v1alpha1.SystemNamespace, v1alpha1.ManagedBy

// operating lets the operator make interfaces in the networks' own subnets, with tags
// that say whose they are, and change only what has them. It attaches them only to the
// cluster's own instances, and can neither start instances nor end them.
func operating(n *needs) []Statement {
	if len(n.subnets) == 0 {
		return nil
	}
	var from []string
	for _, id := range n.subnets {
		from = append(from, shared("subnet/"+id))
	}
	if n.anyGroup {
		from = append(from, shared("security-group/*"))
	}
	for _, id := range n.groups {
		from = append(from, shared("security-group/"+id))
	}
	interfaces := []string{ec2("network-interface/*")}
	asked := conditions(equals(requested+attach.ClusterTag, n.cluster), like(requested+attach.NetworkTag, "*"), like(requested+attach.ClaimTag, "*"))
	return []Statement{
		{Sid: "LookAtInterfaces", Actions: []string{"ec2:DescribeInstances", "ec2:DescribeInstanceTypes", "ec2:DescribeNetworkInterfaces"},
			Resources: []string{"*"}, Conditions: equals("aws:RequestedRegion", region)},
		{Sid: "MakeInterfacesIn", Actions: []string{"ec2:CreateNetworkInterface"}, Resources: from},
		{Sid: "MakeInterfacesWithTags", Actions: []string{"ec2:CreateNetworkInterface"}, Resources: interfaces, Conditions: asked},
		{Sid: "TagInterfaces", Actions: []string{"ec2:CreateTags"}, Resources: interfaces,
			Conditions: conditions(asked, equals("ec2:CreateAction", "CreateNetworkInterface"))},
		{Sid: "KeepOwnInterfaces", Actions: []string{"ec2:AttachNetworkInterface", "ec2:DeleteNetworkInterface", "ec2:ModifyNetworkInterfaceAttribute"},
			Resources: interfaces, Conditions: equals(standing+attach.ClusterTag, n.cluster)},
		{Sid: "AttachToOwnInstances", Actions: []string{"ec2:AttachNetworkInterface", "ec2:ModifyNetworkInterfaceAttribute"},
			Resources: []string{ec2("instance/*")}, Conditions: n.tagged(standing)},
	}
}

// operatorRole is the role of croft's operator.
type operatorRole struct{ name, policy string }

func (s *Stack) operatorTrust() map[string]any {
	return s.trust("CroftOperator", operatorNamespace, operatorAccount)
}
