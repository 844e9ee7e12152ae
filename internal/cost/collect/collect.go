// Package collect observes the objects of a cluster that cost money, computes the cost of each hour, and
// stores it. A tracker records objects in a timeline, without I/O; a Collector feeds it from watches, and
// keeps its journal and its hours in a store.
package collect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"

	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/podusage"
	"croft.dev/croft/internal/cost/price"
	"croft.dev/croft/internal/cost/store"
	"croft.dev/croft/internal/cost/timeline"
)

const (
	// flushInterval is the interval at which observations are written to the journal.
	flushInterval = time.Second
	// computeInterval is the interval at which the current hour is computed, and prices are read.
	computeInterval = time.Minute
)

// errStarting means that the objects are being read.
var errStarting = errors.New("the ledger is reading the cluster's objects")

// Options configure a Collector.
type Options struct {
	Store *store.Store
	// ReadPrices returns the current prices.
	ReadPrices func(context.Context) (*price.List, error)
	// ReadUsage returns the present usage of pods. The usage of other pods is unknown. It is optional.
	ReadUsage func(context.Context) ([]podusage.Pod, error)
	Clock     clock.WithTicker
	Log       *slog.Logger
	// OnStored is called for each hour after it has been stored, and OnFailed for each failed attempt to write
	// the store. Both are optional.
	OnStored func(*store.Record)
	OnFailed func()
}

// Collector observes a cluster while it leads.
type Collector struct {
	Options

	mu      sync.Mutex
	tracker *tracker
	// first is the first hour that is not stored.
	first time.Time
	// results are the last computed hours, without the stored ones, and computed their time.
	results  results
	computed time.Time
	// maintained is the end of the stored hours when the store was maintained.
	maintained time.Time
}

// New returns a Collector.
func New(o Options) *Collector {
	if o.OnStored == nil {
		o.OnStored = func(*store.Record) {}
	}
	if o.OnFailed == nil {
		o.OnFailed = func() {}
	}
	return &Collector{Options: o}
}

// begin continues the journal. The objects must then be set, before finish.
func (c *Collector) begin(ctx context.Context) error {
	prices, err := c.ReadPrices(ctx)
	if err != nil {
		return err
	}
	entries, err := c.Store.ReadJournal()
	if err != nil {
		return err
	}
	t, err := timeline.Load(entries)
	if err != nil {
		return err
	}
	last, err := c.Store.FindLast()
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.Clock.Now()
	t.Begin(now.Unix())
	c.tracker, c.first = newTracker(t, prices), last
	if last.IsZero() {
		// A process that was killed in its first hour has observed it.
		c.first = time.Unix(cmp.Or(t.Start(), now.Unix()), 0).UTC().Truncate(time.Hour)
	}
	// Prices may have changed while no process ran.
	c.tracker.setPrices(prices, now)
	return nil
}

// finish ends the read of all objects, and writes the journal.
func (c *Collector) finish(ctx context.Context) error {
	c.mu.Lock()
	c.tracker.finish(c.Clock.Now())
	c.mu.Unlock()
	if err := c.replaceJournal(); err != nil {
		return err
	}
	return c.compute(ctx)
}

// set and remove record an event of a watch.
// set records an object. After an interrupted watch, old may be a deleted object of the same name.
func (c *Collector) set(old, object any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.Clock.Now()
	if before, err := meta.Accessor(old); err == nil {
		if after, err := meta.Accessor(object); err == nil && before.GetUID() != after.GetUID() {
			c.tracker.remove(old, true, now)
			old = nil
		}
	}
	c.tracker.set(old, object, now)
}

func (c *Collector) remove(object any, unseen bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tracker.remove(object, unseen, c.Clock.Now())
}

// run writes the journal and the hours until the context ends.
func (c *Collector) run(ctx context.Context) error {
	flush, compute := c.Clock.NewTicker(flushInterval), c.Clock.NewTicker(computeInterval)
	defer flush.Stop()
	defer compute.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return c.flush()
		case <-flush.C():
			err = c.flush()
		case <-compute.C():
			c.updatePrices(ctx)
			err = c.compute(ctx)
		}
		if errors.Is(err, store.ErrFenced) {
			return err
		}
		if err != nil {
			c.OnFailed()
			c.Log.ErrorContext(ctx, "the ledger cannot be written: it is tried again", "error", err)
		}
	}
}

// flush writes the observations since the last flush to the journal.
func (c *Collector) flush() error {
	c.mu.Lock()
	c.tracker.timeline.See(c.Clock.Now().Unix())
	entries, err := c.tracker.timeline.Changes()
	c.mu.Unlock()
	if err != nil {
		return err
	}
	err = c.Store.AppendJournal(entries)
	if err != nil && !errors.Is(err, store.ErrFenced) {
		// The entries are in the next journal, too.
		err = c.replaceJournal()
	}
	return err
}

func (c *Collector) replaceJournal() error {
	c.mu.Lock()
	entries, err := c.tracker.timeline.Snapshot()
	c.mu.Unlock()
	if err != nil {
		return err
	}
	return c.Store.ReplaceJournal(entries)
}

// updatePrices reads the prices again. If this fails, the last prices stay.
func (c *Collector) updatePrices(ctx context.Context) {
	prices, err := c.ReadPrices(ctx)
	if err != nil {
		c.Log.WarnContext(ctx, "prices cannot be read: the last ones stay", "error", err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tracker.setPrices(prices, c.Clock.Now())
}

// compute computes the hours that are not stored, and stores the final ones. A kill between the write of
// an hour and the new journal is harmless: the hour is then stored, and not computed again.
func (c *Collector) compute(ctx context.Context) error {
	c.mu.Lock()
	now := c.Clock.Now().UTC().Truncate(time.Second)
	r, err := c.tracker.computeHours(c.first, now)
	c.mu.Unlock()
	if err != nil {
		return err
	}
	for i := range r.final {
		if err := c.Store.WriteHour(r.final[i]); err != nil {
			return fmt.Errorf("write the hour of %s: %w", r.final[i].From.Format(time.RFC3339), err)
		}
		c.Log.InfoContext(ctx, "stored an hour", "from", r.final[i].From, "rows", len(r.final[i].Rows))
	}
	c.mu.Lock()
	if n := len(r.final); n > 0 {
		c.first = r.final[n-1].Until
		c.tracker.timeline.Forget(c.first.Unix())
	}
	stored, final := c.first, r.final
	r.final = nil
	c.results, c.computed = r, now
	c.mu.Unlock()
	// Not in the loop above: if a later hour cannot be written, all of them are written again.
	for i := range final {
		c.OnStored(&final[i])
	}
	if stored.Equal(c.maintained) {
		return nil
	}
	if err := c.replaceJournal(); err != nil {
		return err
	}
	if err := c.Store.Maintain(stored); err != nil {
		return err
	}
	c.maintained = stored
	return nil
}

// View is a consistent state of the ledger.
type View struct {
	// Select returns the records of the requested period, in the order of time.
	Select func(store.Selection) (*store.Reading, error)
	// Next is the hour that begins now, if nothing changes.
	Next store.Record
	// Tenants are the present tenants of namespaces.
	Tenants map[string]string
	// Now is the time of the view.
	Now time.Time
}

// Read returns the state from a time until now.
func (c *Collector) Read(from time.Time) (View, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.computed.IsZero() {
		return View{}, errStarting
	}
	provisional, period := c.results.provisional, ledger.Span{From: from, Until: c.first}
	return View{
		Next: c.results.next, Tenants: c.tracker.timeline.ListTenants(), Now: c.computed,
		Select: func(selection store.Selection) (*store.Reading, error) {
			r, err := c.Store.Select(period, selection)
			if err != nil {
				return nil, err
			}
			for i := range provisional {
				if provisional[i].Until.After(from) {
					r.Add(provisional[i])
				}
			}
			return r, nil
		},
	}, nil
}

// Check returns an error while the ledger cannot answer.
func (c *Collector) Check() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.computed.IsZero() {
		return errStarting
	}
	return nil
}

// GetLatest returns the end of the stored hours, and the hour that begins now, if nothing changes. It does not read
// the store.
func (c *Collector) GetLatest() (stored time.Time, next store.Record, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.computed.IsZero() {
		return time.Time{}, store.Record{}, errStarting
	}
	return c.first, c.results.next, nil
}
