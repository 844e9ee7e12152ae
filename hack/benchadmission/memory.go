package main

import (
	"context"
	"fmt"

	"croft.dev/croft/hack/internal/machine"
	"croft.dev/croft/internal/test/sandbox"
)

const apiServer = "kube-apiserver"

// readResident reads the resident memory of the processes. It lags behind use, as Go returns memory
// only after a while.
func (c *comparison) readResident(m *memory) error {
	for name, to := range map[string]*float64{apiServer: &m.APIServer, sandbox.Gatekeeper: &m.Gatekeeper} {
		component, err := c.cluster.Component(name)
		if err != nil {
			return err
		}
		if *to, _, err = machine.ReadResident(component.PID); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// readLiveHeap returns the API server's live heap at its last garbage collection: unlike resident
// memory, it can be attributed to the latest objects. The next collection is due when the heap
// has doubled.
func (c *comparison) readLiveHeap(ctx context.Context) (float64, error) {
	due, err := c.readMetrics(ctx, "go_memstats_next_gc_bytes", "")
	return due[""] / 2, err
}
