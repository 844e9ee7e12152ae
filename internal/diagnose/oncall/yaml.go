package oncall

import (
	"strings"

	"sigs.k8s.io/yaml"
)

// header is the comment with the origin of a generated file.
const header = "# Generated from internal/diagnose/oncall by `make generate`.\n"

type ruleFile struct {
	Groups []ruleGroup `json:"groups"`
}

type ruleGroup struct {
	Name  string `json:"name"`
	Rules []rule `json:"rules"`
}

type rule struct {
	Record      string            `json:"record,omitempty"`
	Alert       string            `json:"alert,omitempty"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

func buildRuleFile() ruleFile {
	var f ruleFile
	for _, g := range Groups() {
		group := ruleGroup{Name: g.Name}
		for _, r := range g.Records {
			group.Rules = append(group.Rules, rule{Record: r.Name, Expr: r.Expr})
		}
		for _, a := range g.Alerts {
			alert := rule{
				Alert: a.Name, Expr: a.Expr, Labels: map[string]string{"severity": string(a.Severity)},
				Annotations: map[string]string{"summary": a.Summary, "description": formatSentence(a.Meaning), "runbook_url": a.Runbook()},
			}
			if a.For > 0 {
				alert.For = a.After()
			}
			group.Rules = append(group.Rules, alert)
		}
		f.Groups = append(f.Groups, group)
	}
	return f
}

// RuleFile returns the rules in Prometheus' format.
func RuleFile() ([]byte, error) {
	text, err := yaml.Marshal(buildRuleFile())
	return append([]byte(header), text...), err
}

// PrometheusRule returns the rules as an object of the Prometheus operator
// (monitoring.coreos.com/v1).
func PrometheusRule() ([]byte, error) {
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "monitoring.coreos.com/v1",
		"kind":       "PrometheusRule",
		"metadata": map[string]any{
			"name": "croft", "namespace": "croft-system", "labels": map[string]string{"app.kubernetes.io/name": "croft"},
		},
		"spec": buildRuleFile(),
	})
	return append([]byte(header), text...), err
}

// formatSentence adds a capital letter at the beginning and a full stop at the end.
func formatSentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] + "." }
