package iam

import (
	"slices"

	"croft.dev/croft/internal/estate"
)

// Policy is a named policy.
type Policy struct {
	// Name is unique within the account.
	Name string
	// topic identifies the policy within the stack.
	topic      string
	Statements []Statement
}

// Controller returns the rights of Karpenter's controller for an estate: every call of its
// AWS provider, limited to the cluster's own resources.
func Controller(e *estate.Estate) []Statement {
	var all []Statement
	for _, p := range policies(needsOf(e)) {
		all = append(all, p.Statements...)
	}
	return all
}

// policies distributes the controller's statements to several policies, because IAM limits
// each to 6,144 characters.
func policies(n *needs) []Policy {
	policy := func(topic string, statements ...[]Statement) Policy {
		name := shortened("KarpenterController-"+topic+"-"+n.cluster, maxPolicyName)
		return Policy{Name: name, topic: topic, Statements: slices.Concat(statements...)}
	}
	return []Policy{
		policy("instances", launching(n), own(n), diskKeys(n)),
		policy("profiles", passing(n), profiles(n)),
		policy("reading", reading(n), interruptions(n)),
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

// tagged returns conditions on the tags of the cluster's resources that were created for a
// pool.
func (n *needs) tagged(side string) Conditions {
	return conditions(equals(side+n.ownedTag(), "owned"), like(side+nodePoolTag, "*"))
}

func ec2(kind string) string {
	return "arn:" + partition + ":ec2:" + region + ":" + account + ":" + kind
}

// shared returns ARNs of any account: a subnet of a shared network, for example, may belong
// to another account.
func shared(kind string) string { return "arn:" + partition + ":ec2:" + region + ":*:" + kind }

// public returns ARNs without an account.
func public(kind string) string { return "arn:" + partition + ":ec2:" + region + "::" + kind }

// made returns the resources that a launch creates.
func made() []string {
	return []string{
		ec2("fleet/*"), ec2("instance/*"), ec2("volume/*"), ec2("network-interface/*"), ec2("launch-template/*"), ec2("spot-instances-request/*"),
	}
}

// launching allows the launch of instances: from all resources that node classes select,
// with the cluster's own launch templates, and only with its tags.
func launching(n *needs) []Statement {
	from := []string{public("image/*"), public("snapshot/*"), shared("security-group/*"), shared("subnet/*")}
	if n.reserved {
		from = append(from, shared("capacity-reservation/*"))
	}
	tags := conditions(n.tagged(requested), equals(requested+clusterTag, n.cluster))
	return []Statement{
		{Sid: "LaunchFrom", Actions: []string{"ec2:CreateFleet", "ec2:RunInstances"}, Resources: from},
		{Sid: "LaunchByOwnTemplates", Actions: []string{"ec2:CreateFleet", "ec2:RunInstances"}, Resources: []string{ec2("launch-template/*")}, Conditions: n.tagged(standing)},
		{Sid: "LaunchWithTags", Actions: []string{"ec2:CreateFleet", "ec2:CreateLaunchTemplate", "ec2:RunInstances"}, Resources: made(), Conditions: tags},
		{Sid: "TagWhatIsLaunched", Actions: []string{"ec2:CreateTags"}, Resources: made(),
			Conditions: conditions(tags, equals("ec2:CreateAction", "RunInstances", "CreateFleet", "CreateLaunchTemplate"))},
	}
}

// own allows Karpenter to tag its instances once they are nodes, and to delete its own
// resources.
func own(n *needs) []Statement {
	return []Statement{
		{Sid: "NameOwnInstances", Actions: []string{"ec2:CreateTags"}, Resources: []string{ec2("instance/*")}, Conditions: conditions(n.tagged(standing),
			Conditions{stringEqualsIfExists: {requested + clusterTag: {n.cluster}}, allStringEquals: {"aws:TagKeys": {clusterTag, nodeClaimTag, "Name"}}})},
		{Sid: "EndOwn", Actions: []string{"ec2:DeleteLaunchTemplate", "ec2:TerminateInstances"},
			Resources: []string{ec2("instance/*"), ec2("launch-template/*")}, Conditions: n.tagged(standing)},
	}
}

func interruptions(n *needs) []Statement {
	return []Statement{{
		Sid: "HearOfInterruptions", Actions: []string{"sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"}, Resources: []string{n.queue()},
	}}
}

// passing allows instances to have the roles that the file names, and no others.
func passing(n *needs) []Statement {
	var roles []string
	for _, name := range n.nodeRoles() {
		roles = append(roles, "arn:"+partition+":iam::"+account+":role/"+name)
	}
	return []Statement{{
		Sid: "PassNodeRoles", Actions: []string{"iam:PassRole"}, Resources: roles, Conditions: equals("iam:PassedToService", "ec2.amazonaws.com", "ec2.amazonaws.com.cn"),
	}}
}
