package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"croft.dev/croft/internal/apply"
	"croft.dev/croft/internal/survey"
)

// mostOwners is the maximum number of pools and tenants that are named one by one.
const mostOwners = 20

// survey compares the declared walls with those in the cluster.
func (g *gatherer) survey(ctx context.Context) error {
	if g.Estate == nil {
		return nil
	}
	var err error
	if g.Walls, err = survey.Of(ctx, g, g.Estate, g.Rendered); err != nil {
		return fmt.Errorf("compare the walls: %w", err)
	}
	unread := map[string]bool{}
	for _, o := range g.Walls {
		if o.State == apply.Unread {
			unread[o.Kind] = true
		}
	}
	if len(unread) > 0 {
		g.Unread[readWalls] = "you may not read " + strings.Join(sorted(unread), ", ")
	}
	return nil
}

// walls reports missing and changed objects of the walls, of the platform, each pool and
// each tenant.
func walls(s *Snapshot) []Finding {
	var owners []string
	wrong := map[string][]string{}
	for _, o := range s.Walls {
		if o.State != apply.Missing && o.State != apply.Differs {
			continue
		}
		if wrong[o.Owner] == nil {
			owners = append(owners, o.Owner)
		}
		said := o.String() + " is missing"
		if o.State == apply.Differs {
			said = o.String() + " was changed"
			if len(o.By) > 0 {
				said += " by " + strings.Join(o.By, ", ")
			}
		}
		wrong[o.Owner] = append(wrong[o.Owner], said)
	}
	slices.Sort(owners) // the Platform, then Pools, then Tenants
	var all []Finding
	for _, owner := range owners[:min(len(owners), mostOwners)] {
		all = append(all, Finding{Severity: Problem, Object: owner, Message: some(wrong[owner]), Cure: s.cureWalls()})
	}
	if more := len(owners) - mostOwners; more > 0 {
		all = append(all, Finding{Severity: Problem, Message: fmt.Sprintf("and %d more pools and tenants", more), Cure: s.cureWalls()})
	}
	return all
}

func (s *Snapshot) cureWalls() string {
	switch {
	case s.Rendered:
		return "apply the file again: `croft render -f FILE | kubectl apply --server-side --force-conflicts -f -`"
	case s.believable():
		return "the operator puts it back within a second; if it is still so, its log and `kubectl describe` of the Platform, Pool or Tenant say why"
	default:
		return "run the operator, which puts it back: see the check operator"
	}
}

// broken reports an owner whose walls are not in place.
func (s *Snapshot) broken(owner string) bool {
	return slices.ContainsFunc(s.Walls, func(o survey.Object) bool { return o.Owner == owner && o.State != apply.Stands })
}
