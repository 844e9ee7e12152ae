package quota

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"croft.dev/croft/internal/quotaplan"
)

const (
	// reason is that of the events by which the controllers of ReplicaSets, Jobs,
	// StatefulSets, DaemonSets and CronJobs say that they may not create an object.
	reason = "FailedCreate"
	// perNamespace is the maximum number of remembered demands of one namespace.
	perNamespace = 16
)

// demand is the need of a refused object.
type demand struct {
	// share is the share that the namespace needs for it.
	share        corev1.ResourceList
	first, until time.Time
	forget       *time.Timer
}

// patience is the time for which a demand counts after the refusal: until its controller
// has tried again. Controllers back off for about as long as they have tried already,
// and for at most a thousand seconds.
func patience(age time.Duration) time.Duration {
	return min(age, 19*time.Minute) + time.Minute
}

// note remembers an object's refusal, and calls expired when it no longer counts. It
// reports whether the demand counts at all.
func (q *Quota) note(e *corev1.Event, now time.Time, expired func()) bool {
	refusal, ok := quotaplan.ParseRefusal(e.Message)
	if !ok {
		return false
	}
	first, last := seen(e, now)
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.demands[e.Namespace]
	known := all[e.InvolvedObject.UID]
	if known != nil && known.first.Before(first) {
		first = known.first
	}
	until := last.Add(patience(last.Sub(first)))
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
		q.drop(all)
	}
	d := &demand{share: refusal.Demand(), first: first, until: until}
	namespace, uid := e.Namespace, e.InvolvedObject.UID
	d.forget = time.AfterFunc(until.Sub(now), func() {
		q.forget(namespace, uid, d)
		expired()
	})
	all[uid] = d
	return true
}

// drop makes room by forgetting the demand that would be forgotten next.
func (q *Quota) drop(all map[types.UID]*demand) {
	var next types.UID
	for uid, d := range all {
		if o := all[next]; o == nil || d.until.Before(o.until) {
			next = uid
		}
	}
	all[next].forget.Stop()
	delete(all, next)
}

func (q *Quota) forget(namespace string, uid types.UID, d *demand) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if all := q.demands[namespace]; all[uid] == d {
		delete(all, uid)
		if len(all) == 0 {
			delete(q.demands, namespace)
		}
	}
}

// demandsIn are the recent demands in a namespace.
func (q *Quota) demandsIn(namespace string) []corev1.ResourceList {
	q.mu.Lock()
	defer q.mu.Unlock()
	var all []corev1.ResourceList
	for _, d := range q.demands[namespace] {
		all = append(all, d.share)
	}
	return all
}

// seen is when an event was seen first and last, none of it in the future: a clock
// may be wrong, and an event forged.
func seen(e *corev1.Event, now time.Time) (first, last time.Time) {
	times := []time.Time{e.CreationTimestamp.Time, e.FirstTimestamp.Time, e.LastTimestamp.Time, e.EventTime.Time}
	if e.Series != nil {
		times = append(times, e.Series.LastObservedTime.Time)
	}
	times = slices.DeleteFunc(times, time.Time.IsZero)
	if len(times) == 0 {
		return now, now
	}
	earlier := func(t time.Time) time.Time {
		if t.After(now) {
			return now
		}
		return t
	}
	return earlier(slices.MinFunc(times, time.Time.Compare)), earlier(slices.MaxFunc(times, time.Time.Compare))
}
