package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/attack"
	"croft.dev/croft/internal/estate"
	"croft.dev/croft/internal/scheme"
	"croft.dev/croft/internal/verify"
)

// Sample are the attacks that doctor tries: a few of each wall, none of which needs
// preparation. `croft verify` tries all.
var Sample = []string{
	"let-everybody-in", "tolerate-every-taint", "choose-node", "list-secrets-elsewhere", "run-privileged", "delete-network-policy",
}

// mostTried is the maximum number of tenants that are tried.
const mostTried = 3

// Tries are the attacks that were tried from inside one tenant.
type Tries struct {
	Tenant  string
	Results []verify.Result
}

// Try sends a few attacks by dry run, as members of some tenants: first those with
// broken walls, if there are any. It needs the right to impersonate them.
func Try(ctx context.Context, config *rest.Config, c client.Client, s *Snapshot) error {
	for _, t := range s.testable() {
		may, err := mayBe(ctx, c, t)
		if err != nil {
			return err
		}
		if !may {
			s.Unread[readHolds] = "you may not impersonate the people of tenant " + t.Name
			return nil
		}
		results, err := verify.NewExisting(s.Estate, t).Run(ctx, config, scheme.New(),
			func(a attack.Attack) bool { return slices.Contains(Sample, a.Name) }, func(verify.Result) {})
		if err != nil {
			return fmt.Errorf("try attacks from inside tenant %s: %w", t.Name, err)
		}
		s.Tried = append(s.Tried, Tries{Tenant: t.Name, Results: results})
	}
	return nil
}

// testable are tenants with people and a namespace: those with broken walls first.
func (s *Snapshot) testable() []*estate.Tenant {
	if s.Estate == nil {
		return nil
	}
	var trouble, fine []*estate.Tenant
	for _, t := range s.Estate.Tenants {
		switch {
		case !slices.ContainsFunc(t.Access, func(a v1alpha1.Access) bool { return a.Role == v1alpha1.RoleOperator }):
		case !slices.ContainsFunc(s.Namespaces, func(n corev1.Namespace) bool { return n.Name == t.Namespaces[0] }):
		case s.broken("Tenant/" + t.Name):
			trouble = append(trouble, t)
		default:
			fine = append(fine, t)
		}
	}
	all := slices.Concat(trouble, fine)
	return all[:min(len(all), mostTried)]
}

// mayBe asks whether the caller may act as the people of a tenant. Without that,
// every attack would be refused, and not by a wall.
func mayBe(ctx context.Context, c client.Client, t *estate.Tenant) (bool, error) {
	asked := []authorizationv1.ResourceAttributes{{Resource: "groups", Name: "system:authenticated"}}
	for _, a := range t.Access {
		if a.Group != "" {
			asked = append(asked, authorizationv1.ResourceAttributes{Resource: "groups", Name: a.Group})
		} else {
			asked = append(asked, authorizationv1.ResourceAttributes{Resource: "users", Name: a.User})
		}
	}
	for _, attributes := range asked {
		attributes.Verb = "impersonate"
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes}}
		if err := c.Create(ctx, review); err != nil {
			return false, fmt.Errorf("ask for the right to impersonate: %w", err)
		}
		if !review.Status.Allowed {
			return false, nil
		}
	}
	return true, nil
}

// holds counts the attacks that their stopper stopped.
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

// holdsSays is the statement if no attack succeeded.
func holdsSays(s *Snapshot) string {
	var names []string
	for _, tries := range s.Tried {
		names = append(names, tries.Tenant)
	}
	if _, unread := s.Unread[readHolds]; unread && len(names) == 0 {
		return "no attack was tried"
	}
	if len(names) == 0 {
		return "no attack was tried: no tenant has people in the role operator yet"
	}
	return fmt.Sprintf("%d attacks bounce in dry runs, as the people of %s", len(Sample), some(names))
}
