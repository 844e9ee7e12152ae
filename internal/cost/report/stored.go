package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/store"
)

// Stored are the stored hours and days of a period until now.
type Stored struct {
	// From is the beginning of the period.
	From, Now time.Time
	// Records are in the order of time, without rows. A record of a day may begin before the period.
	Records []store.Record
	// EachRow calls visit for each row, with the number of its record. visit must not keep the row.
	EachRow func(visit func(record int, row *ledger.Row) error) error
	// Next is the hour that begins now, if nothing changes.
	Next store.Record
	// Hidden are the pools whose idle cost is not shown. EachRow may add to them.
	Hidden map[string]bool
}

// UsesTotals reports whether the answer in a grouping is the same from a store's totals as from all rows.
func UsesTotals(by string) bool { return by == ByTenant || by == ByCostCode || by == ByPool }

// eachRow calls visit for each row in the report's currency.
func (in *Stored) eachRow(visit func(record int, row *ledger.Row) error) error {
	if in.EachRow == nil {
		return nil
	}
	return in.EachRow(func(record int, row *ledger.Row) error {
		if in.Records[record].Currency != in.Next.Currency {
			return nil
		}
		return visit(record, row)
	})
}

// BuildStored adds up stored hours and days.
func BuildStored(in Stored, by string) (*Report, error) {
	return buildStored(&in, by, func(int, *ledger.Row) error { return nil })
}

// buildStored calls visit for each row that it adds up.
func buildStored(in *Stored, by string, visit func(record int, row *ledger.Row) error) (*Report, error) {
	b := newBuilder(by)
	b.hidden = in.Hidden
	period := ledger.Span{From: in.From, Until: in.Now}
	var gaps, others []ledger.Span
	for i := range in.Records {
		r := &in.Records[i]
		if r.From.Before(period.From) {
			period.From = r.From
		}
		if r.Currency != in.Next.Currency {
			others = append(others, r.Span)
			continue
		}
		gaps = append(gaps, r.Gaps...)
	}
	err := in.eachRow(func(record int, row *ledger.Row) error {
		b.addRow(row)
		return visit(record, row)
	})
	if err != nil {
		return nil, err
	}
	for i := range in.Next.Rows {
		b.addCurrentRow(&in.Next.Rows[i])
	}
	var limits []string
	for _, about := range []struct {
		spans []ledger.Span
		text  string
	}{
		{store.FindMissing(period, in.Records), "the cost is unknown: no ledger ran, or its files are damaged"},
		{gaps, "no ledger ran: objects that existed only then are missing, and idle cost is estimated"},
		{others, "amounts are in another currency, and in no sum"},
	} {
		for _, span := range mergeSpans(about.spans) {
			limits = append(limits, fmt.Sprintf("from %s until %s %s", formatTime(span.From), formatTime(span.Until), about.text))
		}
	}
	if len(in.Hidden) > 0 {
		limits = append(limits, "idle cost of pools that other tenants may use is not shown: it would reveal their cost")
	}
	return b.build(Options{Period: period, By: by, Currency: in.Next.Currency}, append(limits, b.describeUnrequested()...)), nil
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// mergeSpans joins spans that follow each other.
func mergeSpans(spans []ledger.Span) []ledger.Span {
	spans = slices.Clone(spans)
	slices.SortFunc(spans, func(a, b ledger.Span) int { return cmp.Or(a.From.Compare(b.From), a.Until.Compare(b.Until)) })
	var merged []ledger.Span
	for _, s := range spans {
		if n := len(merged); n > 0 && !s.From.After(merged[n-1].Until) {
			if s.Until.After(merged[n-1].Until) {
				merged[n-1].Until = s.Until
			}
			continue
		}
		merged = append(merged, s)
	}
	return merged
}
