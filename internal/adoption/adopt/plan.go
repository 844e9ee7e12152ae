package adopt

import (
	"context"
	"slices"

	"croft.dev/croft/internal/operate/apply"
	networkwall "croft.dev/croft/internal/walls/wall/network"
)

// Plan describes the effects of an adoption before it starts.
type Plan struct {
	Tenant     string      `json:"tenant"`
	Namespaces []Namespace `json:"namespaces"`
	// Evaluated reports whether the API server evaluated the pods by dry runs. Otherwise the pools
	// are computed from the file, and the plan does not contain the rules' decisions.
	Evaluated bool       `json:"evaluated"`
	Pods      []Workload `json:"pods,omitempty"`
	// Refusals are the other objects whose re-creation would be refused. The existing objects
	// may remain.
	Refusals []Refusal `json:"refused,omitempty"`
	// Overlaps are existing objects with the same purpose as a wall.
	Overlaps []Overlap `json:"overlaps,omitempty"`
	Traffic  []Traffic `json:"traffic,omitempty"`
	Pools    []Pool    `json:"pools,omitempty"`
	Quota    []Excess  `json:"quota,omitempty"`
	// Blockers are problems that must be fixed first.
	Blockers []string `json:"blocking,omitempty"`
}

// Namespace is a namespace of the tenant.
type Namespace struct {
	Name  string         `json:"name"`
	State NamespaceState `json:"state"`
	// From is the tenant that owns or owned the namespace.
	From string `json:"from,omitempty"`
}

// NamespaceState is the ownership of a namespace.
type NamespaceState string

// These are the states of a namespace.
const (
	// Missing namespaces are created by croft.
	Missing NamespaceState = "missing"
	// Free namespaces exist, and belong to no tenant.
	Free NamespaceState = "free"
	// Owned namespaces belong to the tenant already.
	Owned NamespaceState = "owned"
	// Foreign namespaces belong to another tenant.
	Foreign NamespaceState = "foreign"
	// Kept namespaces still have the walls of a tenant that is deleted, or that no longer
	// declares them.
	Kept NamespaceState = "kept"
)

// Refusal is an object whose re-creation the rules would refuse.
type Refusal struct {
	Object string `json:"object"`
	Reason string `json:"why"`
}

// IsDone reports whether all namespaces belong to the tenant.
func (p *Plan) IsDone() bool {
	return !slices.ContainsFunc(p.Namespaces, func(n Namespace) bool { return n.State != Owned })
}

// ListUnsettled returns the pods that would not be re-created on their present pool.
func (p *Plan) ListUnsettled() []Workload {
	var some []Workload
	for _, w := range p.Pods {
		if w.Refusal != "" || w.PendingReason != "" || w.Moves() {
			some = append(some, w)
		}
	}
	return some
}

// ListReplaced returns the objects that the walls make redundant.
func (p *Plan) ListReplaced() []Overlap {
	var some []Overlap
	for _, b := range p.Overlaps {
		if b.Replaced {
			some = append(some, b)
		}
	}
	return some
}

// Plan reads the cluster and returns the plan. If croft's policies are in place, pods and other
// objects are tried in a scratch namespace, which is deleted afterwards.
func (a *Adoption) Plan(ctx context.Context) (*Plan, error) {
	p := &Plan{Tenant: a.tenant.Name}
	live, err := a.readNamespaces(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range a.tenant.Namespaces {
		n, blocking, err := a.readState(ctx, name, live[name])
		if err != nil {
			return nil, err
		}
		p.Namespaces = append(p.Namespaces, n)
		p.Blockers = append(p.Blockers, blocking...)
	}
	for _, kind := range networkwall.ListKinds(&a.estate.Platform) {
		if _, err := a.client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version); err != nil {
			missing := apply.DialectError{Dialect: a.estate.Platform.Network.Dialect, Kind: kind, Err: err}
			p.Blockers = append(p.Blockers, missing.Error())
		}
	}
	for _, look := range []func(context.Context, *Plan) error{a.readPods, a.findOverlaps, a.compareTraffic, a.comparePools, a.checkQuota} {
		if err := look(ctx, p); err != nil {
			return nil, err
		}
	}
	if p.Evaluated, err = a.arePoliciesCurrent(ctx); err != nil || !p.Evaluated {
		a.checkFit(p)
		return p, err
	}
	return p, a.Try(ctx, p)
}
