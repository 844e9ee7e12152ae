package estate

import (
	"iter"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"croft.dev/croft/internal/manifest"
)

// claim is a domain in a tenant's spec.
type claim struct {
	by     manifest.Object
	domain string
}

// base is the domain without its wildcard.
func (c claim) base() string { return strings.TrimPrefix(c.domain, "*.") }

func (c claim) wildcard() bool { return strings.HasPrefix(c.domain, "*.") }

// domainsHaveOneTenant refuses claims that overlap with a claim of an older tenant. A refused
// claim does not block younger tenants. Claims of a tenant that is refused for another reason
// do, since they may have been granted before.
func domainsHaveOneTenant(w *whole) {
	granted := newGrants()
	for _, i := range byAge(w.Tenants) {
		for j, domain := range w.Tenants[i].Spec.Domains {
			c := claim{w.objects[manifest.KindTenant][i], domain}
			at := field.NewPath("spec", "domains").Index(j)
			if why := reserved(w.platform.TenantDomain, c); why != "" {
				w.refuse(c.by, at, "%s", why)
				continue
			}
			if other, overlaps := granted.overlap(c); overlaps {
				w.refuse(c.by, at, "%s overlaps with %s of tenant %s%s; a domain belongs to one tenant",
					c.domain, other.domain, other.by.Name, w.Where(other.by))
				continue
			}
			granted.add(c)
		}
	}
}

// reserved returns why no tenant may claim a domain, regardless of the claim's age: domains
// below the tenant domain belong to the tenants of those names, including future ones, and the
// cluster's DNS domains belong to the owners of the Services.
func reserved(tenantDomain string, c claim) string {
	if c.inCluster() {
		return c.domain + " holds names that the cluster's DNS gives to Services, which are their own tenants'; claim hosts outside of the cluster"
	}
	if tenantDomain == "" {
		return ""
	}
	base := c.base()
	if base == tenantDomain || c.wildcard() && below(tenantDomain, base) {
		return c.domain + " holds the platform's tenantDomain " + tenantDomain + ", which is no tenant's; claim domains outside of it"
	}
	if !below(base, tenantDomain) {
		return ""
	}
	owner := strings.TrimSuffix(base, "."+tenantDomain)
	owner = owner[strings.LastIndexByte(owner, '.')+1:]
	if owner == c.by.Name {
		return ""
	}
	return c.domain + " belongs to the tenant named " + owner + ", as everything below " + owner + "." + tenantDomain + " does; leave it out"
}

// below reports whether a domain is a subdomain of another.
func below(domain, of string) bool { return strings.HasSuffix(domain, "."+of) }

// grants are the granted claims, indexed so that the number of steps to find an overlap equals
// the number of labels in the domain.
type grants struct {
	// exact and wildcard map a base to its claim.
	exact, wildcard map[string]claim
	// beneath maps every domain to claims on domains below it. Two claims by different tenants
	// are enough, since one of the two always belongs to another tenant.
	beneath map[string][]claim
}

func newGrants() *grants {
	return &grants{exact: map[string]claim{}, wildcard: map[string]claim{}, beneath: map[string][]claim{}}
}

func (g *grants) add(c claim) {
	if c.wildcard() {
		g.wildcard[c.base()] = c
	} else {
		g.exact[c.base()] = c
	}
	for parent := range parents(c.base()) {
		if claims := g.beneath[parent]; len(claims) == 0 || len(claims) == 1 && claims[0].by.Name != c.by.Name {
			g.beneath[parent] = append(claims, c)
		}
	}
}

// overlap returns a claim of another tenant that shares a host with c. A wildcard contains all
// domains below its base at any depth, but not the base itself.
func (g *grants) overlap(c claim) (claim, bool) {
	var candidates []claim
	if c.wildcard() {
		candidates = append(candidates, g.beneath[c.base()]...)
		candidates = append(candidates, g.wildcard[c.base()])
	} else {
		candidates = append(candidates, g.exact[c.base()])
	}
	for parent := range parents(c.base()) {
		candidates = append(candidates, g.wildcard[parent])
	}
	for _, other := range candidates {
		if other.domain != "" && other.by.Name != c.by.Name {
			return other, true
		}
	}
	return claim{}, false
}

// parents returns the parent domains of a domain: b.c and c for a.b.c.
func parents(domain string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for {
			_, parent, ok := strings.Cut(domain, ".")
			if !ok || !yield(parent) {
				return
			}
			domain = parent
		}
	}
}
