package copies

import (
	"slices"

	"croft.dev/croft/internal/adoption/migrate/draft"
)

// Coverage is the part of a tenant's namespaces that gets an object.
type Coverage int

// These are the values of Coverage. A namespace of which the input has no labels counts as left out.
const (
	NoNamespace Coverage = iota
	SomeNamespaces
	EveryNamespace
)

// ClassifyNamespaces returns the part of a tenant's namespaces for which a condition is true.
func ClassifyNamespaces(d *draft.Draft, tenant string, selected func(namespace string) bool) Coverage {
	namespaces := d.Namespaces(tenant)
	switch left := slices.DeleteFunc(slices.Clone(namespaces), selected); len(left) {
	case 0:
		return EveryNamespace
	case len(namespaces):
		return NoNamespace
	default:
		return SomeNamespaces
	}
}
