package timeline

import (
	"slices"

	"croft.dev/croft/internal/cost/ledger"
)

const (
	secondsPerHour = 3600
	// longestMeasure limits the time for which one measurement of usage counts. metrics-server needs two minutes for the first
	// one of a new pod.
	longestMeasure = 180
	// usageInterval is the interval at which usage is written to the journal: it changes for all pods each minute.
	usageInterval = 300
)

// Measure records that a pod uses CPU, in millionths, and memory, in MiB, at the given time. It counts since the
// measurement before, or since the beginning of the pod, for longestMeasure at most.
func (t *Timeline) Measure(uid string, cpu, memory, now int64) {
	phases := t.phases[Key{Pod, uid}]
	if len(phases) == 0 || phases[len(phases)-1].Until != 0 {
		return
	}
	from, usage := max(phases[0].From, now-longestMeasure), t.usage[uid]
	if n := len(usage); n > 0 {
		from = max(from, usage[n-1].Until)
	}
	for from < now {
		until := min(now, from-from%secondsPerHour+secondsPerHour)
		usage = addUsage(usage, ledger.Usage{From: from, Until: until, CPU: cpu * (until - from), Memory: memory * (until - from)})
		from = until
	}
	t.usage[uid], t.measured[uid] = usage, true
}

// addUsage adds usage to the entry that it continues, if both are in the same hour.
func addUsage(all []ledger.Usage, u ledger.Usage) []ledger.Usage {
	if n := len(all); n > 0 && all[n-1].Until == u.From && u.From%secondsPerHour != 0 {
		last := &all[n-1]
		last.Until, last.CPU, last.Memory = u.Until, last.CPU+u.CPU, last.Memory+u.Memory
		return all
	}
	return append(all, u)
}

// forgetUsage removes the usage before a time. The journal may have it until it is replaced.
func (t *Timeline) forgetUsage(before int64) {
	for uid, usage := range t.usage {
		kept := slices.DeleteFunc(usage, func(u ledger.Usage) bool { return u.Until <= before })
		if len(kept) == 0 {
			delete(t.usage, uid)
			continue
		}
		t.usage[uid] = kept
	}
}

// listMeasured returns the keys of the usage that Changes must return now.
func (t *Timeline) listMeasured() []Key {
	if t.seen-t.returned < usageInterval {
		return nil
	}
	t.returned = t.seen
	var keys []Key
	for uid := range t.measured {
		keys = append(keys, Key{Usage, uid})
	}
	clear(t.measured)
	return keys
}
