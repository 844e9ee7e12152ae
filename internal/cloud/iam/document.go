package iam

import "strings"

// buildDocument returns an IAM policy document.
func buildDocument(statements ...map[string]any) map[string]any {
	list := make([]any, len(statements))
	for i, s := range statements {
		list[i] = s
	}
	return map[string]any{"Version": "2012-10-17", "Statement": list}
}

func buildPolicyDocument(statements []Statement) map[string]any {
	all := make([]map[string]any, len(statements))
	for i, s := range statements {
		all[i] = s.buildContent()
	}
	return buildDocument(all...)
}

// buildContent returns the statement for an identity-based policy, which has no principal.
func (s *Statement) buildContent() map[string]any {
	content := map[string]any{"Sid": s.Sid, "Effect": "Allow", "Action": simplifyList(s.Actions)}
	if len(s.Resources) > 0 {
		content["Resource"] = simplifyList(s.Resources)
	}
	if len(s.Conditions) > 0 {
		operators := map[string]any{}
		for operator, keys := range s.Conditions {
			condition := map[string]any{}
			for key, values := range keys {
				condition[key] = simplifyList(values)
			}
			operators[operator] = condition
		}
		content["Condition"] = operators
	}
	return content
}

func simplifyList(list []string) any {
	if len(list) == 1 {
		return list[0]
	}
	all := make([]any, len(list))
	for i, text := range list {
		all[i] = text
	}
	return all
}

// withPrincipal returns the statement for a resource-based policy, with its principals.
func (s *Statement) withPrincipal(kind string, principals ...string) map[string]any {
	content := s.buildContent()
	content["Principal"] = map[string]any{kind: simplifyList(principals)}
	return content
}

// buildControllerTrust allows Karpenter's service account in this cluster to assume the
// controller's role.
func (s *Stack) buildControllerTrust() map[string]any {
	return s.buildTrust("Karpenter", s.options.Namespace, s.options.ServiceAccount)
}

// buildTrust allows a service account in this cluster to assume a role.
func (s *Stack) buildTrust(sid, namespace, serviceAccount string) map[string]any {
	o := s.options
	if o.Identity == IRSA {
		trust := Statement{Sid: sid, Actions: []string{"sts:AssumeRoleWithWebIdentity"}, Conditions: mergeConditions(
			newEquals(o.OIDCProvider+":aud", "sts.amazonaws.com"), newEquals(o.OIDCProvider+":sub", "system:serviceaccount:"+namespace+":"+serviceAccount))}
		return buildDocument(trust.withPrincipal("Federated", "arn:"+partition+":iam::"+account+":oidc-provider/"+o.OIDCProvider))
	}
	n := needs{cluster: s.cluster}
	trust := Statement{Sid: sid, Actions: []string{"sts:AssumeRole", "sts:TagSession"}, Conditions: mergeConditions(
		newEquals(requested+"eks-cluster-arn", n.clusterARN()), newEquals(requested+"kubernetes-namespace", namespace),
		newEquals(requested+"kubernetes-service-account", serviceAccount))}
	return buildDocument(trust.withPrincipal("Service", "pods.eks.amazonaws.com"))
}

// buildNodeTrust allows instances to assume a node's role.
func buildNodeTrust() map[string]any {
	trust := Statement{Sid: "Instances", Actions: []string{"sts:AssumeRole"}}
	return buildDocument(trust.withPrincipal("Service", "ec2."+urlSuffix))
}

// queueDocument allows the rules to send events to the queue, and denies all access without
// TLS.
func (q queue) buildDocument() map[string]any {
	var rules []string
	for _, r := range q.rules {
		rules = append(rules, r.arn)
	}
	events := Statement{Sid: "Events", Actions: []string{"sqs:SendMessage"}, Resources: []string{q.arn}, Conditions: Conditions{arnEquals: {"aws:SourceArn": rules}}}
	plain := Statement{Sid: "OnlyTLS", Actions: []string{"sqs:*"}, Resources: []string{q.arn}, Conditions: Conditions{isTrue: {"aws:SecureTransport": {"false"}}}}
	deny := plain.buildContent()
	deny["Effect"], deny["Principal"] = "Deny", "*"
	return buildDocument(events.withPrincipal("Service", "events.amazonaws.com"), deny)
}

func managedARN(name string) string { return "arn:" + partition + ":iam::aws:policy/" + name }

// fillPlaceholders returns a copy of a value in which fill has replaced each string with a
// placeholder.
func fillPlaceholders(v any, fill func(string) any) any {
	switch v := v.(type) {
	case map[string]any:
		all := make(map[string]any, len(v))
		for key, value := range v {
			all[key] = fillPlaceholders(value, fill)
		}
		return all
	case []any:
		all := make([]any, len(v))
		for i, value := range v {
			all[i] = fillPlaceholders(value, fill)
		}
		return all
	case string:
		if strings.Contains(v, "${") {
			return fill(v)
		}
	}
	return v
}
