package migrate

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
)

// variable matches an unexpanded shell variable, as in a document for a here-document.
var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}|\$([A-Z_][A-Z0-9_]*)`)

// scripts are fields in which shell variables are legitimate.
var scripts = []string{"userData", "annotations", "rego", "targets", "data", "containers", "template"}

// replaceVariables replaces the variables for the cluster's name, if it is known, and reports the others,
// which remain unchanged.
func replaceVariables(d *draft.Draft) {
	kept, problems := removeDuplicates(d.Objects)
	d.Objects = kept
	d.Problems = append(d.Problems, problems...)
	for _, o := range d.Objects {
		if o.Skip || !draft.IsRead(o) {
			continue
		}
		left := map[string][]string{}
		first := map[string][]string{}
		o.Content, _ = replaceValue(d, o.Content, nil, func(name string, path []string) {
			if _, seen := first[name]; !seen {
				first[name] = path
			}
			left[name] = append(left[name], source.FieldPath(path))
		}).(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(left)) {
			problem := fmt.Sprintf("$%s is a shell variable without a value", name)
			if n := len(left[name]); n > 1 {
				problem += fmt.Sprintf(" (here and in %d more fields)", n-1)
			}
			if isClusterName(name) {
				problem += ": set --cluster-name, or replace it by the cluster's name"
			} else {
				problem += ": replace it by its value, as envsubst does"
			}
			d.Problems = append(d.Problems, o.Problem(first[name], "%s", problem))
		}
		// The object's name may have contained a variable.
		metadata, _ := o.Content["metadata"].(map[string]any)
		o.Name, _ = metadata["name"].(string)
	}
}

func isClusterName(name string) bool {
	name = strings.ToUpper(name)
	return strings.HasSuffix(name, "CLUSTER_NAME") || name == "CLUSTER" || name == "CLUSTERNAME"
}

func replaceValue(d *draft.Draft, v any, path []string, left func(name string, path []string)) any {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if !slices.Contains(scripts, key) || key == "template" && len(path) > 0 && path[0] == "spec" {
				v[key] = replaceValue(d, v[key], append(path[:len(path):len(path)], key), left)
			}
		}
	case []any:
		for i := range v {
			v[i] = replaceValue(d, v[i], append(path[:len(path):len(path)], fmt.Sprint(i)), left)
		}
	case string:
		return variable.ReplaceAllStringFunc(v, func(found string) string {
			name := strings.Trim(found, "${}")
			if isClusterName(name) && d.Options.ClusterName != "" {
				return d.Options.ClusterName
			}
			left(name, path)
			return found
		})
	}
	return v
}
