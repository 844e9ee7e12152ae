package secondarynetwork

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/secondary"
)

// queue is the controller's work queue.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// newPoolHandler reconciles the networks that an IPPool may have addresses of.
func (c *Controller) newPoolHandler() handler.EventHandler {
	enqueue := func(ctx context.Context, o client.Object, q queue) {
		pool, ok := o.(*unstructured.Unstructured)
		if !ok {
			return
		}
		for _, name := range c.findNetworks(ctx, pool) {
			q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}, settle)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { enqueue(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { enqueue(ctx, e.ObjectNew, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { enqueue(ctx, e.Object, q) },
	}
}

// findNetworks returns the names of the networks that an IPPool may have addresses of.
func (c *Controller) findNetworks(ctx context.Context, pool *unstructured.Unstructured) []string {
	var list v1alpha1.SecondaryNetworkList
	if err := c.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "list SecondaryNetworks")
		return nil
	}
	var names []string
	for i := range list.Items {
		if n := &list.Items[i]; secondary.IsServedBy(n.Name, &n.Spec, pool) {
			names = append(names, n.Name)
		}
	}
	return names
}
