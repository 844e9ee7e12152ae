package server

import (
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

// readsAll reports whether the caller reads the costs of the whole cluster.
func (a *access) readsAll() bool { return a.cluster && len(a.namespaces) == 0 }

// filter returns the part of a view, and of its records, that a caller may read.
func (s *server) filter(view collect.View, records *store.Reading, from time.Time, a *access) report.Stored {
	in := report.Stored{From: from, Now: view.Now, Next: view.Next, Records: records.Records, EachRow: records.EachRow}
	if a.readsAll() {
		return in
	}
	in.Hidden = map[string]bool{}
	in.Records = make([]store.Record, len(records.Records))
	for i := range records.Records {
		in.Records[i] = removeSums(&records.Records[i])
	}
	in.EachRow = func(visit func(record int, row *ledger.Row) error) error {
		return records.EachRow(func(record int, row *ledger.Row) error {
			if !s.keepRow(a, &records.Records[record], row, in.Hidden) {
				return nil
			}
			return visit(record, row)
		})
	}
	in.Next = removeSums(&view.Next)
	for i := range view.Next.Rows {
		if row := view.Next.Rows[i]; s.keepRow(a, &view.Next, &row, in.Hidden) {
			in.Next.Rows = append(in.Next.Rows, row)
		}
	}
	return in
}

// removeSums returns a record without its rows and the sums of all rows.
func removeSums(r *store.Record) store.Record {
	return store.Record{Span: r.Span, Currency: r.Currency, Gaps: r.Gaps, Missing: r.Missing}
}

// keepRow removes the parts of a row that a caller may not read, and adds the pools whose idle cost it has hidden. It returns
// false if the caller may not read the row.
func (s *server) keepRow(a *access, r *store.Record, row *ledger.Row, hidden map[string]bool) bool {
	var pools []string
	for _, f := range s.filters {
		kept, pool := f.keep(a, r, row)
		if !kept {
			return false
		}
		if pool != "" {
			pools = append(pools, pool)
		}
	}
	for _, pool := range pools {
		hidden[pool] = true
	}
	return true
}
