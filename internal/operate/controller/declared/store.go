package declared

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/budget"
	"croft.dev/croft/internal/declare/manifest"
)

// window is how long changes are collected before the estate is rebuilt. The first change
// after a pause is handled at once.
const window = 250 * time.Millisecond

// longestDelay is the longest pause before the estate is rebuilt if it could not be read or
// confirmed. An event from the cache ends the pause.
const longestDelay = 30 * time.Second

// Store contains the current Snapshot, and builds the next one when declared objects
// change.
type Store struct {
	// cached has one informer for each kind. live reads from the API server.
	cached, live client.Reader
	clock        clock.WithDelayedExecution
	// dirty contains a token if declared objects have changed since the last build.
	dirty chan struct{}

	// confirmed are the problems of the last build; see judge. delay is the pause before
	// the next retry. Only the building goroutine uses them.
	confirmed map[objectProblem]bool
	delay     time.Duration
	// changing fires at the next change by the clock.
	changing clock.Timer

	mu        sync.Mutex
	current   *Snapshot
	revision  uint64
	listeners map[Kind][]func(name string)
}

// New returns a Store that reads from a cache. It confirms problems with the API server
// before it reports an object as invalid.
func New(cached, live client.Reader, clock clock.WithDelayedExecution) *Store {
	return &Store{cached: cached, live: live, clock: clock, dirty: make(chan struct{}, 1), listeners: map[Kind][]func(string){}}
}

// Register adds the Store to the manager.
func (s *Store) Register(ctx context.Context, m manager.Manager) error {
	for _, o := range []client.Object{&v1alpha1.Platform{}, &v1alpha1.Pool{}, &v1alpha1.Tenant{}, &v1alpha1.SecondaryNetwork{}} {
		informer, err := m.GetCache().GetInformer(ctx, o)
		if err != nil {
			return fmt.Errorf("watch %T: %w", o, err)
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { s.markDirty() },
			DeleteFunc: func(any) { s.markDirty() },
			UpdateFunc: func(before, after any) {
				if isRedeclared(before, after) {
					s.markDirty()
				}
			},
		}); err != nil {
			return fmt.Errorf("watch %T: %w", o, err)
		}
	}
	if err := s.watchRequests(ctx, m.GetCache()); err != nil {
		return err
	}
	if err := s.watchCallers(ctx, m.GetCache()); err != nil {
		return err
	}
	return m.Add(s)
}

// watchCallers rebuilds the estate when a team gives or withdraws a consent, and when the operator has
// recorded the two tenants of one.
func (s *Store) watchCallers(ctx context.Context, c cache.Cache) error {
	informer, err := c.GetInformer(ctx, &v1alpha1.TenantCaller{})
	if err == nil {
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { s.markDirty() },
			DeleteFunc: func(any) { s.markDirty() },
			UpdateFunc: func(before, after any) {
				if isCallerChanged(before, after) {
					s.markDirty()
				}
			},
		})
	}
	if err != nil {
		return fmt.Errorf("watch TenantCallers: %w", err)
	}
	return nil
}

// isCallerChanged reports whether an update changed more of a TenantCaller than its conditions.
func isCallerChanged(before, after any) bool {
	b, ok := before.(*v1alpha1.TenantCaller)
	a, ok2 := after.(*v1alpha1.TenantCaller)
	return !ok || !ok2 || a.UID != b.UID || a.Generation != b.Generation || a.DeletionTimestamp.IsZero() != b.DeletionTimestamp.IsZero() ||
		a.Status.Giver != b.Status.Giver || a.Status.Receiver != b.Status.Receiver
}

// watchRequests rebuilds the estate when a requested namespace is granted or no longer is, and when
// the labels of a granted request change, from which the tenant may choose labels of the namespace.
func (s *Store) watchRequests(ctx context.Context, c cache.Cache) error {
	informer, err := c.GetInformer(ctx, &v1alpha1.TenantNamespace{})
	if err == nil {
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { s.markDirty() },
			DeleteFunc: func(any) { s.markDirty() },
			UpdateFunc: func(before, after any) {
				if getGrantedTenant(before) != getGrantedTenant(after) || getGrantedTenant(after) != "" && isRelabelled(before, after) {
					s.markDirty()
				}
			},
		})
	}
	if err != nil {
		return fmt.Errorf("watch TenantNamespaces: %w", err)
	}
	return nil
}

// getGrantedTenant returns the tenant of a granted TenantNamespace, or "" if it is not granted or is
// being deleted.
func getGrantedTenant(o any) string {
	request, ok := o.(*v1alpha1.TenantNamespace)
	if !ok || !request.DeletionTimestamp.IsZero() {
		return ""
	}
	return request.Status.Tenant
}

// isRelabelled reports whether an update changed the labels.
func isRelabelled(before, after any) bool {
	b, ok := before.(client.Object)
	a, ok2 := after.(client.Object)
	return !ok || !ok2 || !maps.Equal(a.GetLabels(), b.GetLabels())
}

// isRedeclared reports whether an update changed more than the status, or a part of the status that
// is part of the estate: the stage of a budget, or a domain that another tenant may now claim.
func isRedeclared(before, after any) bool {
	b, ok := before.(client.Object)
	a, ok2 := after.(client.Object)
	return !ok || !ok2 || a.GetGeneration() != b.GetGeneration() || a.GetUID() != b.GetUID() ||
		isBudgetChanged(b, a) || hasFreedDomain(b, a)
}

// isBudgetChanged reports whether an update changed the stage of a tenant's budget, or the figures in messages.
func isBudgetChanged(before, after client.Object) bool {
	b, ok := before.(*v1alpha1.Tenant)
	a, ok2 := after.(*v1alpha1.Tenant)
	if !ok || !ok2 {
		return false
	}
	stageBefore, textBefore := budget.Describe(b.Name, "", b.Status.Budget)
	stage, text := budget.Describe(a.Name, "", a.Status.Budget)
	return stageBefore != stage || textBefore != text || budget.DescribePrices(b.Status.Budget) != budget.DescribePrices(a.Status.Budget)
}

func hasFreedDomain(before, after client.Object) bool {
	b, ok := before.(*v1alpha1.Tenant)
	a, ok2 := after.(*v1alpha1.Tenant)
	return ok && ok2 && slices.ContainsFunc(b.Status.Domains, func(domain string) bool { return !slices.Contains(a.Status.Domains, domain) })
}

func (s *Store) markDirty() {
	select {
	case s.dirty <- struct{}{}:
	default:
	}
}

// NeedLeaderElection returns false, so that a standby replica has an estate, too.
func (s *Store) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (s *Store) Start(ctx context.Context) error {
	pace := rate.NewLimiter(rate.Every(window), 1)
	s.markDirty()
	for pace.Wait(ctx) == nil {
		select {
		case <-ctx.Done():
		case <-s.dirty:
			first := s.delay == 0
			if err := s.rebuild(ctx); err != nil && first && ctx.Err() == nil {
				log.FromContext(ctx).Error(err, "cannot read the declared objects; trying again")
			}
		}
	}
	return nil
}

// rebuild builds and publishes the next Snapshot. If that fails, or the problems of some
// objects are not confirmed, it schedules a retry with back-off.
func (s *Store) rebuild(ctx context.Context) error {
	whole := false
	d, err := readDeclaration(ctx, s.cached, s.clock.Now())
	if err == nil {
		next := buildSnapshot(d)
		var publish bool
		if publish, whole, err = s.confirmProblems(ctx, next); publish {
			s.publishSnapshot(next)
		}
		s.rebuildAt(next.nextChange)
	}
	if err == nil && whole {
		s.delay = 0
		return nil
	}
	s.clock.AfterFunc(s.delay, s.markDirty)
	s.delay = min(max(2*s.delay, window), longestDelay)
	return err
}

// longestWait limits the timer for the next change by the clock, because timers do not follow
// changes of the system clock.
const longestWait = time.Hour

// rebuildAt schedules a rebuild for the next time at which the estate changes with time.
func (s *Store) rebuildAt(change time.Time) {
	if s.changing != nil {
		s.changing.Stop()
	}
	if !change.IsZero() {
		s.changing = s.clock.AfterFunc(min(change.Sub(s.clock.Now()), longestWait), s.markDirty)
	}
}

func (s *Store) publishSnapshot(next *Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision++
	for kind, names := range next.updateRevisions(s.current, s.revision) {
		for _, listener := range s.listeners[kind] {
			for _, name := range names {
				// The listeners' workers wait for this lock before they read the new
				// snapshot.
				listener(name)
			}
		}
	}
	s.current = next
}

// readDeclaration lists all declared objects. A list from the cache shares the cache's objects, which
// readers of an estate must not change. Kinds with references are listed before the kinds
// that they refer to, so that a referenced object that exists is listed, too.
func readDeclaration(ctx context.Context, reader client.Reader, now time.Time) (*manifest.Declaration, error) {
	var (
		platforms v1alpha1.PlatformList
		pools     v1alpha1.PoolList
		tenants   v1alpha1.TenantList
		networks  v1alpha1.SecondaryNetworkList
		requests  v1alpha1.TenantNamespaceList
		callers   v1alpha1.TenantCallerList
	)
	for _, list := range []client.ObjectList{&callers, &requests, &tenants, &pools, &networks, &platforms} {
		if err := reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list %T: %w", list, err)
		}
	}
	return &manifest.Declaration{
		Platforms: platforms.Items, Pools: pools.Items, Tenants: tenants.Items, Networks: networks.Items,
		Requests: requests.Items, Callers: callers.Items, Now: now,
	}, nil
}

// Current returns the newest Snapshot, or nil before the first one.
func (s *Store) Current() *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// Source returns a source of reconcile requests: for all objects of a kind at the start,
// and later for those whose entry changed.
func (s *Store) Source(kind Kind) source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		s.addListener(kind, func(name string) {
			queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
		})
		return nil
	})
}

// SingleRequestSource returns a source that sends the same request for every change of some kinds, for
// controllers that reconcile all their objects together.
func (s *Store) SingleRequestSource(request reconcile.Request, kinds ...Kind) source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		for _, kind := range kinds {
			s.addListener(kind, func(string) { queue.Add(request) })
		}
		return nil
	})
}

func (s *Store) addListener(kind Kind, listener func(name string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners[kind] = append(s.listeners[kind], listener)
	if s.current == nil {
		return
	}
	for _, name := range s.current.listNames(kind) {
		listener(name)
	}
}
