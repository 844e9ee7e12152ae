package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"croft.dev/croft/internal/prove/flood"
	"croft.dev/croft/internal/test/sandbox"
)

// bench is the state that all measurements share.
type bench struct {
	// croft is the path of the measured binary.
	croft   string
	tenants int
	window  time.Duration

	// floods are the floods of the measurement neighbours, and phase is the duration of each of its phases. If
	// bare is set, it measures a cluster without croft, too. controllerQPS is kube-controller-manager's rate
	// limit, or 0 for the sandbox's.
	floods        []flood.Flood
	phase         time.Duration
	bare          bool
	controllerQPS int

	// headlamp is the directory of a built Headlamp, or "".
	headlamp string
	// pools is the number of pools of the measurement scale, and the largest of the measurement karpenter.
	pools int

	// settled is the cluster of the measurements steady and memory. It is nil until one of them
	// needs it.
	settled *settledCluster
}

// runMeasurements runs measurements one after the other and adds their results to the report. It stops
// at the first failure.
func (b *bench) runMeasurements(ctx context.Context, chosen []measurement, r *report) (err error) {
	defer func() {
		if b.settled != nil {
			err = errors.Join(err, b.settled.Down())
		}
	}()
	for _, m := range chosen {
		found, err := m.run(ctx, b)
		r.Comparisons = append(r.Comparisons, found...)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

// withSandbox runs a function on a new sandbox, and always stops the sandbox.
func withSandbox(ctx context.Context, o sandbox.Options, do func(*sandbox.Cluster) error) (err error) {
	cluster, err := sandbox.Up(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Down()) }()
	return do(cluster)
}

// runCroft runs croft until it exits. Its output is discarded, so that the terminal does not
// affect the measurement.
func (b *bench) runCroft(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, b.croft, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("croft %s: %w %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return nil
}

// withFiles writes texts to temporary files and calls a function with their paths.
func withFiles(do func(paths []string) error, texts ...string) (err error) {
	var paths []string
	defer func() {
		for _, path := range paths {
			err = errors.Join(err, os.Remove(path))
		}
	}()
	for _, text := range texts {
		file, err := os.CreateTemp("", "croft-bench-*.yaml")
		if err != nil {
			return err
		}
		paths = append(paths, file.Name())
		_, err = file.WriteString(text)
		if err = errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
	return do(paths)
}

// timeSeconds returns the duration of a function.
func timeSeconds(do func() error) (float64, error) {
	start := time.Now()
	err := do()
	return time.Since(start).Seconds(), err
}

// printProgress prints the progress of the benchmark.
func printProgress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
