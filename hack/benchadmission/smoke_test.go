package main

import (
	"slices"
	"testing"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"croft.dev/croft/internal/test/sandbox"
)

// TestSmoke measures as little as possible, on real clusters. It fails if pods are not placed
// as their lines require, or if a pod is admitted without placement. The API server is not
// killed, since it takes half a minute to admit pods again.
func TestSmoke(t *testing.T) {
	sandbox.Thorough(t)
	if testing.Short() {
		t.Skip("starts control planes")
	}
	ctrllog.SetLogger(logr.Discard())
	o := options{sizes: []int{1, 3}, rounds: 6, pods: 16, clients: 4, kills: 1, rate: 50, around: 5, killAt: 1}
	r, err := measureAll(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var sizes []int
	for _, g := range r.Growth {
		sizes = append(sizes, g.Tenants)
		for _, m := range slices.Concat(g.Few, g.Many) {
			if len(m.Milliseconds) != o.rounds {
				t.Errorf("growth, %s, %d tenants: %d pods of %d", m.Name, g.Tenants, len(m.Milliseconds), o.rounds)
			}
		}
	}
	if want := []int{1, 1, 3}; !slices.Equal(sizes, want) {
		t.Errorf("growth was measured at %v tenants, want %v: twice where there is none", sizes, want)
	}
	for _, c := range r.Comparisons {
		for _, s := range c.Sizes {
			for _, m := range s.Lines {
				if len(m.Milliseconds) != o.rounds || m.PodsPerSecond <= 0 {
					t.Errorf("%s, %d tenants: %d pods of %d, %g a second", m.Name, s.Tenants, len(m.Milliseconds), o.rounds, m.PodsPerSecond)
				}
			}
			if s.Memory.APIServer <= 0 || s.Memory.Gatekeeper <= 0 || s.Memory.AfterGatekeeper <= 0 {
				t.Errorf("%s, %d tenants: memory: %+v", c.Name, s.Tenants, s.Memory)
			}
		}
	}
	if slipped, kills := r.countUnplaced(); slipped > 0 || kills != 2 {
		t.Errorf("%d pods got in unplaced, in %d kills of 2", slipped, kills)
	}
}
