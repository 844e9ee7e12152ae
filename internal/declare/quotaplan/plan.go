package quotaplan

import (
	"cmp"
	"math/bits"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Plan returns the next ledger: each namespace's share, computed from the present ledger and
// the observed state. It may be unchanged.
//
// A namespace may use as much as the largest of the ledger, the ResourceQuota and its status
// allows, so that much counts as taken: a share is granted only from resources that no
// namespace can use any more. A lowered share, on the other hand, counts as taken until the
// status shows the lower value. Hence, at any moment,
//
//	sum of max(ledger, spec.hard, status.hard, used) <= total
//
// unless it was more before; then it does not grow.
//
// The aim is equal headroom above the use of each resource, except for namespaces that need
// more: see divide. Shares do not change as long as each namespace has its need, and half of
// its equal headroom. So a tenant with constant use reaches a stable state, and one with
// changing use needs few changes. Each change updates two ResourceQuotas that the API server
// also updates, and the API server gives up on a ResourceQuota that changes too often.
//
// Minimums and demands only affect the division of the room. They are granted only from free
// resources, and so cannot violate the invariant, even if they are forged.
func Plan(total corev1.ResourceList, spaces []Space) map[string]corev1.ResourceList {
	next := map[string]corev1.ResourceList{}
	for _, s := range spaces {
		// A namespace that is leaving and was never in the ledger is left out.
		if !s.Leaving || s.Share != nil {
			next[s.Namespace] = corev1.ResourceList{}
		}
	}
	for name, quantity := range total {
		r := observeHolding(name, quantity, spaces)
		r.plan()
		for i, s := range spaces {
			if share, ok := next[s.Namespace]; ok {
				share[name] = r.toQuantity(r.holders[i].share)
			}
		}
	}
	return next
}

// holder is one namespace's state of one resource.
type holder struct {
	share, used int64
	// taken is the maximum that it can use at present.
	taken int64
	// counted reports whether its use is known, and settled whether its share is also in force:
	// otherwise its share does not change. A share that is being written to the cluster is not
	// changed, so that a late writer fails.
	leaving, counted, settled bool
	// minimum is the lower limit of its share. demands are the shares that would admit refused
	// objects.
	minimum int64
	demands []int64
	// need is the headroom that it gets before the rest is divided evenly, and part its
	// headroom after that. They are equal if fixed is set.
	need, part int64
	fixed      bool
}

// holding is the state of one resource in all namespaces.
type holding struct {
	measure
	total   int64
	holders []holder
}

func observeHolding(name corev1.ResourceName, total resource.Quantity, spaces []Space) *holding {
	r := &holding{measure: newMeasure(name, total)}
	r.total = r.roundDown(total)
	amount := func(list corev1.ResourceList) (int64, bool) {
		q, ok := list[name]
		return r.roundUp(q), ok
	}
	for _, s := range spaces {
		h := holder{leaving: s.Leaving}
		spec, _ := amount(s.Spec)
		hard, limited := amount(s.Hard)
		used, known := amount(s.Used)
		share, entered := amount(s.Share)
		if !entered {
			// This is the namespace's quota from before the ledger.
			share = spec
		}
		h.share, h.used = share, used
		h.minimum, _ = amount(s.Minimum)
		for _, list := range s.Demands {
			if demand, ok := amount(list); ok {
				h.demands = append(h.demands, demand)
			}
		}
		h.taken = max(share, spec, hard, used)
		h.counted = limited && known && !s.Leaving
		h.settled = h.counted && spec == share && hard == share
		r.holders = append(r.holders, h)
	}
	return r
}

// plan changes the holders' shares.
func (r *holding) plan() {
	// free can be granted at once; room is the part that existing objects do not use; planned
	// is the amount that will be taken in the settled state.
	free, room, planned := r.total, r.total, int64(0)
	for _, h := range r.holders {
		free -= h.taken
		room -= h.baseAmount()
		planned += max(h.share, h.baseAmount())
	}
	if room < 0 {
		r.curbShares()
		return
	}
	if free >= 0 {
		r.coverUse()
	}
	level, short := r.divideRoom(room), false
	for _, h := range r.holders {
		headroom := h.share - h.used
		short = short || h.counted && (headroom < h.need || 2*headroom < level)
		if !h.leaving && !h.counted {
			// This is reserved until the namespace is counted.
			free -= h.part
		}
	}
	if short || planned > r.total {
		r.shrinkShares()
	}
	if short || 4*free >= room {
		r.grantFree(free)
	}
}

// baseAmount returns a namespace's amount that cannot be given to others.
func (h *holder) baseAmount() int64 {
	if h.counted {
		return h.used
	}
	return h.taken
}

// coverUse raises shares to the use: it is taken anyway, and otherwise deleted objects could not
// be replaced.
func (r *holding) coverUse() {
	for i := range r.holders {
		if h := &r.holders[i]; h.settled {
			h.share = max(h.share, h.used)
		}
	}
}

// shrinkShares lowers the shares that are too large.
func (r *holding) shrinkShares() {
	for i := range r.holders {
		if h := &r.holders[i]; h.settled {
			h.share = min(h.share, h.used+h.part)
		}
	}
}

// curbShares handles a tenant whose use exceeds its quota, for example after the quota was lowered.
// Use within minimums is kept, the rest is divided in proportion to use, and no namespace can
// create new objects until its use has fallen enough.
func (r *holding) curbShares() {
	left, used := r.total, int64(0)
	for _, h := range r.holders {
		if h.counted {
			left -= h.keptUse()
			used += h.used - h.keptUse()
		} else {
			left -= h.taken
		}
	}
	for i := range r.holders {
		if h := &r.holders[i]; h.settled {
			h.share = min(h.share, h.keptUse()+computeProportion(max(left, 0), h.used-h.keptUse(), used))
		}
	}
}

// keptUse returns its use within its minimum.
func (h *holder) keptUse() int64 { return min(h.used, h.minimum) }

// computeProportion returns amount * part / whole, rounded down, for part <= whole.
func computeProportion(amount, part, whole int64) int64 {
	if whole == 0 {
		return 0
	}
	high, low := bits.Mul64(uint64(amount), uint64(part)) //nolint:gosec // amounts are never below zero
	quotient, _ := bits.Div64(high, low, uint64(whole))   //nolint:gosec // as above
	return int64(quotient)                                //nolint:gosec // no more than amount
}

// grantFree grants free resources to the holders with the least headroom first.
func (r *holding) grantFree(free int64) {
	var wanting []*holder
	for i := range r.holders {
		if h := &r.holders[i]; h.settled && h.share < h.used+h.part {
			wanting = append(wanting, h)
		}
	}
	slices.SortStableFunc(wanting, func(a, b *holder) int { return cmp.Compare(a.share-a.used, b.share-b.used) })
	for _, h := range wanting {
		if free <= 0 {
			return
		}
		granted := min(free, h.used+h.part-h.share)
		h.share += granted
		free -= granted
	}
}

func isEqual(a, b resource.Quantity) bool { return a.Cmp(b) == 0 }
