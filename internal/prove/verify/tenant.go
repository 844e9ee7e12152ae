package verify

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/walls/wall"
)

// Existing is a tenant in use. verify only sends it dry runs and reads, and changes nothing.
type Existing struct {
	platform         *estate.Platform
	attacker, target *estate.Tenant
	// alone is set if the cluster has no second tenant to attack.
	alone bool
}

// nonexistent is the name of a tenant, a namespace and a pool that do not exist.
const nonexistent = "croft-verify-nobody"

// NewExisting selects the second tenant, which is attacked: one with other members, since a
// member of both has the rights of both.
func NewExisting(e *estate.Estate, tenant *estate.Tenant) *Existing {
	x := &Existing{platform: &e.Platform, attacker: tenant}
	i := slices.IndexFunc(e.Tenants, func(on *estate.Tenant) bool { return on != tenant && !sharesAccess(tenant, on) })
	if i < 0 {
		x.alone = true
		x.target = &estate.Tenant{Name: nonexistent, Namespaces: []string{nonexistent}, Pools: []string{nonexistent}, Egress: tenant.Egress, PodSecurity: tenant.PodSecurity}
		return x
	}
	on := *e.Tenants[i]
	if slices.ContainsFunc(on.Pools, func(pool string) bool { return slices.Contains(tenant.Pools, pool) }) {
		on.Pools = []string{nonexistent}
	}
	x.target = &on
	return x
}

func sharesAccess(a, b *estate.Tenant) bool {
	return slices.ContainsFunc(a.Access, func(one v1alpha1.Access) bool {
		return slices.ContainsFunc(b.Access, func(other v1alpha1.Access) bool {
			return one.Group == other.Group && one.User == other.User
		})
	})
}

// Attacks returns all attacks of the tenant.
func (x *Existing) Attacks() []attack.Attack { return wall.Attacks(x.platform, x.attacker, x.target) }

// Run tries the attacks that want selects, by dry-run requests only, and passes each result to
// report.
func (x *Existing) Run(ctx context.Context, config *rest.Config, scheme *runtime.Scheme, want func(attack.Attack) bool, report func(Result)) ([]Result, error) {
	runner, err := NewRunner(config, scheme, x.attacker)
	if err != nil {
		return nil, err
	}
	runner.DryRunOnly = true
	var attacks []attack.Attack
	var left []Result
	for _, a := range x.Attacks() {
		switch {
		case !want(a):
		case x.alone && targetsNamespace(a, nonexistent):
			left = append(left, newNotTried(a, errors.New("there is no other tenant with people on which to try it")))
		default:
			attacks = append(attacks, a)
		}
	}
	results, err := runner.Run(ctx, attacks, report)
	return append(results, left...), err
}

// targetsNamespace reports whether an attack's target is in a namespace.
func targetsNamespace(a attack.Attack, namespace string) bool {
	switch {
	case a.Request != nil:
		return a.Request.Object.GetNamespace() == namespace
	case a.Sweep != nil:
		return a.Sweep.Namespace == namespace
	case a.Flow != nil:
		return a.Flow.FromNamespace == namespace || a.Flow.ToNamespace == namespace
	default:
		return false
	}
}
