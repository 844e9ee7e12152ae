package collect

import (
	"slices"
	"time"

	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/store"
)

// finality is the time after the end of an hour at which its cost is stored. Until then, ends of pods may
// still be reported.
const finality = 10 * time.Minute

// computeHour returns the record of a part of an hour.
func (t *tracker) computeHour(l *ledger.Ledger, span ledger.Span) store.Record {
	hour := l.Compute(span)
	return store.Record{
		Span: span, Currency: t.prices.Currency, Nodes: hour.Nodes, Volumes: hour.Volumes, LoadBalancers: hour.LoadBalancers,
		Gaps: t.timeline.ListGaps(span), Exclusive: t.listExclusive(span, hour.Rows), Rows: hour.Rows,
	}
}

// listExclusive returns the pools that one tenant was declared to use, and that no other tenant used: pods
// of others may remain in a pool that was shared before.
func (t *tracker) listExclusive(span ledger.Span, rows []ledger.Row) []store.Exclusive {
	pools := t.timeline.ListExclusive(span)
	for i := range rows {
		row := &rows[i]
		if owner, found := pools[row.Pool]; found && row.Kind == ledger.Tenant && row.Tenant != owner {
			delete(pools, row.Pool)
		}
	}
	var all []store.Exclusive
	for pool, tenant := range pools {
		all = append(all, store.Exclusive{Pool: pool, Tenant: tenant})
	}
	slices.SortFunc(all, store.CompareExclusive)
	return all
}

// results are the hours that follow from a timeline at one time.
type results struct {
	// final are complete hours, from the first that is not stored.
	final []store.Record
	// provisional are the later hours until now. The last one may be a part of an hour.
	provisional []store.Record
	// next is the hour that begins now, if nothing changes.
	next store.Record
}

// computeHours returns the hours from the given one until now.
func (t *tracker) computeHours(first, now time.Time) (results, error) {
	var r results
	l, err := ledger.New(t.timeline.Build())
	if err != nil {
		return r, err
	}
	for from := first; from.Before(now); from = from.Add(time.Hour) {
		until := from.Add(time.Hour)
		switch {
		case !until.Add(finality).After(now):
			r.final = append(r.final, t.computeHour(l, ledger.Span{From: from, Until: until}))
		case until.After(now):
			r.provisional = append(r.provisional, t.computeHour(l, ledger.Span{From: from, Until: now}))
		default:
			r.provisional = append(r.provisional, t.computeHour(l, ledger.Span{From: from, Until: until}))
		}
	}
	r.next = t.computeHour(l, ledger.Span{From: now, Until: now.Add(time.Hour)})
	return r, nil
}
