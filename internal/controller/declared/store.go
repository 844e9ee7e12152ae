package declared

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/manifest"
)

// window is the time for which changes are collected before the estate is built again.
// The first change after a pause does not wait.
const window = 250 * time.Millisecond

// longestDelay is the longest pause before an estate that could not be read, or not be
// judged, is built again. Events from the cache end the pause.
const longestDelay = 30 * time.Second

// Store holds the current Snapshot and builds the next one when the cluster's
// declaration changes.
type Store struct {
	// cached has one informer for each kind, and live reads from the API server.
	cached, live client.Reader
	// dirty holds one token while the declaration has changed since the last build.
	dirty chan struct{}

	// confirmed are the problems of the last build: see judge. delay is the pause
	// before the next retry. Only the goroutine that builds uses them.
	confirmed map[verdict]bool
	delay     time.Duration
	// ending waits for the next end of an access.
	ending *time.Timer

	mu        sync.Mutex
	current   *Snapshot
	revision  uint64
	listeners map[Kind][]func(name string)
}

// New returns a Store that reads from a cache, and reads from the API server before it
// refuses an object.
func New(cached, live client.Reader) *Store {
	return &Store{cached: cached, live: live, dirty: make(chan struct{}, 1), listeners: map[Kind][]func(string){}}
}

// Register makes the manager run the Store.
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
				if redeclared(before, after) {
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
	return m.Add(s)
}

// watchRequests builds the estate again when a namespace that a tenant asked for is
// granted, or is granted no longer.
func (s *Store) watchRequests(ctx context.Context, c cache.Cache) error {
	informer, err := c.GetInformer(ctx, &v1alpha1.TenantNamespace{})
	if err == nil {
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { s.markDirty() },
			DeleteFunc: func(any) { s.markDirty() },
			UpdateFunc: func(before, after any) {
				if granted(before) != granted(after) {
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

// granted is the tenant that a TenantNamespace is granted to; "" if it is being deleted.
func granted(o any) string {
	request, ok := o.(*v1alpha1.TenantNamespace)
	if !ok || !request.DeletionTimestamp.IsZero() {
		return ""
	}
	return request.Status.Tenant
}

// redeclared tells a change of the declaration from a change of status.
func redeclared(before, after any) bool {
	b, ok := before.(client.Object)
	a, ok2 := after.(client.Object)
	return !ok || !ok2 || a.GetGeneration() != b.GetGeneration() || a.GetUID() != b.GetUID()
}

func (s *Store) markDirty() {
	select {
	case s.dirty <- struct{}{}:
	default:
	}
}

// NeedLeaderElection is false: a stand-by replica keeps its estate ready.
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

// rebuild builds and publishes the next Snapshot. Where that fails, or some objects
// cannot be judged yet, it is tried again, more and more slowly.
func (s *Store) rebuild(ctx context.Context) error {
	whole := false
	d, err := read(ctx, s.cached)
	if err == nil {
		next := build(d)
		var publish bool
		if publish, whole, err = s.judge(ctx, next); publish {
			s.publish(next)
		}
		s.rebuildAt(next.nextEnd)
	}
	if err == nil && whole {
		s.delay = 0
		return nil
	}
	time.AfterFunc(s.delay, s.markDirty)
	s.delay = min(max(2*s.delay, window), longestDelay)
	return err
}

// longestWait limits the timer for the next end of access, since timers do not follow
// changes of the system clock.
const longestWait = time.Hour

// rebuildAt builds the estate again when access of a tenant ends.
func (s *Store) rebuildAt(end time.Time) {
	if s.ending != nil {
		s.ending.Stop()
	}
	if !end.IsZero() {
		s.ending = time.AfterFunc(min(time.Until(end), longestWait), s.markDirty)
	}
}

func (s *Store) publish(next *Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision++
	for kind, names := range next.compare(s.current, s.revision) {
		for _, listener := range s.listeners[kind] {
			for _, name := range names {
				// Listeners' workers wait for the lock before they read the new snapshot.
				listener(name)
			}
		}
	}
	s.current = next
}

// read lists all declared objects. A list from the cache shares the cache's objects:
// nothing that reads an estate changes it. Kinds that refer to others are listed before
// those, so that a referred object that exists is in the lists, too.
func read(ctx context.Context, reader client.Reader) (*manifest.Declaration, error) {
	var (
		platforms v1alpha1.PlatformList
		pools     v1alpha1.PoolList
		tenants   v1alpha1.TenantList
		networks  v1alpha1.SecondaryNetworkList
		requests  v1alpha1.TenantNamespaceList
	)
	for _, list := range []client.ObjectList{&requests, &tenants, &pools, &networks, &platforms} {
		if err := reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list %T: %w", list, err)
		}
	}
	return &manifest.Declaration{
		Platforms: platforms.Items, Pools: pools.Items, Tenants: tenants.Items, Networks: networks.Items,
		Requests: requests.Items, Now: time.Now(),
	}, nil
}

// Current returns the newest Snapshot; nil until there is one.
func (s *Store) Current() *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// Source gives a controller the objects of a kind to reconcile: all of them at the
// start, and later those whose entry changed.
func (s *Store) Source(kind Kind) source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		s.listen(kind, func(name string) {
			queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
		})
		return nil
	})
}

// Single is a source with the same request for every change of some kinds, for controllers
// that reconcile all their objects together.
func (s *Store) Single(request reconcile.Request, kinds ...Kind) source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		for _, kind := range kinds {
			s.listen(kind, func(string) { queue.Add(request) })
		}
		return nil
	})
}

func (s *Store) listen(kind Kind, listener func(name string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners[kind] = append(s.listeners[kind], listener)
	if s.current == nil {
		return
	}
	for _, name := range s.current.names(kind) {
		listener(name)
	}
}
