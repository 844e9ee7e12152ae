package migrate

import (
	"strings"
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
			if globs(pattern, o.Name) {
				all = append(all, o.Name)
			}
		}
	}
	return distinct(all)
}

// globs is how Gatekeeper compares names: a * at either end.
func globs(pattern, name string) bool {
	inner := strings.Trim(pattern, "*")
	begins, ends := strings.HasSuffix(pattern, "*"), strings.HasPrefix(pattern, "*")
	switch {
	case begins && ends:
		return strings.Contains(name, inner)
	case begins:
		return strings.HasPrefix(name, inner)
	case ends:
		return strings.HasSuffix(name, inner)
	default:
		return pattern == name
	}
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
