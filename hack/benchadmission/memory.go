package main

import (
	"context"
	"fmt"

	"croft.dev/croft/hack/internal/machine"
	"croft.dev/croft/internal/sandbox"
)

const apiServer = "kube-apiserver"

// resident looks at how much memory the processes hold. It lags behind what is in
// use, as Go gives memory back only after a while.
func (c *comparison) resident(m *memory) error {
	for name, to := range map[string]*float64{apiServer: &m.APIServer, sandbox.Gatekeeper: &m.Gatekeeper} {
		component, err := c.cluster.Component(name)
		if err != nil {
			return err
		}
		if *to, _, err = machine.Resident(component.PID); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// liveHeap is what the API server had in use at its last garbage collection: unlike
// what is resident, it can be put down to the objects that came last. Its next
// collection is due when that has doubled.
func (c *comparison) liveHeap(ctx context.Context) (float64, error) {
	due, err := c.figures(ctx, "go_memstats_next_gc_bytes", "")
	return due[""] / 2, err
}
