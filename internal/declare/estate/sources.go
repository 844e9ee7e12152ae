package estate

import (
	"cmp"
	"maps"
	"slices"

	"croft.dev/croft/api/v1alpha1"
)

// These are the defaults of a source.
const (
	DefaultSourceBranch                           = "main"
	DefaultSourceTag                              = "latest"
	DefaultSourcePath                             = "./"
	DefaultSourceInterval v1alpha1.SourceInterval = "1m"
	DefaultSourceTimeout  v1alpha1.SourceTimeout  = "5m"
)

// Source is a tenant's source with every default set.
type Source struct {
	Name string
	v1alpha1.Source
}

// listSources returns a tenant's sources, sorted by name.
func listSources(t *v1alpha1.Tenant) []Source {
	var all []Source
	for _, name := range slices.Sorted(maps.Keys(t.Spec.Sources)) {
		s := t.Spec.Sources[name]
		switch {
		case s.Git == "":
			s.Tag = cmp.Or(s.Tag, DefaultSourceTag)
		case s.Tag == "":
			s.Branch = cmp.Or(s.Branch, DefaultSourceBranch)
		}
		s.Path = cmp.Or(s.Path, DefaultSourcePath)
		s.Interval = cmp.Or(s.Interval, DefaultSourceInterval)
		s.Timeout = cmp.Or(s.Timeout, DefaultSourceTimeout)
		s.Namespace = cmp.Or(s.Namespace, listNamespaces(t)[0])
		all = append(all, Source{Name: name, Source: s})
	}
	return all
}
