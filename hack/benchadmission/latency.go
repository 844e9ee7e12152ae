package main

import (
	"context"
	"fmt"
	"time"
)

// warmUp is the number of discarded rounds at each size, in which connections are opened and
// expressions are compiled.
const warmUp = 10

// blocks is the number of parts into which the pods of the throughput are divided, so that the
// lines alternate.
const blocks = 4

// runInTurns creates pods one at a time, alternating between the lines, so that all run under the
// same load. The first line changes from round to round.
func runInTurns(ctx context.Context, rounds int, lines []*line) ([]lineResult, error) {
	all := make([]lineResult, len(lines))
	for i, l := range lines {
		all[i].Name = l.name
	}
	for round := range warmUp + rounds {
		for turn := range lines {
			i := (turn + round) % len(lines)
			took, err := lines[i].createPod(ctx, round, true)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", lines[i].name, err)
			}
			if round >= warmUp {
				all[i].Milliseconds = append(all[i].Milliseconds, took)
			}
		}
	}
	return all, nil
}

// measureThroughput creates pods with concurrent clients, line after line, in several blocks.
func (c *comparison) measureThroughput(ctx context.Context, s *sizeResult) error {
	took := make([]time.Duration, len(c.lines))
	block := max(c.pods/blocks, 1)
	for b := range blocks {
		for turn := range c.lines {
			i := (turn + b) % len(c.lines)
			start := time.Now()
			err := runInParallel(ctx, b*block, (b+1)*block, c.clients, func(ctx context.Context, n int) error {
				_, err := c.lines[i].createPod(ctx, n, true)
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
