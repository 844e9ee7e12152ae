package main

import (
	"context"
	"fmt"
	"strings"

	"croft.dev/croft/hack/internal/samples"
	"croft.dev/croft/internal/test/sandbox"
)

// startRuns is the number of starts on each side.
const startRuns = 3

// measureStart compares a whole sandbox with a minimal Kubernetes API. Components always start
// concurrently where they can, so this does not measure the gain of concurrency, but the cost
// of everything beyond the API server.
func measureStart(ctx context.Context, b *bench) ([]comparison, error) {
	var raw struct {
		Whole   []float64 `json:"wholeSeconds"`
		APIOnly []float64 `json:"apiOnlySeconds"`
	}
	for i := range startRuns {
		printProgress("start: run %d of %d", i+1, startRuns)
		for _, side := range []struct {
			options sandbox.Options
			samples *[]float64
		}{
			{sandbox.Options{Components: sandbox.Full, Croft: b.croft}, &raw.Whole},
			{sandbox.Options{Components: sandbox.APIOnly}, &raw.APIOnly},
		} {
			took, err := timeStart(ctx, side.options)
			if err != nil {
				return nil, err
			}
			*side.samples = append(*side.samples, took)
		}
	}
	return []comparison{{
		Name: "sandbox up, with croft", Unit: inSeconds, Raw: raw,
		Croft: samples.Median(raw.Whole), Alternative: samples.Median(raw.APIOnly),
		Note: fmt.Sprintf("compared with %s alone; medians of %d, in turns", strings.Join(sandbox.APIOnly, " and "), startRuns),
	}}, nil
}

func timeStart(ctx context.Context, o sandbox.Options) (float64, error) {
	var cluster *sandbox.Cluster
	took, err := timeSeconds(func() (err error) {
		cluster, err = sandbox.Up(ctx, o)
		return err
	})
	if err != nil {
		return 0, err
	}
	return took, cluster.Down()
}
