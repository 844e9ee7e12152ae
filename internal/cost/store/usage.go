package store

import (
	"math/bits"

	"croft.dev/croft/internal/cost/ledger"
)

// precision is the number of significant bits of usage in a file. Exact usage, which differs in each hour, would need more space
// than all other figures.
type precision int

const (
	// finePrecision has an error of 1.6 % at most.
	finePrecision precision = 6
	// hourPrecision has an error of 12.5 % at most. It is for the file with the hours of a day, since most rows are in such
	// files. The sum of the day is computed before.
	hourPrecision precision = 3
)

// choosePrecision returns the precision of a file with some records.
func choosePrecision(records int) precision {
	if records <= mostPlainRecords {
		return finePrecision
	}
	return hourPrecision
}

// pack returns a number for usage that grows with its logarithm: usage changes little from one hour to the next.
func (p precision) pack(usage int64) int64 {
	if usage < 1<<p {
		return usage
	}
	shift := bits.Len64(uint64(usage)) - int(p) //nolint:gosec // positive
	return int64(shift)<<(p-1) + (usage>>(shift-1)+1)>>1
}

// unpack returns the usage for a number.
func (p precision) unpack(number int64) int64 {
	if number < 1<<p {
		return number
	}
	shift := number>>(p-1) - 1
	return (number - shift<<(p-1)) << shift
}

// predict returns the numbers of usage that is as high as requests. Files have the differences, which are small, since most
// workloads use a similar part of their requests in each hour. As with predictWeight, the factors belong to the form of files.
func (p precision) predict(r *ledger.Row) (cpu, memory int64) {
	if r.Measured == 0 {
		return 0, 0
	}
	return p.pack(r.CPU / 1000), p.pack(r.Memory >> 10)
}

// packUsage returns the usage of a row as in files.
func (p precision) packUsage(r *ledger.Row) (cpu, memory int64) {
	cpu, memory = p.predict(r)
	return p.pack(r.UsedCPU) - cpu, p.pack(r.UsedMemory) - memory
}

// unpackUsage replaces the usage of a row, which is as in files.
func (p precision) unpackUsage(r *ledger.Row) {
	cpu, memory := p.predict(r)
	r.UsedCPU, r.UsedMemory = p.unpack(r.UsedCPU+cpu), p.unpack(r.UsedMemory+memory)
}
