package gatekeeper

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Exclusion is an entry of spec.match in Gatekeeper's Config: namespaces that some of its
// processes skip.
type Exclusion struct {
	// Namespaces are names that may begin and end with a star.
	Namespaces []string `json:"excludedNamespaces,omitempty"`
	Processes  []string `json:"processes,omitempty"`
}

// configObject is the only Config that Gatekeeper reads.
const configObject = "Config/" + ConfigName

// The consequences for a namespace that is excluded from the processes that croft depends on.
const (
	unplaced = "is not placed"
	unheld   = "is not checked against the constraints"
	neither  = "is neither placed nor checked against the constraints"
)

// ParseExclusions returns the exclusions of a Config, which may be nil.
func ParseExclusions(config *unstructured.Unstructured) ([]Exclusion, error) {
	if config == nil {
		return nil, nil
	}
	var read struct {
		Spec struct {
			Match []Exclusion `json:"match,omitempty"`
		} `json:"spec"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(config.Object, &read); err != nil {
		return nil, fmt.Errorf("Gatekeeper's Config %s: %w", config.GetName(), err) //nolint:staticcheck // a name
	}
	return read.Spec.Match, nil
}

func checkExclusions(in Installation) []Finding {
	var all []Finding
	for i, exclusion := range in.Exclusions {
		undone := describeExclusion(exclusion.Processes)
		if undone == "" {
			continue
		}
		var patterns, names []string
		for _, pattern := range exclusion.Namespaces {
			for _, namespace := range in.Namespaces {
				if MatchesGlob(pattern, namespace.Name) {
					patterns, names = append(patterns, pattern), append(names, namespace.Name)
				}
			}
		}
		if len(names) == 0 {
			continue
		}
		all = append(all, Finding{
			Severity: Unsafe, Reason: ReasonNamespacesExcluded, Object: configObject,
			Field: fmt.Sprintf("spec.match[%d].excludedNamespaces", i),
			Message: fmt.Sprintf("has %s, for %s: this includes the tenants' namespaces %s, and an object in them %s; remove it, or write one that does not include them",
				joinNames(patterns), joinNames(exclusion.Processes), joinNames(names), undone),
		})
	}
	return all
}

// describeExclusion returns the consequence of excluding these processes. It is empty if croft depends
// on none of them.
func describeExclusion(processes []string) string {
	all := slices.Contains(processes, "*")
	mutation := all || slices.Contains(processes, "mutation-webhook")
	validation := all || slices.Contains(processes, "webhook")
	switch {
	case mutation && validation:
		return neither
	case mutation:
		return unplaced
	case validation:
		return unheld
	default:
		return ""
	}
}

// MatchesGlob reports whether a name matches a pattern of Gatekeeper: a star at either end of the
// pattern is a wildcard, and a star in the middle is literal.
func MatchesGlob(pattern, name string) bool {
	inner, ends := strings.CutPrefix(pattern, "*")
	start, starts := strings.CutSuffix(inner, "*")
	switch {
	case ends && starts:
		return strings.Contains(name, start)
	case ends:
		return strings.HasSuffix(name, inner)
	case starts:
		return strings.HasPrefix(name, start)
	default:
		return pattern == name
	}
}
