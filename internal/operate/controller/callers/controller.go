// Package callers writes the decisions about TenantCallers into their status. The estate contains
// the decisions, and package tenant writes the network policies that follow from them.
package callers

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/operate/controller/declared"
	"croft.dev/croft/internal/operate/controller/event"
	"croft.dev/croft/internal/operate/controller/status"
	"croft.dev/croft/internal/operate/controller/watch"
	"croft.dev/croft/internal/operate/trace"
)

// Controller reconciles the TenantCallers of one tenant after the other.
type Controller struct {
	client   client.Client
	declared *declared.Store
	recorder events.EventRecorder
}

// New returns a Controller. cached is the manager's client.
func New(cached client.Client, d *declared.Store, r events.EventRecorder) *Controller {
	return &Controller{cached, d, r}
}

// Register adds the controller to the manager. A request is the name of a tenant. A TenantCaller
// also causes one when its own status changes: the cache may have lagged behind the last write.
func (c *Controller) Register(_ context.Context, m manager.Manager) error {
	return builder.ControllerManagedBy(m).
		Named("callers").
		WatchesRawSource(c.declared.Source(declared.Tenant)).
		Watches(&v1alpha1.TenantCaller{}, handler.EnqueueRequestsFromMapFunc(c.mapToTenant)).
		Complete(trace.Reconciler("callers", c))
}

// mapToTenant returns the tenant that declares or was granted the namespace of a TenantCaller.
func (c *Controller) mapToTenant(_ context.Context, o client.Object) []reconcile.Request {
	snapshot := c.declared.Current()
	if snapshot == nil {
		return nil
	}
	return watch.MakeRequests(snapshot.Claimant(o.GetNamespace()))
}

// Reconcile implements reconcile.Reconciler. The objects of an invalid tenant stay unchanged, like its
// policies.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	snapshot := c.declared.Current()
	if snapshot == nil {
		return reconcile.Result{}, nil
	}
	entry, _ := snapshot.Tenant(req.Name)
	if entry.Value == nil {
		return reconcile.Result{}, nil
	}
	var errs []error
	for i := range entry.Value.Callers {
		errs = append(errs, c.writeDecision(ctx, &entry.Value.Callers[i]))
	}
	return reconcile.Result{}, errors.Join(errs...)
}

// writeDecision writes the status of a TenantCaller, unless it is unchanged. The next estate contains the
// decision about an object that has changed since, and its event causes another reconcile.
func (c *Controller) writeDecision(ctx context.Context, d *estate.CallerDecision) error {
	object := &v1alpha1.TenantCaller{}
	if err := c.client.Get(ctx, client.ObjectKey{Namespace: d.Namespace, Name: d.Name}, object); err != nil {
		return client.IgnoreNotFound(err)
	}
	if object.UID != d.UID || object.Generation != d.Generation {
		return nil
	}
	before := object.DeepCopy()
	setStatus(object, d)
	if equality.Semantic.DeepEqual(before.Status, object.Status) {
		return nil
	}
	err := c.client.Status().Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return nil
	case err != nil:
		return fmt.Errorf("patch the status of TenantCaller %s/%s: %w", d.Namespace, d.Name, err)
	}
	if turned := status.FindChanged(&before.Status.Status, &object.Status.Status, v1alpha1.ConditionAgreed); turned != nil {
		note := "connections from tenant " + d.Spec.Tenant
		if turned.Message != "" {
			note += ": " + turned.Message
		}
		event.Emit(c.recorder, object, corev1.EventTypeNormal, turned.Reason, "Accept", note)
		log.FromContext(ctx).Info("decided on a TenantCaller", "namespace", d.Namespace, "name", d.Name, "caller", d.Spec.Tenant,
			"agreed", string(turned.Status), "reason", turned.Reason, "message", turned.Message)
	}
	return nil
}

// setStatus sets the status by the decision. The object is Ready if it is accepted: like the callers of
// a Tenant, it may wait for the other tenant as long as that takes.
func setStatus(o *v1alpha1.TenantCaller, d *estate.CallerDecision) {
	o.Status.Giver, o.Status.Receiver = d.Giver, d.Receiver
	st := &o.Status.Status
	if d.Refused == "" {
		status.Set(st, o.Generation, v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted, "")
	} else {
		status.Set(st, o.Generation, v1alpha1.ConditionAccepted, metav1.ConditionFalse, d.Refused, d.Message)
	}
	if d.Message == "" {
		status.Set(st, o.Generation, v1alpha1.ConditionAgreed, metav1.ConditionTrue, v1alpha1.ReasonAgreed, "")
	} else {
		status.Set(st, o.Generation, v1alpha1.ConditionAgreed, metav1.ConditionFalse, v1alpha1.ReasonConsentPending, d.Message)
	}
	status.SetReady(st, o.Generation, v1alpha1.ConditionAccepted)
	status.SetProgress(st, o.Generation, false)
}
