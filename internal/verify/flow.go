package verify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"croft.dev/croft/internal/attack"
	"croft.dev/croft/internal/reach"
)

// maxPairs is how many pairs of namespaces are judged one by one: some seconds
// of one core. Beyond that a sample is.
const maxPairs = 100_000

func (r *Runner) reach(ctx context.Context) (*reach.Map, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.policies == nil {
		policies, err := reach.Read(ctx, r.admin)
		if err != nil {
			return nil, err
		}
		r.policies = policies
	}
	return r.policies, nil
}

// judgeFlow asks whether the network policies that stand let a connection
// through.
func (r *Runner) judgeFlow(ctx context.Context, a attack.Attack) Result {
	policies, err := r.reach(ctx)
	if err != nil {
		return thwarted(a, err)
	}
	allowed, err := policies.Allows(*a.Flow)
	if err != nil {
		return notTried(a, err)
	}
	switch {
	case a.Kind == attack.Breach && allowed:
		return resultOf(a, Breached, "the network policies let the connection through")
	case a.Kind == attack.Mirror && !allowed:
		return resultOf(a, Breached, "the network policies stop the connection")
	default:
		return resultOf(a, Held, "")
	}
}

type pair struct{ from, to string }

// pairsOf are those of different tenants' namespaces or, where the attack names
// where connections come from, of those and every tenant's.
func pairsOf(p *attack.Pairs, policies *reach.Map) []pair {
	var all []pair
	tenants := policies.Tenants()
	for _, to := range slices.Sorted(maps.Keys(tenants)) {
		for _, namespace := range tenants[to] {
			for _, from := range p.From {
				if policies.Has(from) {
					all = append(all, pair{from, namespace})
				}
			}
			if p.From != nil {
				continue
			}
			for _, from := range slices.Sorted(maps.Keys(tenants)) {
				for _, source := range tenants[from] {
					if from != to {
						all = append(all, pair{source, namespace})
					}
				}
			}
		}
	}
	return all
}

// judgePairs judges connections between all tenants that the cluster has.
func (r *Runner) judgePairs(ctx context.Context, a attack.Attack) Result {
	policies, err := r.reach(ctx)
	if err != nil {
		return thwarted(a, err)
	}
	all := pairsOf(a.Pairs, policies)
	if len(all) == 0 {
		return notTried(a, errors.New("there is no pair of namespaces to judge"))
	}
	stride := (len(all) + maxPairs - 1) / maxPairs
	var wrong []string
	judged := 0
	for i := 0; i < len(all) && ctx.Err() == nil; i += stride {
		judged++
		verdict, err := policies.Connects(all[i].from, all[i].to, a.Pairs.Port, a.Pairs.Protocol)
		if err != nil {
			return thwarted(a, err)
		}
		if verdict.Allowed == (a.Kind == attack.Breach) {
			wrong = append(wrong, verdict.Connection)
		}
	}
	if ctx.Err() != nil {
		return thwarted(a, ctx.Err())
	}
	result := resultOf(a, Held, fmt.Sprintf("%d pairs of namespaces judged", judged))
	if len(wrong) > 0 {
		what := "connect"
		if a.Kind == attack.Mirror {
			what = "do not connect"
		}
		result.Result, result.Breaches = Breached, wrong
		result.Message = fmt.Sprintf("%d of %d pairs of namespaces %s: %s", len(wrong), judged, what, enumerate(wrong))
	}
	if stride > 1 {
		result.Message += fmt.Sprintf("; a sample: there are %d pairs", len(all))
	}
	result.Variants = judged
	return result
}
