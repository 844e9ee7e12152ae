package latency

// Difference compares a phase of some nodes with the same phase of others.
type Difference struct {
	Phase Phase `json:"phase"`
	// Before and After are nil if no node of that side has the phase.
	Before *Percentiles `json:"before,omitempty"`
	After  *Percentiles `json:"after,omitempty"`
	// P50 and P90 are absent unless both sides have the phase.
	P50 *Change `json:"p50,omitempty"`
	P90 *Change `json:"p90,omitempty"`
}

// Change is the change from one number of seconds to another.
type Change struct {
	Seconds float64 `json:"seconds"`
	// Ratio is after divided by before. It is absent if before is 0.
	Ratio *float64 `json:"ratio,omitempty"`
}

// Compare compares two sets of nodes, by phase. Phases that no node has are left out.
func Compare(before, after []Timeline) []Difference {
	was, is := newGroup("all", "", toPointers(before)), newGroup("all", "", toPointers(after))
	all := []Difference{}
	for _, d := range Definitions() {
		of := Difference{Phase: d.Phase}
		if p, known := was.Phases[d.Phase]; known {
			of.Before = &p
		}
		if p, known := is.Phases[d.Phase]; known {
			of.After = &p
		}
		switch {
		case of.Before == nil && of.After == nil:
			continue
		case of.Before != nil && of.After != nil:
			of.P50, of.P90 = newChange(of.Before.P50, of.After.P50), newChange(of.Before.P90, of.After.P90)
		}
		all = append(all, of)
	}
	return all
}

func newChange(from, to float64) *Change {
	c := &Change{Seconds: to - from}
	if from > 0 {
		ratio := to / from
		c.Ratio = &ratio
	}
	return c
}

func toPointers(all []Timeline) []*Timeline {
	to := make([]*Timeline, len(all))
	for i := range all {
		to[i] = &all[i]
	}
	return to
}

// FilterByPool returns the nodes of a pool, or all if it is empty.
func FilterByPool(all []Timeline, pool string) []Timeline {
	var of []Timeline
	for i := range all {
		if pool == "" || all[i].Pool == pool {
			of = append(of, all[i])
		}
	}
	return of
}
