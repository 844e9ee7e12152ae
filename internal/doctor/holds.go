package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/attack"
	"croft.dev/croft/internal/estate"
	"croft.dev/croft/internal/scheme"
	"croft.dev/croft/internal/verify"
)

// Sample lists the attacks that doctor runs: a few for each wall, none of which needs
// preparation. `croft verify` runs all attacks.
var Sample = []string{
	"let-everybody-in", "tolerate-every-taint", "choose-node", "list-secrets-elsewhere", "run-privileged", "delete-network-policy",
}

// mostTried is the maximum number of tenants to test.
const mostTried = 3

// Tries are the results of attacks from inside one tenant.
type Tries struct {
	Tenant  string
	Results []verify.Result
}

// names returns the attacks that were run.
func (t *Tries) names() []string {
	var all []string
	for _, r := range t.Results {
		if r.Result != verify.NotTried {
			all = append(all, r.Name)
		}
	}
	return all
}

// Try sends a few dry-run requests: attacks as members of tenants, and writes as kubelets
// and other components. It needs the right to impersonate them.
func Try(ctx context.Context, config *rest.Config, c client.Client, s *Snapshot) error {
	if err := tryAttacks(ctx, config, c, s); err != nil {
		return err
	}
	return tryWrites(ctx, config, c, s)
}

// tryAttacks runs a few attacks as members of some tenants. Tenants with broken walls come
// first.
func tryAttacks(ctx context.Context, config *rest.Config, c client.Client, s *Snapshot) error {
	delete(s.Unread, readHolds)
	for _, t := range s.testable() {
		existing := verify.NewExisting(s.Estate, t)
		may, err := mayImpersonate(ctx, c, existing.Needs())
		if err != nil {
			return err
		}
		if !may {
			s.Unread[readHolds] = "you may not impersonate the people of tenant " + t.Name
			return nil
		}
		results, err := existing.Run(ctx, config, scheme.New(),
			func(a attack.Attack) bool { return slices.Contains(Sample, a.Name) }, func(verify.Result) {})
		if err != nil {
			return fmt.Errorf("try attacks from inside tenant %s: %w", t.Name, err)
		}
		tries := Tries{Tenant: t.Name, Results: results}
		if len(tries.names()) == 0 {
			s.Unread[readHolds] = "none could be tried from inside tenant " + t.Name
			return nil
		}
		s.Tried = append(s.Tried, tries)
	}
	return nil
}

// testable returns tenants with members and a namespace. Tenants with broken walls come
// first.
func (s *Snapshot) testable() []*estate.Tenant {
	var trouble, fine []*estate.Tenant
	for _, t := range s.tenants() {
		switch {
		case !slices.ContainsFunc(t.Access, func(a v1alpha1.Access) bool { return a.Role == v1alpha1.RoleOperator }):
		case s.Refused[t.Namespaces[0]] != nil || !s.tenantOf(t.Namespaces[0]):
		case s.broken("Tenant/" + t.Name):
			trouble = append(trouble, t)
		default:
			fine = append(fine, t)
		}
	}
	all := slices.Concat(trouble, fine)
	return all[:min(len(all), mostTried)]
}

// mayImpersonate reports whether the caller has the rights to impersonate. Without them
// every request would be refused, but not by a wall. It asks the API server, since an
// attempt is no proof: it would replace the impersonation of --as, and use the rights of the
// kubeconfig's own user.
func mayImpersonate(ctx context.Context, c client.Client, rights []verify.Right) (bool, error) {
	rights = slices.DeleteFunc(rights, func(r verify.Right) bool { return r.Verb != "impersonate" })
	lacking, err := verify.Lacking(ctx, c, rights)
	if err != nil {
		return false, fmt.Errorf("ask for the right to impersonate: %w", err)
	}
	return len(lacking) == 0, nil
}

// holds reports attacks that were not stopped by the expected rule.
func holds(s *Snapshot) []Finding {
	var all []Finding
	for _, tries := range s.Tried {
		tried, held := 0, 0
		var failed []string
		for _, r := range tries.Results {
			switch r.Result {
			case verify.NotTried:
				continue
			case verify.Held:
				held++
			default:
				failed = append(failed, r.Name+": "+string(r.Result))
			}
			tried++
		}
		if held < tried {
			all = append(all, Finding{
				Severity: Problem, Object: "Tenant/" + tries.Tenant,
				Message: fmt.Sprintf("%d of %d attacks held, tried as its people: %s", held, tried, strings.Join(failed, ", ")),
				Cure:    "put back what the check walls names; if it names nothing, `croft verify` says of each attack what should have stopped it",
				Run:     "croft verify --tenant " + tries.Tenant,
			})
		}
	}
	return all
}

// holdsSays returns the statement if no attack succeeded.
func holdsSays(s *Snapshot) string {
	var tenants, attacks []string
	for _, tries := range s.Tried {
		tenants = append(tenants, tries.Tenant)
		attacks = append(attacks, tries.names()...)
	}
	if _, unread := s.Unread[readHolds]; unread && len(tenants) == 0 {
		return "no attack was tried"
	}
	if len(tenants) == 0 {
		return "no attack was tried: no tenant has people in the role operator yet"
	}
	slices.Sort(attacks)
	return fmt.Sprintf("%d attacks bounce in dry runs, as the people of %s", len(slices.Compact(attacks)), some(tenants))
}
