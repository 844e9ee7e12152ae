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
	groupBefore, groupAfter := newGroup("all", "", toPointers(before)), newGroup("all", "", toPointers(after))
	all := []Difference{}
	for _, d := range Definitions() {
		difference := Difference{Phase: d.Phase}
		if p, ok := groupBefore.Phases[d.Phase]; ok {
			difference.Before = &p
		}
		if p, ok := groupAfter.Phases[d.Phase]; ok {
			difference.After = &p
		}
		switch {
		case difference.Before == nil && difference.After == nil:
			continue
		case difference.Before != nil && difference.After != nil:
			difference.P50, difference.P90 = newChange(difference.Before.P50, difference.After.P50), newChange(difference.Before.P90, difference.After.P90)
		}
		all = append(all, difference)
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
	var selected []Timeline
	for i := range all {
		if pool == "" || all[i].Pool == pool {
			selected = append(selected, all[i])
		}
	}
	return selected
}
