// Package secondarynetwork reports whether SecondaryNetworks fit the estate, and whether
// they have free addresses for pods. The cloud creates the networks themselves.
package secondarynetwork

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/secondary"
	"croft.dev/croft/internal/operate/controller/declared"
	"croft.dev/croft/internal/operate/controller/outcome"
	"croft.dev/croft/internal/operate/controller/status"
	"croft.dev/croft/internal/operate/controller/watch"
	"croft.dev/croft/internal/operate/trace"
)

// Controller reconciles SecondaryNetworks.
type Controller struct {
	client   client.Client
	declared *declared.Store
	recorder events.EventRecorder
	retries  *outcome.Retries

	// pools watches IPPools as soon as the cluster serves them.
	pools kindWatcher
}

// kindWatcher starts the watch of a kind as soon as the cluster serves it, and returns the
// watched kinds.
type kindWatcher interface {
	Look(ctx context.Context, needed ...schema.GroupVersionKind) ([]schema.GroupVersionKind, error)
}

// New returns a Controller.
func New(c client.Client, d *declared.Store, r events.EventRecorder) *Controller {
	return &Controller{client: c, declared: d, recorder: r, retries: outcome.NewRetries("secondarynetwork")}
}

// Register adds the controller to the manager.
func (c *Controller) Register(_ context.Context, m manager.Manager) error {
	built, err := builder.ControllerManagedBy(m).
		Named("secondarynetwork").
		WatchesRawSource(c.declared.Source(declared.SecondaryNetwork)).
		Build(trace.Reconciler("secondarynetwork", c))
	if err != nil {
		return err
	}
	c.pools = watch.NewLate(m, built, c.newPoolHandler(), []schema.GroupVersionKind{secondary.IPPool})
	return nil
}

// Reconcile implements reconcile.Reconciler.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	network := &v1alpha1.SecondaryNetwork{}
	if err := c.client.Get(ctx, req.NamespacedName, network); err != nil {
		if apierrors.IsNotFound(err) {
			deleteMetrics(req.Name)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	snapshot := c.declared.Current()
	if snapshot == nil {
		return reconcile.Result{}, nil
	}
	entry, ok := snapshot.Network(network.Name)
	if !ok || entry.UID != network.UID || entry.Generation != network.Generation {
		// The next estate will contain this version of the network, and reconcile it then.
		return reconcile.Result{}, nil
	}
	before := network.DeepCopy()
	status.Accept(&network.Status, network.Generation, snapshot.Platform != nil, entry.Problems)
	again, unread := c.updateAddresses(ctx, network)
	status.SetNetworkReady(&network.Status, network.Generation)
	err := c.patchStatus(ctx, before, network)
	if err == nil {
		c.emitCondition(before, network)
	}
	return c.retries.Resolve(ctx, req.Name, reconcile.Result{RequeueAfter: again}, errors.Join(unread, err))
}

// patchStatus writes a changed status. Package interfaces writes to the same list of conditions,
// so a conflicting status is not written, and the reconcile is repeated.
func (c *Controller) patchStatus(ctx context.Context, before, after *v1alpha1.SecondaryNetwork) error {
	if equality.Semantic.DeepEqual(before.Status, after.Status) {
		return nil
	}
	err := c.client.Status().Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patch status: %w", err)
	}
	return nil
}
