// Command wallsdoc writes the generated part of docs/reference/rules.md: every rule of the walls and the
// attacks that test it. It reads the document from the first argument and writes it to the
// second. `make generate` calls it.
package main

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/hack/internal/document"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/prove/verify"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/walls/wall"
)

func main() { document.Main(generate) }

func generate() (string, error) {
	platform := v1alpha1.Platform{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.PlatformName}, Spec: v1alpha1.PlatformSpec{
		ClusterName: "demo", TenantDomain: "tenants.example.org", Admins: []string{"platform-admins"}, Auditors: []string{"platform-auditors"}, NodeClass: v1alpha1.NodeClass{Kwok: &v1alpha1.KwokNodeClass{}},
		Network:   v1alpha1.PlatformNetwork{PlatformNamespaces: []string{"ingress"}},
		Elevation: &v1alpha1.PlatformElevation{Approvers: []string{"platform-approvers"}},
	}}
	var attacks []attack.Attack
	var rules []wall.Rule
	// The additional rules of each dialect of network policies come after the common ones.
	for _, dialect := range []v1alpha1.NetworkDialect{
		v1alpha1.DialectKubernetes, v1alpha1.DialectCalico, v1alpha1.DialectClusterNetworkPolicy, v1alpha1.DialectAWS,
	} {
		more, err := newScratch(platform, dialect)
		if err != nil {
			return "", err
		}
		attacks = removeDuplicates(append(attacks, more.Attacks()...), func(a attack.Attack) string { return a.Name })
		rules = removeDuplicates(append(rules, more.Rules()...), func(r wall.Rule) wall.Rule { return r })
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%d rules of admission policies, %d attacks and %d mirrors. `croft verify --explain NAME` tells more of each.\n",
		len(rules), countKind(attacks, attack.Breach), countKind(attacks, attack.Mirror))
	for _, w := range wall.All() {
		writeSection(&b, w.Name(), rules, slices.DeleteFunc(slices.Clone(attacks), func(a attack.Attack) bool { return a.Wall != w.Name() }), attacks)
	}
	writeLimits(&b, platform)
	return b.String(), nil
}

// writeLimits writes the bounds of all policies. A bound of several policies has one row.
func writeLimits(b *strings.Builder, platform v1alpha1.Platform) {
	b.WriteString("\n## The bounds\n\n| in | at most | since |\n|---|---|---|\n")
	type row struct{ in, most, since string }
	var rows []row
	all := &estate.Platform{PlatformSpec: platform.Spec}
	all.Network.Dialect = v1alpha1.DialectCalico
	policies := map[row][]string{}
	for _, policy := range wall.ListBoundedPolicies(all) {
		for _, bound := range policy.Bounds {
			of := ""
			if bound.Unit != "" {
				of = " " + bound.Unit
			}
			r := row{formatCode(bound.Path), fmt.Sprint(bound.Max) + of, bound.Reason}
			if policies[r] == nil {
				rows = append(rows, r)
			}
			policies[r] = append(policies[r], formatCode(policy.Name))
		}
	}
	for _, r := range rows {
		fmt.Fprintf(b, "| %s (%s) | %s | %s |\n", r.in, strings.Join(policies[r], ", "), r.most, escapeCell(r.since))
	}
}

func newScratch(platform v1alpha1.Platform, dialect v1alpha1.NetworkDialect) (*verify.Scratch, error) {
	platform.Spec.Network.Dialect = dialect
	if dialect == v1alpha1.DialectCalico {
		platform.Spec.Network.Calico = &v1alpha1.CalicoNetwork{TenantPolicies: true}
	}
	return verify.NewScratch(platform)
}

// removeDuplicates returns the first element for each key.
func removeDuplicates[T any, K comparable](all []T, key func(T) K) []T {
	seen := map[K]bool{}
	return slices.DeleteFunc(all, func(v T) bool {
		was := seen[key(v)]
		seen[key(v)] = true
		return was
	})
}

func countKind(attacks []attack.Attack, kind attack.Kind) int {
	n := 0
	for _, a := range attacks {
		if a.Kind == kind {
			n++
		}
	}
	return n
}

func writeSection(b *strings.Builder, name string, rules []wall.Rule, own, all []attack.Attack) {
	fmt.Fprintf(b, "\n## The rules of %s\n", name)
	header := "\n| policy | rule | requires | exception | proven by |\n|---|---|---|---|---|\n"
	for _, r := range rules {
		if r.Wall != name {
			continue
		}
		b.WriteString(header)
		header = ""
		rule, summary := r.Name, r.Summary
		switch {
		case rule == "":
			rule = "(changes)"
		case r.WarnOnly:
			summary = "warns: " + summary
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |\n", r.Policy, rule, escapeCell(summary), formatCode(r.Exception), describeProof(r, own, all))
	}
	header = "\n| stopped by | attacks |\n|---|---|\n"
	var stoppers []string
	for _, a := range own {
		if a.Kind == attack.Breach && a.StoppedBy.Policy == "" || a.StoppedBy.Name == "mutation LimitRange" {
			if !slices.Contains(stoppers, a.StoppedBy.Name) {
				stoppers = append(stoppers, a.StoppedBy.Name)
			}
		}
	}
	for _, stopper := range stoppers {
		fmt.Fprintf(b, "%s| %s | %s |\n", header, stopper, listNames(own, func(a attack.Attack) bool { return a.StoppedBy.Name == stopper }))
		header = ""
	}
	fmt.Fprintf(b, "\nWhat a tenant must still be able to do: %s.\n", listNames(own, func(a attack.Attack) bool { return a.Kind == attack.Mirror }))
}

// describeProof names the attacks that a rule stops. If there are none, the rule checks the result of the
// mutating policy of the same name, and the attacks on that policy are named.
func describeProof(r wall.Rule, own, all []attack.Attack) string {
	by := func(rule string) func(attack.Attack) bool {
		return func(a attack.Attack) bool {
			return a.Kind == attack.Breach && a.StoppedBy.Policy == r.Policy && a.StoppedBy.Rule == rule
		}
	}
	if proven := listNames(all, by(r.Name)); proven != "" {
		return proven
	}
	return "where the change was taken away: " + listNames(own, by(""))
}

func listNames(attacks []attack.Attack, want func(attack.Attack) bool) string {
	var list []string
	for _, a := range attacks {
		if want(a) {
			list = append(list, formatCode(a.Name))
		}
	}
	return strings.Join(list, ", ")
}

func escapeCell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

func formatCode(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}
