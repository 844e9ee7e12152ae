package heartbeat

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationapply "k8s.io/client-go/applyconfigurations/coordination/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
)

// farewell is the time limit for a stopping operator to say so.
const farewell = 2 * time.Second

// readyInterval is the interval of readiness checks of a starting operator.
const readyInterval = 200 * time.Millisecond

// Keeper renews the heartbeat while the operator leads.
type Keeper struct {
	// Client writes to the API server. It is never read from: a cache would begin to
	// watch every Lease of the cluster.
	Client client.Client
	// Holder is where this operator runs, and Version its version.
	Holder, Version string
	// Log receives errors of writing the heartbeat.
	Log logr.Logger
	// Ready reports whether the operator can do its work; nil for always. Before that
	// it gives no sign: it runs, and repairs nothing.
	Ready func(context.Context) bool
	// Written is told when the heartbeat was written; nil for nobody.
	Written func(at time.Time)
	// Every is the interval of renewals; Interval if zero.
	Every time.Duration

	// last is the version of the Lease that was written last.
	last string
	// failing says that it was logged that it could not be written.
	failing bool
}

// NeedLeaderElection has only the operator that leads give a sign.
func (*Keeper) NeedLeaderElection() bool { return true }

// Start renews the heartbeat until the context is done, and then withdraws it, so that
// readers need not wait for it to expire.
func (k *Keeper) Start(ctx context.Context) error {
	every := k.Every
	if every == 0 {
		every = Interval
	}
	for k.Ready != nil && !k.Ready(ctx) {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(readyInterval):
		}
	}
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for {
		k.beat(ctx)
		select {
		case <-ctx.Done():
			return k.stop(ctx)
		case <-ticks.C:
		}
	}
}

// beat writes the heartbeat. Without the namespace, which `croft install` creates, it
// cannot: the walls do not depend on it, so the operator continues.
func (k *Keeper) beat(ctx context.Context) {
	timed, cancel := context.WithTimeout(ctx, Interval)
	defer cancel()
	version, err := k.write(timed, k.Holder)
	switch {
	case err == nil:
		k.last, k.failing = version, false
		if k.Written != nil {
			k.Written(time.Now())
		}
	case k.failing || ctx.Err() != nil:
	case apierrors.IsNotFound(err):
		k.failing = true
		k.Log.Info("no heartbeat: there is no namespace " + v1alpha1.SystemNamespace + ", which `croft install` makes; " +
			"without it `croft status`, `croft doctor` and `croft apply` take this operator for dead")
	default:
		k.failing = true
		k.Log.Error(err, "the heartbeat cannot be written; it is tried again, and failures are not logged again before it succeeds")
	}
}

// stop takes the heartbeat back, unless another operator has written it since.
func (k *Keeper) stop(ctx context.Context) error {
	if k.last == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	if _, err := k.write(ctx, "", k.last); err != nil && !apierrors.IsConflict(err) {
		k.Log.Info("the heartbeat could not be taken back: it grows old by itself", "error", err.Error())
	}
	return nil
}

// write applies the Lease, over a version of it if one is given, and returns the
// version that came of it.
func (k *Keeper) write(ctx context.Context, holder string, over ...string) (string, error) {
	lease := coordinationapply.Lease(Name, v1alpha1.SystemNamespace).
		WithAnnotations(map[string]string{VersionAnnotation: k.Version}).
		WithSpec(coordinationapply.LeaseSpec().
			WithHolderIdentity(holder).
			WithLeaseDurationSeconds(int32(Lost.Seconds())).
			WithRenewTime(metav1.NowMicro()))
	for _, version := range over {
		lease.WithResourceVersion(version)
	}
	if err := k.Client.Apply(ctx, lease, client.FieldOwner(v1alpha1.ManagedBy), client.ForceOwnership); err != nil {
		return "", err
	}
	return ptr.Deref(lease.ResourceVersion, ""), nil
}
