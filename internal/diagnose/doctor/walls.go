package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/survey"
)

// mostOwners is the maximum number of pools and tenants that are reported individually.
const mostOwners = 20

// gatherWalls compares the declared walls with those in the cluster.
func (g *gatherer) gatherWalls(ctx context.Context) {
	if g.Estate == nil {
		return
	}
	var err error
	g.Walls, err = survey.CompareWalls(ctx, g, g.Estate, g.Rendered)
	g.Record(readWalls, err)
	unread := map[string]bool{}
	for _, o := range g.Walls {
		switch o.State {
		case apply.Unreadable:
			unread[o.Kind] = true
		case apply.Missing:
			_, err := g.RESTMapper().RESTMapping(o.GroupKind(), o.Version)
			g.Unserved[o.GroupVersionKind] = meta.IsNoMatchError(err)
		case apply.Matches, apply.Differs:
		}
	}
	if len(unread) > 0 {
		g.Unreadable[readWalls] = "you may not read " + strings.Join(sortKeys(unread), ", ")
	}
}

// faultKey identifies the faults of one owner's objects that have the same fix.
type faultKey struct{ owner, fix string }

// checkWalls reports missing and changed objects of the walls: the platform's, each pool's and
// each tenant's.
func checkWalls(s *Snapshot) []Finding {
	texts := map[faultKey][]string{}
	for _, o := range s.Walls {
		if text := s.describeFault(o); text != "" {
			key := faultKey{o.Owner, s.describeObjectFix(o)}
			texts[key] = append(texts[key], text)
		}
	}
	// The order is the Platform, then Pools, then Tenants.
	order := slices.SortedFunc(maps.Keys(texts), func(a, b faultKey) int {
		return cmp.Or(cmp.Compare(a.owner, b.owner), cmp.Compare(a.fix, b.fix))
	})
	all := s.findForeign()
	for _, key := range order[:min(len(order), mostOwners)] {
		all = append(all, Finding{Severity: Problem, Object: key.owner, Message: formatSome(texts[key]), Fix: key.fix})
	}
	if more := len(order) - mostOwners; more > 0 {
		all = append(all, Finding{Severity: Problem, Message: fmt.Sprintf("and %d more pools and tenants", more), Fix: s.describeWallsFix()})
	}
	return all
}

// describeFault describes the difference of an object from its declaration, or returns ""
// if there is none. Walls of owners and namespaces that are being deleted are deleted with
// them.
func (s *Snapshot) describeFault(o survey.Object) string {
	switch {
	case s.Deleting[o.Owner], s.RefusedNamespaces[o.Namespace] != nil, o.Kind == "Namespace" && s.RefusedNamespaces[o.Name] != nil:
		return ""
	case o.State == apply.Missing && s.Unserved[o.GroupVersionKind]:
		return o.String() + " is missing, since the API server does not serve its kind"
	case o.State == apply.Missing:
		return o.String() + " is missing"
	case o.State == apply.Differs && len(o.ChangedBy) > 0:
		return o.String() + " was changed by " + strings.Join(o.ChangedBy, ", ")
	case o.State == apply.Differs:
		return o.String() + " was changed"
	default:
		return ""
	}
}

// findForeign reports namespaces that tenants declare and croft does not own. The operator
// does not change them.
func (s *Snapshot) findForeign() []Finding {
	var all []Finding
	for _, name := range sortKeys(s.RefusedNamespaces) {
		var foreign *apply.NamespaceNotOwnedError
		if !errors.As(s.RefusedNamespaces[name], &foreign) {
			continue // the namespace is being deleted
		}
		f := Finding{
			Severity: Problem, Object: "Tenant/" + foreign.Tenant,
			Message: "namespace " + name + " exists and does not belong to croft: it has no walls, and the operator does not change it",
			Fix: "if the tenant should own it, a cluster administrator adopts it: `croft adopt tenant " + foreign.Tenant + " -f FILE` shows a plan and asks first. " +
				"Otherwise name another namespace in the tenant's `namespaces`",
			Link: "docs/how-to/adopt.md",
		}
		if foreign.Owner != "" {
			f.Message = "namespace " + name + " belongs to tenant " + foreign.Owner
			f.Fix = "remove it from the `namespaces` of one of the two tenants"
		}
		all = append(all, f)
	}
	return all
}

// describeObjectFix returns the fix for one object.
func (s *Snapshot) describeObjectFix(o survey.Object) string {
	switch {
	case s.Unserved[o.GroupVersionKind] && slices.Contains(apply.GatekeeperConstraintKinds, o.GroupVersionKind):
		return "Gatekeeper creates the kind from croft's ConstraintTemplate of its name: see the check engine, and `kubectl get constrainttemplates -o yaml`"
	case s.Unserved[o.GroupVersionKind]:
		return fmt.Sprintf("install the component that serves %s %s, with its CustomResourceDefinitions, or remove the setting that needs it from the declaration", o.GroupVersion(), o.Kind)
	default:
		return s.describeWallsFix()
	}
}

func (s *Snapshot) describeWallsFix() string {
	switch {
	case s.Rendered:
		return "apply the file again: `croft render -f FILE | kubectl apply --server-side --force-conflicts -f -`"
	case s.isBelievable():
		return "the operator restores it within a second; otherwise its log and `kubectl describe` of the Platform, Pool or Tenant show the reason"
	default:
		return "run the operator, which restores it: see the check operator"
	}
}

// isBroken reports whether an owner has missing or changed objects of the walls.
func (s *Snapshot) isBroken(owner string) bool {
	return slices.ContainsFunc(s.Walls, func(o survey.Object) bool { return o.Owner == owner && o.State != apply.Matches })
}
