// Package heartbeat reports whether an operator runs: the leader renews a Lease, and
// readers evaluate its age. The operator's conditions do not show this, because they remain
// when the operator is stopped.
//
// This Lease is not the one of the leader election, which an operator without
// --leader-elect does not have.
package heartbeat

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
)

const (
	// Name is the Lease's name. Its namespace is v1alpha1.SystemNamespace.
	Name = "croft-operator"
	// Interval is the interval of renewals.
	Interval = 10 * time.Second
	// Lost is the age from which the operator counts as stopped. It is longer than another
	// replica takes to become the leader, and than an API server takes to restart.
	Lost = 40 * time.Second
	// VersionAnnotation has the operator's version of croft.
	VersionAnnotation = "croft.dev/version"
)

// Beat is the observed state of the operator.
type Beat struct {
	// At is when the operator last renewed the Lease. It is zero if it never did.
	At time.Time
	// Holder is where the operator runs: a pod, or a host. It is empty after an orderly
	// stop.
	Holder string
	// Version is the operator's version of croft.
	Version string
	// Hidden reports that the caller may not read the Lease, so that the state is unknown.
	Hidden bool
}

// Read reads the heartbeat. It returns no error if the heartbeat, or the right to read it,
// is missing.
func Read(ctx context.Context, c client.Reader) (Beat, error) {
	var lease coordinationv1.Lease
	err := c.Get(ctx, client.ObjectKey{Namespace: v1alpha1.SystemNamespace, Name: Name}, &lease)
	switch {
	case apierrors.IsNotFound(err):
		return Beat{}, nil
	case apierrors.IsForbidden(err):
		return Beat{Hidden: true}, nil
	case err != nil:
		return Beat{}, fmt.Errorf("read the operator's heartbeat: %w", err)
	}
	return ParseLease(&lease), nil
}

// ParseLease returns the state in a Lease.
func ParseLease(lease *coordinationv1.Lease) Beat {
	b := Beat{Version: lease.Annotations[VersionAnnotation]}
	if lease.Spec.RenewTime != nil {
		b.At = lease.Spec.RenewTime.Time
	}
	if lease.Spec.HolderIdentity != nil {
		b.Holder = *lease.Spec.HolderIdentity
	}
	return b
}

// IsAlive reports whether an operator runs. A time in the future, from a clock that is ahead,
// counts as now.
func (b Beat) IsAlive(now time.Time) bool {
	return !b.At.IsZero() && b.Holder != "" && now.Sub(b.At) < Lost
}

// IsBelievable reports whether the operator's conditions are current: the operator is alive,
// or its state is unknown.
func (b Beat) IsBelievable(now time.Time) bool { return b.Hidden || b.IsAlive(now) }

// Describe returns one line about the state.
func (b Beat) Describe(now time.Time) string {
	switch {
	case b.Hidden:
		return fmt.Sprintf("unknown: you may not read the Lease %s/%s", v1alpha1.SystemNamespace, Name)
	case b.At.IsZero():
		return "no operator has run yet"
	case b.IsAlive(now):
		return "alive, " + formatAge(now, b.At) + " ago"
	case b.Holder == "":
		return "no operator for " + formatAge(now, b.At) + ": it was stopped"
	default:
		return "no operator for " + formatAge(now, b.At) + ": the last ran on " + b.Holder
	}
}

// formatAge formats the time since an event, for people.
func formatAge(now, at time.Time) string {
	since := max(0, now.Sub(at))
	switch {
	case since < time.Minute:
		return fmt.Sprintf("%d s", int(since.Seconds()))
	case since < time.Hour:
		return fmt.Sprintf("%d min", int(since.Minutes()))
	default:
		return duration.HumanDuration(since)
	}
}
