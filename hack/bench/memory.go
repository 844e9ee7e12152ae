package main

import (
	"context"
	"fmt"

	"croft.dev/croft/hack/internal/machine"
)

// measureMemory compares the operator's memory with tenants and without. Resident memory is the
// memory that a machine has to provide. It lags behind use, as Go returns memory only after a
// while, so the difference between the two is an upper bound.
func measureMemory(ctx context.Context, b *bench) ([]comparison, error) {
	s, err := b.getSettled(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.checkOperator(ctx); err != nil {
		return nil, err
	}
	now, most, err := s.operator.readResident()
	if err != nil {
		return nil, err
	}
	perTenant := (now - s.idle) / float64(b.tenants)
	return []comparison{{
		Name: fmt.Sprintf("operator's memory, %d tenants", b.tenants), Unit: inBytes,
		Croft: now, Alternative: s.idle,
		Note: fmt.Sprintf("compared with no tenants; %s per tenant; %s at most", machine.FormatBytes(perTenant), machine.FormatBytes(most)),
		Raw:  map[string]float64{"idleBytes": s.idle, "residentBytes": now, "mostBytes": most, "bytesPerTenant": perTenant},
	}}, nil
}
