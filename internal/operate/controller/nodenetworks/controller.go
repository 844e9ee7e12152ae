// Package nodenetworks writes to each Node which interfaces it has in secondary networks,
// and releases it to pods once croft's agent has configured them and Multus and whereabouts
// are Ready on the node. To release a node it removes the startup taint, or leaves that to
// the node readiness controller if the pool has a rule for it. Until then a condition of
// the Node reports the missing parts. It handles only nodes of pools with waitForNetworks.
package nodenetworks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/secondary"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/controller/declared"
	"croft.dev/croft/internal/operate/controller/event"
	"croft.dev/croft/internal/operate/controller/watch"
	"croft.dev/croft/internal/operate/trace"
)

// kinds are watched as soon as a pool waits for its networks.
var kinds = []schema.GroupVersionKind{
	{Group: "karpenter.sh", Version: "v1", Kind: "NodeClaim"}, corev1.SchemeGroupVersion.WithKind("Node"),
}

// pluginKinds are watched from then on, too, if nodes need plugins.
var pluginKinds = []schema.GroupVersionKind{
	appsv1.SchemeGroupVersion.WithKind("DaemonSet"), corev1.SchemeGroupVersion.WithKind("Pod"),
}

const (
	// absent is the interval of checks for Karpenter.
	absent = 30 * time.Second
	// conflict is the delay before the retry of a conflicting write to a Node. A Node's
	// heartbeats cause no reconcile.
	conflict = 200 * time.Millisecond
)

// Controller reconciles all nodes together, because each needs little work.
type Controller struct {
	client client.Client
	// live checks whether the operator may read nodes.
	live     client.Reader
	declared *declared.Store
	recorder events.EventRecorder
	clock    clock.PassiveClock

	late *watch.Late
	// requiredPlugins selects the DaemonSets that a node needs. daemonSets watches them.
	requiredPlugins secondary.Plugins
	daemonSets      *watch.Late
	// watchingPlugins is true once they are watched.
	watchingPlugins bool
	// rules watches the pools' rules for the node readiness controller.
	rules kindWatcher
	// readinessNodes are the UIDs of the nodes whose taint the node readiness controller is to
	// remove. There is one worker.
	readinessNodes map[types.UID]bool
	// watching is true once both kinds are watched.
	watching bool

	mu       sync.Mutex
	attached map[string][]secondary.NodeNetwork
	queue    workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// New returns a Controller. cached is the manager's client, live a client that reads from
// the API server.
func New(cached client.Client, live client.Reader, d *declared.Store, r events.EventRecorder, needs secondary.Plugins, clock clock.PassiveClock) *Controller {
	return &Controller{client: cached, live: live, declared: d, recorder: r, requiredPlugins: needs, clock: clock}
}

// whole is the single request for all nodes.
var whole = reconcile.Request{NamespacedName: client.ObjectKey{Name: "nodes"}}

// Publish receives the interfaces of all claims that are complete, by the claims' UIDs.
func (c *Controller) Publish(attached map[string][]secondary.NodeNetwork) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if reflect.DeepEqual(c.attached, attached) {
		return
	}
	c.attached = maps.Clone(attached)
	if c.queue != nil {
		c.queue.Add(whole)
	}
}

// Register adds the controller to the manager.
func (c *Controller) Register(_ context.Context, m manager.Manager) error {
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{whole} })
	built, err := builder.ControllerManagedBy(m).
		Named("nodenetworks").
		WatchesRawSource(source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			c.mu.Lock()
			c.queue = queue
			c.mu.Unlock()
			return c.declared.SingleRequestSource(whole, declared.Pool).Start(ctx, queue)
		})).
		Build(trace.Reconciler("nodenetworks", c))
	if err != nil {
		return err
	}
	c.late = watch.NewLate(m, built, all, kinds, newChangePredicate())
	c.daemonSets = watch.NewLate(m, built, all, pluginKinds, newChangePredicate())
	c.rules = watch.NewLate(m, built, all, apply.ReadinessKinds, newChangePredicate())
	return nil
}

// Reconcile implements reconcile.Reconciler.
func (c *Controller) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	snapshot := c.declared.Current()
	if snapshot == nil {
		return reconcile.Result{}, nil
	}
	pools, err := c.listPools(ctx, snapshot)
	if err != nil || !c.watching && !slices.Contains(slices.Collect(maps.Values(pools)), true) {
		return reconcile.Result{}, err
	}
	if watched, err := c.startWatches(ctx); err != nil || !watched {
		return reconcile.Result{RequeueAfter: absent}, err
	}
	return c.reconcileNodes(ctx, pools)
}

// listPools returns for each valid pool whether it waits for its networks. The nodes of invalid
// pools stay unchanged.
func (c *Controller) listPools(ctx context.Context, snapshot *declared.Snapshot) (map[string]bool, error) {
	var list v1alpha1.PoolList
	if err := c.client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list Pools: %w", err)
	}
	waits := map[string]bool{}
	for i := range list.Items {
		if entry, _ := snapshot.Pool(list.Items[i].Name); entry.Value != nil {
			waits[entry.Value.Name] = entry.Value.WaitForNetworks
		}
	}
	return waits, nil
}

// startWatches starts the watches, and reports whether both kinds are watched. It returns an error
// if the right to read is missing: an informer would wait for the right without reporting
// it.
func (c *Controller) startWatches(ctx context.Context) (bool, error) {
	if c.watching {
		return true, nil
	}
	err := c.live.List(ctx, &corev1.NodeList{}, client.Limit(1))
	if apierrors.IsForbidden(err) {
		return false, fmt.Errorf("a pool has waitForNetworks, and croft's agent is not installed: croft install --agent: %w", err)
	}
	if err != nil {
		return false, fmt.Errorf("list Nodes: %w", err)
	}
	watched, err := c.late.Look(ctx)
	c.watching = len(watched) == len(kinds)
	return c.watching, err
}

// reconcileNodes reconciles every node. pools maps each pool to whether it waits for its networks.
func (c *Controller) reconcileNodes(ctx context.Context, pools map[string]bool) (reconcile.Result, error) {
	all, err := c.observeNodes(ctx, pools)
	if err != nil {
		return reconcile.Result{}, err
	}
	var errs []error
	held, oldest, result := map[types.UID]bool{}, map[string]time.Time{}, reconcile.Result{}
	for _, s := range all {
		if s.unreadableReason != "" {
			result.RequeueAfter = absent
		}
		if s.hasReadinessRule && hasNetworksTaint(s.node) {
			held[s.node.UID] = true
		} else if c.readinessNodes[s.node.UID] && !hasNetworksTaint(s.node) {
			c.reportRelease(s)
		}
		released, err := c.updateNode(ctx, s)
		if apierrors.IsConflict(err) {
			result.RequeueAfter = conflict
		} else if client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("patch Node %s: %w", s.node.Name, err))
		}
		since, first := s.node.CreationTimestamp.Time, oldest[s.pool]
		if hasNetworksTaint(s.node) && !released && (first.IsZero() || since.Before(first)) {
			oldest[s.pool] = since
		}
	}
	c.readinessNodes = held
	updateMetrics(oldest)
	if err := errors.Join(errs...); err != nil {
		return reconcile.Result{}, err
	}
	return result, nil
}

// updateNode updates a Node, and reports whether it removed the taint. It writes the condition
// before it removes the taint: a node without taint and condition would look as if it had
// never waited.
func (c *Controller) updateNode(ctx context.Context, s *observation) (released bool, err error) {
	v := evaluateNode(s)
	annotation, release := s.getAnnotation(), v.isTrue() && hasNetworksTaint(s.node) && !s.hasReadinessRule
	node, err := c.writeCondition(ctx, s.node, v)
	if err != nil {
		return false, err
	}
	if annotation != node.Annotations[v1alpha1.NodeNetworksAnnotation] || release {
		after := buildNode(node, annotation, release)
		if err := c.client.Patch(ctx, after, client.MergeFromWithOptions(node, client.MergeFromWithOptimisticLock{})); err != nil {
			return false, err
		}
	}
	if release {
		c.reportRelease(s)
	}
	return release, nil
}

// reportRelease reports how long a node had the taint, in a metric and an event.
func (c *Controller) reportRelease(s *observation) {
	if s.gaveUp || s.claim == nil {
		return
	}
	waited := c.clock.Since(s.node.CreationTimestamp.Time)
	networksSeconds.WithLabelValues(s.pool).Observe(waited.Seconds())
	event.Emit(c.recorder, s.claim, corev1.EventTypeNormal, "NetworksReady", "Release",
		fmt.Sprintf("the node's secondary networks are ready, and it accepts pods, %s after it was registered", waited.Round(100*time.Millisecond)))
}
