package rulefile

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"croft.dev/croft/internal/rules/admissionpolicy"
)

// resource is an admissionpolicy.Resource. Its operations default to CREATE and UPDATE.
type resource struct {
	Group      string                      `json:"group"`
	Version    string                      `json:"version"`
	Resources  []string                    `json:"resources"`
	Operations []admissionv1.OperationType `json:"operations"`
}

type variable struct {
	Name       string `json:"name"`
	Expression string `json:"expression"`
}

// bound is an admissionpolicy.Bound.
type bound struct {
	Path     string `json:"path"`
	Max      int    `json:"max"`
	Reason   string `json:"reason"`
	Advice   string `json:"advice"`
	Size     string `json:"size"`
	Unit     string `json:"unit"`
	FastPath string `json:"fastPath"`
	Sample   string `json:"sample"`
	// UsedByPatch is for bounds of pods.
	UsedByPatch bool `json:"usedByPatch"`
}

var selections = map[string]admissionpolicy.Selection{
	"": "", "marked": admissionpolicy.Marked, "unmarked": admissionpolicy.Unmarked,
}

// parseTemplates parses the templates of all expressions once.
func (p *Policy) parseTemplates(functions template.FuncMap) error {
	base := template.New(p.name).Funcs(functions)
	for name, text := range p.shared.Fragments {
		if _, err := base.New(name).Parse(strings.TrimSpace(text)); err != nil {
			return err
		}
	}
	var errs []error
	parse := func(text string) string {
		if strings.Contains(text, "{{") {
			parsed, err := template.Must(base.Clone()).Parse(text)
			p.texts[text] = parsed
			errs = append(errs, err)
		}
		return text
	}
	p.build(parse)
	for _, rule := range p.rules {
		if rule.Sets != nil {
			parse(rule.Sets.Skip)
		}
	}
	return errors.Join(errs...)
}

// Build returns the policy. The data is the "." of the templates in its expressions.
func (p *Policy) Build(data any) (admissionpolicy.Validating, error) {
	var errs []error
	policy := p.build(func(text string) string {
		built, err := p.execute(text, data)
		errs = append(errs, err)
		return built
	})
	if err := errors.Join(errs...); err != nil {
		return policy, fmt.Errorf("%s: %w", p.name, err)
	}
	return policy, nil
}

// execute returns the text of an expression.
func (p *Policy) execute(text string, data any) (string, error) {
	parsed, ok := p.texts[text]
	if !ok {
		return strings.TrimSpace(text), nil
	}
	var out strings.Builder
	err := parsed.Execute(&out, data)
	return strings.TrimSpace(out.String()), err
}

// The values of appliesTo.
const (
	appliesToPods      = "pods"
	appliesToTemplates = "templates"
	appliesToSettings  = "settings"
)

// BuildPods returns the policy as a part of the policies on pods and on their templates.
func (p *Policy) BuildPods(data any) (admissionpolicy.Pods, error) {
	policy, err := p.Build(data)
	pods := admissionpolicy.Pods{
		Bounds: policy.Bounds, EarlyVariables: policy.EarlyVariables, Variables: policy.Variables,
	}
	for i, rule := range policy.Rules {
		switch p.rules[i].AppliesTo {
		case appliesToPods:
			pods.PodRules = append(pods.PodRules, rule)
		case appliesToTemplates:
			pods.TemplateRules = append(pods.TemplateRules, rule)
		case appliesToSettings:
			pods.SettingRules = append(pods.SettingRules, rule)
		default:
			pods.Rules = append(pods.Rules, rule)
		}
	}
	return pods, err
}

// build returns the policy, with every expression and bound passed through text.
func (p *Policy) build(text func(string) string) admissionpolicy.Validating {
	policy := admissionpolicy.Validating{
		Name:               p.name,
		Resources:          toResources(p.shared.Resources),
		ExcludedResources:  toResources(p.shared.ExcludedResources),
		Selection:          selections[p.shared.Selection],
		ExcludingLabels:    p.shared.ExcludingLabels,
		NamespaceLabels:    p.shared.NamespaceLabels,
		IgnoresTenantRules: p.shared.IgnoresTenantRules,
		ClusterWide:        p.shared.ClusterWide,
		WarnOnly:           p.shared.WarnOnly,
		EarlyVariables:     toVariables(p.shared.EarlyVariables, text),
		Variables:          toVariables(p.shared.Variables, text),
	}
	if len(p.shared.MatchConditions) > 0 {
		policy.MatchConditions = map[string]string{}
	}
	for _, name := range slices.Sorted(maps.Keys(p.shared.MatchConditions)) {
		policy.MatchConditions[name] = text(p.shared.MatchConditions[name])
	}
	for _, b := range p.shared.Bounds {
		policy.Bounds = append(policy.Bounds, admissionpolicy.Bound{
			Path: b.Path, Max: b.Max, Reason: b.Reason, Advice: b.Advice, Size: text(b.Size), Unit: b.Unit,
			FastPath: text(b.FastPath), Sample: b.Sample, UsedByPatch: b.UsedByPatch,
		})
	}
	for i := range p.rules {
		policy.Variables = append(policy.Variables, toVariables(p.rules[i].Variables, text)...)
		policy.Rules = append(policy.Rules, p.rules[i].build(text))
	}
	return policy
}

func (r *rulePart) build(text func(string) string) admissionpolicy.Rule {
	message := text(r.MessageExpression)
	if r.Message != "" {
		message = admissionpolicy.Quote(r.Message)
	}
	var trial string
	if r.Trial {
		trial = r.settingName()
	}
	return admissionpolicy.Rule{
		Trial: trial,
		Name:  r.Name, Summary: r.Summary, Exception: r.Exception,
		Expression: text(r.Expression), FastPath: text(r.FastPath), Message: message,
		Costly: r.Costly, LoopFree: r.LoopFree, UsuallyFast: r.UsuallyFast,
	}
}

func toResources(all []resource) []admissionpolicy.Resource {
	var list []admissionpolicy.Resource
	for _, r := range all {
		if r.Operations == nil {
			r.Operations = []admissionv1.OperationType{admissionv1.Create, admissionv1.Update}
		}
		list = append(list, admissionpolicy.Resource(r))
	}
	return list
}

func toVariables(all []variable, text func(string) string) []admissionpolicy.Variable {
	var list []admissionpolicy.Variable
	for _, v := range all {
		list = append(list, admissionpolicy.Variable{Name: v.Name, Expression: text(v.Expression)})
	}
	return list
}
