package migrate

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"croft.dev/croft/internal/estate"
)

// variable is a shell variable that nobody has filled in, as in a document that
// was meant to go through a here-document.
var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}|\$([A-Z_][A-Z0-9_]*)`)

// scripts are fields in which a shell variable is meant as one.
var scripts = []string{"userData", "annotations", "rego", "targets", "data", "containers", "template"}

// fillIn replaces the variables that stand for the cluster's name, where it is
// known, and reports the others. They stay as they are.
func (d *draft) fillIn() {
	kept, problems := unique(d.objects)
	d.objects = kept
	d.problems = append(d.problems, problems...)
	for _, o := range d.objects {
		if o.skip || !reads(o) {
			continue
		}
		left := map[string][]string{}
		first := map[string][]string{}
		o.Content, _ = d.replaced(o.Content, nil, func(name string, path []string) {
			if _, seen := first[name]; !seen {
				first[name] = path
			}
			left[name] = append(left[name], fieldPath(path))
		}).(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(left)) {
			what := fmt.Sprintf("$%s is a shell variable that nobody has filled in", name)
			if n := len(left[name]); n > 1 {
				what += fmt.Sprintf(" (here and in %d more fields)", n-1)
			}
			if isClusterName(name) {
				what += ": say --cluster-name NAME, or write the cluster's name in its place"
			} else {
				what += ": write in its place what it stands for, as envsubst does"
			}
			d.problems = append(d.problems, o.problem(first[name], "%s", what))
		}
		// The name itself may have been one.
		metadata, _ := o.Content["metadata"].(map[string]any)
		o.Name, _ = metadata["name"].(string)
	}
}

func isClusterName(name string) bool {
	name = strings.ToUpper(name)
	return strings.HasSuffix(name, "CLUSTER_NAME") || name == "CLUSTER" || name == "CLUSTERNAME"
}

func (d *draft) replaced(v any, path []string, left func(name string, path []string)) any {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if !slices.Contains(scripts, key) || key == "template" && len(path) > 0 && path[0] == "spec" {
				v[key] = d.replaced(v[key], append(path[:len(path):len(path)], key), left)
			}
		}
	case []any:
		for i := range v {
			v[i] = d.replaced(v[i], append(path[:len(path):len(path)], fmt.Sprint(i)), left)
		}
	case string:
		return variable.ReplaceAllStringFunc(v, func(found string) string {
			name := strings.Trim(found, "${}")
			if isClusterName(name) && d.options.ClusterName != "" {
				return d.options.ClusterName
			}
			left(name, path)
			return found
		})
	}
	return v
}

// missing reports a field of croft.yaml that nothing which was read says.
func (d *draft) missing(path, format string, args ...any) {
	d.told[path] = true
	d.problems = append(d.problems, estate.Problem{Path: "croft.yaml: " + path, Message: fmt.Sprintf(format, args...)})
}
