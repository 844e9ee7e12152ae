package verify_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/prove/trial"
	"croft.dev/croft/internal/prove/verify"
	"croft.dev/croft/internal/rules/attack"
)

// noManifest are the attacks and mirrors that cannot be manifests for `croft try`, with the
// reason, except for attacks and mirrors that need a cluster. The list may only shrink.
var noManifest = []struct {
	reason string
	is     func(attack.Attack) bool
}{
	{"traffic is no object", func(a attack.Attack) bool { return a.Flow != nil || a.Pairs != nil }},
	{"a team applies manifests; it does not read or delete by them", func(a attack.Attack) bool {
		return a.Request != nil && !slices.Contains([]attack.Verb{attack.Create, attack.Update, attack.Patch}, a.Request.Verb)
	}},
	{"a change needs the object in a cluster", func(a attack.Attack) bool {
		return a.Request != nil && a.Request.Verb != attack.Create
	}},
	{"a subresource is written by no manifest", func(a attack.Attack) bool { return a.Request != nil && a.Request.Subresource != "" }},
	{"it is tried by somebody else than an operator", func(a attack.Attack) bool {
		return len(a.AsGroups) > 0 || cmp.Or(a.Role, v1alpha1.RoleOperator) != v1alpha1.RoleOperator
	}},
	{"a request for an elevation names its sender, whom a file does not", func(a attack.Attack) bool {
		return a.Request != nil && a.Request.Object != nil && a.Request.Object.GetObjectKind().GroupVersionKind().Kind == "Elevation"
	}},
	{"the platform has given a right by mistake before, or made something else", func(a attack.Attack) bool { return len(a.Setup) > 0 }},
}

// TestTryAttacks passes each attack and mirror that is a manifest to `croft try`. It must
// refuse an attack, or warn of it, by the rule that stops the attack in a cluster, and accept
// mirrors.
func TestTryAttacks(t *testing.T) {
	scratch, err := verify.NewScratch(newPlatform("ingress"))
	if err != nil {
		t.Fatal(err)
	}
	platform, by, on := scratch.GetParts()
	e := &estate.Estate{Platform: *platform, Tenants: []*estate.Tenant{by, on}}
	trials := map[string]*trial.Trial{}
	for _, tenant := range e.Tenants {
		if trials[tenant.Name], err = trial.New(e, tenant, trial.Options{StorageClass: "croft-verify"}); err != nil {
			t.Fatal(err)
		}
	}
	tried := map[attack.Kind]int{}
	left := map[string]int{}
	for _, a := range scratch.Attacks() {
		if reason := explainNotTried(a); reason != "" {
			left[reason]++
			continue
		}
		object, err := convertToUnstructured(a.Request.Object)
		if err != nil {
			t.Fatal(err)
		}
		tried[a.Kind]++
		report, err := trials[a.Attacker].Try(t.Context(), []trial.Manifest{{File: a.Name, Line: 1, Object: object}})
		if err != nil {
			t.Errorf("%s: %v", a.Name, err)
		} else if wrong := compareVerdict(a, report.Results[0]); wrong != "" {
			t.Errorf("%s/%s (%s) %s", a.Wall, a.Name, a.StoppedBy.Name, wrong)
		}
	}
	for reason, n := range left {
		fmt.Printf("no manifest: %d attacks and mirrors: %s\n", n, reason)
	}
	fmt.Printf("tried as manifests: %d attacks, %d mirrors\n", tried[attack.Breach], tried[attack.Mirror])
	if tried[attack.Breach] < 540 || tried[attack.Mirror] < 150 {
		t.Errorf("only %v attacks and mirrors are manifests", tried)
	}
}

// explainNotTried returns why an attack is not tried as a manifest, or "" if it is.
func explainNotTried(a attack.Attack) string {
	for _, n := range noManifest {
		if n.is(a) {
			return n.reason
		}
	}
	for _, u := range unjudged {
		if u.is(a) {
			return u.reason
		}
	}
	return ""
}

// compareVerdict returns the error in the verdict of croft try on an attack.
func compareVerdict(a attack.Attack, r trial.Result) string {
	problem := fmt.Sprintf("is %s: %+v %+v", r.Verdict, r.Refusals, r.Warnings)
	reasons, want := r.Refusals, trial.Refused
	switch {
	case a.Kind == attack.Mirror:
		if r.Verdict == trial.Refused || r.Verdict == trial.Warned && !a.ExpectsWarning {
			return problem
		}
		return ""
	case a.StoppedBy.IsWarning != nil:
		reasons, want = r.Warnings, trial.Warned
	case a.StoppedBy.IsRefusal == nil:
		if r.Verdict != trial.Changed {
			return problem + ", want " + string(trial.Changed)
		}
		return ""
	}
	if r.Verdict != want {
		return problem + ", want " + string(want)
	}
	if !slices.ContainsFunc(reasons, func(r trial.Reason) bool { return hasSameRule(a.StoppedBy, r) }) {
		return problem
	}
	return ""
}

// hasSameRule reports whether a reason names the rule that must refuse the attack.
func hasSameRule(by attack.Stopper, r trial.Reason) bool {
	switch by.Name {
	case attack.ByRBAC.Name:
		return r.Source == "RBAC"
	case attack.ByPodSecurity.Name, attack.ByPodSecurityWarning.Name:
		return r.Source == "PodSecurity"
	default:
		return by.Name == attack.ByPolicy(r.Source, r.Rule).Name || by.Name == attack.ByWarning(r.Source, r.Rule).Name
	}
}
