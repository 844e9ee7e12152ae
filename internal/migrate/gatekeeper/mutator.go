package gatekeeper

import (
	"regexp"
	"strings"

	"croft.dev/croft/internal/migrate/draft"
	"croft.dev/croft/internal/migrate/source"
)

// Mutator is a Gatekeeper Assign or ModifySet.
type Mutator struct{ *source.Object }

// Mutators are the mutators in the input, in its order, Assigns first.
func Mutators(d *draft.Draft) []Mutator {
	var all []Mutator
	for _, o := range append(d.Of(draft.MutationsGroup, "Assign"), d.Of(draft.MutationsGroup, "ModifySet")...) {
		all = append(all, Mutator{o})
	}
	return all
}

// keyed is a location that leads to one entry: spec.nodeSelector["node-pool"].
var keyed = regexp.MustCompile(`^spec\.nodeSelector(?:\["?([^"\]]+)"?\]|\."?([^"]+)"?)$`)

func (m Mutator) location() string { return strings.Trim(m.At("spec", "location").Text(), " ") }

// Selector is the nodeSelector that the mutator gives to pods, if it gives one.
func (m Mutator) Selector() source.Field {
	value := m.At("spec", "parameters", "assign", "value")
	if m.Kind != "Assign" {
		return source.Field{}
	}
	if m.location() == "spec.nodeSelector" {
		return value
	}
	if key := keyed.FindStringSubmatch(m.location()); key != nil && value.Text() != "" {
		name := key[1] + key[2]
		return value.With(map[string]any{name: value.Text()})
	}
	return source.Field{}
}

// Tolerations are those that the mutator adds to pods.
func (m Mutator) Tolerations() []source.Field {
	if !strings.HasPrefix(m.location(), "spec.tolerations") {
		return nil
	}
	if m.Kind == "ModifySet" {
		if m.At("spec", "parameters", "operation").Text() == "prune" {
			return nil
		}
		return m.At("spec", "parameters", "values", "fromList").Items()
	}
	value := m.At("spec", "parameters", "assign", "value")
	if items := value.Items(); len(items) > 0 {
		return items
	}
	if value.At("key").Found() {
		return []source.Field{value}
	}
	return nil
}
