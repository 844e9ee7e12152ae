package quota

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"croft.dev/croft/internal/declare/quotaplan"
	"croft.dev/croft/internal/observe/refusals"
)

// perNamespace is the maximum number of remembered demands of one namespace.
const perNamespace = 16

// demand is the need of a namespace whose object was refused.
type demand struct {
	// share is the share that the namespace needs for the object.
	share        corev1.ResourceList
	first, until time.Time
	forget       clock.Timer
}

// recordRefusal remembers an object's refusal until its controller has had time to retry, and then
// calls expired. It reports whether the demand counts.
func (q *Quota) recordRefusal(e *corev1.Event, expired func()) bool {
	refusal, ok := quotaplan.ParseRefusal(e.Message)
	if !ok || !refusals.IsGenuine(e) {
		return false
	}
	now := q.clock.Now()
	first, last := refusals.FindObservedSpan(e, now)
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.demands[e.Namespace]
	known := all[e.InvolvedObject.UID]
	if known != nil && known.first.Before(first) {
		first = known.first
	}
	until := refusals.Expiry(first, last)
	if !until.After(now) || known != nil && until.Before(known.until) {
		return false
	}
	if all == nil {
		all = map[types.UID]*demand{}
		q.demands[e.Namespace] = all
	}
	if known != nil {
		known.forget.Stop()
	} else if len(all) >= perNamespace {
		q.dropDemand(all)
	}
	d := &demand{share: refusal.Demand(), first: first, until: until}
	namespace, uid := e.Namespace, e.InvolvedObject.UID
	d.forget = q.clock.AfterFunc(until.Sub(now), func() {
		q.forgetDemand(namespace, uid, d)
		expired()
	})
	all[uid] = d
	return true
}

// dropDemand makes room by dropping the demand that expires first.
func (q *Quota) dropDemand(all map[types.UID]*demand) {
	var next types.UID
	for uid, d := range all {
		if o := all[next]; o == nil || d.until.Before(o.until) {
			next = uid
		}
	}
	all[next].forget.Stop()
	delete(all, next)
}

func (q *Quota) forgetDemand(namespace string, uid types.UID, d *demand) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if all := q.demands[namespace]; all[uid] == d {
		delete(all, uid)
		if len(all) == 0 {
			delete(q.demands, namespace)
		}
	}
}

// listDemands returns the recent demands of a namespace.
func (q *Quota) listDemands(namespace string) []corev1.ResourceList {
	q.mu.Lock()
	defer q.mu.Unlock()
	var all []corev1.ResourceList
	for _, d := range q.demands[namespace] {
		all = append(all, d.share)
	}
	return all
}
