package estate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/manifest"
)

// TestDomains declares tenants a, b, … with these domains, starting on line 9.
func TestDomains(t *testing.T) {
	const overlap = "croft.yaml:%d: tenants.%s.domains[%d]: %s overlaps with %s of tenant %s (croft.yaml:%d); a domain belongs to one tenant"
	for _, test := range []struct {
		name    string
		domains []string
		want    []string
	}{
		{"apart", []string{"x.org.uk, *.x.org.uk", "y.org.uk", "*.y.org.uk", "xx.org.uk"}, nil},
		{"a wildcard does not hold its base", []string{"*.x.org.uk", "x.org.uk"}, nil},
		{"within one tenant", []string{"*.x.org.uk, a.x.org.uk, *.a.x.org.uk"}, nil},
		{"own subtree", []string{"a.tenants.example.org, x.a.tenants.example.org, *.x.a.tenants.example.org"}, nil},
		{"around the tenant domain", []string{"example.org, www.example.org, *.www.example.org"}, nil},
		{"exact and exact", []string{"x.org.uk", "x.org.uk"}, []string{
			fmt.Sprintf(overlap, 10, "b", 0, "x.org.uk", "x.org.uk", "a", 9)}},
		{"exact under a wildcard", []string{"*.x.org.uk", "deep.down.x.org.uk"}, []string{
			fmt.Sprintf(overlap, 10, "b", 0, "deep.down.x.org.uk", "*.x.org.uk", "a", 9)}},
		{"a wildcard over an exact one", []string{"deep.down.x.org.uk", "y.org.uk, *.x.org.uk"}, []string{
			fmt.Sprintf(overlap, 10, "b", 1, "*.x.org.uk", "deep.down.x.org.uk", "a", 9)}},
		{"the same wildcard", []string{"*.x.org.uk", "*.x.org.uk"}, []string{
			fmt.Sprintf(overlap, 10, "b", 0, "*.x.org.uk", "*.x.org.uk", "a", 9)}},
		{"a wildcard under a wildcard", []string{"*.x.org.uk", "*.down.x.org.uk"}, []string{
			fmt.Sprintf(overlap, 10, "b", 0, "*.down.x.org.uk", "*.x.org.uk", "a", 9)}},
		{"a wildcard over a wildcard", []string{"*.down.x.org.uk", "*.x.org.uk"}, []string{
			fmt.Sprintf(overlap, 10, "b", 0, "*.x.org.uk", "*.down.x.org.uk", "a", 9)}},
		{"over an own and another's", []string{"a.x.org.uk", "b.x.org.uk", "*.y.org.uk, *.x.org.uk"}, []string{
			fmt.Sprintf(overlap, 11, "c", 1, "*.x.org.uk", "a.x.org.uk", "a", 9)}},
		{"a refused claim has no owner", []string{"x.org.uk", "*.org.uk", "y.org.uk"}, []string{
			fmt.Sprintf(overlap, 10, "b", 0, "*.org.uk", "x.org.uk", "a", 9)}},
		{"the tenant domain", []string{"tenants.example.org, *.tenants.example.org, *.example.org"}, []string{
			"croft.yaml:9: tenants.a.domains[0]: tenants.example.org contains the platform's tenantDomain tenants.example.org, which no tenant may have; name domains outside of it",
			"croft.yaml:9: tenants.a.domains[1]: *.tenants.example.org contains the platform's tenantDomain tenants.example.org, which no tenant may have; name domains outside of it",
			"croft.yaml:9: tenants.a.domains[2]: *.example.org contains the platform's tenantDomain tenants.example.org, which no tenant may have; name domains outside of it"}},
		{"another's subtree", []string{"b.tenants.example.org, *.x.b.tenants.example.org, nobody.tenants.example.org", ""}, []string{
			"croft.yaml:9: tenants.a.domains[0]: b.tenants.example.org belongs to the tenant named b, as do all names below b.tenants.example.org; leave it out",
			"croft.yaml:9: tenants.a.domains[1]: *.x.b.tenants.example.org belongs to the tenant named b, as do all names below b.tenants.example.org; leave it out",
			"croft.yaml:9: tenants.a.domains[2]: nobody.tenants.example.org belongs to the tenant named nobody, as do all names below nobody.tenants.example.org; leave it out"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			content := base + "pools: {jobs: }\ntenants:\n"
			for i, domains := range test.domains {
				content += fmt.Sprintf("  %c: {pool: jobs, domains: [%s]}\n", 'a'+i, quoteList(domains))
			}
			_, _, problems := parseAndBuild(content)
			expectProblems(t, problems, test.want...)
		})
	}
}

// TestDomainsInForce declares an old, a middle and a young tenant, each with domains in its spec and
// in its status.
func TestDomainsInForce(t *testing.T) {
	for _, test := range []struct {
		name           string
		specs, inForce [3]string
		want           string
	}{
		{"each its own", [3]string{"x.org.uk", "y.org.uk"}, [3]string{"x.org.uk", "y.org.uk"}, ""},
		{"an older tenant claims it", [3]string{"x.org.uk", "x.org.uk"}, [3]string{"", "x.org.uk"}, "old"},
		{"a younger tenant claims it", [3]string{"x.org.uk", "x.org.uk"}, [3]string{"x.org.uk", ""}, "middle"},
		{"it is given up, and still in force", [3]string{"", "x.org.uk"}, [3]string{"x.org.uk", ""}, "middle"},
		{"it was given up", [3]string{"", "x.org.uk"}, [3]string{}, ""},
		{"a wildcard in force", [3]string{"a.x.org.uk", "", "*.x.org.uk"}, [3]string{"", "", "*.x.org.uk"}, "old"},
		{"no tenant has it yet", [3]string{"x.org.uk", "x.org.uk", "x.org.uk"}, [3]string{}, "middle young"},
		{"a domain of the older tenant's own in force for two", [3]string{"x.org.uk", "x.org.uk"}, [3]string{"x.org.uk", "x.org.uk"}, "middle"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, problems := manifest.Parse("croft.yaml", []byte(base+"pools: {jobs: }\ntenants: {old: {pool: jobs}, middle: {pool: jobs}, young: {pool: jobs}}\n"))
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			for i, name := range []string{"old", "middle", "young"} {
				at := slices.IndexFunc(d.Tenants, func(t v1alpha1.Tenant) bool { return t.Name == name })
				tenant := &d.Tenants[at]
				tenant.CreationTimestamp = metav1.Unix(int64(1000*(i+1)), 0)
				tenant.Spec.Domains, tenant.Status.Domains = strings.Fields(test.specs[i]), strings.Fields(test.inForce[i])
			}
			_, problems = Build(d)
			var refused []string
			for _, p := range problems {
				refused = append(refused, p.Name)
			}
			if got := strings.Join(refused, " "); got != test.want {
				t.Errorf("refused: %q, want %q: %v", got, test.want, problems)
			}
		})
	}
}

func quoteList(list string) string {
	if list == "" {
		return ""
	}
	return `"` + strings.ReplaceAll(list, ", ", `", "`) + `"`
}

// TestGrantsAgreeWithPairwiseComparison compares the maps with the definition of an overlap, on
// random domains with so few labels that many overlap.
func TestGrantsAgreeWithPairwiseComparison(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		granted, existing := newGrants(), []claim{}
		for range 12 {
			c := generateClaim(rnd)
			want := false
			for _, other := range existing {
				want = want || other.tenant.Name != c.tenant.Name && haveOverlap(c, other)
			}
			if _, got := granted.findOverlap(c); got != want {
				t.Fatalf("%s of %s against %v: overlap is %v", c.domain, c.tenant.Name, existing, got)
			}
			if !want {
				granted.add(c)
				existing = append(existing, c)
			}
		}
	}
}

func generateClaim(rnd *rand.Rand) claim {
	labels := make([]string, 1+rnd.IntN(4))
	for i := range labels {
		labels[i] = string(rune('x' + rnd.IntN(2)))
	}
	domain := strings.Join(labels, ".")
	if rnd.IntN(2) == 0 {
		domain = "*." + domain
	}
	return claim{manifest.Object{ID: manifest.ID{Name: string(rune('a' + rnd.IntN(3)))}}, domain}
}

func haveOverlap(a, b claim) bool {
	switch {
	case !a.isWildcard() && !b.isWildcard():
		return a.domain == b.domain
	case a.isWildcard() && b.isWildcard():
		return a.baseDomain() == b.baseDomain() || isSubdomain(a.baseDomain(), b.baseDomain()) || isSubdomain(b.baseDomain(), a.baseDomain())
	case a.isWildcard():
		return isSubdomain(b.baseDomain(), a.baseDomain())
	default:
		return isSubdomain(a.baseDomain(), b.baseDomain())
	}
}

// TestTopLevelNamespaces expects the platform to be able to allow names that are refused by
// default.
func TestTopLevelNamespaces(t *testing.T) {
	const allowed = "platform: {clusterName: a, nodeClass: {kwok: {}}, topLevelNamespaces: [qa, dev]}\npools: {jobs: }\ntenants:\n  qa: {pool: jobs}\n  web: {pool: jobs, namespaces: [dev, io]}\n"
	_, _, problems := parseAndBuild(allowed)
	expectProblems(t, problems,
		"croft.yaml:5: tenants.web.namespaces[1]: a Service NAME of a namespace io would answer for the host NAME.io in every pod of the cluster; choose another name, or list it in platform.topLevelNamespaces")
}
