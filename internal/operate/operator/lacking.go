package operator

import (
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// listLacking returns the rights of rules that are missing in have, without duplicates.
func listLacking(rules []rbacv1.PolicyRule, have []authorizationv1.ResourceRule) []authorizationv1.ResourceAttributes {
	var all []authorizationv1.ResourceAttributes
	for _, rule := range rules {
		for _, right := range expandRights(rule) {
			covers := func(h authorizationv1.ResourceRule) bool { return allowsRight(h, right) }
			if !slices.ContainsFunc(have, covers) && !slices.Contains(all, right) {
				all = append(all, right)
			}
		}
	}
	return all
}

// expandRights returns the single rights of a rule.
func expandRights(rule rbacv1.PolicyRule) []authorizationv1.ResourceAttributes {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	var all []authorizationv1.ResourceAttributes
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				for _, name := range names {
					all = append(all, authorizationv1.ResourceAttributes{Group: group, Resource: resource, Verb: verb, Name: name})
				}
			}
		}
	}
	return all
}

// allowsRight reports whether a rule includes a right.
func allowsRight(rule authorizationv1.ResourceRule, right authorizationv1.ResourceAttributes) bool {
	includes := func(values []string, value string) bool {
		return slices.Contains(values, value) || slices.Contains(values, rbacv1.ResourceAll)
	}
	return includes(rule.APIGroups, right.Group) && includes(rule.Resources, right.Resource) && includes(rule.Verbs, right.Verb) &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, right.Name))
}

// describeRight formats a right for a message.
func describeRight(r authorizationv1.ResourceAttributes) string {
	text := r.Verb + " " + r.Resource
	if r.Group != "" {
		text += "." + r.Group
	}
	if r.Name != "" {
		text += " " + r.Name
	}
	if r.Namespace != "" {
		text += " in namespace " + r.Namespace
	}
	return text
}
