package iam

import "strings"

// CloudFormation returns the stack as a template. It needs CAPABILITY_NAMED_IAM.
func (s *Stack) CloudFormation() map[string]any {
	resources := map[string]any{
		"ControllerRole": resource("AWS::IAM::Role", map[string]any{
			"RoleName": s.controller, "AssumeRolePolicyDocument": s.controllerTrust(),
		}),
		"InterruptionQueue": resource("AWS::SQS::Queue", map[string]any{
			"QueueName": s.queue.name, "MessageRetentionPeriod": retention, "SqsManagedSseEnabled": true,
		}),
		"InterruptionQueuePolicy": resource("AWS::SQS::QueuePolicy", map[string]any{
			"Queues": []any{ref("InterruptionQueue")}, "PolicyDocument": s.queue.document(),
		}),
	}
	for _, p := range s.policies {
		resources["ControllerPolicy"+capital(p.topic)] = resource("AWS::IAM::ManagedPolicy", map[string]any{
			"ManagedPolicyName": p.Name, "PolicyDocument": policyDocument(p.Statements), "Roles": []any{ref("ControllerRole")},
		})
	}
	for _, r := range s.queue.rules {
		resources["Rule"+capital(r.topic)] = resource("AWS::Events::Rule", map[string]any{
			"Name": r.name, "EventPattern": r.pattern(), "Targets": []any{map[string]any{"Id": "InterruptionQueue", "Arn": arnOf("InterruptionQueue")}},
		})
	}
	for _, n := range s.nodes {
		s.nodeResources(n, resources)
	}
	if s.options.Identity == PodIdentity {
		resources["ControllerIdentity"] = resource("AWS::EKS::PodIdentityAssociation", map[string]any{
			"ClusterName": s.cluster, "Namespace": s.options.Namespace, "ServiceAccount": s.options.ServiceAccount, "RoleArn": arnOf("ControllerRole"),
		})
	}
	outputs := map[string]any{
		"ControllerRoleArn": map[string]any{"Value": arnOf("ControllerRole")},
		"InterruptionQueue": map[string]any{"Value": s.queue.name},
	}
	if s.operator != nil {
		s.operatorResources(resources)
		outputs["OperatorRoleArn"] = map[string]any{"Value": arnOf("OperatorRole")}
	}
	template := map[string]any{
		"AWSTemplateFormatVersion": "2010-09-09",
		"Description":              "What Karpenter needs in AWS for cluster " + s.cluster + ", as croft iam writes it",
		"Resources":                resources,
		"Outputs":                  outputs,
	}
	pseudo := strings.NewReplacer(partition, "${AWS::Partition}", region, "${AWS::Region}", account, "${AWS::AccountId}", urlSuffix, "${AWS::URLSuffix}")
	whole, _ := filled(template, func(text string) any { return map[string]any{"Fn::Sub": pseudo.Replace(text)} }).(map[string]any)
	return whole
}

func (s *Stack) operatorResources(resources map[string]any) {
	resources["OperatorRole"] = resource("AWS::IAM::Role", map[string]any{
		"RoleName": s.operator.name, "AssumeRolePolicyDocument": s.operatorTrust(),
	})
	resources["OperatorPolicy"] = resource("AWS::IAM::ManagedPolicy", map[string]any{
		"ManagedPolicyName": s.operator.policy, "PolicyDocument": policyDocument(s.operating), "Roles": []any{ref("OperatorRole")},
	})
	if s.options.Identity == PodIdentity {
		resources["OperatorIdentity"] = resource("AWS::EKS::PodIdentityAssociation", map[string]any{
			"ClusterName": s.cluster, "Namespace": operatorNamespace, "ServiceAccount": operatorAccount, "RoleArn": arnOf("OperatorRole"),
		})
	}
}

func (s *Stack) nodeResources(n nodeRole, resources map[string]any) {
	var arns []any
	for _, name := range n.managed {
		arns = append(arns, managedARN(name))
	}
	id := "NodeRole" + identifier(n.name)
	resources[id] = resource("AWS::IAM::Role", map[string]any{
		"RoleName": n.name, "AssumeRolePolicyDocument": nodeTrust(), "ManagedPolicyArns": arns,
	})
	resources["Access"+identifier(n.name)] = resource("AWS::EKS::AccessEntry", map[string]any{
		"ClusterName": s.cluster, "PrincipalArn": arnOf(id), "Type": accessType,
	})
	if n.profile {
		resources["Profile"+identifier(n.name)] = resource("AWS::IAM::InstanceProfile", map[string]any{
			"InstanceProfileName": n.name, "Roles": []any{ref(id)},
		})
	}
}

func capital(topic string) string { return strings.ToUpper(topic[:1]) + topic[1:] }

func resource(kind string, properties map[string]any) map[string]any {
	return map[string]any{"Type": kind, "Properties": properties}
}

func ref(id string) map[string]any { return map[string]any{"Ref": id} }

func arnOf(id string) map[string]any { return map[string]any{"Fn::GetAtt": []any{id, "Arn"}} }
