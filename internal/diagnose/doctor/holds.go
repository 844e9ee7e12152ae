package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/prove/verify"
	"croft.dev/croft/internal/rules/attack"
)

// Sample lists the attacks that doctor runs: a few for each wall, none of which needs
// preparation. `croft verify` runs all attacks.
var Sample = []string{
	"let-everybody-in", "tolerate-every-taint", "choose-node", "list-secrets-elsewhere", "run-privileged", "delete-network-policy",
}

// mostTried is the maximum number of tenants to test.
const mostTried = 3

// AttackResults are the results of attacks from inside one tenant.
type AttackResults struct {
	Tenant  string
	Results []verify.Result
}

// listNames returns the attacks that were run.
func (t *AttackResults) listNames() []string {
	var all []string
	for _, r := range t.Results {
		if r.Result != verify.NotTried {
			all = append(all, r.Name)
		}
	}
	return all
}

// Try sends the dry runs of the checks attacks and kubelets: attacks as members of tenants, and writes
// as kubelets and other components. It needs the right to impersonate them.
func Try(ctx context.Context, config *rest.Config, c client.Client, s *Snapshot) error {
	if s.includes("attacks") {
		if err := tryAttacks(ctx, config, c, s); err != nil {
			return err
		}
	}
	if s.includes("kubelets") {
		return tryWrites(ctx, config, c, s)
	}
	return nil
}

// tryAttacks runs a few attacks as members of some tenants. Tenants with broken walls come
// first.
func tryAttacks(ctx context.Context, config *rest.Config, c client.Client, s *Snapshot) error {
	delete(s.Unreadable, readAttacks)
	for _, t := range s.listTestable() {
		existing := verify.NewExisting(s.Estate, t)
		may, err := canImpersonate(ctx, c, existing.Needs())
		if err != nil {
			return err
		}
		if !may {
			s.Unreadable[readAttacks] = "you may not impersonate members of tenant " + t.Name
			return nil
		}
		results, err := existing.Run(ctx, config, scheme.New(),
			func(a attack.Attack) bool { return slices.Contains(Sample, a.Name) }, func(verify.Result) {})
		if err != nil {
			return fmt.Errorf("try attacks from inside tenant %s: %w", t.Name, err)
		}
		tries := AttackResults{Tenant: t.Name, Results: results}
		if len(tries.listNames()) == 0 {
			s.Unreadable[readAttacks] = "no attack could be tried from inside tenant " + t.Name
			return nil
		}
		s.AttackResults = append(s.AttackResults, tries)
	}
	return nil
}

// listTestable returns tenants with members and a namespace that are not frozen. Tenants with broken walls come
// first.
func (s *Snapshot) listTestable() []*estate.Tenant {
	var trouble, fine []*estate.Tenant
	for _, t := range s.listTenants() {
		switch {
		case !slices.ContainsFunc(t.Access, func(a v1alpha1.Access) bool { return a.Role == v1alpha1.RoleOperator }):
		case t.Freeze != nil: // the freeze would refuse every attack
		case s.RefusedNamespaces[t.Namespaces[0]] != nil || !s.isTenantNamespace(t.Namespaces[0]):
		case s.isBroken("Tenant/" + t.Name):
			trouble = append(trouble, t)
		default:
			fine = append(fine, t)
		}
	}
	all := slices.Concat(trouble, fine)
	return all[:min(len(all), mostTried)]
}

// canImpersonate reports whether the caller has the rights to impersonate. Without them
// every request would be refused, but not by a wall. It asks the API server, since an
// attempt is no proof: it would replace the impersonation of --as, and use the rights of the
// kubeconfig's own user.
func canImpersonate(ctx context.Context, c client.Client, rights []verify.Right) (bool, error) {
	rights = slices.DeleteFunc(rights, func(r verify.Right) bool { return r.Verb != "impersonate" })
	lacking, err := verify.FindLacking(ctx, c, rights)
	if err != nil {
		return false, fmt.Errorf("ask for the right to impersonate: %w", err)
	}
	return len(lacking) == 0, nil
}

// checkAttacks reports attacks that were not stopped by the expected rule.
func checkAttacks(s *Snapshot) []Finding {
	var all []Finding
	for _, tries := range s.AttackResults {
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
				Message: fmt.Sprintf("the walls stopped %d of %d attacks, tried as members of the tenant; not: %s", held, tried, strings.Join(failed, ", ")),
				Fix:     "repair the objects that the check walls names; if it names none, `croft verify` names the rule that should have stopped each attack",
				Run:     "croft verify --tenant " + tries.Tenant,
			})
		}
	}
	return all
}

// summarizeAttacks returns the statement if no attack succeeded.
func summarizeAttacks(s *Snapshot) string {
	var tenants, attacks []string
	for _, tries := range s.AttackResults {
		tenants = append(tenants, tries.Tenant)
		attacks = append(attacks, tries.listNames()...)
	}
	if _, unread := s.Unreadable[readAttacks]; unread && len(tenants) == 0 {
		return "no attack was tried"
	}
	if len(tenants) == 0 {
		return "no attack was tried: no tenant has a member with the role operator yet"
	}
	slices.Sort(attacks)
	return fmt.Sprintf("the walls stopped %d attacks in dry runs, as members of %s", len(slices.Compact(attacks)), formatSome(tenants))
}
