package identity

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/rights"
)

// calicoRules allow reading the policies of the dialect Calico and, if the platform
// enables it, writing them. Calico's API server also requires the right to a policy's
// tier: croft gives the one to the default tier, within the namespace.
func calicoRules(n *v1alpha1.PlatformNetwork, writing bool) []rbacv1.PolicyRule {
	if n.Dialect != v1alpha1.DialectCalico {
		return nil
	}
	group := v1alpha1.CalicoGroup
	if n.Calico != nil && n.Calico.APIGroup != "" {
		group = n.Calico.APIGroup
	}
	verbs := slices.Clone(rights.Read)
	if writing {
		verbs = append(verbs, rights.Write...)
	}
	rules := []rbacv1.PolicyRule{{
		APIGroups: []string{string(group)}, Resources: []string{"networkpolicies"}, Verbs: verbs,
	}}
	if group == v1alpha1.CalicoGroup {
		rules = append(rules, rbacv1.PolicyRule{
			APIGroups: []string{string(group)}, Resources: []string{"tier.networkpolicies"},
			ResourceNames: []string{"default.*"}, Verbs: verbs,
		})
	}
	return rules
}
