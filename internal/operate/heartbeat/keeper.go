package heartbeat

import (
	"cmp"
	"context"
	"maps"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationapply "k8s.io/client-go/applyconfigurations/coordination/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
)

// farewell is the timeout for a stopping operator to withdraw its heartbeat.
const farewell = 2 * time.Second

// readyInterval is the interval of readiness checks of a starting operator.
const readyInterval = 200 * time.Millisecond

// Keeper renews the heartbeat while the operator leads.
type Keeper struct {
	// Client writes to the API server. Keeper never reads with it, because a cache would
	// start to watch all Leases of the cluster.
	Client client.Client
	// Holder is where this operator runs. Version is its version.
	Holder, Version string
	// Lease is the Lease's name. The default is Name.
	Lease string
	// Annotate returns more annotations of the Lease. It may be nil.
	Annotate func() map[string]string
	// Log receives errors of writing the heartbeat.
	Log logr.Logger
	// Ready reports whether the operator can work. nil means always. Until then Keeper
	// writes no heartbeat: the operator runs, but repairs no drift.
	Ready func(context.Context) bool
	// Written is called when the heartbeat was written. It may be nil.
	Written func(at time.Time)
	// Every is the interval of renewals. The default is Interval.
	Every time.Duration

	// last is the resource version of the last written Lease.
	last string
	// failing reports whether a failed write has been logged.
	failing bool
}

// NeedLeaderElection returns true, so that only the leader writes the heartbeat.
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
		k.writeBeat(ctx)
		select {
		case <-ctx.Done():
			return k.withdrawBeat(ctx)
		case <-ticks.C:
		}
	}
}

// writeBeat writes the heartbeat. The write fails without the namespace, which `croft install`
// creates. The walls do not depend on the heartbeat, so the operator continues.
func (k *Keeper) writeBeat(ctx context.Context) {
	timed, cancel := context.WithTimeout(ctx, Interval)
	defer cancel()
	version, err := k.applyLease(timed, k.Holder)
	switch {
	case err == nil:
		k.last, k.failing = version, false
		if k.Written != nil {
			k.Written(time.Now())
		}
	case k.failing || ctx.Err() != nil:
	case apierrors.IsNotFound(err):
		k.failing = true
		k.Log.Info("no heartbeat: there is no namespace " + v1alpha1.SystemNamespace + ", which `croft install` creates; " +
			"without a heartbeat `croft status`, `croft doctor` and `croft apply` consider this operator dead")
	default:
		k.failing = true
		k.Log.Error(err, "the heartbeat cannot be written; it is tried again, and failures are not logged again before it succeeds")
	}
}

// withdrawBeat withdraws the heartbeat, unless another operator has written it since.
func (k *Keeper) withdrawBeat(ctx context.Context) error {
	if k.last == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	if _, err := k.applyLease(ctx, "", k.last); err != nil && !apierrors.IsConflict(err) {
		k.Log.Info("the heartbeat could not be withdrawn: it expires with time", "error", err.Error())
	}
	return nil
}

// applyLease applies the Lease and returns its new version. If over is given, it fails unless
// the Lease has this version.
func (k *Keeper) applyLease(ctx context.Context, holder string, over ...string) (string, error) {
	annotations := map[string]string{VersionAnnotation: k.Version}
	if k.Annotate != nil {
		maps.Copy(annotations, k.Annotate())
	}
	lease := coordinationapply.Lease(cmp.Or(k.Lease, Name), v1alpha1.SystemNamespace).
		WithAnnotations(annotations).
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
