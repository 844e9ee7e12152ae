package quotaplan

import (
	"cmp"
	"math/bits"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Plan returns the next ledger: what each namespace's share is to be, given what
// the ledger says now and what was observed. It may be the same as before.
//
// A namespace may come to use whatever the ledger, the ResourceQuota or its status
// give it, whichever is most, so that much counts as taken: a share is granted
// only from what nobody can use any more. What Plan takes away, on the other hand,
// stays taken until the status says so. Hence, at any moment,
//
//	sum of max(ledger, spec.hard, status.hard, used) <= total
//
// unless it was more before; then it does not grow.
//
// The aim is that all have the same headroom, what is used of a resource being
// left alone, but for those that need more: see divide. Nothing is moved as long as
// each namespace has what it needs, and half of the headroom that would be its
// own, so that a tenant whose use does not change settles down, and one whose use
// does is asked for few moves: each is two changes to a ResourceQuota under the
// hands of the API server, which gives up on one that changes too often.
//
// Minimums and demands decide only how the room is divided. They are never granted
// from anything but what is free, and so cannot break the above, whoever wrote
// them.
func Plan(total corev1.ResourceList, spaces []Space) map[string]corev1.ResourceList {
	next := map[string]corev1.ResourceList{}
	for _, s := range spaces {
		// One that is leaving without ever having been in the ledger stays out.
		if !s.Leaving || s.Share != nil {
			next[s.Namespace] = corev1.ResourceList{}
		}
	}
	for name, quantity := range total {
		r := observe(name, quantity, spaces)
		r.plan()
		for i, s := range spaces {
			if share, ok := next[s.Namespace]; ok {
				share[name] = r.quantity(r.holders[i].share)
			}
		}
	}
	return next
}

// holder is what one namespace has of one resource.
type holder struct {
	share, used int64
	// taken is the most that it can come to use.
	taken int64
	// counted says that what it uses is known, settled, that besides the share is in
	// force: only then does anything change for it. A share that is on its way
	// to the cluster is not touched, so that whoever is late in writing it comes
	// too late.
	leaving, counted, settled bool
	// minimum is what its share is not to fall below. demands are shares that would
	// let in what was refused.
	minimum int64
	demands []int64
	// need is the headroom that it gets before the rest is divided evenly, and part
	// what it should have beyond what it uses. They are the same if fixed.
	need, part int64
	fixed      bool
}

// holding is one resource.
type holding struct {
	measure
	total   int64
	holders []holder
}

func observe(name corev1.ResourceName, total resource.Quantity, spaces []Space) *holding {
	r := &holding{measure: measureOf(name, total)}
	r.total = r.atMost(total)
	amount := func(list corev1.ResourceList) (int64, bool) {
		q, ok := list[name]
		return r.atLeast(q), ok
	}
	for _, s := range spaces {
		h := holder{leaving: s.Leaving}
		spec, _ := amount(s.Spec)
		hard, limited := amount(s.Hard)
		used, known := amount(s.Used)
		share, entered := amount(s.Share)
		if !entered {
			// What the namespace has from before there was a ledger.
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
	// free could be granted at once; room is what will never be used by what is
	// there; planned is what will be taken when everything has settled.
	free, room, planned := r.total, r.total, int64(0)
	for _, h := range r.holders {
		free -= h.taken
		room -= h.base()
		planned += max(h.share, h.base())
	}
	if room < 0 {
		r.curb()
		return
	}
	if free >= 0 {
		r.cover()
	}
	level, short := r.divide(room), false
	for _, h := range r.holders {
		headroom := h.share - h.used
		short = short || h.counted && (headroom < h.need || 2*headroom < level)
		if !h.leaving && !h.counted {
			// Reserved for when it is.
			free -= h.part
		}
	}
	if short || planned > r.total {
		r.shrink()
	}
	if short || 4*free >= room {
		r.grant(free)
	}
}

// base is what a namespace has in any case.
func (h *holder) base() int64 {
	if h.counted {
		return h.used
	}
	return h.taken
}

// cover gives to those that use more than their share what they use: it is taken
// in any case, and without it nothing that goes could be replaced.
func (r *holding) cover() {
	for i := range r.holders {
		if h := &r.holders[i]; h.settled {
			h.share = max(h.share, h.used)
		}
	}
}

// shrink takes from those that have more than they should.
func (r *holding) shrink() {
	for i := range r.holders {
		if h := &r.holders[i]; h.settled {
			h.share = min(h.share, h.used+h.part)
		}
	}
}

// curb is for a tenant that uses more than its quota, as after the quota was
// lowered: what is used within minimums is left alone, the rest is divided in
// proportion to use, and nobody can make anything new until enough is gone.
func (r *holding) curb() {
	left, used := r.total, int64(0)
	for _, h := range r.holders {
		if h.counted {
			left -= h.kept()
			used += h.used - h.kept()
		} else {
			left -= h.taken
		}
	}
	for i := range r.holders {
		if h := &r.holders[i]; h.settled {
			h.share = min(h.share, h.kept()+proportion(max(left, 0), h.used-h.kept(), used))
		}
	}
}

// kept is what it uses within its minimum.
func (h *holder) kept() int64 { return min(h.used, h.minimum) }

// proportion is amount * part / whole, rounded down, where part <= whole.
func proportion(amount, part, whole int64) int64 {
	if whole == 0 {
		return 0
	}
	high, low := bits.Mul64(uint64(amount), uint64(part)) //nolint:gosec // amounts are never below zero
	quotient, _ := bits.Div64(high, low, uint64(whole))   //nolint:gosec // as above
	return int64(quotient)                                //nolint:gosec // no more than amount
}

// grant gives away what is free, to those with the least headroom first.
func (r *holding) grant(free int64) {
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

func equal(a, b resource.Quantity) bool { return a.Cmp(b) == 0 }
