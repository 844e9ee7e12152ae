package gatekeeper

import (
	"regexp"
	"slices"
	"strings"
)

// step matches one step of a location: a name, with or without quotes, or an entry of a list in
// brackets.
var step = regexp.MustCompile(`\.?(?:"([^"]*)"|'([^']*)'|\[\s*["']?([^\]"']*)["']?[^\]]*\]|([^.\["']+))`)

// splitLocation splits a location: spec.nodeSelector."node-pool" has the steps spec, nodeSelector
// and node-pool. The entry of a list is one step, such as key: gpu.
func splitLocation(location string) []string {
	var steps []string
	for _, found := range step.FindAllStringSubmatch(strings.TrimSpace(location), -1) {
		steps = append(steps, strings.TrimSpace(strings.Join(found[1:], "")))
	}
	return steps
}

// podSpecs are the paths of pod specs in workloads.
var podSpecs = [][]string{
	{"spec", "jobTemplate", "spec", "template", "spec"}, {"spec", "template", "spec"}, {"template", "spec"},
}

// getPodSpecPath returns the location within the pod spec of the mutated objects, or nil if it is
// elsewhere.
func (m Mutator) getPodSpecPath() []string {
	steps := splitLocation(m.At("spec", "location").Text())
	for _, above := range podSpecs {
		if len(steps) > len(above) && slices.Equal(steps[:len(above)], above) {
			return steps[len(above):]
		}
	}
	if len(steps) > 1 && steps[0] == "spec" && m.isForPods() {
		return steps[1:]
	}
	return nil
}

// isForPods reports whether the mutator applies to pods themselves.
func (m Mutator) isForPods() bool {
	return slices.ContainsFunc(m.listKinds(), func(kind string) bool { return kind == "Pod" || kind == "*" })
}

// listKinds returns the kinds that the mutator applies to.
func (m Mutator) listKinds() []string {
	var kinds []string
	for _, a := range m.At("spec", "applyTo").Items() {
		kinds = append(kinds, a.At("kinds").Texts()...)
	}
	return kinds
}
