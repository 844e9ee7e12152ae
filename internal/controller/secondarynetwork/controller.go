// Package secondarynetwork checks whether SecondaryNetworks fit the estate. The cloud
// creates the networks themselves.
package secondarynetwork

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/controller/declared"
	"croft.dev/croft/internal/controller/outcome"
	"croft.dev/croft/internal/controller/status"
	"croft.dev/croft/internal/trace"
)

// Controller reconciles SecondaryNetworks.
type Controller struct {
	client   client.Client
	declared *declared.Store
	retries  *outcome.Retries
	status   *status.Writer
}

// New returns a Controller.
func New(c client.Client, d *declared.Store) *Controller {
	return &Controller{c, d, outcome.NewRetries("secondarynetwork"), status.NewWriter(c)}
}

// Register makes the manager run the controller.
func (c *Controller) Register(_ context.Context, m manager.Manager) error {
	return builder.ControllerManagedBy(m).
		Named("secondarynetwork").
		WatchesRawSource(c.declared.Source(declared.SecondaryNetwork)).
		Complete(trace.Reconciler("secondarynetwork", c))
}

// Reconcile implements reconcile.Reconciler.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	network := &v1alpha1.SecondaryNetwork{}
	if err := c.client.Get(ctx, req.NamespacedName, network); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	snapshot := c.declared.Current()
	if snapshot == nil {
		return reconcile.Result{}, nil
	}
	entry, ok := snapshot.Network(network.Name)
	if !ok || entry.UID != network.UID || entry.Generation != network.Generation {
		// The next estate will have this version of the network, and reconcile it then.
		return reconcile.Result{}, nil
	}
	before := network.DeepCopy()
	status.Accept(&network.Status, network.Generation, snapshot.Platform != nil, entry.Problems)
	summed := []string{v1alpha1.ConditionAccepted}
	if meta.FindStatusCondition(network.Status.Conditions, v1alpha1.ConditionInterfacesReady) != nil {
		summed = append(summed, v1alpha1.ConditionInterfacesReady) // package interfaces writes it
	}
	status.Sum(&network.Status, network.Generation, summed...)
	return c.retries.Of(ctx, req.Name, reconcile.Result{}, c.status.Patch(ctx, before, network))
}
