package policy

import (
	"croft.dev/croft/internal/rules/admissionpolicy"
)

// ArgoCDPolicy is the name of the policy on the objects that Argo CD applies for tenants.
const ArgoCDPolicy = "croft-argocd"

// ApplicationsRule is the name of its only rule.
const ApplicationsRule = "applications"

// checkArgoCD prevents tenants from writing objects that Argo CD applies with its own
// permissions. No role of croft grants these kinds, but Argo CD may be configured to read
// Applications and ApplicationSets in any namespace, and other roles may grant them. Updates
// outside of the spec are refused, too: an Application also has an operation, which Argo CD
// runs at once.
func checkArgoCD() admissionpolicy.Validating {
	return admissionpolicy.Validating{
		Name:               ArgoCDPolicy,
		IgnoresTenantRules: true,
		Resources: []admissionpolicy.Resource{{
			Group: "argoproj.io", Version: "*",
			Resources: []string{"applications", "applicationsets", "appprojects"}, Operations: write,
		}},
		Rules: []admissionpolicy.Rule{{
			Name:       ApplicationsRule,
			Summary:    "only the platform writes Applications, ApplicationSets and AppProjects",
			Expression: clusterWide,
			Message: `request.kind.kind + ": Argo CD would apply with its own rights, in any namespace: ` +
				`ask a platform admin to declare a source for your tenant"`,
		}},
	}
}
