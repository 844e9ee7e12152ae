// Command wallsdoc writes the part of docs/walls.md that is generated: every rule
// of the walls and the attacks that prove it. It reads the document from the
// first argument and writes it to the second. `make generate` calls it.
package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/attack"
	"croft.dev/croft/internal/estate"
	"croft.dev/croft/internal/wall"
)

// marker begins the generated part, which goes on to the end.
const marker = "<!-- What follows is generated from the code by `make generate`. -->\n"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "wallsdoc:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: wallsdoc FROM TO")
	}
	document, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	written, _, found := bytes.Cut(document, []byte(marker))
	if !found {
		return fmt.Errorf("%s has no line %q", args[0], strings.TrimSpace(marker))
	}
	generated, err := generate()
	if err != nil {
		return err
	}
	return os.WriteFile(args[1], []byte(string(written)+marker+generated), 0o600)
}

// kinds of tenants have different attacks: what is open to one is closed to
// another.
func kinds() ([]*estate.Estate, error) {
	open := v1alpha1.TenantDefaults{Egress: v1alpha1.EgressOpen}
	tight := v1alpha1.TenantDefaults{Egress: v1alpha1.EgressRestricted, PodSecurity: v1alpha1.PodSecurityRestricted}
	tight.Policy = v1alpha1.Allowances{
		Registries: []string{"docker.io/library"}, StorageClasses: []string{"standard"},
		IngressClasses: []string{"nginx"}, GatewayClasses: []string{"shared"},
	}
	var all []*estate.Estate
	for _, defaults := range []v1alpha1.TenantDefaults{open, tight} {
		tenant := func(name string) v1alpha1.Tenant {
			return v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.TenantSpec{
				Pools: []string{name, name + "-2"}, Namespaces: []string{name, name + "-2"},
				Access: []v1alpha1.Access{{Group: name, Role: v1alpha1.RoleOperator}},
				Quota:  corev1.ResourceList{corev1.ResourcePods: resource.MustParse("50"), corev1.ResourceRequestsCPU: resource.MustParse("50")},
			}}
		}
		d := &estate.Declaration{
			Platforms: []v1alpha1.Platform{{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.PlatformName}, Spec: v1alpha1.PlatformSpec{
				ClusterName: "demo", TenantDomain: "tenants.example.org", NodeClass: v1alpha1.NodeClass{Kwok: &v1alpha1.KwokNodeClass{}},
				Network: v1alpha1.PlatformNetwork{PlatformNamespaces: []string{"ingress"}}, TenantDefaults: defaults,
			}}},
			Tenants: []v1alpha1.Tenant{tenant("one"), tenant("other")},
		}
		for _, t := range d.Tenants {
			for _, pool := range t.Spec.Pools {
				d.Pools = append(d.Pools, v1alpha1.Pool{ObjectMeta: metav1.ObjectMeta{Name: pool}})
			}
		}
		e, problems := estate.Build(d)
		if len(problems) > 0 {
			return nil, problems
		}
		all = append(all, e)
	}
	return all, nil
}

func generate() (string, error) {
	estates, err := kinds()
	if err != nil {
		return "", err
	}
	var attacks []attack.Attack
	for _, e := range estates {
		for _, a := range wall.Attacks(&e.Platform, e.Tenants[0], e.Tenants[1]) {
			if !slices.ContainsFunc(attacks, func(b attack.Attack) bool { return b.Name == a.Name }) {
				attacks = append(attacks, a)
			}
		}
	}
	rules := wall.Rules(&estates[0].Platform)
	var b strings.Builder
	fmt.Fprintf(&b, "\n# Every rule, and what proves it\n\n%d rules of admission policies, %d attacks and %d mirrors. `croft verify --explain NAME` tells more of each.\n",
		len(rules), count(attacks, attack.Breach), count(attacks, attack.Mirror))
	for _, w := range wall.All() {
		section(&b, w.Name(), rules, slices.DeleteFunc(slices.Clone(attacks), func(a attack.Attack) bool { return a.Wall != w.Name() }), attacks)
	}
	return b.String(), nil
}

func count(attacks []attack.Attack, kind attack.Kind) int {
	n := 0
	for _, a := range attacks {
		if a.Kind == kind {
			n++
		}
	}
	return n
}

func section(b *strings.Builder, name string, rules []wall.Rule, own, all []attack.Attack) {
	fmt.Fprintf(b, "\n## The rules of %s\n", name)
	header := "\n| policy | rule | asks | more by | proven by |\n|---|---|---|---|---|\n"
	for _, r := range rules {
		if r.Wall != name {
			continue
		}
		b.WriteString(header)
		header = ""
		rule, says := r.Name, r.Says
		switch {
		case rule == "":
			rule = "(changes)"
		case r.Warns:
			says = "warns: " + says
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |\n", r.Policy, rule, cell(says), code(r.Exception), names(all, func(a attack.Attack) bool {
			return a.Kind == attack.Breach && a.StoppedBy.Policy == r.Policy && a.StoppedBy.Rule == r.Name
		}))
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
		fmt.Fprintf(b, "%s| %s | %s |\n", header, stopper, names(own, func(a attack.Attack) bool { return a.StoppedBy.Name == stopper }))
		header = ""
	}
	fmt.Fprintf(b, "\nWhat a tenant must still be able to do: %s.\n", names(own, func(a attack.Attack) bool { return a.Kind == attack.Mirror }))
}

func names(attacks []attack.Attack, want func(attack.Attack) bool) string {
	var list []string
	for _, a := range attacks {
		if want(a) {
			list = append(list, code(a.Name))
		}
	}
	return strings.Join(list, ", ")
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}
