package iam

import "strings"

// document returns an IAM policy document.
func document(statements ...map[string]any) map[string]any {
	list := make([]any, len(statements))
	for i, s := range statements {
		list[i] = s
	}
	return map[string]any{"Version": "2012-10-17", "Statement": list}
}

func policyDocument(statements []Statement) map[string]any {
	all := make([]map[string]any, len(statements))
	for i, s := range statements {
		all[i] = s.content()
	}
	return document(all...)
}

// content returns the statement for an identity-based policy, which has no principal.
func (s *Statement) content() map[string]any {
	content := map[string]any{"Sid": s.Sid, "Effect": "Allow", "Action": oneOrMore(s.Actions)}
	if len(s.Resources) > 0 {
		content["Resource"] = oneOrMore(s.Resources)
	}
	if len(s.Conditions) > 0 {
		operators := map[string]any{}
		for operator, keys := range s.Conditions {
			wanted := map[string]any{}
			for key, values := range keys {
				wanted[key] = oneOrMore(values)
			}
			operators[operator] = wanted
		}
		content["Condition"] = operators
	}
	return content
}

func oneOrMore(list []string) any {
	if len(list) == 1 {
		return list[0]
	}
	all := make([]any, len(list))
	for i, text := range list {
		all[i] = text
	}
	return all
}

// of returns the statement for a resource-based policy, with its principals.
func (s *Statement) of(kind string, who ...string) map[string]any {
	content := s.content()
	content["Principal"] = map[string]any{kind: oneOrMore(who)}
	return content
}

// controllerTrust allows Karpenter's service account in this cluster to assume the
// controller's role.
func (s *Stack) controllerTrust() map[string]any {
	return s.trust("Karpenter", s.options.Namespace, s.options.ServiceAccount)
}

// trust allows a service account in this cluster to assume a role.
func (s *Stack) trust(sid, namespace, serviceAccount string) map[string]any {
	o := s.options
	if o.Identity == IRSA {
		trust := Statement{Sid: sid, Actions: []string{"sts:AssumeRoleWithWebIdentity"}, Conditions: conditions(
			equals(o.OIDCProvider+":aud", "sts.amazonaws.com"), equals(o.OIDCProvider+":sub", "system:serviceaccount:"+namespace+":"+serviceAccount))}
		return document(trust.of("Federated", "arn:"+partition+":iam::"+account+":oidc-provider/"+o.OIDCProvider))
	}
	n := needs{cluster: s.cluster}
	trust := Statement{Sid: sid, Actions: []string{"sts:AssumeRole", "sts:TagSession"}, Conditions: conditions(
		equals(requested+"eks-cluster-arn", n.clusterARN()), equals(requested+"kubernetes-namespace", namespace),
		equals(requested+"kubernetes-service-account", serviceAccount))}
	return document(trust.of("Service", "pods.eks.amazonaws.com"))
}

// nodeTrust allows instances to assume a node's role.
func nodeTrust() map[string]any {
	trust := Statement{Sid: "Instances", Actions: []string{"sts:AssumeRole"}}
	return document(trust.of("Service", "ec2."+urlSuffix))
}

// queueDocument allows the rules to send events to the queue, and denies all access without
// TLS.
func (q queue) document() map[string]any {
	var rules []string
	for _, r := range q.rules {
		rules = append(rules, r.arn)
	}
	events := Statement{Sid: "Events", Actions: []string{"sqs:SendMessage"}, Resources: []string{q.arn}, Conditions: Conditions{arnEquals: {"aws:SourceArn": rules}}}
	plain := Statement{Sid: "OnlyTLS", Actions: []string{"sqs:*"}, Resources: []string{q.arn}, Conditions: Conditions{isTrue: {"aws:SecureTransport": {"false"}}}}
	deny := plain.content()
	deny["Effect"], deny["Principal"] = "Deny", "*"
	return document(events.of("Service", "events.amazonaws.com"), deny)
}

func managedARN(name string) string { return "arn:" + partition + ":iam::aws:policy/" + name }

// filled returns a copy of a value in which fill has replaced each string with a
// placeholder.
func filled(v any, fill func(string) any) any {
	switch v := v.(type) {
	case map[string]any:
		all := make(map[string]any, len(v))
		for key, value := range v {
			all[key] = filled(value, fill)
		}
		return all
	case []any:
		all := make([]any, len(v))
		for i, value := range v {
			all[i] = filled(value, fill)
		}
		return all
	case string:
		if strings.Contains(v, "${") {
			return fill(v)
		}
	}
	return v
}
