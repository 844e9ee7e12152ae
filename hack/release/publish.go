package main

import (
	"bytes"
	_ "embed" // for the templates
	"os"
	"path/filepath"
	"text/template"
)

var (
	// krew is the manifest for the index of kubectl's plugins
	// (https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/).
	//go:embed krew.yaml.tmpl
	krew string
	// homebrew is the formula for a tap (https://docs.brew.sh/Formula-Cookbook).
	//go:embed homebrew.rb.tmpl
	homebrew string
)

// Of returns the archives for an operating system.
func (r release) Of(system string) []archive {
	var all []archive
	for _, a := range r.Archives {
		if a.OS == system {
			all = append(all, a)
		}
	}
	return all
}

// Homebrew maps a formula's names of operating systems to Go's.
func (release) Homebrew() map[string]string {
	return map[string]string{"on_linux": "linux", "on_macos": "darwin"}
}

// fill executes a template with the release, and writes the result to a file.
func (r release) fill(to, text string) error {
	parsed, err := template.New(filepath.Base(to)).Option("missingkey=error").Parse(text)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, r); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, out.Bytes(), 0o600)
}
