package iam

// JSON returns the stack as plain policies, for other tools. The placeholders ${Partition},
// ${Region}, ${Account} and ${URLSuffix} (amazonaws.com, in China amazonaws.com.cn) stand
// for the location.
func (s *Stack) JSON() map[string]any {
	policies := map[string]any{}
	for _, p := range s.policies {
		policies[p.Name] = buildPolicyDocument(p.Statements)
	}
	var nodes, rules, entries []any
	for _, n := range s.nodes {
		var arns []any
		for _, name := range n.managed {
			arns = append(arns, managedARN(name))
		}
		node := map[string]any{"name": n.name, "trust": buildNodeTrust(), "managedPolicies": arns}
		if n.profile {
			node["instanceProfile"] = n.name
		}
		nodes = append(nodes, node)
		entries = append(entries, map[string]any{"clusterName": s.cluster, "principalArn": roleARN(n.name), "type": accessType})
	}
	for _, r := range s.queue.rules {
		rules = append(rules, map[string]any{"name": r.name, "eventPattern": r.buildPattern(), "target": s.queue.arn})
	}
	all := map[string]any{
		"controllerRole": map[string]any{"name": s.controller, "trust": s.buildControllerTrust(), "policies": policies},
		"nodeRoles":      nodes,
		"accessEntries":  entries,
		"interruptionQueue": map[string]any{
			"name": s.queue.name, "policy": s.queue.buildDocument(), "messageRetentionSeconds": retention, "rules": rules,
		},
	}
	if s.operator != nil {
		operator := map[string]any{
			"name": s.operator.name, "trust": s.buildOperatorTrust(), "policies": map[string]any{s.operator.policy: buildPolicyDocument(s.operatorStatements)},
		}
		if s.options.Identity == PodIdentity {
			operator["podIdentityAssociation"] = map[string]any{
				"clusterName": s.cluster, "namespace": operatorNamespace, "serviceAccount": operatorAccount, "roleArn": roleARN(s.operator.name),
			}
		}
		all["operatorRole"] = operator
	}
	if s.options.Identity == PodIdentity {
		all["podIdentityAssociation"] = map[string]any{
			"clusterName": s.cluster, "namespace": s.options.Namespace, "serviceAccount": s.options.ServiceAccount, "roleArn": roleARN(s.controller),
		}
	}
	return all
}

func roleARN(name string) string { return "arn:" + partition + ":iam::" + account + ":role/" + name }

// accessType is the type of a node's access entry. A principal with the role can join the
// cluster as a node.
const accessType = "EC2_LINUX"
