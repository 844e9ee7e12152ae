// Command monitoring writes configuration for Prometheus and Grafana to the given directory:
// rules.yaml, prometheusrule.yaml and dashboards/*.json. `make generate` calls it.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"croft.dev/croft/internal/diagnose/oncall"
)

func main() {
	if err := writeFiles(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "monitoring:", err)
		os.Exit(1)
	}
}

func writeFiles(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: monitoring DIRECTORY")
	}
	if err := os.MkdirAll(filepath.Join(args[0], "dashboards"), 0o755); err != nil {
		return err
	}
	files := map[string]func() ([]byte, error){"rules.yaml": oncall.RuleFile, "prometheusrule.yaml": oncall.PrometheusRule}
	for _, d := range oncall.Dashboards() {
		files[filepath.Join("dashboards", d.Name+".json")] = d.JSON
	}
	for name, content := range files {
		text, err := content()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(args[0], name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
