package main

import (
	"context"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"croft.dev/croft/hack/internal/machine"
	"croft.dev/croft/hack/internal/samples"
	"croft.dev/croft/internal/test/sandbox"
)

// report has the results of one run.
type report struct {
	Machine     machine.Machine    `json:"machine"`
	Gatekeeper  string             `json:"gatekeeper"`
	Started     time.Time          `json:"started"`
	Seconds     float64            `json:"seconds"`
	Rounds      int                `json:"rounds"`
	Pods        int                `json:"pods"`
	Clients     int                `json:"clients"`
	Rate        int                `json:"podsPerSecondWhileKilled"`
	Growth      []growthResult     `json:"growth"`
	Comparisons []comparisonResult `json:"comparisons"`
}

// comparisonResult is one of Gatekeeper's lines, compared with the others.
type comparisonResult struct {
	Name  string       `json:"name"`
	Sizes []sizeResult `json:"sizes"`
	Kills []killResult `json:"kills"`
}

// sizeResult are the results for one number of tenants.
type sizeResult struct {
	Tenants int          `json:"tenants"`
	Lines   []lineResult `json:"lines"`
	Memory  memory       `json:"memory"`
}

// lineResult is the result of one line at one size.
type lineResult struct {
	Name string `json:"name"`
	// Milliseconds are the durations for each pod. The pods of a round have the same index in
	// all lines.
	Milliseconds  []float64 `json:"milliseconds"`
	PodsPerSecond float64   `json:"podsPerSecond"`
}

// memory is in bytes.
type memory struct {
	// APIServer and Gatekeeper are the memory of the processes after all measurements at a
	// size.
	APIServer  float64 `json:"apiServerBytes"`
	Gatekeeper float64 `json:"gatekeeperBytes"`
	// These are the API server's live heap before the tenants are added, after croft's native
	// ones and after Gatekeeper's.
	Before          float64 `json:"apiServerHeapBefore"`
	AfterNative     float64 `json:"apiServerHeapAfterNative"`
	AfterGatekeeper float64 `json:"apiServerHeapAfterGatekeeper"`
}

// killResult are the outcomes of pods while the engine was killed.
type killResult struct {
	Line        string `json:"line"`
	Description string `json:"says"`
	Tenants     int    `json:"tenants"`
	Kills       int    `json:"kills"`
	// Asked is the number of requested pods. Refused and Unanswered are the numbers of pods
	// that were refused, or got no response.
	Asked      int `json:"asked"`
	Refused    int `json:"refused"`
	Unanswered int `json:"unanswered"`
	// Stored is the number of pods in the cluster afterwards, and Unplaced the number of those
	// without placement.
	Stored   int `json:"stored"`
	Unplaced int `json:"unplaced"`
	// These are the seconds after each kill until the engine was ready, and until the first pod
	// was placed correctly.
	ReadySeconds   []float64 `json:"readySeconds"`
	PlacingSeconds []float64 `json:"placingSeconds"`
	// Reasons are the messages to clients, without names, and their counts.
	Reasons map[string]int `json:"reasons"`
}

// newReport describes the machine and versions, before the measurements.
func newReport(ctx context.Context, o options) (report, error) {
	r := report{Started: time.Now(), Rounds: o.rounds, Pods: o.pods, Clients: o.clients, Rate: o.rate}
	var err error
	if r.Machine, err = machine.Describe(ctx); err != nil {
		return r, err
	}
	binary, err := sandbox.FindTool(sandbox.Gatekeeper)
	if err != nil {
		return r, err
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return r, fmt.Errorf("%s: %w", binary, err)
	}
	r.Gatekeeper = info.Main.Version
	return r, nil
}

func loadReport(path string) (r report, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

func (r report) findComparison(name string) (comparisonResult, bool) {
	for _, c := range r.Comparisons {
		if c.Name == name {
			return c, true
		}
	}
	return comparisonResult{}, false
}

// findLine returns the result of a line at a size.
func (s sizeResult) findLine(name string) lineResult { return findResult(s.Lines, name) }

func findResult(lines []lineResult, name string) lineResult {
	for _, m := range lines {
		if m.Name == name {
			return m
		}
	}
	return lineResult{}
}

// cost is the extra duration for a line's pods, compared with pods without policy, in
// milliseconds.
type cost struct {
	Median float64
	// Low and High are the 95% confidence interval.
	Low, High float64
}

// computeCost compares the pods within each round: effects of the machine on the whole round cancel
// out.
func (s sizeResult) computeCost(name string) cost {
	return computeInterval(computeAdded(s.Lines, name))
}

// computeAdded returns the extra durations for a line's pods, compared with the pods without policy of
// the same round.
func computeAdded(lines []lineResult, name string) []float64 {
	return samples.Differences(findResult(lines, name).Milliseconds, findResult(lines, noPolicy).Milliseconds)
}

func computeInterval(all []float64) cost {
	c := cost{Median: samples.Median(all)}
	c.Low, c.High = samples.MedianInterval(all)
	return c
}
