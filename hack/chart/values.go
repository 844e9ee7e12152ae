package main

import (
	"bytes"
	_ "embed" // values.yaml.tmpl
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"
)

// defaults are the settings of `croft install`, which apply unless the values set others.
type defaults struct {
	Operator, Proxy, Dashboard, Ledger, Agent, CopySecrets, Verify workload
	// DashboardEgress is a list of ports in YAML.
	DashboardEgress string
	LedgerStorage   string
	Plugins         struct{ Namespace, Labels string }
}

//go:embed values.yaml.tmpl
var valuesTemplate string

// renderValues returns values.yaml with the defaults.
func renderValues(of defaults) ([]byte, error) {
	parsed, err := template.New("values.yaml").Funcs(template.FuncMap{"yaml": func(indent int, value any) (string, error) {
		data, err := yaml.Marshal(value)
		space := "\n" + strings.Repeat(" ", indent)
		return space + strings.ReplaceAll(strings.TrimSpace(string(data)), "\n", space), err
	}}).Parse(valuesTemplate)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = parsed.Execute(&b, of)
	return b.Bytes(), err
}
