package store

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/money"
)

// Version orders the writes of one hour: the latest replaces the others.
type Version struct {
	// Epoch increases with each process that leads, and Revision with each write in an epoch.
	Epoch, Revision uint64
}

// Compare orders versions by time.
func (v Version) Compare(other Version) int {
	return cmp.Or(cmp.Compare(v.Epoch, other.Epoch), cmp.Compare(v.Revision, other.Revision))
}

// Record is the cost of one hour, or of one day in one currency.
type Record struct {
	ledger.Span
	Version
	// Holder is the identity of the leader that wrote the record.
	Holder, Currency              string
	Nodes, Volumes, LoadBalancers money.Amount
	// Gaps are the times in which no ledger observed the cluster. Missing are the times for
	// which no record exists, in a record of a day.
	Gaps, Missing []ledger.Span
	// Exclusive are the pools that one tenant alone used and was declared to use.
	Exclusive []Exclusive
	// Rows are in the order of their keys.
	Rows []ledger.Row
}

// Exclusive is a pool, and its only tenant.
type Exclusive struct{ Pool, Tenant string }

// sumDay adds up the hours of a day, in one record for each currency. The hours are in order, and in
// the past of now.
func sumDay(day ledger.Span, hours []Record) []Record {
	var all []Record
	for _, currency := range listCurrencies(hours) {
		sum := Record{Span: day, Currency: currency}
		rows, hoursOf := map[ledger.Key]*ledger.Row{}, map[Exclusive]int{}
		count := 0
		for i := range hours {
			h := &hours[i]
			if h.Currency != currency {
				continue
			}
			count++
			sum.Version, sum.Holder = maxVersion(sum.Version, h.Version), h.Holder
			sum.Nodes += h.Nodes
			sum.Volumes += h.Volumes
			sum.LoadBalancers += h.LoadBalancers
			sum.Gaps = append(sum.Gaps, h.Gaps...)
			for _, e := range h.Exclusive {
				hoursOf[e]++
			}
			addRows(rows, h.Rows)
		}
		for e, n := range hoursOf {
			if n == count {
				sum.Exclusive = append(sum.Exclusive, e)
			}
		}
		slices.SortFunc(sum.Exclusive, CompareExclusive)
		for _, row := range rows {
			sum.Rows = append(sum.Rows, *row)
		}
		slices.SortFunc(sum.Rows, func(a, b ledger.Row) int { return a.Compare(b.Key) })
		all = append(all, sum)
	}
	if len(all) > 0 {
		all[0].Missing = FindMissing(day, hours)
	}
	return all
}

func listCurrencies(records []Record) []string {
	var all []string
	for i := range records {
		all = append(all, records[i].Currency)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func maxVersion(a, b Version) Version {
	if a.Compare(b) > 0 {
		return a
	}
	return b
}

// CompareExclusive orders pools by name.
func CompareExclusive(a, b Exclusive) int {
	return cmp.Or(strings.Compare(a.Pool, b.Pool), strings.Compare(a.Tenant, b.Tenant))
}

func addRows(sums map[ledger.Key]*ledger.Row, rows []ledger.Row) {
	for i := range rows {
		row := &rows[i]
		sum := sums[row.Key]
		if sum == nil {
			sum = &ledger.Row{Key: row.Key}
			sums[row.Key] = sum
		}
		values, added := listValues(sum), listValues(row)
		for j := range values {
			values[j] += added[j]
		}
		setValues(sum, values)
	}
}

// FindMissing returns the parts of a period that no record covers. The records are in order.
func FindMissing(period ledger.Span, records []Record) []ledger.Span {
	var missing []ledger.Span
	at := period.From
	for i := range records {
		r := &records[i]
		if r.From.After(at) {
			missing = append(missing, ledger.Span{From: at, Until: earlier(r.From, period.Until)})
		}
		for _, m := range r.Missing {
			if m.From.Before(period.Until) && m.Until.After(period.From) {
				missing = append(missing, m)
			}
		}
		if r.Until.After(at) {
			at = r.Until
		}
	}
	if at.Before(period.Until) {
		missing = append(missing, ledger.Span{From: at, Until: period.Until})
	}
	return missing
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
