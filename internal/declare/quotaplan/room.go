package quotaplan

import (
	"cmp"
	"slices"
)

// divideRoom divides the room, which is unused, among the holders that may have a part of it. It
// returns the level: the headroom of the holders that need no more than the others.
//
// Minimums come first, then refused demands that fit as a whole, the smallest first. So no
// demand, forged or real, takes a minimum from another namespace, or prevents a smaller demand.
// The rest makes the headrooms equal.
func (r *holding) divideRoom(room int64) (level int64) {
	var active []*holder
	for i := range r.holders {
		if h := &r.holders[i]; !h.leaving {
			active = append(active, h)
		}
	}
	meetDemands(active, meetMinimums(active, room))
	return r.levelParts(active, room)
}

// meetMinimums raises shares to their minimums, as far as possible, and returns the rest.
func meetMinimums(holders []*holder, left int64) int64 {
	lacks := func(h *holder) int64 { return max(0, h.minimum-h.baseAmount()) }
	ordered := slices.SortedStableFunc(slices.Values(holders), func(a, b *holder) int { return cmp.Compare(lacks(a), lacks(b)) })
	for _, h := range ordered {
		h.need = min(lacks(h), left)
		left -= h.need
	}
	return left
}

// meetDemands grants the rest to refused demands, each as a whole or not at all.
func meetDemands(holders []*holder, left int64) {
	type demand struct {
		by    *holder
		lacks int64
	}
	var all []demand
	for _, h := range holders {
		for _, amount := range h.demands {
			if lacks := amount - h.baseAmount(); h.counted && lacks > 0 {
				all = append(all, demand{h, lacks})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b demand) int { return cmp.Compare(a.lacks, b.lacks) })
	for _, d := range all {
		if more := d.lacks - d.by.need; more > 0 && more <= left {
			d.by.need += more
			left -= more
		}
	}
}

// levelParts sets each holder's part: its need or, if that is less, an equal part of the amount that
// remains after the larger needs.
func (r *holding) levelParts(holders []*holder, left int64) int64 {
	ordered := slices.SortedStableFunc(slices.Values(holders), func(a, b *holder) int { return cmp.Compare(b.need, a.need) })
	n := int64(len(ordered))
	for _, h := range ordered {
		if h.need <= left/r.grain/n*r.grain {
			break
		}
		h.part, h.fixed = h.need, true
		left -= h.need
		n--
	}
	if n == 0 {
		return 0
	}
	parts := r.splitEvenly(left, int(n))
	for _, h := range holders {
		if !h.fixed {
			h.part, parts = parts[0], parts[1:]
		}
	}
	return left / n
}
