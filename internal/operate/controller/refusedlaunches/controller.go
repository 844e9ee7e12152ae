// Package refusedlaunches holds the launches of pools that the cloud refuses, so that they do not
// keep Karpenter from creating nodes for other pools. It has no state in memory: the record is in
// the NodePool.
package refusedlaunches

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/observe/launches"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/controller/watch"
	"croft.dev/croft/internal/operate/trace"
)

var (
	nodeClassKind = schema.GroupVersionKind{Group: "karpenter.k8s.aws", Version: "v1", Kind: "EC2NodeClass"}
	nodePoolKinds = []schema.GroupVersionKind{{Group: "karpenter.sh", Version: "v1", Kind: "NodePool"}, nodeClassKind}
	claimKinds    = []schema.GroupVersionKind{{Group: "karpenter.sh", Version: "v1", Kind: "NodeClaim"}}
)

// absent is the interval of checks for Karpenter.
const absent = 30 * time.Second

// Controller decides about the launches of each pool.
type Controller struct {
	client  client.Client
	applier *apply.Applier
	clock   clock.PassiveClock
	// Karpenter may be installed after croft.
	nodePools, claims *watch.Late
}

// New returns a Controller. cached is the manager's client.
func New(cached client.Client, a *apply.Applier, clock clock.PassiveClock) *Controller {
	return &Controller{client: cached, applier: a, clock: clock}
}

// Register adds the controller to the manager. Requests have the name of a pool, which its NodePool
// and its node class share.
func (c *Controller) Register(_ context.Context, m manager.Manager) error {
	built, err := builder.ControllerManagedBy(m).
		Named("refusedlaunches").
		For(&v1alpha1.Pool{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Build(trace.Reconciler("refusedlaunches", c))
	if err != nil {
		return err
	}
	c.nodePools = watch.NewLate(m, built, watch.ByLabel(v1alpha1.PoolLabel), nodePoolKinds)
	c.claims = watch.NewLate(m, built, watch.ByLabel(karpenterv1.NodePoolLabelKey), claimKinds, newClaimPredicate())
	return nil
}

// newClaimPredicate passes NodeClaims whose launch was refused or has succeeded.
func newClaimPredicate() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*karpenterv1.NodeClaim)
		after, ok2 := e.ObjectNew.(*karpenterv1.NodeClaim)
		return !ok || !ok2 || launches.ReadReason(before) != launches.ReadReason(after) || before.Status.ProviderID != after.Status.ProviderID
	}}
}

// Reconcile implements reconcile.Reconciler.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	watched, err := c.nodePools.Look(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	claims, err := c.claims.Look(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	if len(watched) == 0 || len(claims) == 0 {
		return reconcile.Result{RequeueAfter: absent}, nil
	}
	nodePool := &karpenterv1.NodePool{}
	if err := c.client.Get(ctx, req.NamespacedName, nodePool); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	state, err := c.readState(ctx, nodePool, slices.Contains(watched, nodeClassKind))
	if err != nil {
		return reconcile.Result{}, err
	}
	now := c.clock.Now()
	decision := launches.Decide(state, now)
	if err := c.execute(ctx, nodePool, &decision); err != nil {
		if apierrors.IsConflict(err) { // the cache does not have the last write yet
			return reconcile.Result{RequeueAfter: time.Second}, nil
		}
		return reconcile.Result{}, err
	}
	if decision.Next.IsZero() {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: max(decision.Next.Sub(now), time.Millisecond)}, nil
}

func (c *Controller) readState(ctx context.Context, nodePool *karpenterv1.NodePool, hasClasses bool) (*launches.State, error) {
	var claims karpenterv1.NodeClaimList
	if err := c.client.List(ctx, &claims, client.MatchingLabels{karpenterv1.NodePoolLabelKey: nodePool.Name}); err != nil {
		return nil, fmt.Errorf("list NodeClaims of pool %s: %w", nodePool.Name, err)
	}
	state := &launches.State{
		Claims: claims.Items, Refusal: launches.ReadRefusal(nodePool), Held: launches.IsHeld(nodePool),
		Version: nodePool.Annotations[v1alpha1.AppliedAnnotation],
	}
	if ref := nodePool.Spec.Template.Spec.NodeClassRef; hasClasses && ref != nil && ref.Kind == nodeClassKind.Kind {
		class := &unstructured.Unstructured{}
		class.SetGroupVersionKind(nodeClassKind)
		// The cache contains only classes that croft has written.
		if err := c.client.Get(ctx, client.ObjectKey{Name: ref.Name}, class); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read node class %s: %w", ref.Name, err)
		}
		state.Version += "/" + describeClass(class)
	}
	return state, nil
}

// describeClass identifies the content of a node class, and the time since which Karpenter has
// accepted it. Other parts of its status change while the account is used.
func describeClass(class *unstructured.Unstructured) string {
	ready := ""
	list, _, _ := unstructured.NestedSlice(class.Object, "status", "conditions")
	for _, entry := range list {
		if condition, ok := entry.(map[string]any); ok && condition["type"] == v1alpha1.ConditionReady && condition["status"] == "True" {
			ready, _ = condition["lastTransitionTime"].(string)
		}
	}
	return fmt.Sprintf("%s/%d/%s", class.GetUID(), class.GetGeneration(), ready)
}

// execute holds the launches first, so that Karpenter does not replace the deleted NodeClaims.
func (c *Controller) execute(ctx context.Context, nodePool *karpenterv1.NodePool, d *launches.Decision) error {
	record := ""
	if d.Refusal != nil {
		text, err := json.Marshal(d.Refusal)
		if err != nil {
			return fmt.Errorf("record a refusal: %w", err)
		}
		record = string(text)
	}
	if record != nodePool.Annotations[v1alpha1.RefusedLaunchesAnnotation] || d.Held != launches.IsHeld(nodePool) {
		if err := c.applier.HoldLaunches(ctx, nodePool, record, d.Held); err != nil {
			return err
		}
		log.FromContext(ctx).Info("decided about refused launches", "pool", nodePool.Name, "held", d.Held, "refusal", record)
	}
	for _, claim := range d.Refused {
		// A NodeClaim that has changed may have an instance now.
		err := c.client.Delete(ctx, claim, client.Preconditions{UID: ptr.To(claim.UID), ResourceVersion: ptr.To(claim.ResourceVersion)})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete NodeClaim %s, whose launch is refused: %w", claim.Name, err)
		}
	}
	return nil
}
