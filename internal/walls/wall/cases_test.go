package wall_test

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/walls/wall"
	"croft.dev/croft/internal/walls/wall/ruletest"
)

// TestEveryRuleHasCases fails if a rule lacks a case that it refuses or warns about, or a
// case that it allows, in the files of its wall.
func TestEveryRuleHasCases(t *testing.T) {
	type rule struct{ policy, name string }
	type cases struct{ stopped, passed bool }
	all := map[rule]cases{}
	for _, w := range []string{"network", "nodes", "identity", "policy"} {
		for _, file := range ruletest.ReadFiles(t, w) {
			for _, c := range file.Cases {
				r := rule{file.FindPolicy(c), c.Rule}
				stopped := c.Refused || c.Warning != ""
				all[r] = cases{all[r].stopped || stopped, all[r].passed || !stopped}
			}
		}
	}
	platform := &estate.Platform{PlatformSpec: v1alpha1.PlatformSpec{ClusterName: "test", NodeClass: v1alpha1.NodeClass{Kwok: &v1alpha1.KwokNodeClass{}},
		Elevation: &v1alpha1.PlatformElevation{}}}
	known := map[rule]bool{}
	for _, o := range wall.PlatformObjects(platform) {
		p, ok := o.(*admissionv1.ValidatingAdmissionPolicy)
		// The policy on templates warns with the rules of pods, which have cases of their
		// own.
		if !ok || p.Name == admissionpolicy.PodTemplatesPolicy {
			continue
		}
		for key := range p.Annotations {
			name, ok := strings.CutPrefix(key, admissionpolicy.RuleAnnotation)
			if !ok {
				continue
			}
			r := rule{p.Name, name}
			known[r] = true
			if of := all[r]; !of.stopped || !of.passed {
				t.Errorf("%s of %s: a case that it stops: %t, one that it lets pass: %t", r.name, r.policy, of.stopped, of.passed)
			}
		}
	}
	for r := range all {
		if !known[r] && r.policy != admissionpolicy.PodTemplatesPolicy {
			t.Errorf("there are cases of %s of %s, which is no rule", r.name, r.policy)
		}
	}
}
