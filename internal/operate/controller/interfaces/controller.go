// Package interfaces manages the network interfaces of nodes in secondary networks. It
// works from outside the nodes, which need no rights for it, and as soon as an instance is
// launched.
//
// A Keeper compares the account with the desired interfaces, one pass at a time. The
// Controller provides the desired state and reports the result.
package interfaces

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/internal/declare/secondary"
	"croft.dev/croft/internal/operate/controller/declared"
	"croft.dev/croft/internal/operate/controller/interfaces/account"
	"croft.dev/croft/internal/operate/controller/watch"
	"croft.dev/croft/internal/operate/trace"
)

// claimKinds are Karpenter's NodeClaims. Karpenter may be installed after croft.
var claimKinds = []schema.GroupVersionKind{{Group: "karpenter.sh", Version: "v1", Kind: "NodeClaim"}}

// gap is the minimum time between two passes. A burst of events, such as the launch of a
// hundred nodes, costs one read of the account.
const gap = 250 * time.Millisecond

// tolerated is the number of consecutive failed reads of the account at which the networks
// report it.
const tolerated = 3

// absent is the interval of checks for Karpenter.
const absent = 30 * time.Second

// Controller reconciles all interfaces together: one read of the account serves all nodes.
type Controller struct {
	client   client.Client
	declared *declared.Store
	recorder events.EventRecorder
	clock    clock.PassiveClock
	// publish receives the interfaces of all claims that are complete, by UID.
	publish func(map[string][]secondary.NodeNetwork)

	claims *watch.Late
	// keeper is created when the first pool needs it, because other clusters have no
	// account.
	keeper *Keeper
	// last is the start of the last pass. There is one worker.
	last time.Time
	// failed counts the consecutive passes that could not read the account.
	failed int
	// waiting are the UIDs of claims that were observed without all their interfaces.
	waiting map[string]bool
}

// New returns a Controller. c is the manager's client. publish is called after each read of
// the account with the claims that have all their interfaces.
func New(c client.Client, d *declared.Store, r events.EventRecorder, clock clock.PassiveClock, publish func(map[string][]secondary.NodeNetwork)) *Controller {
	return &Controller{client: c, declared: d, recorder: r, clock: clock, publish: publish, waiting: map[string]bool{}}
}

// whole is the single request for all interfaces.
var whole = reconcile.Request{NamespacedName: client.ObjectKey{Name: "interfaces"}}

// Register adds the controller to the manager. It handles one request at a time.
func (c *Controller) Register(_ context.Context, m manager.Manager) error {
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{whole} })
	built, err := builder.ControllerManagedBy(m).
		Named("interfaces").
		WatchesRawSource(c.declared.SingleRequestSource(whole, declared.Platform, declared.Pool, declared.SecondaryNetwork)).
		Build(trace.Reconciler("interfaces", c))
	if err != nil {
		return err
	}
	c.claims = watch.NewLate(m, built, all, claimKinds, newClaimPredicate())
	return nil
}

// Reconcile implements reconcile.Reconciler. All changes enqueue the same request, so that
// a burst of changes needs one pass.
func (c *Controller) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	snapshot := c.declared.Current()
	if snapshot == nil || snapshot.Platform == nil {
		return reconcile.Result{}, nil
	}
	if early := gap - c.clock.Since(c.last); early > 0 {
		return reconcile.Result{RequeueAfter: early}, nil
	}
	c.last = c.clock.Now()
	return c.reconcileInterfaces(ctx, snapshot)
}

func (c *Controller) reconcileInterfaces(ctx context.Context, snapshot *declared.Snapshot) (reconcile.Result, error) {
	pools, networks, others, err := c.listDesired(ctx, snapshot)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := c.removeConditions(ctx, others); err != nil {
		return reconcile.Result{}, err
	}
	// After the first pass, leftover interfaces must be cleaned up even without pools.
	if len(pools) == 0 && c.keeper == nil {
		return reconcile.Result{}, nil
	}
	watched, err := c.claims.Look(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	if len(watched) == 0 {
		return reconcile.Result{RequeueAfter: absent}, nil
	}
	list := &karpenterv1.NodeClaimList{}
	if err := c.client.List(ctx, list); err != nil {
		return reconcile.Result{}, fmt.Errorf("list NodeClaims: %w", err)
	}
	if c.keeper == nil {
		if c.keeper, err = newKeeper(ctx, c.clock); err != nil {
			return reconcile.Result{}, err
		}
	}
	result, err := c.keeper.Pass(ctx, DesiredState{
		Cluster: snapshot.Platform.ClusterName, Networks: networks, Pools: pools, Claims: convertClaims(list.Items),
	})
	switch {
	case errors.Is(err, account.ErrDeferred):
		return reconcile.Result{RequeueAfter: pace}, nil
	case err != nil:
		// Report only repeated failures: a single broken connection proves nothing about
		// the account.
		if c.failed++; c.failed < tolerated {
			return reconcile.Result{RequeueAfter: pace}, nil
		}
		return reconcile.Result{}, errors.Join(err, c.writeConditions(ctx, networks, nil, err))
	}
	c.failed = 0
	c.emitAttached(list.Items, result) // before the node gets its interfaces, because its agent reacts at once
	c.publish(result.Attached)
	return reconcile.Result{RequeueAfter: result.Next}, c.writeConditions(ctx, networks, result, nil)
}

// newKeeper returns a Keeper with the role of the operator's service account, in the
// operator's region.
func newKeeper(ctx context.Context, clock clock.PassiveClock) (*Keeper, error) {
	cfg, err := config.LoadDefaultConfig(ctx, config.WithEC2IMDSRegion())
	if err != nil {
		return nil, fmt.Errorf("the configuration for AWS: %w", err)
	}
	a := account.New(cfg, clock)
	return NewKeeper(a, a, clock, Grace), nil
}
