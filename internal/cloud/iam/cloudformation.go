package iam

import "strings"

// CloudFormation returns the stack as a template. It needs CAPABILITY_NAMED_IAM.
func (s *Stack) CloudFormation() map[string]any {
	resources := map[string]any{
		"ControllerRole": buildResource("AWS::IAM::Role", map[string]any{
			"RoleName": s.controller, "AssumeRolePolicyDocument": s.buildControllerTrust(),
		}),
		"InterruptionQueue": buildResource("AWS::SQS::Queue", map[string]any{
			"QueueName": s.queue.name, "MessageRetentionPeriod": retention, "SqsManagedSseEnabled": true,
		}),
		"InterruptionQueuePolicy": buildResource("AWS::SQS::QueuePolicy", map[string]any{
			"Queues": []any{makeRef("InterruptionQueue")}, "PolicyDocument": s.queue.buildDocument(),
		}),
	}
	for _, p := range s.policies {
		resources["ControllerPolicy"+capitalize(p.topic)] = buildResource("AWS::IAM::ManagedPolicy", map[string]any{
			"ManagedPolicyName": p.Name, "PolicyDocument": buildPolicyDocument(p.Statements), "Roles": []any{makeRef("ControllerRole")},
		})
	}
	for _, r := range s.queue.rules {
		resources["Rule"+capitalize(r.topic)] = buildResource("AWS::Events::Rule", map[string]any{
			"Name": r.name, "EventPattern": r.buildPattern(), "Targets": []any{map[string]any{"Id": "InterruptionQueue", "Arn": makeARNRef("InterruptionQueue")}},
		})
	}
	for _, n := range s.nodes {
		s.addNodeResources(n, resources)
	}
	if s.options.Identity == PodIdentity {
		resources["ControllerIdentity"] = buildResource("AWS::EKS::PodIdentityAssociation", map[string]any{
			"ClusterName": s.cluster, "Namespace": s.options.Namespace, "ServiceAccount": s.options.ServiceAccount, "RoleArn": makeARNRef("ControllerRole"),
		})
	}
	outputs := map[string]any{
		"ControllerRoleArn": map[string]any{"Value": makeARNRef("ControllerRole")},
		"InterruptionQueue": map[string]any{"Value": s.queue.name},
	}
	if s.operator != nil {
		s.addOperatorResources(resources)
		outputs["OperatorRoleArn"] = map[string]any{"Value": makeARNRef("OperatorRole")}
	}
	template := map[string]any{
		"AWSTemplateFormatVersion": "2010-09-09",
		"Description":              "AWS resources of Karpenter for cluster " + s.cluster + ", written by croft iam",
		"Resources":                resources,
		"Outputs":                  outputs,
	}
	pseudo := strings.NewReplacer(partition, "${AWS::Partition}", region, "${AWS::Region}", account, "${AWS::AccountId}", urlSuffix, "${AWS::URLSuffix}")
	filled, _ := fillPlaceholders(template, func(text string) any { return map[string]any{"Fn::Sub": pseudo.Replace(text)} }).(map[string]any)
	return filled
}

func (s *Stack) addOperatorResources(resources map[string]any) {
	resources["OperatorRole"] = buildResource("AWS::IAM::Role", map[string]any{
		"RoleName": s.operator.name, "AssumeRolePolicyDocument": s.buildOperatorTrust(),
	})
	resources["OperatorPolicy"] = buildResource("AWS::IAM::ManagedPolicy", map[string]any{
		"ManagedPolicyName": s.operator.policy, "PolicyDocument": buildPolicyDocument(s.operatorStatements), "Roles": []any{makeRef("OperatorRole")},
	})
	if s.options.Identity == PodIdentity {
		resources["OperatorIdentity"] = buildResource("AWS::EKS::PodIdentityAssociation", map[string]any{
			"ClusterName": s.cluster, "Namespace": operatorNamespace, "ServiceAccount": operatorAccount, "RoleArn": makeARNRef("OperatorRole"),
		})
	}
}

func (s *Stack) addNodeResources(n nodeRole, resources map[string]any) {
	var arns []any
	for _, name := range n.managed {
		arns = append(arns, managedARN(name))
	}
	id := "NodeRole" + makeIdentifier(n.name)
	resources[id] = buildResource("AWS::IAM::Role", map[string]any{
		"RoleName": n.name, "AssumeRolePolicyDocument": buildNodeTrust(), "ManagedPolicyArns": arns,
	})
	resources["Access"+makeIdentifier(n.name)] = buildResource("AWS::EKS::AccessEntry", map[string]any{
		"ClusterName": s.cluster, "PrincipalArn": makeARNRef(id), "Type": accessType,
	})
	if n.profile {
		resources["Profile"+makeIdentifier(n.name)] = buildResource("AWS::IAM::InstanceProfile", map[string]any{
			"InstanceProfileName": n.name, "Roles": []any{makeRef(id)},
		})
	}
}

func capitalize(topic string) string { return strings.ToUpper(topic[:1]) + topic[1:] }

func buildResource(kind string, properties map[string]any) map[string]any {
	return map[string]any{"Type": kind, "Properties": properties}
}

func makeRef(id string) map[string]any { return map[string]any{"Ref": id} }

func makeARNRef(id string) map[string]any { return map[string]any{"Fn::GetAtt": []any{id, "Arn"}} }
