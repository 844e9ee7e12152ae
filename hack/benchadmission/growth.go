package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"croft.dev/croft/hack/internal/samples"
	"croft.dev/croft/hack/internal/tenants"
	"croft.dev/croft/internal/sandbox"
)

// grown is what pods cost in two clusters that run at once and take turns: one stays as
// small as it began, the other has so many tenants. Gatekeeper is in neither of them.
// The pods of a round are at the same place in all lines.
type grown struct {
	Tenants int `json:"tenants"`
	// Few and Many are pods without policy and of croft native, in each cluster.
	Few  []measured `json:"few"`
	Many []measured `json:"many"`
}

// growth measures how what croft native adds grows with the tenants.
//
// A figure of now and one of ten minutes ago cannot show that: what else a machine
// does moves both by more than is looked for. So the small cluster is there all the
// time, and is measured anew beside each size of the other. By how much they differ
// while both are small is measured twice, since that is the noise.
func growth(ctx context.Context, o options) (all []grown, err error) {
	var clusters [2]*comparison
	defer func() {
		for _, c := range clusters {
			if c != nil {
				err = errors.Join(err, c.cluster.Down())
			}
		}
	}()
	for i := range clusters {
		if clusters[i], err = start(ctx, o, sandbox.Options{}, noPolicy, native); err != nil {
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
		say("%s, %d tenants beside %d: %d rounds", native, size, o.sizes[0], o.rounds)
		found, err := inTurns(ctx, o.rounds, slices.Concat(few.lines, many.lines))
		if err != nil {
			return nil, fmt.Errorf("%d tenants: %w", size, err)
		}
		all = append(all, grown{Tenants: size, Few: found[:len(few.lines)], Many: found[len(few.lines):]})
	}
	return all, nil
}

// difference is by how many milliseconds more croft native adds in the large cluster
// than in the small one, round by round.
func (g grown) difference() cost {
	return intervalOf(samples.Differences(added(g.Many, native), added(g.Few, native)))
}
