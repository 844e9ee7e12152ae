package gatekeeper

import (
	"strings"

	"croft.dev/croft/internal/gatekeeper"
	"croft.dev/croft/internal/migrate/draft"
)

// matched are the namespaces whose pods a mutator or a constraint is about.
func matched(d *draft.Draft, m Mutator) []string {
	var all []string
	for _, pattern := range m.At("spec", "match", "namespaces").Texts() {
		if !strings.Contains(pattern, "*") {
			all = append(all, pattern)
			continue
		}
		for _, o := range d.Of("", "Namespace") {
			if gatekeeper.Globs(pattern, o.Name) {
				all = append(all, o.Name)
			}
		}
	}
	return draft.Distinct(all)
}

// match accounts for whom a mutator or a constraint is about.
func match(d *draft.Draft, m Mutator) {
	match := m.At("spec", "match")
	for _, f := range match.Fields() {
		switch f.Key() {
		case "namespaces":
			if len(matched(d, m)) == 0 {
				f.NotKept("none of these namespaces is known: give their Namespace objects too, or name them in full")
			}
		case "scope", "kinds", "source":
		default:
			f.NotKept("croft goes by namespaces alone: name them in tenants.*.namespaces")
		}
	}
	if !match.At("namespaces").Found() {
		match.At("namespaces").UnsetChanged("tenants", "names no namespaces, so that it says of no tenant where its pods run")
	}
}
