package estate

import (
	"cmp"
	"maps"
	"slices"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/manifest"
)

// SecretCopy is a copy of a Secret of the platform in every namespace of a tenant.
type SecretCopy struct {
	// Name is the name of the copy. Source is the name of the Secret in v1alpha1.SecretsNamespace.
	Name, Source string
}

// resolveSecrets returns a tenant's copies, sorted by name. A tenant's own copy replaces the platform's.
func resolveSecrets(defaults, own map[string]v1alpha1.SecretCopy) []SecretCopy {
	merged := maps.Clone(defaults)
	if merged == nil {
		merged = map[string]v1alpha1.SecretCopy{}
	}
	maps.Copy(merged, own)
	var all []SecretCopy
	for _, name := range slices.Sorted(maps.Keys(merged)) {
		all = append(all, SecretCopy{Name: name, Source: cmp.Or(merged[name].From, name)})
	}
	return all
}

// ListSecrets returns the copies that a declaration's Platforms and Tenants name, each once, sorted by
// name and source. It includes copies of invalid objects: an installation gives the right to copy
// these Secrets, and the estate decides whether they are copied.
func ListSecrets(d *manifest.Declaration) []SecretCopy {
	var all []SecretCopy
	for i := range d.Platforms {
		all = append(all, resolveSecrets(d.Platforms[i].Spec.TenantDefaults.Secrets, nil)...)
	}
	for i := range d.Tenants {
		all = append(all, resolveSecrets(nil, d.Tenants[i].Spec.Secrets)...)
	}
	slices.SortFunc(all, func(a, b SecretCopy) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Source, b.Source)) })
	return slices.Compact(all)
}
