package iam

import (
	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/network/attach"
)

// OperatorRights returns the rights of croft's own operator for an estate: to manage the network
// interfaces of pools with secondary networks. It is empty if there are none.
func OperatorRights(e *estate.Estate) []Statement { return allowInterfaces(collectNeeds(e)) }

// operatorAccount is the service account that `croft install` creates for croft's operator.
const operatorNamespace, operatorAccount = v1alpha1.SystemNamespace, v1alpha1.ManagedBy

// allowInterfaces allows the operator to create interfaces in the networks' own subnets, with
// tags that name their cluster, network and node claim, and to change only interfaces with
// the cluster's tag. It attaches them only to the cluster's own instances, and can neither
// start nor terminate instances.
func allowInterfaces(n *needs) []Statement {
	if len(n.subnets) == 0 {
		return nil
	}
	var from []string
	for _, id := range n.subnets {
		from = append(from, formatSharedARN("subnet/"+id))
	}
	if n.anyGroup {
		from = append(from, formatSharedARN("security-group/*"))
	}
	for _, id := range n.groups {
		from = append(from, formatSharedARN("security-group/"+id))
	}
	interfaces := []string{formatEC2ARN("network-interface/*")}
	requestConditions := mergeConditions(newEquals(requested+attach.ClusterTag, n.cluster), newLike(requested+attach.NetworkTag, "*"), newLike(requested+attach.ClaimTag, "*"))
	return []Statement{
		{Sid: "LookAtInterfaces", Actions: []string{"ec2:DescribeInstances", "ec2:DescribeInstanceTypes", "ec2:DescribeNetworkInterfaces"},
			Resources: []string{"*"}, Conditions: newEquals("aws:RequestedRegion", region)},
		{Sid: "MakeInterfacesIn", Actions: []string{"ec2:CreateNetworkInterface"}, Resources: from},
		{Sid: "MakeInterfacesWithTags", Actions: []string{"ec2:CreateNetworkInterface"}, Resources: interfaces, Conditions: requestConditions},
		{Sid: "TagInterfaces", Actions: []string{"ec2:CreateTags"}, Resources: interfaces,
			Conditions: mergeConditions(requestConditions, newEquals("ec2:CreateAction", "CreateNetworkInterface"))},
		{Sid: "KeepOwnInterfaces", Actions: []string{"ec2:AttachNetworkInterface", "ec2:DeleteNetworkInterface", "ec2:ModifyNetworkInterfaceAttribute"},
			Resources: interfaces, Conditions: newEquals(standing+attach.ClusterTag, n.cluster)},
		{Sid: "AttachToOwnInstances", Actions: []string{"ec2:AttachNetworkInterface", "ec2:ModifyNetworkInterfaceAttribute"},
			Resources: []string{formatEC2ARN("instance/*")}, Conditions: n.buildTagConditions(standing)},
	}
}

// operatorRole is the role of croft's operator, with the name of its policy.
type operatorRole struct{ name, policy string }

func (s *Stack) buildOperatorTrust() map[string]any {
	return s.buildTrust("CroftOperator", operatorNamespace, operatorAccount)
}
