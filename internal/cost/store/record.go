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
	// Rows are in the order of their keys. The records of a Reading have none.
	Rows []ledger.Row
}

// Exclusive is a pool, and its only tenant.
type Exclusive struct{ Pool, Tenant string }

// sumHours adds up the hours of a day, in one record for each currency, without rows. of has the number of the sum to
// which each hour belongs. The hours are in order, and in the past of now.
func sumHours(day ledger.Span, hours []Record) (sums []Record, of []int) {
	of = make([]int, len(hours))
	for n, currency := range listCurrencies(hours) {
		sum := Record{Span: day, Currency: currency}
		hoursOf := map[Exclusive]int{}
		count := 0
		for i := range hours {
			h := &hours[i]
			if h.Currency != currency {
				continue
			}
			of[i] = n
			count++
			sum.Version, sum.Holder = maxVersion(sum.Version, h.Version), h.Holder
			sum.Nodes += h.Nodes
			sum.Volumes += h.Volumes
			sum.LoadBalancers += h.LoadBalancers
			sum.Gaps = append(sum.Gaps, h.Gaps...)
			for _, e := range h.Exclusive {
				hoursOf[e]++
			}
		}
		for e, times := range hoursOf {
			if times == count {
				sum.Exclusive = append(sum.Exclusive, e)
			}
		}
		slices.SortFunc(sum.Exclusive, CompareExclusive)
		sums = append(sums, sum)
	}
	if len(sums) > 0 {
		sums[0].Missing = FindMissing(day, hours)
	}
	return sums, of
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

// sumRows adds up the rows with the same key, which key returns, in the order of their keys.
func sumRows(key func(*ledger.Row) ledger.Key, lists ...[]ledger.Row) []ledger.Row {
	numbers := map[ledger.Key]int{}
	var sums []ledger.Row
	for _, rows := range lists {
		for i := range rows {
			k := key(&rows[i])
			n, found := numbers[k]
			if !found {
				n = len(sums)
				numbers[k], sums = n, append(sums, ledger.Row{Key: k})
			}
			values, added := listValues(&sums[n]), listValues(&rows[i])
			for j := range values {
				values[j] += added[j]
			}
			setValues(&sums[n], values)
		}
	}
	slices.SortFunc(sums, compareRows)
	return sums
}

func compareRows(a, b ledger.Row) int { return a.Compare(b.Key) }

func getKey(r *ledger.Row) ledger.Key { return r.Key }

// AnyNamespace is the namespace of a total of rows in namespaces.
const AnyNamespace = "*"

// makeTotalKey returns the key of the total to which a row belongs. Reports name the types of nodes and volumes without
// a price, and count workloads without requests: these stay distinct.
func makeTotalKey(r *ledger.Row) ledger.Key {
	k := r.Key
	if r.Unpriced == 0 {
		k.CapacityType, k.InstanceType = "", ""
	}
	if r.IsUnrequested() {
		return k
	}
	k.Workload = ""
	if k.Namespace != "" {
		k.Namespace = AnyNamespace
	}
	return k
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
