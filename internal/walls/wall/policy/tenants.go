package policy

import (
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/rules/rulefile"
)

// BuildRestrictedAllowances returns the allowances of croft verify's tenant that may do as little as possible. own is
// its first namespace.
func BuildRestrictedAllowances(own string) v1alpha1.Allowances {
	return buildAllowances(own, func(t rulefile.Tenants) map[string]any { return t.Restricted })
}

// BuildExemptAllowances returns the allowances of croft verify's tenant with every exception. All rules that can be in
// trial are. own is its first namespace.
func BuildExemptAllowances(own string) v1alpha1.Allowances {
	exempt := buildAllowances(own, func(t rulefile.Tenants) map[string]any { return t.Exempt })
	exempt.Trial = rulefile.ListTrials(readPolicies())
	return exempt
}

func buildAllowances(own string, choose func(rulefile.Tenants) map[string]any) v1alpha1.Allowances {
	var all v1alpha1.Allowances
	scene := rulefile.Scene{Words: map[string]string{"own": own}}
	utilruntime.Must(rulefile.BuildSettings(readPolicies(), choose, scene, &all))
	return all
}

// FindRule returns the rule whose file has the settings of croft verify's tenants for an allowance, or "".
func FindRule(allowance string) string {
	rule, _ := rulefile.FindTenants(readPolicies(), allowance)
	return rule
}

// HasEffect reports whether an allowance has an effect on a tenant with these TenantRules.
func HasEffect(allowance string, parameters map[string]any) bool {
	_, tenants := rulefile.FindTenants(readPolicies(), allowance)
	affects, err := tenants.HaveEffect(parameters)
	utilruntime.Must(err)
	return affects
}
