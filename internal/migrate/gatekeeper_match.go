package migrate

import (
	"strings"

	"croft.dev/croft/internal/gatekeeper"
)

// matched are the namespaces whose pods a mutator or a constraint is about.
func (d *draft) matched(m mutator) []string {
	var all []string
	for _, pattern := range m.At("spec", "match", "namespaces").Texts() {
		if !strings.Contains(pattern, "*") {
			all = append(all, pattern)
			continue
		}
		for _, o := range d.of("", "Namespace") {
			if gatekeeper.Globs(pattern, o.Name) {
				all = append(all, o.Name)
			}
		}
	}
	return distinct(all)
}

// match accounts for whom a mutator or a constraint is about.
func (d *draft) match(m mutator) {
	match := m.At("spec", "match")
	for _, f := range match.Fields() {
		switch f.Key() {
		case "namespaces":
			if len(d.matched(m)) == 0 {
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
