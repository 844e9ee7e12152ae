package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/internal/cost/collect"
	"croft.dev/croft/internal/cost/price"
	"croft.dev/croft/internal/cost/store"
	"croft.dev/croft/internal/declare/scheme"
)

// compressedLedger is a ledger whose month takes minutes. It observes a real API server by its own watches, with a clock
// that only the test advances. Each event gets the time at which it arrives, as do the times of the API server in the
// object.
type compressedLedger struct {
	*clocktesting.FakeClock
	collector *collect.Collector
	store     *store.Store

	// moving stops events while the clock advances.
	moving sync.RWMutex

	mu sync.Mutex
	// times are the times of the events, by event.
	times map[string]time.Time
	// firsts maps times of the API server to the time at which the ledger first observed them.
	firsts map[string]time.Time
	// last are the last translated objects.
	last map[types.UID]client.Object
	// prices is the present file of prices, and priced its content since each time at which the ledger read another one.
	prices string
	priced []pricedSince
}

type pricedSince struct {
	at     time.Time
	prices string
}

// startCompressed starts a ledger that observes a cluster from a time on.
func startCompressed(t *testing.T, c *cluster, from time.Time, prices string) *compressedLedger {
	t.Helper()
	l := &compressedLedger{FakeClock: clocktesting.NewFakeClock(from), times: map[string]time.Time{}, firsts: map[string]time.Time{},
		last: map[types.UID]client.Object{}, prices: prices}
	var err error
	l.store, err = store.Open(t.TempDir(), func(file string, err error) { t.Errorf("%s: %v", file, err) })
	if err != nil {
		t.Fatal(err)
	}
	if err := l.store.Lead(store.Leader{Identity: "month"}); err != nil {
		t.Fatal(err)
	}
	l.collector = collect.New(collect.Options{Store: l.store, ReadPrices: l.readPrices, Clock: l.FakeClock,
		Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))})
	options := collect.CacheOptions()
	options.Scheme = scheme.New()
	objects, err := cache.New(c.Config, options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := objects.Start(ctx); err != nil {
			t.Errorf("the cache of the ledger: %v", err)
		}
	})
	running.Go(func() {
		if err := l.collector.Run(ctx, &observedCache{objects, l}); err != nil {
			t.Errorf("the ledger: %v", err)
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	awaitCondition(t, moments, "the ledger to observe the cluster", func(context.Context) error {
		if l.Waiters() < 2 { // it writes its journal and its hours
			return fmt.Errorf("it does not: %w", l.collector.Check())
		}
		return l.collector.Check()
	})
	return l
}

// readPrices returns the present prices, and notes the time of a change.
func (l *compressedLedger) readPrices(context.Context) (*price.List, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.priced); n == 0 || l.priced[n-1].prices != l.prices {
		l.priced = append(l.priced, pricedSince{l.Now(), l.prices})
	}
	return price.Parse("prices.yaml", []byte(l.prices))
}

func (l *compressedLedger) setPrices(prices string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.prices = prices
}

// pass advances the clock, and waits until the ledger has read the prices and computed its hours, which it does each minute.
func (l *compressedLedger) pass(t *testing.T, d time.Duration) {
	t.Helper()
	l.moving.Lock()
	before := l.Now()
	now := before.Add(d)
	l.SetTime(now)
	l.moving.Unlock()
	if now.Truncate(time.Minute).Equal(before.Truncate(time.Minute)) {
		return
	}
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, moments, true, func(context.Context) (bool, error) {
		_, next, err := l.collector.GetLatest()
		return next.From.Equal(now), err
	})
	if err != nil {
		t.Fatalf("the ledger does not compute the hours at %s: %v", now, err)
	}
}

// nameEvent returns the name of an event: the state of an object, or its end.
func nameEvent(o client.Object, isEnd bool) string {
	return fmt.Sprint(o.GetUID(), "/", o.GetResourceVersion(), "/", isEnd)
}

// findTime returns the time of an event in the ledger.
func (l *compressedLedger) findTime(event string) (at time.Time, found bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, found = l.times[event]
	return at, found
}

// observedCache is the ledger's cache. It translates objects before the ledger observes them.
type observedCache struct {
	cache.Cache
	ledger *compressedLedger
}

// GetInformer implements cache.Informers.
func (c *observedCache) GetInformer(ctx context.Context, o client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	informer, err := c.Cache.GetInformer(ctx, o, options...)
	if err != nil {
		return nil, err
	}
	return &observedInformer{informer, c.ledger}, nil
}

type observedInformer struct {
	cache.Informer
	ledger *compressedLedger
}

// AddEventHandler implements cache.Informer.
func (i *observedInformer) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.Informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) {
			i.ledger.observe(o, false, func(_, now client.Object) { h.OnAdd(now, false) })
		},
		UpdateFunc: func(_, o any) {
			i.ledger.observe(o, false, func(before, now client.Object) { h.OnUpdate(before, now) })
		},
		DeleteFunc: func(o any) {
			i.ledger.observe(o, true, func(_, now client.Object) { h.OnDelete(now) })
		},
	})
}

// observe notes the time of an event, and passes the translated object on before the clock advances.
func (l *compressedLedger) observe(object any, isEnd bool, pass func(before, now client.Object)) {
	o, is := object.(client.Object)
	if !is {
		return // the end of an object was missed: its event will have no time
	}
	l.moving.RLock()
	defer l.moving.RUnlock()
	l.mu.Lock()
	l.times[nameEvent(o, isEnd)] = l.Now()
	before, now := l.last[o.GetUID()], l.translate(o)
	l.last[o.GetUID()] = now
	l.mu.Unlock()
	pass(before, now)
}

// translate returns an object with the ledger's times instead of the API server's.
func (l *compressedLedger) translate(o client.Object) client.Object {
	o = o.DeepCopyObject().(client.Object)
	first := func(of ...any) metav1.Time {
		key := fmt.Sprint(append(of, o.GetUID())...)
		if _, found := l.firsts[key]; !found {
			l.firsts[key] = l.Now()
		}
		return metav1.NewTime(l.firsts[key])
	}
	o.SetCreationTimestamp(first("creation"))
	switch o := o.(type) {
	case *corev1.Pod:
		for i := range o.Status.Conditions {
			if c := &o.Status.Conditions[i]; !c.LastTransitionTime.IsZero() {
				c.LastTransitionTime = first(c.Type, c.Status, c.LastTransitionTime)
			}
		}
		for i := range o.Status.ContainerStatuses {
			if ended := o.Status.ContainerStatuses[i].State.Terminated; ended != nil {
				ended.FinishedAt = first("end", i)
			}
		}
	case *karpenterv1.NodeClaim:
		for i := range o.Status.Conditions {
			c := &o.Status.Conditions[i]
			c.LastTransitionTime = first(c.Type, c.Status, c.LastTransitionTime)
		}
	}
	return o
}
