package estate

import (
	"iter"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"croft.dev/croft/internal/declare/manifest"
)

// claim is a domain in a tenant's spec.
type claim struct {
	tenant manifest.Object
	domain string
}

// baseDomain is the domain without its wildcard.
func (c claim) baseDomain() string { return strings.TrimPrefix(c.domain, "*.") }

func (c claim) isWildcard() bool { return strings.HasPrefix(c.domain, "*.") }

// checkDomainOwners refuses claims that overlap with a claim of an older tenant. A refused
// claim does not block younger tenants. Claims of a tenant that is refused for another reason
// do, since they may have been granted before.
//
// A domain that is in force for a tenant, as its status shows, belongs to it even if an older
// tenant claims it or if the tenant no longer declares it: a refused tenant keeps its walls, and
// so the domain would have two owners.
func checkDomainOwners(w *checker) {
	inForce, granted := w.listDomainsInForce(), newGrants()
	for _, i := range sortByAge(w.Tenants) {
		for j, domain := range w.Tenants[i].Spec.Domains {
			c := claim{w.objects[manifest.KindTenant][i], domain}
			at := field.NewPath("spec", "domains").Index(j)
			if why := explainReserved(w.platform.TenantDomain, c); why != "" {
				w.refuse(c.tenant, at, "%s", why)
				continue
			}
			other, overlaps := inForce.findOverlap(c)
			if !overlaps {
				other, overlaps = granted.findOverlap(c)
			}
			if overlaps {
				w.refuse(c.tenant, at, "%s overlaps with %s of tenant %s%s; a domain belongs to one tenant",
					c.domain, other.domain, other.tenant.Name, w.FormatLocation(other.tenant))
				continue
			}
			granted.add(c)
		}
	}
}

// listDomainsInForce returns the domains that the walls of tenants in a cluster may allow.
func (w *checker) listDomainsInForce() *grants {
	inForce := newGrants()
	for _, i := range sortByAge(w.Tenants) {
		for _, domain := range w.Tenants[i].Status.Domains {
			c := claim{w.objects[manifest.KindTenant][i], domain}
			if _, overlaps := inForce.findOverlap(c); !overlaps {
				inForce.add(c)
			}
		}
	}
	return inForce
}

// explainReserved returns why no tenant may claim a domain, regardless of the claim's age: domains
// below the tenant domain belong to the tenants of those names, including future ones, and the
// cluster's DNS domains belong to the owners of the Services.
func explainReserved(tenantDomain string, c claim) string {
	if c.isInCluster() {
		return c.domain + " contains names that the cluster's DNS assigns to Services, and that belong to their owners; name hosts outside of the cluster"
	}
	if tenantDomain == "" {
		return ""
	}
	base := c.baseDomain()
	if base == tenantDomain || c.isWildcard() && isSubdomain(tenantDomain, base) {
		return c.domain + " contains the platform's tenantDomain " + tenantDomain + ", which no tenant may have; name domains outside of it"
	}
	if !isSubdomain(base, tenantDomain) {
		return ""
	}
	owner := strings.TrimSuffix(base, "."+tenantDomain)
	owner = owner[strings.LastIndexByte(owner, '.')+1:]
	if owner == c.tenant.Name {
		return ""
	}
	return c.domain + " belongs to the tenant named " + owner + ", as do all names below " + owner + "." + tenantDomain + "; leave it out"
}

// isSubdomain reports whether a domain is a subdomain of another.
func isSubdomain(domain, of string) bool { return strings.HasSuffix(domain, "."+of) }

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
	if c.isWildcard() {
		g.wildcard[c.baseDomain()] = c
	} else {
		g.exact[c.baseDomain()] = c
	}
	for parent := range listParents(c.baseDomain()) {
		if claims := g.beneath[parent]; len(claims) == 0 || len(claims) == 1 && claims[0].tenant.Name != c.tenant.Name {
			g.beneath[parent] = append(claims, c)
		}
	}
}

// findOverlap returns a claim of another tenant that shares a host with c. A wildcard contains all
// domains below its base at any depth, but not the base itself.
func (g *grants) findOverlap(c claim) (claim, bool) {
	var candidates []claim
	if c.isWildcard() {
		candidates = append(candidates, g.beneath[c.baseDomain()]...)
		candidates = append(candidates, g.wildcard[c.baseDomain()])
	} else {
		candidates = append(candidates, g.exact[c.baseDomain()])
	}
	for parent := range listParents(c.baseDomain()) {
		candidates = append(candidates, g.wildcard[parent])
	}
	for _, other := range candidates {
		if other.domain != "" && other.tenant.Name != c.tenant.Name {
			return other, true
		}
	}
	return claim{}, false
}

// listParents returns the parent domains of a domain: b.c and c for a.b.c.
func listParents(domain string) iter.Seq[string] {
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
