// Package timeline records from when until when the objects existed that cost money, or among whose
// owners a cost is divided, while they are observed. It survives restarts of its process as a list of
// entries. It does no I/O.
//
// Times are whole seconds since 1970. Times in which no process observed the cluster are gaps. An object
// that disappeared or changed in a gap did so in the middle of the gap, by estimate.
package timeline

import (
	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/price"
)

// Kind is a kind of objects.
type Kind string

// The kinds of objects.
const (
	Node         Kind = "node"
	Pod          Kind = "pod"
	Volume       Kind = "volume"
	LoadBalancer Kind = "loadBalancer"
	// Owner is a namespace with its tenant.
	Owner Kind = "owner"
	// Pool is a pool that only one tenant is declared to use.
	Pool Kind = "pool"
	// Usage is the usage of a pod.
	Usage Kind = "usage"
)

// Key identifies an object. UID is the API server's, or the pool's name.
type Key struct {
	Kind Kind   `json:"kind"`
	UID  string `json:"uid"`
}

// Facts are the properties of an object on which costs depend. Each kind has some of them, with the
// meaning that they have in the ledger.
type Facts struct {
	// Name is the name of a node.
	Name         string `json:"name,omitempty"`
	Pool         string `json:"pool,omitempty"`
	CapacityType string `json:"capacityType,omitempty"`
	// InstanceType is the StorageClass of a volume.
	InstanceType string `json:"instanceType,omitempty"`
	Zone         string `json:"zone,omitempty"`
	Region       string `json:"region,omitempty"`
	Namespace    string `json:"namespace,omitempty"`
	Workload     string `json:"workload,omitempty"`
	// Node is the name of a pod's node.
	Node     string `json:"node,omitempty"`
	Tenant   string `json:"tenant,omitempty"`
	CostCode string `json:"costCode,omitempty"`
	CPU      int64  `json:"cpu,omitempty"`
	// Memory is the size of a volume.
	Memory int64       `json:"memory,omitempty"`
	Price  price.Price `json:"price,omitzero"`
}

// Phase is a time in which an object's facts did not change.
type Phase struct {
	Facts
	From int64 `json:"from"`
	// Until is 0 while the phase lasts.
	Until int64 `json:"until,omitempty"`
	// Estimated means that the object may have ended or changed earlier or later.
	Estimated bool `json:"estimated,omitempty"`
}

// gap is a time in which no process observed the cluster.
type gap struct {
	From  int64 `json:"from"`
	Until int64 `json:"until"`
}

// Timeline has the phases of all objects that a later hour needs.
type Timeline struct {
	phases map[Key][]Phase
	gaps   []gap
	// currency is the currency of all prices.
	currency string
	// seen is the last time at which the cluster was observed.
	seen int64
	// gap is the current gap while the objects are read after a start, and nil later.
	gap *gap
	// found are the objects that were observed after Begin, until Finish.
	found map[Key]bool
	// changed are the keys whose phases Changes has not returned yet.
	changed map[Key]bool
	// usage is the usage of pods, by their UIDs, in the order of time. measured are the pods whose usage Changes has not
	// returned since the time returned.
	usage    map[string][]ledger.Usage
	measured map[string]bool
	returned int64
}

// New returns an empty timeline.
func New() *Timeline {
	return &Timeline{phases: map[Key][]Phase{}, changed: map[Key]bool{}, usage: map[string][]ledger.Usage{}, measured: map[string]bool{}}
}

// Begin begins to observe at the given time. Since the last observation there is a gap. Observe must then
// be called for each existing object, and then Finish.
func (t *Timeline) Begin(now int64) {
	t.gap = &gap{From: t.seen, Until: max(now, t.seen)}
	t.gaps = append(t.gaps, *t.gap)
	t.seen, t.found = t.gap.Until, map[Key]bool{}
}

// Finish ends the objects that disappeared in the gap.
func (t *Timeline) Finish() {
	for key, phases := range t.phases {
		if phases[len(phases)-1].Until == 0 && !t.found[key] {
			t.change(key, nil, t.gap.Until)
		}
	}
	t.gap, t.found = nil, nil
}

// ListPools returns the pools that only one tenant is declared to use now.
func (t *Timeline) ListPools() []string {
	var pools []string
	for key, phases := range t.phases {
		if key.Kind == Pool && phases[len(phases)-1].Until == 0 {
			pools = append(pools, key.UID)
		}
	}
	return pools
}

// Start returns the time of the first observation, if it is not forgotten.
func (t *Timeline) Start() int64 {
	if len(t.gaps) == 0 || t.gaps[0].From != 0 {
		return 0
	}
	return t.gaps[0].Until
}

// See records that the cluster is observed at the given time.
func (t *Timeline) See(now int64) { t.seen = max(t.seen, now) }

// Observe records the facts of an object at the given time. from is the object's beginning, which counts
// if the object is not known yet, and until its end, or 0.
func (t *Timeline) Observe(key Key, facts Facts, from, until, now int64) {
	phases := t.phases[key]
	n := len(phases)
	if t.gap != nil {
		defer func() { t.found[key] = true }()
	}
	switch {
	case n == 0:
		t.store(key, append(phases, Phase{Facts: facts, From: from}))
	case phases[n-1].Until != 0 && until != 0:
		return
	case phases[n-1].Until != 0: // it is back
		t.store(key, append(phases, Phase{Facts: facts, From: max(now, phases[n-1].Until)}))
	case isRegistration(key, &phases[n-1], facts):
		// Its instance is the node's since its launch.
		phases[n-1].Facts = facts
		t.store(key, phases)
	case phases[n-1].Facts != facts:
		t.change(key, &facts, now)
	}
	if until != 0 {
		t.endAt(key, until)
	}
}

// isRegistration reports whether the node of an instance has registered.
func isRegistration(key Key, last *Phase, facts Facts) bool {
	return key.Kind == Node && last.CPU == 0 && last.Memory == 0 && (facts.CPU > 0 || facts.Memory > 0)
}

// End records that an object ended at the given time.
func (t *Timeline) End(key Key, now int64) {
	if phases := t.phases[key]; len(phases) > 0 && phases[len(phases)-1].Until == 0 {
		t.change(key, nil, now)
	}
}

// EndUnseen is like End for an object whose end was not observed.
func (t *Timeline) EndUnseen(key Key, now int64) {
	if phases := t.phases[key]; len(phases) > 0 && phases[len(phases)-1].Until == 0 {
		phases[len(phases)-1].Estimated = true
		t.change(key, nil, now)
	}
}

// endAt ends the last phase at a time that the object itself names.
func (t *Timeline) endAt(key Key, until int64) {
	phases := t.phases[key]
	last := &phases[len(phases)-1]
	last.Until = max(until, last.From)
	t.store(key, phases)
}

// Drop removes an object, since another one has its phases.
func (t *Timeline) Drop(key Key) {
	if _, found := t.phases[key]; found {
		t.store(key, nil)
	}
}

func (t *Timeline) store(key Key, phases []Phase) {
	t.changed[key] = true
	if len(phases) == 0 {
		delete(t.phases, key)
		return
	}
	t.phases[key] = phases
}

// change ends the last phase, and begins one with other facts if there are any. If the object has not been
// observed since a gap, the middle of the gap is the time of the change, and the phases in the gap are
// estimated.
func (t *Timeline) change(key Key, facts *Facts, now int64) {
	phases := t.phases[key]
	if t.gap == nil || t.found[key] {
		phases = cut(phases, now)
		if facts != nil {
			phases = append(phases, Phase{Facts: *facts, From: max(now, startOf(phases))})
		}
		t.store(key, phases)
		return
	}
	last := phases[len(phases)-1]
	from := max(t.gap.From, last.From)
	middle := from + (t.gap.Until-from)/2
	phases = cut(phases, from)
	phases = addPhase(phases, Phase{Facts: last.Facts, From: from, Until: middle, Estimated: true})
	if facts != nil {
		phases = addPhase(phases, Phase{Facts: *facts, From: middle, Until: t.gap.Until, Estimated: true})
		phases = append(phases, Phase{Facts: *facts, From: t.gap.Until})
	}
	if len(phases) == 0 {
		phases = append(phases, Phase{Facts: last.Facts, From: from, Until: from})
	}
	t.store(key, phases)
}

// startOf returns the beginning of the last phase, or 0.
func startOf(phases []Phase) int64 {
	if len(phases) == 0 {
		return 0
	}
	return phases[len(phases)-1].From
}

// cut ends the last phase. A phase without a duration is removed, unless it is the only one.
func cut(phases []Phase, at int64) []Phase {
	last := &phases[len(phases)-1]
	last.Until = max(at, last.From)
	if last.Until == last.From && len(phases) > 1 {
		return phases[:len(phases)-1]
	}
	return phases
}

func addPhase(phases []Phase, p Phase) []Phase {
	if p.Until <= p.From {
		return phases
	}
	return append(phases, p)
}

// Reprice applies new prices to all existing objects. find returns the price for facts. In another currency
// it applies to all phases, since amounts of two currencies have no sum.
func (t *Timeline) Reprice(currency string, find func(Kind, Facts) price.Price, now int64) {
	isOther := t.currency != "" && t.currency != currency
	t.currency = currency
	for key, phases := range t.phases {
		if isOther {
			for i := range phases {
				phases[i].Price = find(key.Kind, phases[i].Facts)
			}
			t.store(key, phases)
			continue
		}
		last := phases[len(phases)-1]
		if last.Until != 0 {
			continue
		}
		facts := last.Facts
		if facts.Price = find(key.Kind, facts); facts != last.Facts {
			t.change(key, &facts, now)
		}
	}
}

// Forget removes the phases, the usage and the gaps that ended before a time.
func (t *Timeline) Forget(before int64) {
	for key, phases := range t.phases {
		first := 0
		for first < len(phases) && phases[first].Until != 0 && phases[first].Until <= before {
			first++
		}
		if first > 0 {
			t.store(key, phases[first:])
		}
	}
	var kept []gap
	for _, g := range t.gaps {
		if g.Until > before {
			kept = append(kept, g)
		}
	}
	t.gaps = kept
	t.forgetUsage(before)
}

// ListTenants returns the tenants of the namespaces that exist, by the name of the namespace. The tenant
// of a platform namespace is empty.
func (t *Timeline) ListTenants() map[string]string {
	tenants := map[string]string{}
	for key, phases := range t.phases {
		if last := &phases[len(phases)-1]; key.Kind == Owner && last.Until == 0 {
			tenants[last.Namespace] = last.Tenant
		}
	}
	return tenants
}

// ListExclusive returns the pools that only one tenant was declared to use in a whole period, with these
// tenants.
func (t *Timeline) ListExclusive(period ledger.Span) map[string]string {
	pools := map[string]string{}
	for key, phases := range t.phases {
		for _, p := range phases {
			if key.Kind == Pool && p.From <= period.From.Unix() && (p.Until == 0 || p.Until >= period.Until.Unix()) {
				pools[p.Pool] = p.Tenant
			}
		}
	}
	return pools
}
