package oncall_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"croft.dev/croft/internal/diagnose/oncall"
	"croft.dev/croft/internal/test/sandbox"
)

// runPromtool runs Prometheus' own tool, which `make promtool` builds.
func runPromtool(t *testing.T, args ...string) (string, error) {
	t.Helper()
	path, err := sandbox.FindTool("promtool")
	if err != nil {
		if sandbox.All() {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput()
	return string(out), err
}

// buildRuleFile writes a file for promtool.
func buildRuleFile(t *testing.T, name string, content any) string {
	t.Helper()
	text, ok := content.([]byte)
	if !ok {
		var err error
		if text, err = yaml.Marshal(content); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func writeRules(t *testing.T) string {
	t.Helper()
	text, err := oncall.RuleFile()
	if err != nil {
		t.Fatal(err)
	}
	return buildRuleFile(t, "rules.yaml", text)
}

// TestRulesAreValid checks the rules with promtool, and the queries of dashboards as rules.
func TestRulesAreValid(t *testing.T) {
	if out, err := runPromtool(t, "check", "rules", writeRules(t)); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	var panels []map[string]string
	for _, d := range oncall.Dashboards() {
		for _, p := range d.Panels {
			for _, q := range p.Queries {
				panels = append(panels, map[string]string{"record": fmt.Sprintf("panel:%d", len(panels)), "expr": q.Expr})
			}
		}
	}
	queries := buildRuleFile(t, "dashboards.yaml", map[string]any{"groups": []any{map[string]any{"name": "dashboards", "rules": panels}}})
	if out, err := runPromtool(t, "check", "rules", queries); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// evaluation is one of promtool's rule tests.
type evaluation struct {
	Interval    string           `json:"interval"`
	Name        string           `json:"name"`
	InputSeries []inputSeries    `json:"input_series"`
	Alerts      []evaluatedAlert `json:"alert_rule_test"`
}

type inputSeries struct {
	Series string `json:"series"`
	Values string `json:"values"`
}

type evaluatedAlert struct {
	At     string     `json:"eval_time"`
	Name   string     `json:"alertname"`
	Expect []expected `json:"exp_alerts"`
}

type expected struct {
	Labels      map[string]string `json:"exp_labels"`
	Annotations map[string]string `json:"exp_annotations"`
}

// TestAlerts evaluates each alert in the real Prometheus engine. The alert must fire for
// the series of fires, and must not for the series of silent, nor on a cluster without
// problems.
func TestAlerts(t *testing.T) {
	// A cluster without problems is the same for all alerts.
	quiet := evaluation{Interval: "1m", Name: "no problem", InputSeries: makeInputSeries(well)}
	var tests []evaluation
	for _, a := range oncall.Alerts() {
		c, ok := alertCases[a.Name]
		if !ok {
			t.Errorf("%s has no case that makes it fire", a.Name)
			continue
		}
		at := c.at
		if at == 0 {
			at = 15*time.Minute + a.For
		}
		firing := expected{Labels: map[string]string{"severity": string(a.Severity)}, Annotations: map[string]string{
			"summary": c.summary, "runbook_url": a.Runbook(), "description": strings.ToUpper(a.Meaning[:1]) + a.Meaning[1:] + ".",
		}}
		maps.Copy(firing.Labels, c.labels)
		for _, e := range []evaluation{
			{Name: a.Name + " fires", InputSeries: makeInputSeries(c.fires), Alerts: []evaluatedAlert{{formatMinutes(at), a.Name, []expected{firing}}}},
			{Name: a.Name + " is silent", InputSeries: makeInputSeries(c.silent), Alerts: []evaluatedAlert{{formatMinutes(at), a.Name, nil}}},
		} {
			e.Interval = "1m"
			tests = append(tests, e)
		}
		quiet.Alerts = append(quiet.Alerts, evaluatedAlert{formatMinutes(at), a.Name, nil})
	}
	for _, name := range slices.Sorted(maps.Keys(alertCases)) {
		if !slices.ContainsFunc(oncall.Alerts(), func(a oncall.Alert) bool { return a.Name == name }) {
			t.Errorf("there is no alert %s", name)
		}
	}
	test := buildRuleFile(t, "test.yaml", map[string]any{"rule_files": []string{writeRules(t)}, "evaluation_interval": "1m", "tests": append(tests, quiet)})
	if out, err := runPromtool(t, "test", "rules", test); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestConnectionOfStoppedOperator follows CroftConnectionNotClosed while the operator is stopped for
// an hour, and after it has closed the connection. It fails if the alert ends while the connection is
// open, or names one that was closed earlier.
func TestConnectionOfStoppedOperator(t *testing.T) {
	const name = "CroftConnectionNotClosed"
	i := slices.IndexFunc(oncall.Alerts(), func(a oncall.Alert) bool { return a.Name == name })
	if i < 0 {
		t.Fatal("there is no such alert")
	}
	alert := oncall.Alerts()[i]
	firing := []expected{{
		Labels: map[string]string{"severity": string(alert.Severity), "tenant": "shop", "caller": "billing"},
		Annotations: map[string]string{
			"summary":     "Pods of tenant billing can connect to tenant shop, although the consent ended at 1970-01-01 00:20:00 +0000 UTC",
			"runbook_url": alert.Runbook(), "description": strings.ToUpper(alert.Meaning[:1]) + alert.Meaning[1:] + ".",
		},
	}}
	test := evaluation{
		Name: name, Interval: "1m",
		InputSeries: makeInputSeries(map[string]string{
			`croft_operator_heartbeat_timestamp_seconds`:                               `0+60x10 stale _x58 4200+60x100`,
			`croft_connection_end_timestamp_seconds{tenant="shop",caller="billing"}`:   `1200x10 stale`,
			`croft_connection_end_timestamp_seconds{tenant="shop",caller="withdrawn"}`: `1200x5 stale`,
		}),
		Alerts: []evaluatedAlert{{"15m", name, nil}, {"20m", name, nil}, {"25m", name, firing}, {"69m", name, firing}, {"75m", name, nil}, {"120m", name, nil}},
	}
	file := buildRuleFile(t, "test.yaml", map[string]any{"rule_files": []string{writeRules(t)}, "evaluation_interval": "1m", "tests": []evaluation{test}})
	if out, err := runPromtool(t, "test", "rules", file); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func makeInputSeries(series map[string]string) []inputSeries {
	var all []inputSeries
	for _, name := range slices.Sorted(maps.Keys(series)) {
		all = append(all, inputSeries{name, series[name]})
	}
	return all
}

func formatMinutes(d time.Duration) string { return fmt.Sprintf("%dm", int(d.Minutes())) }
