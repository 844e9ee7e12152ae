package me

import (
	"slices"
	"strings"

	"croft.dev/croft/internal/declare/wording"
)

// Allowance lists the values of a field that the tenant's objects may have.
type Allowance struct{ Name, Values string }

// ListAllowances returns the values that the rules allow, for the table "you may use".
func (m *Me) ListAllowances() []Allowance {
	r := &m.Rules
	return []Allowance{
		{"domains", wording.JoinNames(r.Domains)},
		{"images from", formatAllowed(r.Registries, nil)},
		{"Service types", wording.JoinNames(toStrings(r.ServiceTypes))},
		{"StorageClasses", formatAllowed(r.StorageClasses, m.Classes["storageClasses"])},
		{"IngressClasses", formatAllowed(r.IngressClasses, m.Classes["ingressClasses"])},
		{"GatewayClasses", formatAllowed(r.GatewayClasses, m.Classes["gatewayClasses"])},
		{"issuers", formatAllowed(r.Issuers, nil)},
		{"Flux sources at", formatAllowed(r.SourceHosts, nil)},
		{"PriorityClasses", formatAllowed(r.PriorityClasses, m.Classes["priorityClasses"])},
		{"RuntimeClasses", formatAllowed(r.RuntimeClasses, m.Classes["runtimeClasses"])},
	}
}

// formatAllowed formats a list in which "*" means any name, together with the existing names.
func formatAllowed(names, there []string) string {
	switch {
	case !slices.Contains(names, "*"):
		return wording.JoinNames(names)
	case len(there) == 0:
		return "any"
	default:
		return "any of " + strings.Join(there, ", ")
	}
}

func toStrings[T ~string](all []T) []string {
	names := make([]string, len(all))
	for i, w := range all {
		names[i] = string(w)
	}
	return names
}
