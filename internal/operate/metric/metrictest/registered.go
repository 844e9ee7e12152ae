// Package metrictest compares, in tests, the metrics that a process registers with the
// declarations in package metric.
package metrictest

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"croft.dev/croft/internal/operate/metric"
)

// CheckRegistered fails the test if a registry lacks a metric that is declared for the process,
// if it has an undeclared metric of croft's, or if help texts or labels differ.
func CheckRegistered(t *testing.T, registry prometheus.Collector, process metric.Process) {
	t.Helper()
	descriptions := make(chan *prometheus.Desc, 1000)
	registry.Describe(descriptions)
	close(descriptions)
	registered := map[string]string{}
	for d := range descriptions {
		_, rest, _ := strings.Cut(d.String(), `fqName: "`)
		name, _, _ := strings.Cut(rest, `"`)
		registered[name] = d.String()
	}
	for _, m := range metric.All() {
		got, ok := registered[m.Name]
		switch {
		case m.Process != process:
		case !ok:
			t.Errorf("%s is declared, but not registered", m.Name)
		case strings.HasPrefix(m.Name, "croft_") && got != m.Desc().String():
			t.Errorf("%s is registered as\n%s\nand declared as\n%s", m.Name, got, m.Desc())
		case parseLabels(got) != parseLabels(m.Desc().String()):
			t.Errorf("%s has the labels %s, and is declared with %s", m.Name, parseLabels(got), parseLabels(m.Desc().String()))
		}
	}
	for name := range registered {
		if strings.HasPrefix(name, "croft_") && !slices.ContainsFunc(metric.Own(), func(m metric.Metric) bool {
			return m.Name == name && m.Process == process
		}) {
			t.Errorf("%s is registered, but not declared in package metric", name)
		}
	}
}

// parseLabels returns the labels in the text of a description.
func parseLabels(description string) string {
	_, rest, _ := strings.Cut(description, "variableLabels: {")
	text, _, _ := strings.Cut(rest, "}")
	return text
}
