package verify

import (
	"context"
	"errors"
	"fmt"

	"croft.dev/croft/internal/observe/netpol"
	"croft.dev/croft/internal/rules/attack"
)

func (r *Runner) getNetworkMap(ctx context.Context) (*netpol.Map, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.policies == nil {
		policies, err := netpol.ReadMap(ctx, r.admin)
		if err != nil {
			return nil, err
		}
		r.policies = policies
	}
	return r.policies, nil
}

// evaluateFlow evaluates whether the network policies allow a connection.
func (r *Runner) evaluateFlow(ctx context.Context, a attack.Attack) Result {
	policies, err := r.getNetworkMap(ctx)
	if err != nil {
		return newUnprepared(a, err)
	}
	allowed, err := policies.Allows(*a.Flow)
	if err != nil {
		return newNotTried(a, err)
	}
	switch {
	case a.Kind == attack.Breach && allowed:
		return newResult(a, Breached, "the network policies allow the connection")
	case a.Kind == attack.Mirror && !allowed:
		return newResult(a, Breached, "the network policies stop the connection")
	default:
		return newResult(a, Held, "")
	}
}

// evaluatePairs evaluates connections between all tenants of the cluster or, if the attack names
// source namespaces, from these to every tenant.
func (r *Runner) evaluatePairs(ctx context.Context, a attack.Attack) Result {
	policies, err := r.getNetworkMap(ctx)
	if err != nil {
		return newUnprepared(a, err)
	}
	var wrong []string
	agreed := map[[2]string][]attack.Agreement{}
	for _, agreement := range a.Pairs.Agreed {
		pair := [2]string{agreement.From, agreement.To}
		agreed[pair] = append(agreed[pair], agreement)
	}
	judge := func(from, to string) bool {
		var verdict netpol.Verdict
		if verdict, err = policies.Connects(from, to, a.Pairs.Port, a.Pairs.Protocol,
			agreed[[2]string{policies.Tenant(from), policies.Tenant(to)}]...); err != nil {
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
		judged, total = forEachPair(a.Pairs.From, policies, judge)
	}
	switch {
	case err != nil:
		return newUnprepared(a, err)
	case judged == 0:
		return newNotTried(a, errors.New("there is no pair of namespaces to evaluate"))
	}
	result := newResult(a, Held, fmt.Sprintf("%d pairs of namespaces evaluated", judged))
	if len(wrong) > 0 {
		expected := "connect"
		if a.Kind == attack.Mirror {
			expected = "do not connect"
		}
		result.Result, result.Breaches = Breached, wrong
		result.Message = fmt.Sprintf("%d of %d pairs of namespaces %s: %s", len(wrong), judged, expected, formatList(wrong))
	}
	if judged < total {
		result.Message += fmt.Sprintf("; a sample of %d pairs", total)
	}
	result.Variants = judged
	return result
}

// forEachPair calls do for each pair of a source and a tenant's namespace.
func forEachPair(sources []string, policies *netpol.Map, do func(from, to string) bool) (judged, total int) {
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
