// Package budgets writes the cost of each tenant, and the stage of its budget, to the Tenant's status. The
// policy wall writes the stage to the tenant's namespaces, where the API server enforces it.
//
// The operator does not depend on the ledger: without an answer, the last stage stays in force until the
// month ends in UTC. The ledger writes nothing to the cluster, and learns nothing from the operator.
package budgets

import (
	"cmp"
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/budget"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/operate/controller/declared"
	"croft.dev/croft/internal/operate/controller/event"
	"croft.dev/croft/internal/operate/controller/status"
	"croft.dev/croft/internal/operate/trace"
)

const (
	// interval is the default time between two requests to the ledger.
	interval = 5 * time.Minute
	// retry is the pause after a conflict with another write.
	retry = 5 * time.Second
)

// finder finds the declared tenants. The estate of the operator's Store is one.
type finder interface {
	findTenant(name string) (declared.Entry[estate.Tenant], bool)
}

// Controller computes the budgets.
type Controller struct {
	client   client.Client
	declared *declared.Store
	tenants  finder
	recorder events.EventRecorder
	clock    clock.WithTicker
	status   *status.Writer
	ledger   *ledger
	refresh  chan ctrlevent.GenericEvent

	mu     sync.Mutex
	answer *budget.Answer
	failed bool
}

// New returns a Controller. It returns an error for bad options.
func New(cached client.Client, d *declared.Store, r events.EventRecorder, clock clock.WithTicker, o LedgerOptions) (*Controller, error) {
	l, err := newLedger(o)
	if err != nil {
		return nil, err
	}
	return &Controller{
		client: cached, declared: d, tenants: storeFinder{d}, recorder: r, clock: clock, status: status.NewWriter(cached), ledger: l,
		refresh: make(chan ctrlevent.GenericEvent),
	}, nil
}

type storeFinder struct{ store *declared.Store }

func (f storeFinder) findTenant(name string) (declared.Entry[estate.Tenant], bool) {
	snapshot := f.store.Current()
	if snapshot == nil {
		return declared.Entry[estate.Tenant]{}, false
	}
	return snapshot.Tenant(name)
}

// Register adds the controller to the manager.
func (c *Controller) Register(_ context.Context, m manager.Manager) error {
	err := builder.ControllerManagedBy(m).
		Named("budgets").
		WithOptions(controller.Options{MaxConcurrentReconciles: 1}).
		WatchesRawSource(c.declared.Source(declared.Tenant)).
		WatchesRawSource(source.Channel(c.refresh, &handler.EnqueueRequestForObject{})).
		Complete(trace.Reconciler("budgets", c))
	if err != nil || c.ledger == nil {
		return err
	}
	return m.Add(c)
}

// Start asks the ledger until ctx ends. It implements manager.Runnable, and only the leader runs it.
func (c *Controller) Start(ctx context.Context) error {
	ticker := c.clock.NewTicker(cmp.Or(c.ledger.options.Interval, interval))
	defer ticker.Stop()
	for {
		if c.ask(ctx) {
			c.reconcileAll(ctx)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// ask reads the ledger's answer, and reports whether there is a new one. The log names the beginning and the
// end of a failure.
func (c *Controller) ask(ctx context.Context) bool {
	answer, err := c.ledger.read(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	l := log.FromContext(ctx).WithName("budgets")
	if err != nil {
		if ctx.Err() == nil && !c.failed {
			l.Error(err, "The ledger does not answer. Budgets keep their last stage")
		}
		c.failed = true
		return false
	}
	if c.failed {
		l.Info("The ledger answers again")
	}
	c.answer, c.failed = answer, false
	return true
}

// reconcileAll requests a reconcile of each tenant.
func (c *Controller) reconcileAll(ctx context.Context) {
	var all v1alpha1.TenantList
	if err := c.client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "List tenants for their budgets")
		return
	}
	for i := range all.Items {
		name := &v1alpha1.Tenant{}
		name.Name = all.Items[i].Name
		select {
		case c.refresh <- ctrlevent.GenericEvent{Object: name}:
		case <-ctx.Done():
			return
		}
	}
}

// getAnswer returns the last answer, or nil.
func (c *Controller) getAnswer() *budget.Answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answer
}

// Reconcile writes a tenant's budget to its status.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	tenant := &v1alpha1.Tenant{}
	if err := c.client.Get(ctx, req.NamespacedName, tenant); err != nil {
		if apierrors.IsNotFound(err) {
			c.status.Forget(req.Name)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	entry, known := c.tenants.findTenant(tenant.Name)
	if !known || entry.Value == nil || entry.UID != tenant.UID || entry.Generation != tenant.Generation || !tenant.DeletionTimestamp.IsZero() {
		// The next estate contains this version of the tenant, or the tenant is invalid and keeps its stage.
		return reconcile.Result{}, nil
	}
	now := c.clock.Now()
	limit := entry.Value.Budget
	next := budget.Compute(limit, tenant.Status.Budget, c.getAnswer(), tenant.Name, now)
	var result reconcile.Result
	if limit != nil {
		// The stage ends with the month, also without a ledger.
		result.RequeueAfter = budget.GetEndOfMonth(now).Sub(now)
	}
	if !budget.IsWorthWriting(tenant.Status.Budget, next) {
		return result, nil
	}
	before := tenant.DeepCopy()
	tenant.Status.Budget = next
	err := c.status.Patch(ctx, before, tenant)
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: retry}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	c.emitChange(tenant, before.Status.Budget, next)
	return result, nil
}

// emitChange emits an event about a new stage.
func (c *Controller) emitChange(tenant *v1alpha1.Tenant, before, after *v1alpha1.TenantBudgetStatus) {
	note := budget.DescribeChange(tenant.Name, before, after)
	switch {
	case note == "":
	case after == nil || after.Stage == "":
		event.Emit(c.recorder, tenant, corev1.EventTypeNormal, v1alpha1.ReasonBudgetStageEnded, "Compare", note)
	default:
		event.Emit(c.recorder, tenant, corev1.EventTypeWarning, v1alpha1.ReasonBudgetReached, "Compare", note)
	}
}
