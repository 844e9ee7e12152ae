package main

import (
	"context"
	"errors"
	"fmt"

	"croft.dev/croft/internal/test/sandbox"
)

// settledCluster is a cluster whose tenants are all Ready, and whose operator has no work left.
type settledCluster struct {
	*sandbox.Cluster
	operator *operator
	// idle is the operator's memory before any declaration.
	idle float64
}

// getSettled returns the settled cluster that measurements share, and creates it on the first call.
// It is stopped when all measurements are done.
func (b *bench) getSettled(ctx context.Context) (*settledCluster, error) {
	if b.settled != nil {
		return b.settled, nil
	}
	printProgress("a cluster with %d tenants, without changes", b.tenants)
	cluster, err := sandbox.Up(ctx, sandbox.Options{Croft: b.croft})
	if err != nil {
		return nil, err
	}
	s := &settledCluster{Cluster: cluster}
	if err := b.fillSettled(ctx, s); err != nil {
		return nil, errors.Join(err, s.Down())
	}
	b.settled = s
	return s, nil
}

func (b *bench) fillSettled(ctx context.Context, s *settledCluster) (err error) {
	if s.operator, err = findOperator(ctx, s.Cluster); err != nil {
		return err
	}
	if _, err = s.operator.waitIdle(ctx); err != nil {
		return err
	}
	if s.idle, _, err = s.operator.readResident(); err != nil {
		return err
	}
	if err := b.declarePlatform(ctx, s.Cluster); err != nil {
		return err
	}
	if _, err := b.declareTenants(ctx, s.Cluster, "tenant"); err != nil {
		return err
	}
	// Some events are written after the change that they report.
	_, err = s.operator.waitIdle(ctx)
	return err
}

// checkOperator fails if the operator was restarted: its counters and its memory would start
// again.
func (s *settledCluster) checkOperator(ctx context.Context) error {
	now, err := findOperator(ctx, s.Cluster)
	if err != nil {
		return err
	}
	if now.pid != s.operator.pid {
		return fmt.Errorf("the operator ended and was restarted: process %d is now %d", s.operator.pid, now.pid)
	}
	return nil
}
