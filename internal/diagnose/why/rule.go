package why

import (
	"fmt"
	"strings"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/diagnose/catalog"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/walls/wall"
)

// addRule adds croft's rule, its requirement and the person who can permit more to a finding
// about a refusal by a rule. It returns other findings unchanged.
func addRule(f *catalog.Finding) *catalog.Finding {
	if f.ID != catalog.PolicyRefusedID {
		return f
	}
	refusal, _ := admissionpolicy.ParseRefusal(f.Symptom)
	rule := findRule(refusal.Policy, refusal.Rule)
	if rule == nil {
		return f
	}
	f.Cause = fmt.Sprintf("rule %s of policy %s refuses the object: %s", rule.Name, rule.Policy, rule.Summary)
	// Flux appends the objects that it applied before, on separate lines.
	message, _, _ := strings.Cut(refusal.Message, "\n")
	f.Fix = strings.TrimSpace(message)
	if rule.Exception != "" {
		f.Fix += fmt.Sprintf(". A platform admin can allow more by `%s` of the Tenant", rule.Exception)
	}
	f.Link = "docs/reference/rules.md"
	return f
}

// findRule looks up a rule by its policy and name, which do not depend on the Platform.
func findRule(policy, name string) *wall.Rule {
	platform := &estate.Platform{PlatformSpec: v1alpha1.PlatformSpec{NodeClass: v1alpha1.NodeClass{Kwok: &v1alpha1.KwokNodeClass{}}}}
	return findFirst(wall.Rules(platform), func(r *wall.Rule) bool { return r.Policy == policy && r.Name == name })
}
