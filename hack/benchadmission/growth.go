package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"croft.dev/croft/hack/internal/samples"
	"croft.dev/croft/hack/internal/tenants"
	"croft.dev/croft/internal/test/sandbox"
)

// growthResult are the durations of pod creations in two concurrent clusters, measured alternately:
// one stays small, and the other has this number of tenants. Neither has Gatekeeper. The pods
// of a round have the same index in all lines.
type growthResult struct {
	Tenants int `json:"tenants"`
	// Few and Many are pods without policy and of croft native, in each cluster.
	Few  []lineResult `json:"few"`
	Many []lineResult `json:"many"`
}

// measureGrowth measures how the cost of croft native grows with the number of tenants.
//
// Figures taken ten minutes apart cannot show this growth: other load on the machine changes
// them by more. So the small cluster runs all the time, and is measured again together with
// each size of the other. The difference while both are small is measured twice, since that is
// the noise.
func measureGrowth(ctx context.Context, o options) (all []growthResult, err error) {
	var clusters [2]*comparison
	defer func() {
		for _, c := range clusters {
			if c != nil {
				err = errors.Join(err, c.cluster.Down())
			}
		}
	}()
	for i := range clusters {
		if clusters[i], err = startComparison(ctx, o, sandbox.Options{}, noPolicy, native); err != nil {
			return nil, err
		}
		if err := clusters[i].prepare(ctx, tenants.Platform); err != nil {
			return nil, err
		}
	}
	few, many := clusters[0], clusters[1]
	if err := few.growLines(ctx, o.sizes[0], few.lines...); err != nil {
		return nil, err
	}
	for _, size := range slices.Concat(o.sizes[:1], o.sizes) {
		if err := many.growLines(ctx, size, many.lines...); err != nil {
			return nil, fmt.Errorf("%d tenants: %w", size, err)
		}
		printProgress("%s, %d tenants compared with %d: %d rounds", native, size, o.sizes[0], o.rounds)
		found, err := runInTurns(ctx, o.rounds, slices.Concat(few.lines, many.lines))
		if err != nil {
			return nil, fmt.Errorf("%d tenants: %w", size, err)
		}
		all = append(all, growthResult{Tenants: size, Few: found[:len(few.lines)], Many: found[len(few.lines):]})
	}
	return all, nil
}

// compareCosts returns the extra cost of croft native in the large cluster over the small one, in
// milliseconds, from the differences within each round.
func (g growthResult) compareCosts() cost {
	return computeInterval(samples.Differences(computeAdded(g.Many, native), computeAdded(g.Few, native)))
}
