package iam

import (
	"slices"

	"croft.dev/croft/internal/declare/estate"
)

// Policy is a named policy.
type Policy struct {
	// Name is unique within the account.
	Name string
	// topic identifies the policy within the stack.
	topic      string
	Statements []Statement
}

// ControllerRights returns the rights of Karpenter's controller for an estate: every call of its
// AWS provider, limited to the cluster's own resources.
func ControllerRights(e *estate.Estate) []Statement {
	var all []Statement
	for _, p := range buildPolicies(collectNeeds(e)) {
		all = append(all, p.Statements...)
	}
	return all
}

// buildPolicies distributes the controller's statements to several policies, because IAM limits
// each to 6,144 characters.
func buildPolicies(n *needs) []Policy {
	policy := func(topic string, statements ...[]Statement) Policy {
		name := shortenName("KarpenterController-"+topic+"-"+n.cluster, maxPolicyName)
		return Policy{Name: name, topic: topic, Statements: slices.Concat(statements...)}
	}
	return []Policy{
		policy("instances", allowLaunch(n), allowOwnResources(n), allowDiskKeys(n)),
		policy("profiles", allowPassRole(n), allowProfiles(n)),
		policy("reading", allowReads(n), allowInterruptions(n)),
	}
}

// The tags that mark the cluster's resources, in Karpenter's requests and on existing
// resources.
const (
	requested = "aws:RequestTag/"
	standing  = "aws:ResourceTag/"

	nodePoolTag  = "karpenter.sh/nodepool"
	nodeClaimTag = "karpenter.sh/nodeclaim"
	nodeClassTag = "karpenter.k8s.aws/ec2nodeclass"
	clusterTag   = "eks:eks-cluster-name"
	regionTag    = "topology.kubernetes.io/region"
)

func (n *needs) ownedTag() string { return "kubernetes.io/cluster/" + n.cluster }

// buildTagConditions returns conditions on the tags of the cluster's resources that were created for a
// pool.
func (n *needs) buildTagConditions(side string) Conditions {
	return mergeConditions(newEquals(side+n.ownedTag(), "owned"), newLike(side+nodePoolTag, "*"))
}

func formatEC2ARN(kind string) string {
	return "arn:" + partition + ":ec2:" + region + ":" + account + ":" + kind
}

// formatSharedARN returns ARNs of any account: a subnet of a shared network, for example, may belong
// to another account.
func formatSharedARN(kind string) string { return "arn:" + partition + ":ec2:" + region + ":*:" + kind }

// formatPublicARN returns ARNs without an account.
func formatPublicARN(kind string) string { return "arn:" + partition + ":ec2:" + region + "::" + kind }

// listLaunchResources returns the resources that a launch creates.
func listLaunchResources() []string {
	return []string{
		formatEC2ARN("fleet/*"), formatEC2ARN("instance/*"), formatEC2ARN("volume/*"), formatEC2ARN("network-interface/*"), formatEC2ARN("launch-template/*"), formatEC2ARN("spot-instances-request/*"),
	}
}

// allowLaunch allows the launch of instances: from all resources that node classes select,
// with the cluster's own launch templates, and only with its tags.
func allowLaunch(n *needs) []Statement {
	from := []string{formatPublicARN("image/*"), formatPublicARN("snapshot/*"), formatSharedARN("security-group/*"), formatSharedARN("subnet/*")}
	if n.reserved {
		from = append(from, formatSharedARN("capacity-reservation/*"))
	}
	tags := mergeConditions(n.buildTagConditions(requested), newEquals(requested+clusterTag, n.cluster))
	return []Statement{
		{Sid: "LaunchFrom", Actions: []string{"ec2:CreateFleet", "ec2:RunInstances"}, Resources: from},
		{Sid: "LaunchByOwnTemplates", Actions: []string{"ec2:CreateFleet", "ec2:RunInstances"}, Resources: []string{formatEC2ARN("launch-template/*")}, Conditions: n.buildTagConditions(standing)},
		{Sid: "LaunchWithTags", Actions: []string{"ec2:CreateFleet", "ec2:CreateLaunchTemplate", "ec2:RunInstances"}, Resources: listLaunchResources(), Conditions: tags},
		{Sid: "TagWhatIsLaunched", Actions: []string{"ec2:CreateTags"}, Resources: listLaunchResources(),
			Conditions: mergeConditions(tags, newEquals("ec2:CreateAction", "RunInstances", "CreateFleet", "CreateLaunchTemplate"))},
	}
}

// allowOwnResources allows Karpenter to tag its instances once they are nodes, and to delete its own
// resources.
func allowOwnResources(n *needs) []Statement {
	return []Statement{
		{Sid: "NameOwnInstances", Actions: []string{"ec2:CreateTags"}, Resources: []string{formatEC2ARN("instance/*")}, Conditions: mergeConditions(n.buildTagConditions(standing),
			Conditions{stringEqualsIfExists: {requested + clusterTag: {n.cluster}}, allStringEquals: {"aws:TagKeys": {clusterTag, nodeClaimTag, "Name"}}})},
		{Sid: "EndOwn", Actions: []string{"ec2:DeleteLaunchTemplate", "ec2:TerminateInstances"},
			Resources: []string{formatEC2ARN("instance/*"), formatEC2ARN("launch-template/*")}, Conditions: n.buildTagConditions(standing)},
	}
}

func allowInterruptions(n *needs) []Statement {
	return []Statement{{
		Sid: "HearOfInterruptions", Actions: []string{"sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"}, Resources: []string{n.queueARN()},
	}}
}

// allowPassRole allows instances to have the roles that the file names, and no others.
func allowPassRole(n *needs) []Statement {
	var roles []string
	for _, name := range n.listNodeRoles() {
		roles = append(roles, "arn:"+partition+":iam::"+account+":role/"+name)
	}
	return []Statement{{
		Sid: "PassNodeRoles", Actions: []string{"iam:PassRole"}, Resources: roles, Conditions: newEquals("iam:PassedToService", "ec2.amazonaws.com", "ec2.amazonaws.com.cn"),
	}}
}
