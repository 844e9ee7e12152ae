package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"croft.dev/croft/hack/internal/samples"
	"croft.dev/croft/hack/internal/tenants"
	"croft.dev/croft/internal/test/sandbox"
)

// convergeRounds is even, so that each side is first equally often.
const convergeRounds = 2

// round is the result of one round on each side.
type round struct {
	Croft side `json:"croft"`
	Bare  side `json:"bare"`
}

// side is the result of one side in one round.
type side struct {
	// Took are the times from the first write until each tenant was ready, in seconds.
	Took []float64 `json:"tookSeconds"`
	// Requests are the requests of the round. Unlike the times, their number does not depend on
	// the machine's load.
	Requests requests `json:"requests"`
}

// measureConverge compares croft with a client that only writes, each with its own tenants.
func measureConverge(ctx context.Context, b *bench) ([]comparison, error) {
	var rounds []round
	err := withSandbox(ctx, sandbox.Options{Croft: b.croft}, func(c *sandbox.Cluster) error {
		if err := b.declarePlatform(ctx, c); err != nil {
			return err
		}
		for i := range convergeRounds {
			var r round
			turns := []func() error{
				func() (err error) {
					printProgress("converge: round %d of %d, %d tenants by croft", i+1, convergeRounds, b.tenants)
					r.Croft, err = b.convergeCroft(ctx, c, fmt.Sprintf("croft-side-%d", i))
					return err
				},
				func() (err error) {
					printProgress("converge: round %d of %d, %d tenants by a bare client", i+1, convergeRounds, b.tenants)
					r.Bare, err = convergeBare(ctx, c, tenants.RenderText(fmt.Sprintf("bare-side-%d", i), b.tenants))
					return err
				},
			}
			if i%2 == 1 {
				slices.Reverse(turns)
			}
			for _, turn := range turns {
				if err := turn(); err != nil {
					return err
				}
			}
			rounds = append(rounds, r)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return compareRounds(rounds, b.tenants), nil
}

func compareRounds(rounds []round, tenants int) []comparison {
	var croft, bare sums
	ratios := ""
	for _, r := range rounds {
		croft.add(r.Croft)
		bare.add(r.Bare)
		ratios += fmt.Sprintf(" %.2f×", slices.Max(r.Croft.Took)/slices.Max(r.Bare.Took))
	}
	written := float64(len(rounds) * tenants)
	return []comparison{{
		Name: fmt.Sprintf("converge %d tenants", tenants), Unit: inSeconds, Raw: rounds,
		Croft: samples.Mean(croft.last), Alternative: samples.Mean(bare.last),
		Note: fmt.Sprintf("compared with %d workers that write the same objects without waiting; rounds:%s", bareWorkers, ratios),
	}, {
		Name: "  until half are complete", Unit: inSeconds, Croft: samples.Median(croft.took), Alternative: samples.Median(bare.took),
		Note: "median of all tenants, from the first write",
	}, {
		Name: "  until 99% are complete", Unit: inSeconds, Croft: samples.Percentile(99, croft.took), Alternative: samples.Percentile(99, bare.took),
		Note: "p99 of all tenants, from the first write",
	}, {
		Name: "  requests for a tenant", Unit: inRequests, Croft: croft.requests / written, Alternative: bare.requests / written,
		Note: "by the operator, including reads and dry runs, compared with one for each object",
	}}
}

// sums are the totals of all rounds of one side.
type sums struct {
	took, last []float64
	requests   float64
}

func (s *sums) add(one side) {
	s.took = append(s.took, one.Took...)
	s.last = append(s.last, slices.Max(one.Took))
	s.requests += one.Requests.countAll()
}

// declarePlatform applies the platform, and waits until everything that tenants need is Ready.
func (b *bench) declarePlatform(ctx context.Context, c *sandbox.Cluster) error {
	return withFiles(func(paths []string) error {
		return b.runCroft(ctx, "apply", "--kubeconfig", c.Kubeconfig, "-f", paths[0])
	}, tenants.Platform)
}

// convergeCroft waits until croft's operator is at rest, declares the tenants, and counts its
// requests until it is at rest again.
func (b *bench) convergeCroft(ctx context.Context, c *sandbox.Cluster, prefix string) (side, error) {
	if err := c.Start(operatorComponent); err != nil {
		return side{}, err
	}
	operator, err := findOperator(ctx, c)
	if err != nil {
		return side{}, err
	}
	before, err := operator.waitIdle(ctx)
	if err != nil {
		return side{}, err
	}
	took, err := b.declareTenants(ctx, c, prefix)
	if err != nil {
		return side{}, err
	}
	after, err := operator.waitIdle(ctx)
	return side{Took: took, Requests: after.subtract(before)}, err
}

// declareTenants applies a file of tenants and returns the time from the first write until each
// was Ready. This process waits instead of croft, which polls less often.
func (b *bench) declareTenants(ctx context.Context, c *sandbox.Cluster, prefix string) ([]float64, error) {
	var took []float64
	err := withFiles(func(paths []string) error {
		group, ctx := errgroup.WithContext(ctx)
		lookout, err := watchTenants(ctx, c.Config, prefix, b.tenants)
		if err != nil {
			return err
		}
		defer lookout.stop()
		group.Go(func() (err error) {
			took, err = lookout.waitAll(ctx, time.Time{})
			return err
		})
		group.Go(func() error {
			return b.runCroft(ctx, "apply", "--kubeconfig", c.Kubeconfig, "--wait=false", "-f", paths[0])
		})
		return group.Wait()
	}, tenants.RenderText(prefix, b.tenants))
	return took, err
}
