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
	"croft.dev/croft/internal/sandbox"
)

// report is everything that one run has found.
type report struct {
	Machine     machine.Machine `json:"machine"`
	Gatekeeper  string          `json:"gatekeeper"`
	Started     time.Time       `json:"started"`
	Seconds     float64         `json:"seconds"`
	Rounds      int             `json:"rounds"`
	Pods        int             `json:"pods"`
	Clients     int             `json:"clients"`
	Rate        int             `json:"podsPerSecondWhileKilled"`
	Growth      []grown         `json:"growth"`
	Comparisons []compared      `json:"comparisons"`
}

// compared is one of Gatekeeper's lines beside the others.
type compared struct {
	Name  string   `json:"name"`
	Sizes []sized  `json:"sizes"`
	Kills []killed `json:"kills"`
}

// sized is what was found with so many tenants.
type sized struct {
	Tenants int        `json:"tenants"`
	Lines   []measured `json:"lines"`
	Memory  memory     `json:"memory"`
}

// measured is one line at one size.
type measured struct {
	Name string `json:"name"`
	// Milliseconds are how long each pod took. The pods of a round are at the same
	// place in all lines.
	Milliseconds  []float64 `json:"milliseconds"`
	PodsPerSecond float64   `json:"podsPerSecond"`
}

// memory is in bytes.
type memory struct {
	// APIServer and Gatekeeper are what the processes hold after everything was
	// measured at a size.
	APIServer  float64 `json:"apiServerBytes"`
	Gatekeeper float64 `json:"gatekeeperBytes"`
	// The API server's live heap before its tenants came, after croft's native ones
	// and after Gatekeeper's.
	Before          float64 `json:"apiServerHeapBefore"`
	AfterNative     float64 `json:"apiServerHeapAfterNative"`
	AfterGatekeeper float64 `json:"apiServerHeapAfterGatekeeper"`
}

// killed is what became of pods while the engine was killed.
type killed struct {
	Line    string `json:"line"`
	Says    string `json:"says"`
	Tenants int    `json:"tenants"`
	Kills   int    `json:"kills"`
	// Asked is how many pods there were; Refused and Unanswered of them were told
	// no, or nothing at all.
	Asked      int `json:"asked"`
	Refused    int `json:"refused"`
	Unanswered int `json:"unanswered"`
	// Stored is what was in the cluster afterwards, and Unplaced what of it would
	// have run anywhere.
	Stored   int `json:"stored"`
	Unplaced int `json:"unplaced"`
	// How many seconds after each kill the engine was ready again, and how many
	// after it the first pod came out as it should.
	ReadySeconds   []float64 `json:"readySeconds"`
	PlacingSeconds []float64 `json:"placingSeconds"`
	// Reasons are what clients were told, without names, and how often.
	Reasons map[string]int `json:"reasons"`
}

// newReport says on what is measured, before anything is.
func newReport(ctx context.Context, o options) (report, error) {
	r := report{Started: time.Now(), Rounds: o.rounds, Pods: o.pods, Clients: o.clients, Rate: o.rate}
	var err error
	if r.Machine, err = machine.This(ctx); err != nil {
		return r, err
	}
	binary, err := sandbox.Tool(sandbox.Gatekeeper)
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

func load(path string) (r report, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

func (r report) comparison(name string) (compared, bool) {
	for _, c := range r.Comparisons {
		if c.Name == name {
			return c, true
		}
	}
	return compared{}, false
}

// line finds one at a size.
func (s sized) line(name string) measured { return lineOf(s.Lines, name) }

func lineOf(lines []measured, name string) measured {
	for _, m := range lines {
		if m.Name == name {
			return m
		}
	}
	return measured{}
}

// cost is how many milliseconds a line adds to a pod, beyond those of no policy.
type cost struct {
	Median float64
	// Low and High are between what it is, 95 times out of 100.
	Low, High float64
}

// cost compares the pods of each round with one another: what a machine does to
// all of them at a moment then falls out.
func (s sized) cost(name string) cost { return intervalOf(added(s.Lines, name)) }

// added is by how much each pod of a line took longer than the one without policy of
// the same round.
func added(lines []measured, name string) []float64 {
	return samples.Differences(lineOf(lines, name).Milliseconds, lineOf(lines, noPolicy).Milliseconds)
}

func intervalOf(all []float64) cost {
	c := cost{Median: samples.Median(all)}
	c.Low, c.High = samples.MedianInterval(all)
	return c
}
