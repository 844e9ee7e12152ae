package ledger

// addUsage adds the usage of a pod in a part of its time.
func (r *Row) addUsage(usage []Usage, part seconds) {
	r.Unmeasured += part.length()
	for i := range usage {
		u := &usage[i]
		known := seconds{u.From, u.Until}
		length := known.intersect(part).length()
		if length == 0 {
			continue
		}
		r.Measured += length
		r.Unmeasured -= length
		r.usedCPU += u.CPU * length / known.length()
		r.usedMemory += u.Memory * length / known.length()
	}
}

// addUsageOf adds the usage of a part of the row.
func (r *Row) addUsageOf(part *Row) {
	r.usedCPU += part.usedCPU
	r.usedMemory += part.usedMemory
	r.Measured += part.Measured
	r.Unmeasured += part.Unmeasured
}

// roundUsage sets the usage of a complete row. Whole seconds of a CPU and of a GiB take a third of the space of exact
// figures in the files of the ledger.
func (r *Row) roundUsage() {
	r.UsedCPU, r.UsedMemory = (r.usedCPU+500_000)/1_000_000, (r.usedMemory+512)>>10
	r.usedCPU, r.usedMemory = 0, 0
}
