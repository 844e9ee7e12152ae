// Package interfaces keeps the network interfaces of nodes in secondary networks: from
// outside the nodes, which need no rights for it, and from the moment at which an instance
// is launched.
//
// A Keeper makes passes over the account; the Controller says what the cluster wants, and
// tells what came of it.
package interfaces

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/internal/controller/declared"
	"croft.dev/croft/internal/controller/interfaces/account"
	"croft.dev/croft/internal/controller/watch"
	"croft.dev/croft/internal/secondary"
	"croft.dev/croft/internal/trace"
)

// claimKinds are Karpenter's NodeClaims. A cluster may get Karpenter after croft.
var claimKinds = []schema.GroupVersionKind{{Group: "karpenter.sh", Version: "v1", Kind: "NodeClaim"}}

// gap is how far passes are apart at least: events that come in a burst, as those of a
// hundred nodes, cost one look at the account.
const gap = 250 * time.Millisecond

// tolerated is at which failed look in a row at the account the networks say so.
const tolerated = 3

// absent is how soon a cluster is asked again whether it has Karpenter by now.
const absent = 30 * time.Second

// Controller reconciles all interfaces together: one look at the account serves every
// node, however many there are.
type Controller struct {
	client   client.Client
	declared *declared.Store
	recorder events.EventRecorder
	// publish takes the interfaces of all claims that have theirs, by UID.
	publish func(map[string][]secondary.NodeNetwork)

	claims *watch.Late
	// keeper is made when the first pool needs it: other clusters have no account.
	keeper *Keeper
	// last is when the last pass began. There is one worker.
	last time.Time
	// failed counts the passes in a row that could not look at the account.
	failed int
	// waiting are the UIDs of claims that were seen without all their interfaces.
	waiting map[string]bool
}

// New returns a Controller. c is the manager's client; publish is told, after each look at
// the account, of the claims that have all their interfaces.
func New(c client.Client, d *declared.Store, r events.EventRecorder, publish func(map[string][]secondary.NodeNetwork)) *Controller {
	return &Controller{client: c, declared: d, recorder: r, publish: publish, waiting: map[string]bool{}}
}

// whole is the request that stands for all interfaces.
var whole = reconcile.Request{NamespacedName: client.ObjectKey{Name: "interfaces"}}

// Register makes the manager run the controller. It takes one request at a time.
func (c *Controller) Register(_ context.Context, m manager.Manager) error {
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{whole} })
	built, err := builder.ControllerManagedBy(m).
		Named("interfaces").
		WatchesRawSource(c.declared.Single(whole, declared.Platform, declared.Pool, declared.SecondaryNetwork)).
		Build(trace.Reconciler("interfaces", c))
	if err != nil {
		return err
	}
	c.claims = watch.NewLate(m, built, all, claimKinds, moved())
	return nil
}

// Reconcile implements reconcile.Reconciler. Whatever changed, there is one request for
// it, so that changes that come together are looked at together.
func (c *Controller) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	snapshot := c.declared.Current()
	if snapshot == nil || snapshot.Platform == nil {
		return reconcile.Result{}, nil
	}
	if early := gap - time.Since(c.last); early > 0 {
		return reconcile.Result{RequeueAfter: early}, nil
	}
	c.last = time.Now()
	return c.pass(ctx, snapshot)
}

func (c *Controller) pass(ctx context.Context, snapshot *declared.Snapshot) (reconcile.Result, error) {
	pools, networks, others, err := c.wanted(ctx, snapshot)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := c.withdraw(ctx, others); err != nil {
		return reconcile.Result{}, err
	}
	// Once there were interfaces, what is left of them is looked after.
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
		if c.keeper, err = newKeeper(ctx); err != nil {
			return reconcile.Result{}, err
		}
	}
	result, err := c.keeper.Pass(ctx, Wanted{
		Cluster: snapshot.Platform.ClusterName, Networks: networks, Pools: pools, Claims: claimsOf(list.Items),
	})
	switch {
	case errors.Is(err, account.ErrDeferred):
		return reconcile.Result{RequeueAfter: pace}, nil
	case err != nil:
		// A connection that breaks once says nothing of the account.
		if c.failed++; c.failed < tolerated {
			return reconcile.Result{RequeueAfter: pace}, nil
		}
		return reconcile.Result{}, errors.Join(err, c.report(ctx, networks, nil, err))
	}
	c.failed = 0
	c.emit(list.Items, result) // before the node is told, whose agent answers at once
	c.publish(result.Attached)
	return reconcile.Result{RequeueAfter: result.Next}, c.report(ctx, networks, result, nil)
}

// newKeeper is a Keeper of the account that the operator's service account has a role in,
// in the region that it runs in.
func newKeeper(ctx context.Context) (*Keeper, error) {
	cfg, err := config.LoadDefaultConfig(ctx, config.WithEC2IMDSRegion())
	if err != nil {
		return nil, fmt.Errorf("the configuration for AWS: %w", err)
	}
	a := account.New(cfg, time.Now)
	return NewKeeper(a, a, time.Now, Grace), nil
}
