package store

import (
	"math/bits"
	"time"

	"croft.dev/croft/internal/cost/ledger"
)

// usageBits is the number of significant bits of usage in files: its error is 1.6 % at most. Exact usage, which differs in each
// hour, would need more space than all other figures. Totals are the exact sums of the rounded rows.
const usageBits = 6

// packUsage returns a number for usage that grows with its logarithm: usage changes little from one hour to the next.
func packUsage(usage int64) int64 {
	if usage < 1<<usageBits {
		return usage
	}
	shift := bits.Len64(uint64(usage)) - usageBits //nolint:gosec // positive
	return int64(shift)<<(usageBits-1) + (usage>>(shift-1)+1)>>1
}

// unpackUsage returns the usage for a number.
func unpackUsage(number int64) int64 {
	if number < 1<<usageBits {
		return number
	}
	shift := number>>(usageBits-1) - 1
	return (number - shift<<(usageBits-1)) << shift
}

// predictUsage returns the numbers of usage that is as high as requests. Files have the differences, which are small, since
// most workloads use a similar part of their requests in each hour. As with predictWeight, the factors belong to the form of files.
func predictUsage(r *ledger.Row) (cpu, memory int64) {
	if r.Measured == 0 {
		return 0, 0
	}
	return packUsage(r.CPU / 1000), packUsage(r.Memory >> 10)
}

// roundUsage rounds the usage of rows as files do.
func roundUsage(rows []ledger.Row) {
	for i := range rows {
		row := &rows[i]
		row.UsedCPU, row.UsedMemory = unpackUsage(packUsage(row.UsedCPU)), unpackUsage(packUsage(row.UsedMemory))
	}
}

// addUnmeasured returns a visit of rows whose usage is unknown if the file has none. The number of their pods is unknown,
// too: each row counts as one.
func (f *recordFile) addUnmeasured(visit func(record int, row *ledger.Row) error) func(record int, row *ledger.Row) error {
	if !f.lacksUsage {
		return visit
	}
	return func(record int, row *ledger.Row) error {
		if row.Resource == ledger.NodeResource && (row.Kind == ledger.Tenant || row.Kind == ledger.Platform) {
			row.Unmeasured = int64(f.records[record].Until.Sub(f.records[record].From) / time.Second)
		}
		return visit(record, row)
	}
}
