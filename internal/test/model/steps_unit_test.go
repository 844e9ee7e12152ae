package model

import (
	"fmt"
	"slices"
	"testing"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
)

// TestSequencesAreReproducible fails if a seed does not determine its sequence, or if an action never
// occurs.
func TestSequencesAreReproducible(t *testing.T) {
	const n = 5000
	long, short := generateSteps(7, n), generateSteps(7, 100)
	if a, b := fmt.Sprint(long[:100]), fmt.Sprint(short); a != b {
		t.Errorf("%s\ndiffers from\n%s", a, b)
	}
	if fmt.Sprint(short) == fmt.Sprint(generateSteps(8, 100)) {
		t.Error("two seeds have the same sequence")
	}
	actions := map[string]int{}
	for _, s := range long {
		actions[s.action]++
	}
	for _, w := range weights {
		if actions[w.action] == 0 {
			t.Errorf("%q never occurs", w.action)
		}
	}
}

// TestSpecsAreValid fails if a tenant would be refused even if it were alone.
func TestSpecsAreValid(t *testing.T) {
	for _, s := range generateSteps(1, 2000) {
		if s.action != declareTenant {
			continue
		}
		d := newDeclaration(map[string]v1alpha1.TenantSpec{s.tenant: s.spec})
		if _, problems := estate.Build(d); len(problems) > 0 {
			t.Fatalf("%s: %v", s, problems)
		}
	}
}

// TestCoursesAreValid fails if the tenants of a fixed course would be refused, or if the model compares
// within a course because of its length.
func TestCoursesAreValid(t *testing.T) {
	for _, b := range listBugs() {
		tenants := map[string]v1alpha1.TenantSpec{}
		for i, s := range b.course {
			if s.index != i {
				t.Errorf("%s: step %d has the index %d", b.family, i, s.index)
			}
			if s.action == declareTenant {
				tenants[s.tenant] = s.spec
			}
		}
		if len(tenants) == 0 || len(b.course) > batch {
			t.Errorf("%s: %d steps with %d tenants", b.family, len(b.course), len(tenants))
		}
		if _, problems := estate.Build(newDeclaration(tenants)); len(problems) > 0 {
			t.Errorf("%s: %v", b.family, problems)
		}
	}
}

func newDeclaration(tenants map[string]v1alpha1.TenantSpec) *manifest.Declaration {
	d := &manifest.Declaration{Platforms: []v1alpha1.Platform{*newPlatform()}}
	for _, name := range poolNames {
		d.Pools = append(d.Pools, *newPool(name))
	}
	for name, spec := range tenants {
		d.Tenants = append(d.Tenants, *newTenant(name, spec))
	}
	return d
}

func TestSelections(t *testing.T) {
	steps := generateSteps(1, 50)
	for _, selection := range []string{"0", "0-49", "3,5-7,9", "48-49"} {
		selected, err := selectSteps(steps, selection)
		if got := formatSelection(selected); err != nil || got != selection {
			t.Errorf("%s became %s (%v)", selection, got, err)
		}
	}
	for _, selection := range []string{"x", "50", "4-2", "-1", "1,"} {
		if _, err := selectSteps(steps, selection); err == nil {
			t.Errorf("%q is accepted", selection)
		}
	}
	if all, err := selectSteps(steps, ""); err != nil || len(all) != len(steps) {
		t.Errorf("%d steps, %v", len(all), err)
	}
}

// TestShrink expects exactly the steps that a failure needs.
func TestShrink(t *testing.T) {
	needed := []int{3, 40, 41, 77}
	runs := 0
	fails := func(steps []step) bool {
		runs++
		for _, index := range needed {
			if !slices.ContainsFunc(steps, func(s step) bool { return s.index == index }) {
				return false
			}
		}
		return true
	}
	always := func() bool { return true }
	if got := formatSelection(shrinkSequence(generateSteps(1, 100), fails, always)); got != "3,40-41,77" {
		t.Errorf("steps %s remain", got)
	}
	if runs > 120 {
		t.Errorf("%d runs", runs)
	}
	all := generateSteps(1, 10)
	if got := shrinkSequence(all, fails, func() bool { return false }); len(got) != len(all) {
		t.Error("it continues without time")
	}
}
