package rulefile

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Tenants are settings of a rule for the two tenants of croft verify: fields of a Tenant's policy. $(own) is the
// tenant's first namespace.
type Tenants struct {
	// Restricted are the settings of the tenant that may do as little as possible.
	Restricted map[string]any `json:"restricted"`
	// Exempt are the settings of the tenant with every exception.
	Exempt map[string]any `json:"exempt"`
	// Only is set if the settings have an effect only on tenants whose TenantRules have all of these values.
	Only map[string]any `json:"only"`
}

// BuildSettings decodes the settings that all rules have for one of the two tenants.
func BuildSettings(all map[string]*Policy, choose func(Tenants) map[string]any, s Scene, into any) error {
	settings, from := map[string]any{}, map[string]string{}
	for _, policy := range slices.Sorted(maps.Keys(all)) {
		for _, rule := range all[policy].rules {
			file := policy + "/" + rule.Name + ".yaml"
			for name, value := range choose(rule.Tenants) {
				if other, ok := from[name]; ok {
					return fmt.Errorf("%s: tenants: %s sets %s, too: keep one of them", file, other, name)
				}
				settings[name], from[name] = value, file
			}
		}
	}
	content, err := json.Marshal(settings)
	if err != nil {
		return err
	}
	if err := decodeStrictly([]byte(s.ReplaceWords(string(content))), into); err != nil {
		return fmt.Errorf("tenants: %w", err)
	}
	return nil
}

// ListTrials returns the settings of rules that may be in trial.
func ListTrials(all map[string]*Policy) []string {
	var names []string
	for _, policy := range all {
		for _, rule := range policy.rules {
			if rule.Trial {
				names = append(names, rule.settingName())
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// FindTenants returns the rule whose file has a setting for the restricted tenant, and the file's settings. The rule
// is "" if there is none.
func FindTenants(all map[string]*Policy, setting string) (string, Tenants) {
	for _, policy := range all {
		for _, rule := range policy.rules {
			if _, ok := rule.Tenants.Restricted[setting]; ok {
				return rule.Name, rule.Tenants
			}
		}
	}
	return "", Tenants{}
}

// HaveEffect reports whether the settings have an effect on a tenant with these TenantRules.
func (t Tenants) HaveEffect(parameters map[string]any) (bool, error) {
	limited := Case{Only: t.Only}
	return limited.concerns(parameters)
}

// settingName returns the field of policy that allows exceptions from the rule.
func (r *rulePart) settingName() string { return strings.TrimPrefix(r.Exception, "policy.") }

// PodField is a field that croft sets on new pods without it, for tenants whose policy has the setting. The rule
// validates the pod afterwards.
type PodField struct {
	// Name is a part of the names of Gatekeeper's mutator and of the attack.
	Name string `json:"name"`
	// Path is the path of the field in a pod, and Summary describes its value.
	Path    string `json:"path"`
	Summary string `json:"summary"`
	// From are fields of TenantRules. The first with a value decides.
	From []string `json:"from"`
	// Values are the values of the field, by the values of From. Other values of From set nothing. Without Values, the
	// value of From is the value of the field.
	Values map[string]any `json:"values"`
	// Skip is a CEL condition: pods like this one cannot have the field.
	Skip string `json:"skip"`
	// Cleared are the paths of fields that the API server has derived from the missing field. It derives them
	// again after the patch. Gatekeeper's mutators cannot clear a field, so with Gatekeeper as the engine the
	// estate has no such setting.
	Cleared []string `json:"cleared"`
	// HasClusterDefault is set if the API server may set another value before the patch, by a default of the cluster.
	HasClusterDefault bool `json:"hasClusterDefault"`
	// Trial is the setting during whose trial croft does not set the field.
	Trial string `json:"-"`
}

// ListPodFields returns the fields that the policy's rules set. The data is the "." of the templates.
func (p *Policy) ListPodFields(data any) ([]PodField, error) {
	var all []PodField
	var errs []error
	for i := range p.rules {
		rule := &p.rules[i]
		if rule.Sets == nil {
			continue
		}
		field := *rule.Sets
		skip, err := p.execute(field.Skip, data)
		field.Skip = skip
		if rule.Trial {
			field.Trial = rule.settingName()
		}
		all, errs = append(all, field), append(errs, err)
	}
	return all, errors.Join(errs...)
}
