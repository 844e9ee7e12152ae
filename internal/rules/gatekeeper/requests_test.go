package gatekeeper

import (
	"slices"
	"testing"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/walls/wall"
)

// TestConstrainedKindsAreChecked fails if a constraint of croft is for a kind that the check
// of the webhook's rules leaves out: rules without the kind would pass the check.
func TestConstrainedKindsAreChecked(t *testing.T) {
	d, problems := manifest.Parse("croft.yaml", []byte("platform: {clusterName: demo, placement: Gatekeeper, nodeClass: {kwok: {}}}\n"))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	e, problems := estate.Build(d)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	all := wall.ListConstrainedPolicies(&e.Platform)
	if len(all) == 0 {
		t.Fatal("there are no constraints")
	}
	for _, c := range all {
		for group, kinds := range c.MatchedKinds {
			for _, kind := range kinds {
				if !slices.ContainsFunc(constrained, func(n requiredRequest) bool { return n.group == group && n.kind == kind }) {
					t.Errorf("%s is for %s, which no webhook is asked for", c.Kind, kind)
				}
			}
		}
	}
}
