package server

import (
	"maps"
	"time"

	"croft.dev/croft/internal/cost/collect"
	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/report"
	"croft.dev/croft/internal/cost/store"
)

// filter removes a row, or a part of it, that a caller may not read.
type filter struct {
	name string
	// keep reports whether the caller may read the row. It may change the row, and returns the
	// pool whose idle cost it has hidden.
	keep func(a *access, r *store.Record, row *ledger.Row) (keep bool, hidden string)
}

// filters are applied to each row of an answer that is not for the whole cluster.
var filters = []filter{
	// A tenant of the same name in another namespace, or a platform namespace.
	{"namespace", func(a *access, _ *store.Record, row *ledger.Row) (bool, string) {
		return a.namespaces[row.Namespace] || a.whole && row.Namespace != "", ""
	}},
	// A namespace may have belonged to another tenant, and the rows of nodes, idle capacity and
	// volumes without a claim belong to no tenant.
	{"tenant", func(a *access, _ *store.Record, row *ledger.Row) (bool, string) {
		return row.Tenant == a.tenant && (row.Kind == ledger.Tenant) == (a.tenant != "") && row.Kind != ledger.Idle &&
			row.Kind != ledger.Unallocated, ""
	}},
	// A share of idle cost is idle / all requests × own requests: it reveals the others' requests.
	{"idle cost", func(a *access, r *store.Record, row *ledger.Row) (bool, string) {
		if a.cluster || row.Resource != ledger.NodeResource || isExclusive(r, row.Pool, a.tenant) {
			return true, ""
		}
		row.Idle, row.EstimatedIdle = 0, 0
		return true, row.Pool
	}},
}

// isExclusive reports whether a pool was a tenant's alone.
func isExclusive(r *store.Record, pool, tenant string) bool {
	for _, e := range r.Exclusive {
		if e.Pool == pool {
			return e.Tenant == tenant && tenant != ""
		}
	}
	return false
}

// filter returns the part of a view that a caller may read.
func (s *server) filter(view collect.View, from time.Time, a *access) report.Stored {
	in := report.Stored{From: from, Now: view.Now, Next: view.Next, Records: view.Records, Hidden: map[string]bool{}}
	if a.cluster && len(a.namespaces) == 0 {
		return in
	}
	in.Records = make([]store.Record, len(view.Records))
	for i := range view.Records {
		in.Records[i] = s.filterRecord(&view.Records[i], a, in.Hidden)
	}
	in.Next = s.filterRecord(&view.Next, a, in.Hidden)
	return in
}

// filterRecord returns a record with the rows that a caller may read, and without the sums of all rows.
func (s *server) filterRecord(r *store.Record, a *access, hidden map[string]bool) store.Record {
	limited := store.Record{Span: r.Span, Currency: r.Currency, Gaps: r.Gaps, Missing: r.Missing}
	for i := range r.Rows {
		row, pools := r.Rows[i], map[string]bool{}
		keep := true
		for _, f := range s.filters {
			kept, pool := f.keep(a, r, &row)
			if pool != "" {
				pools[pool] = true
			}
			keep = keep && kept
		}
		if keep {
			limited.Rows = append(limited.Rows, row)
			maps.Copy(hidden, pools)
		}
	}
	return limited
}
