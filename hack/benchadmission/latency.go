package main

import (
	"context"
	"fmt"
	"time"
)

// warmUp is how many rounds are thrown away at each size, in which connections are
// opened and expressions are compiled.
const warmUp = 10

// blocks is in how many parts the pods of the throughput are created, so that the
// lines can take turns.
const blocks = 4

// latency creates pods one at a time, on each line in turns, so that all see the
// same machine. Who goes first changes from round to round.
func (c *comparison) latency(ctx context.Context, s *sized) (err error) {
	s.Lines, err = c.inTurns(ctx, c.lines)
	return err
}

// steady creates the pods of no policy and of croft native alone, each in one
// namespace: how many tenants there are is all that then differs between sizes. Pods
// of ever other tenants find nothing in a processor's cache, and a Gatekeeper between
// two pods empties it.
func (c *comparison) steady(ctx context.Context, s *sized) (err error) {
	var lines []*line
	for _, l := range c.lines[:2] {
		one := *l
		one.namespaces = l.namespaces[:1]
		lines = append(lines, &one)
	}
	s.Steady, err = c.inTurns(ctx, lines)
	return err
}

func (c *comparison) inTurns(ctx context.Context, lines []*line) ([]measured, error) {
	all := make([]measured, len(lines))
	for i, l := range lines {
		all[i].Name = l.name
	}
	for round := -warmUp; round < c.rounds; round++ {
		for turn := range lines {
			i := (turn + round + warmUp) % len(lines)
			took, err := c.create(ctx, lines[i], round+warmUp, true)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", lines[i].name, err)
			}
			if round >= 0 {
				all[i].Milliseconds = append(all[i].Milliseconds, took)
			}
		}
	}
	return all, nil
}

// throughput has clients create pods at once, line after line, in several blocks.
func (c *comparison) throughput(ctx context.Context, s *sized) error {
	took := make([]time.Duration, len(c.lines))
	block := max(c.pods/blocks, 1)
	for b := range blocks {
		for turn := range c.lines {
			i := (turn + b) % len(c.lines)
			start := time.Now()
			err := inParallel(ctx, b*block, (b+1)*block, c.clients, func(ctx context.Context, n int) error {
				_, err := c.create(ctx, c.lines[i], n, true)
				return err
			})
			if err != nil {
				return fmt.Errorf("%s: %w", c.lines[i].name, err)
			}
			took[i] += time.Since(start)
		}
	}
	for i := range c.lines {
		s.Lines[i].PodsPerSecond = float64(blocks*block) / took[i].Seconds()
	}
	return nil
}
