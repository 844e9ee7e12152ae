package estate

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	"croft.dev/croft/internal/declare/manifest"
)

// FuzzParsePort fails if a port is read differently from the form in which croft prints it.
func FuzzParsePort(f *testing.F) {
	for _, text := range []string{"443", "8000-8010", "53/UDP", "1-65535/SCTP", "0", "65536", "2-1", "-", "/", "+1", "1-", "01"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := parsePort(intstr.FromString(text))
		if err != nil {
			t.Skip()
		}
		if again, err := parsePort(r.ToPort()); err != nil || again != r || r.First < 1 || r.Last < r.First || r.Last > 65535 {
			t.Errorf("%q is %+v, and then %+v (%v)", text, r, again, err)
		}
	})
}

// FuzzDomainOwners fails if a domain is granted to two tenants. Each line is a claim: the tenant's
// letter and a domain.
func FuzzDomainOwners(f *testing.F) {
	for _, claims := range []string{"a *.x.org\nb a.x.org", "a x.org\nb *.x.org\nc x.org", "a *.*.org\nb *.a.org", "a *.\nb .", "a *\nb *.*"} {
		f.Add(claims)
	}
	f.Fuzz(func(t *testing.T, claims string) {
		if len(claims) > 1000 {
			t.Skip()
		}
		granted, owned := newGrants(), []claim{}
		for line := range strings.SplitSeq(claims, "\n") {
			tenant, domain, ok := strings.Cut(line, " ")
			c := claim{manifest.Object{ID: manifest.ID{Name: tenant}}, domain}
			if _, taken := granted.findOverlap(c); !ok || taken {
				continue
			}
			for _, other := range owned {
				if other.tenant.Name != tenant && haveOverlap(c, other) {
					t.Errorf("%q belongs to %s, and %q to %s", domain, tenant, other.domain, other.tenant.Name)
				}
			}
			granted.add(c)
			owned = append(owned, c)
		}
	})
}
