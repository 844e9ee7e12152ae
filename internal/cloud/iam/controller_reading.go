package iam

import (
	"slices"
	"strings"

	"croft.dev/croft/api/v1alpha1"
)

// allowReads allows Karpenter to read. EC2's Describe actions, lists and prices do not support
// resource-level permissions.
func allowReads(n *needs) []Statement {
	describe := []string{
		"ec2:DescribeImages", "ec2:DescribeInstanceStatus", "ec2:DescribeInstanceTypeOfferings", "ec2:DescribeInstanceTypes", "ec2:DescribeInstances",
		"ec2:DescribeLaunchTemplates", "ec2:DescribeSecurityGroups", "ec2:DescribeSpotPriceHistory", "ec2:DescribeSubnets",
	}
	if n.reserved {
		describe = append(describe, "ec2:DescribeCapacityReservations")
	}
	slices.Sort(describe)
	all := []Statement{
		{Sid: "ReadEC2", Actions: describe, Resources: []string{"*"}, Conditions: newEquals("aws:RequestedRegion", region)},
		{Sid: "ReadPrices", Actions: []string{"pricing:GetProducts"}, Resources: []string{"*"}},
		{Sid: "ReadCluster", Actions: []string{"eks:DescribeCluster"}, Resources: []string{n.clusterARN()}},
	}
	if parameters := n.listParameterARNs(); len(parameters) > 0 {
		all = append(all, Statement{Sid: "ReadImageParameters", Actions: []string{"ssm:GetParameter"}, Resources: parameters})
	}
	return all
}

func (n *needs) clusterARN() string {
	return "arn:" + partition + ":eks:" + region + ":" + account + ":cluster/" + n.cluster
}

// listParameterARNs returns the SSM parameters that contain image IDs: Amazon's public ones for
// an alias, and the parameters that the file names.
func (n *needs) listParameterARNs() []string {
	const at = "arn:" + partition + ":ssm:" + region + ":"
	var all []string
	for _, family := range n.families {
		if family == v1alpha1.FamilyBottlerocket {
			all = append(all, at+":parameter/aws/service/bottlerocket/*")
		} else {
			all = append(all, at+":parameter/aws/service/eks/optimized-ami/*")
		}
	}
	for _, name := range n.parameters {
		switch {
		case strings.HasPrefix(name, "arn:"):
			all = append(all, name)
		case strings.HasPrefix(name, "/aws/service/"):
			all = append(all, at+":parameter"+name)
		default:
			all = append(all, at+account+":parameter/"+strings.TrimPrefix(name, "/"))
		}
	}
	return all
}

// allowDiskKeys allows EC2 to use the disks' KMS keys on the controller's behalf. Without it EC2
// terminates an instance at once, because it cannot decrypt its disk.
func allowDiskKeys(n *needs) []Statement {
	var all []Statement
	for _, key := range n.keys {
		resource, alias := key, ""
		const at = "arn:" + partition + ":kms:" + region + ":" + account + ":"
		switch i := strings.Index(key, "alias/"); {
		case i >= 0:
			resource, alias = at+"key/*", key[i:]
			if i > 0 {
				resource = key[:i] + "key/*"
			}
		case !strings.HasPrefix(key, "arn:"):
			resource = at + "key/" + key
		}
		use := Statement{
			Sid:       "UseDiskKey" + formatOrdinal(len(all)/2),
			Actions:   []string{"kms:Decrypt", "kms:DescribeKey", "kms:GenerateDataKeyWithoutPlaintext", "kms:ReEncryptFrom", "kms:ReEncryptTo"},
			Resources: []string{resource}, Conditions: newLike("kms:ViaService", "ec2."+region+".amazonaws.com*"),
		}
		grant := Statement{
			Sid: "GrantDiskKey" + formatOrdinal(len(all)/2), Actions: []string{"kms:CreateGrant"}, Resources: []string{resource},
			Conditions: mergeConditions(newLike("kms:ViaService", "ec2."+region+".amazonaws.com*"), Conditions{isTrue: {"kms:GrantIsForAWSResource": {"true"}}}),
		}
		if alias != "" {
			use.addCondition(anyStringEquals, "kms:ResourceAliases", alias)
			grant.addCondition(anyStringEquals, "kms:ResourceAliases", alias)
		}
		all = append(all, use, grant)
	}
	return all
}
