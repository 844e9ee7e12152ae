package iam

import (
	"encoding/json"
	"strings"
)

// Terraform returns the stack in Terraform's JSON syntax, for a file with the extension
// .tf.json. The caller configures the providers.
func (s *Stack) Terraform() (map[string]any, error) {
	t := &terraform{resources: map[string]map[string]any{}}
	t.addResource("aws_iam_role", "karpenter_controller", map[string]any{"name": s.controller, "assume_role_policy": t.renderDocument(s.buildControllerTrust())})
	for _, p := range s.policies {
		id := "karpenter_" + p.topic
		t.addResource("aws_iam_policy", id, map[string]any{"name": p.Name, "policy": t.renderDocument(buildPolicyDocument(p.Statements))})
		t.addResource("aws_iam_role_policy_attachment", id, map[string]any{
			"role": "${aws_iam_role.karpenter_controller.name}", "policy_arn": "${aws_iam_policy." + id + ".arn}",
		})
	}
	for _, n := range s.nodes {
		s.addTerraformNode(n, t)
	}
	t.addResource("aws_sqs_queue", "karpenter", map[string]any{"name": s.queue.name, "message_retention_seconds": retention, "sqs_managed_sse_enabled": true})
	t.addResource("aws_sqs_queue_policy", "karpenter", map[string]any{"queue_url": "${aws_sqs_queue.karpenter.url}", "policy": t.renderDocument(s.queue.buildDocument())})
	for _, r := range s.queue.rules {
		id := "karpenter_" + r.topic
		t.addResource("aws_cloudwatch_event_rule", id, map[string]any{"name": r.name, "event_pattern": t.renderDocument(r.buildPattern())})
		t.addResource("aws_cloudwatch_event_target", id, map[string]any{
			"rule": "${aws_cloudwatch_event_rule." + id + ".name}", "target_id": "InterruptionQueue", "arn": "${aws_sqs_queue.karpenter.arn}",
		})
	}
	if s.options.Identity == PodIdentity {
		t.addResource("aws_eks_pod_identity_association", "karpenter", map[string]any{
			"cluster_name": s.cluster, "namespace": s.options.Namespace, "service_account": s.options.ServiceAccount, "role_arn": "${aws_iam_role.karpenter_controller.arn}",
		})
	}
	outputs := map[string]any{
		"karpenter_controller_role_arn": map[string]any{"value": "${aws_iam_role.karpenter_controller.arn}"},
		"karpenter_interruption_queue":  map[string]any{"value": "${aws_sqs_queue.karpenter.name}"},
	}
	if s.operator != nil {
		s.addTerraformOperator(t)
		outputs["croft_operator_role_arn"] = map[string]any{"value": "${aws_iam_role.croft_operator.arn}"}
	}
	resources := map[string]any{}
	for kind, instances := range t.resources {
		resources[kind] = instances
	}
	return map[string]any{
		"data":     map[string]any{"aws_partition": makeCurrent(), "aws_region": makeCurrent(), "aws_caller_identity": makeCurrent()},
		"resource": resources,
		"output":   outputs,
	}, t.err
}

func (s *Stack) addTerraformOperator(t *terraform) {
	t.addResource("aws_iam_role", "croft_operator", map[string]any{"name": s.operator.name, "assume_role_policy": t.renderDocument(s.buildOperatorTrust())})
	t.addResource("aws_iam_policy", "croft_operator", map[string]any{"name": s.operator.policy, "policy": t.renderDocument(buildPolicyDocument(s.operatorStatements))})
	t.addResource("aws_iam_role_policy_attachment", "croft_operator", map[string]any{
		"role": "${aws_iam_role.croft_operator.name}", "policy_arn": "${aws_iam_policy.croft_operator.arn}",
	})
	if s.options.Identity == PodIdentity {
		t.addResource("aws_eks_pod_identity_association", "croft_operator", map[string]any{
			"cluster_name": s.cluster, "namespace": operatorNamespace, "service_account": operatorAccount, "role_arn": "${aws_iam_role.croft_operator.arn}",
		})
	}
}

func (s *Stack) addTerraformNode(n nodeRole, t *terraform) {
	id := "node_" + toSnakeCase(n.name)
	t.addResource("aws_iam_role", id, map[string]any{"name": n.name, "assume_role_policy": t.renderDocument(buildNodeTrust())})
	for _, name := range n.managed {
		t.addResource("aws_iam_role_policy_attachment", id+"_"+toSnakeCase(name), map[string]any{
			"role": "${aws_iam_role." + id + ".name}", "policy_arn": located.Replace(managedARN(name)),
		})
	}
	t.addResource("aws_eks_access_entry", id, map[string]any{"cluster_name": s.cluster, "principal_arn": "${aws_iam_role." + id + ".arn}", "type": accessType})
	if n.profile {
		t.addResource("aws_iam_instance_profile", id, map[string]any{"name": n.name, "role": "${aws_iam_role." + id + ".name}"})
	}
}

// terraform collects resources by type.
type terraform struct {
	resources map[string]map[string]any
	err       error
}

func (t *terraform) addResource(kind, id string, body map[string]any) {
	if t.resources[kind] == nil {
		t.resources[kind] = map[string]any{}
	}
	t.resources[kind][id] = body
}

// renderDocument returns a document as the JSON string that Terraform's resources need, with
// Terraform expressions instead of placeholders.
func (t *terraform) renderDocument(document map[string]any) string {
	data, err := json.Marshal(document)
	if err != nil {
		t.err = err
	}
	return located.Replace(string(data))
}

var located = strings.NewReplacer(
	partition, "${data.aws_partition.current.partition}",
	region, "${data.aws_region.current.id}",
	account, "${data.aws_caller_identity.current.account_id}",
	urlSuffix, "${data.aws_partition.current.dns_suffix}",
)

func makeCurrent() map[string]any { return map[string]any{"current": map[string]any{}} }
