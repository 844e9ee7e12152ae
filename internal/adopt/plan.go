package adopt

import (
	"context"
	"slices"

	"croft.dev/croft/internal/apply"
	networkwall "croft.dev/croft/internal/wall/network"
)

// Plan says what taking a tenant over means, before anything is done.
type Plan struct {
	Tenant     string      `json:"tenant"`
	Namespaces []Namespace `json:"namespaces"`
	// Tried says that the API server judged the pods by dry runs. Otherwise the pools
	// are computed from the file, and the plan is silent about the rules.
	Tried bool       `json:"tried"`
	Pods  []Workload `json:"pods,omitempty"`
	// Refused are the other objects whose re-creation would be refused. Existing ones
	// may stay.
	Refused []Refusal `json:"refused,omitempty"`
	// Beside are existing objects of the same purpose as a wall.
	Beside  []Beside  `json:"beside,omitempty"`
	Traffic []Traffic `json:"traffic,omitempty"`
	Pools   []Pool    `json:"pools,omitempty"`
	Quota   []Excess  `json:"quota,omitempty"`
	// Blocking are problems that must be fixed first.
	Blocking []string `json:"blocking,omitempty"`
}

// Namespace is one of the tenant's.
type Namespace struct {
	Name  string         `json:"name"`
	State NamespaceState `json:"state"`
	// From is the tenant whose it is, or was.
	From string `json:"from,omitempty"`
}

// NamespaceState says whose a namespace is.
type NamespaceState string

// The states of a namespace.
const (
	// Missing namespaces are made by croft.
	Missing NamespaceState = "missing"
	// Free namespaces exist, and belong to no tenant.
	Free NamespaceState = "free"
	// Taken namespaces are the tenant's already.
	Taken NamespaceState = "taken"
	// Foreign namespaces are another tenant's.
	Foreign NamespaceState = "foreign"
	// Kept namespaces still have the walls of a tenant that is deleted, or that no
	// longer declares them.
	Kept NamespaceState = "kept"
)

// Refusal is an object whose re-creation the rules would refuse.
type Refusal struct {
	Object string `json:"object"`
	Why    string `json:"why"`
}

// Done reports whether all namespaces are the tenant's.
func (p *Plan) Done() bool {
	return !slices.ContainsFunc(p.Namespaces, func(n Namespace) bool { return n.State != Taken })
}

// Unsettled are the pods that would not come back where they are.
func (p *Plan) Unsettled() []Workload {
	var some []Workload
	for _, w := range p.Pods {
		if w.Refused != "" || w.Waits != "" || w.Moves() {
			some = append(some, w)
		}
	}
	return some
}

// Replaced are the objects that the walls make superfluous.
func (p *Plan) Replaced() []Beside {
	var some []Beside
	for _, b := range p.Beside {
		if b.Replaced {
			some = append(some, b)
		}
	}
	return some
}

// Plan reads the cluster. If croft's policies are in place, pods and other objects are
// tried in a scratch namespace, which is deleted afterwards.
func (a *Adoption) Plan(ctx context.Context) (*Plan, error) {
	p := &Plan{Tenant: a.tenant.Name}
	live, err := a.namespaces(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range a.tenant.Namespaces {
		n, blocking, err := a.stateOf(ctx, name, live[name])
		if err != nil {
			return nil, err
		}
		p.Namespaces = append(p.Namespaces, n)
		p.Blocking = append(p.Blocking, blocking...)
	}
	for _, kind := range networkwall.Kinds(&a.estate.Platform) {
		if _, err := a.client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version); err != nil {
			missing := apply.DialectError{Dialect: a.estate.Platform.Network.Dialect, Kind: kind, Err: err}
			p.Blocking = append(p.Blocking, missing.Error())
		}
	}
	for _, look := range []func(context.Context, *Plan) error{a.pods, a.beside, a.traffic, a.pools, a.quota} {
		if err := look(ctx, p); err != nil {
			return nil, err
		}
	}
	if p.Tried, err = a.policiesMatch(ctx); err != nil || !p.Tried {
		a.fit(p)
		return p, err
	}
	return p, a.Try(ctx, p)
}
