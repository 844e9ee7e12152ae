package verify

import (
	"context"
	"errors"
	"fmt"

	"croft.dev/croft/internal/attack"
	"croft.dev/croft/internal/netpol"
)

func (r *Runner) reach(ctx context.Context) (*netpol.Map, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.policies == nil {
		policies, err := netpol.Read(ctx, r.admin)
		if err != nil {
			return nil, err
		}
		r.policies = policies
	}
	return r.policies, nil
}

// judgeFlow evaluates whether the network policies allow a connection.
func (r *Runner) judgeFlow(ctx context.Context, a attack.Attack) Result {
	policies, err := r.reach(ctx)
	if err != nil {
		return unprepared(a, err)
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

// judgePairs evaluates connections between all tenants of the cluster or, if the attack names
// source namespaces, from these to every tenant.
func (r *Runner) judgePairs(ctx context.Context, a attack.Attack) Result {
	policies, err := r.reach(ctx)
	if err != nil {
		return unprepared(a, err)
	}
	var wrong []string
	judge := func(from, to string) bool {
		var verdict netpol.Verdict
		if verdict, err = policies.Connects(from, to, a.Pairs.Port, a.Pairs.Protocol); err != nil {
			return false
		}
		if verdict.Allowed == (a.Kind == attack.Breach) {
			wrong = append(wrong, verdict.Connection)
		}
		err = ctx.Err()
		return err == nil
	}
	var judged, total int
	if a.Pairs.From == nil {
		judged, total = policies.EachPair(netpol.MaxPairs, judge)
	} else {
		judged, total = eachFrom(a.Pairs.From, policies, judge)
	}
	switch {
	case err != nil:
		return unprepared(a, err)
	case judged == 0:
		return notTried(a, errors.New("there is no pair of namespaces to judge"))
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
	if judged < total {
		result.Message += fmt.Sprintf("; a sample of %d pairs", total)
	}
	result.Variants = judged
	return result
}

// eachFrom calls do for each pair of a source and a tenant's namespace.
func eachFrom(sources []string, policies *netpol.Map, do func(from, to string) bool) (judged, total int) {
	for _, namespaces := range policies.Tenants() {
		for _, to := range namespaces {
			for _, from := range sources {
				if !policies.Has(from) {
					continue
				}
				judged++
				if !do(from, to) {
					return judged, judged
				}
			}
		}
	}
	return judged, judged
}
