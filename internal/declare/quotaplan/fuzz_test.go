package quotaplan_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/internal/declare/quotaplan"
)

// world is a model of a cluster's quota: a tenant with its ledger, and a ResourceQuota in each
// namespace. Its methods model the API server, kube-controller-manager and two operators, one
// of which does not know yet that it no longer leads.
type world struct {
	testing.TB
	total      int64
	ledger     map[string]int64
	version    int
	namespaces map[string]*namespace
	operators  [2]*operator
	// bound is the maximum that may be taken: the total, or the amount taken when the
	// total was lowered or a namespace with objects was added.
	bound int64
	story []string
}

// namespace has amounts of one resource, or -1 for missing ones.
type namespace struct {
	spec, hard, used int64
	// counted is the use in the status, or -1 before it is counted.
	counted int64
	leaving bool
	version int
	// minimum is the declared minimum, and demand a reported refusal, which may be forged.
	minimum, demand int64
}

// operator is the state of an operator within a reconcile.
type operator struct {
	// ledger and version are the tenant as first read. seen are the namespaces, which are read
	// afterwards, one by one.
	ledger  map[string]int64
	version int
	seen    map[string]namespace
	// pending are writes to ResourceQuotas, each for the version that was read.
	pending map[string]write
}

type write struct {
	version int
	share   int64
}

func newWorld(t testing.TB, total int64) *world {
	return &world{TB: t, total: total, ledger: map[string]int64{}, namespaces: map[string]*namespace{},
		operators: [2]*operator{{}, {}}, bound: total}
}

// computeTaken returns the amount of a namespace. It ignores the objects in a newly added namespace
// until they are counted, since no plan can know them.
func (n *namespace) computeTaken(entry int64) int64 {
	if n.counted < 0 {
		return max(entry, n.spec, 0)
	}
	return max(entry, n.spec, n.hard, n.used)
}

func (w *world) sumTaken() int64 {
	sum := int64(0)
	for name, n := range w.namespaces {
		sum += n.computeTaken(w.ledger[name])
	}
	return sum
}

// updateBound is called after a change of the declaration.
func (w *world) updateBound() { w.bound = max(w.total, w.sumTaken()) }

func (w *world) checkBound() {
	w.Helper()
	taken := w.sumTaken()
	if taken > w.bound {
		w.Fatalf("%d can be used, and %d may:\n%s", taken, w.bound, w.formatHistory())
	}
	w.bound = max(w.total, taken)
}

// readTenant starts a reconcile: the tenant is read before its namespaces.
func (o *operator) readTenant(w *world) {
	o.ledger, o.version, o.seen, o.pending = maps.Clone(w.ledger), w.version, map[string]namespace{}, nil
}

func (o *operator) readNamespace(w *world, name string) {
	if n := w.namespaces[name]; n != nil && o.seen != nil {
		o.seen[name] = *n
	}
}

// planShares writes the ledger, if the tenant has not changed since it was read, and records the
// writes to the namespaces.
func (o *operator) planShares(w *world) {
	if o.seen == nil || o.version != w.version || len(o.seen) != len(w.namespaces) {
		return
	}
	amount := func(n int64) corev1.ResourceList {
		if n < 0 {
			return nil
		}
		return newResourceList(corev1.ResourcePods, strconv.FormatInt(n, 10))
	}
	var spaces []quotaplan.Space
	for _, name := range slices.Sorted(maps.Keys(o.seen)) {
		s := quotaplan.Space{Namespace: name, Leaving: o.seen[name].leaving}
		if entry, ok := o.ledger[name]; ok {
			s.Share = amount(entry)
		}
		s.Spec, s.Hard, s.Used = amount(o.seen[name].spec), amount(o.seen[name].hard), amount(o.seen[name].counted)
		s.Minimum, s.Demands = amount(o.seen[name].minimum), []corev1.ResourceList{amount(o.seen[name].demand)}
		spaces = append(spaces, s)
	}
	next := map[string]int64{}
	for name, entry := range quotaplan.Plan(amount(w.total), spaces) {
		next[name] = entry.Pods().Value()
	}
	o.expectMinimums(w, next)
	if !maps.Equal(next, w.ledger) {
		w.ledger = next
		w.version++
	}
	o.pending = map[string]write{}
	for name, n := range o.seen {
		switch {
		case n.leaving:
		case n.spec < 0:
			// A new ResourceQuota is created with a share of zero.
			o.pending[name] = write{n.version, 0}
		case n.spec != next[name]:
			o.pending[name] = write{n.version, next[name]}
		}
	}
	o.seen = nil
}

// expectMinimums expects no share to fall below a minimum if all minimums can be met, regardless of
// demands.
func (o *operator) expectMinimums(w *world, next map[string]int64) {
	w.Helper()
	room := w.total
	for name, n := range o.seen {
		base := max(n.counted, n.minimum)
		if n.leaving || n.counted < 0 || n.hard < 0 {
			base = n.computeTaken(o.ledger[name])
			if !n.leaving {
				base = max(base, n.minimum)
			}
		}
		room -= base
	}
	for name, share := range next {
		if n := o.seen[name]; room >= 0 && !n.leaving && share < n.minimum && share < o.ledger[name] {
			w.Fatalf("%s had %d, and is to have %d, less than its minimum %d:\n%s", name, o.ledger[name], share, n.minimum, w.formatHistory())
		}
	}
}

func (o *operator) writeNamespace(w *world, name string) {
	p, ok := o.pending[name]
	delete(o.pending, name)
	if n := w.namespaces[name]; ok && n != nil && n.version == p.version {
		n.spec = p.share
		n.version++
	}
}

// executeAction performs one action.
func (w *world) executeAction(action, which, amount byte) {
	name := string(rune('a' + which%4))
	n, o := w.namespaces[name], w.operators[which/4%2]
	defer w.recordAction(action, which, amount)
	switch action % actions {
	case 0:
		o.readTenant(w)
	case 1:
		o.readNamespace(w, name)
	case 2: // it reads its missing data now, and writes later
		if o.seen == nil {
			o.readTenant(w)
		}
		for name := range w.namespaces {
			if _, ok := o.seen[name]; !ok {
				o.readNamespace(w, name)
			}
		}
		o.planShares(w)
	case 3:
		o.writeNamespace(w, name)
	case 4: // one operator completes its reconcile
		w.runReconcile(o)
	case 5, 6: // admission: compare and swap
		if k := int64(amount % 8); n != nil && n.hard >= 0 && n.used+k <= n.hard {
			n.used += k
			n.counted = n.used
			n.version++
		}
	case 7: // an object is deleted, and counted
		if n != nil {
			n.used = max(0, n.used-int64(amount%8))
			if n.counted >= 0 {
				n.counted = n.used
			}
			n.version++
		}
	case 8, 9: // kube-controller-manager
		if n != nil && n.spec >= 0 {
			w.countUsage(n)
		}
	case 10: // the quota changes
		w.total = int64(amount % 50)
		w.version++
		w.updateBound()
	case 11: // the namespaces change
		switch {
		case n == nil:
			// An adopted namespace already has objects.
			w.namespaces[name] = &namespace{spec: -1, hard: -1, counted: -1, used: int64(amount % 4), version: w.version * 1000}
		case !n.leaving:
			n.leaving = true
		default:
			delete(w.namespaces, name)
		}
		w.version++
		w.updateBound()
	case 12: // a minimum is declared, which may be impossible to meet
		if n != nil {
			n.minimum = int64(amount % 16)
			w.version++
		}
	case 13: // an object is refused, or a refusal is forged
		if n != nil {
			n.demand = n.used + int64(amount%32)
		}
	}
}

// actions is the number of kinds of steps.
const actions = 14

// recordAction records an action and its result, and checks the invariants.
func (w *world) recordAction(action, which, amount byte) {
	w.Helper()
	line := fmt.Sprintf("%d/%d/%d: total %d, ledger %v;", action%actions, which%8, amount, w.total, w.ledger)
	for _, name := range slices.Sorted(maps.Keys(w.namespaces)) {
		line += fmt.Sprintf(" %s%+v", name, *w.namespaces[name])
	}
	w.story = append(w.story, line)
	w.checkBound()
}

// formatHistory returns the last 30 actions.
func (w *world) formatHistory() string { return strings.Join(w.story[max(0, len(w.story)-30):], "\n") }

// countUsage updates the status of a ResourceQuota like kube-controller-manager.
func (w *world) countUsage(n *namespace) {
	first := n.counted < 0
	n.hard, n.counted = n.spec, n.used
	n.version++
	if first {
		w.updateBound()
	}
}

// runReconcile runs an operator's reconcile without interruption.
func (w *world) runReconcile(o *operator) {
	o.readTenant(w)
	for name := range w.namespaces {
		o.readNamespace(w, name)
	}
	o.planShares(w)
	for name := range w.namespaces {
		o.writeNamespace(w, name)
	}
}

// completeActions completes all pending actions. It expects that to take few steps, and the
// namespaces to have about the same headroom afterwards.
func (w *world) completeActions() {
	w.Helper()
	for range 12 {
		w.runReconcile(w.operators[0])
		w.checkBound()
		for _, n := range w.namespaces {
			if n.spec >= 0 {
				w.countUsage(n)
			}
		}
	}
	before := w.version
	w.runReconcile(w.operators[0])
	if w.version != before {
		w.Fatalf("it does not settle:\n%s", w.formatHistory())
	}
	w.expectFairShares()
}

// expectFairShares expects each namespace to have its minimum, if all can be met; its refused
// demand, if it fits into the rest; and otherwise about the same headroom as the others.
func (w *world) expectFairShares() {
	w.Helper()
	room, needs, wishes, active := w.total, int64(0), int64(0), int64(0)
	for name, n := range w.namespaces {
		if n.leaving {
			room -= n.computeTaken(w.ledger[name])
			continue
		}
		room -= n.used
		active++
		need := max(0, n.minimum-n.used)
		needs += need
		wishes += max(0, n.demand-n.used-need)
	}
	for name, n := range w.namespaces {
		headroom := w.ledger[name] - n.used
		switch even := max(0, room-needs-wishes) / max(active, 1); {
		case n.leaving || room < 0:
		case needs <= room && w.ledger[name] < n.minimum:
			w.Fatalf("%s has %d, less than its minimum %d:\n%s", name, w.ledger[name], n.minimum, w.formatHistory())
		case needs+wishes <= room && w.ledger[name] < n.demand:
			w.Fatalf("%s has %d, and %d were asked for, which there are:\n%s", name, w.ledger[name], n.demand, w.formatHistory())
		case 2*headroom < even:
			w.Fatalf("%s uses %d and has %d, where %d are left for %d:\n%s", name, n.used, w.ledger[name], room, active, w.formatHistory())
		}
	}
}

// FuzzPlan tries to exceed the quota, by any events in any order.
func FuzzPlan(f *testing.F) {
	f.Add([]byte{11, 0, 0, 11, 1, 0, 4, 0, 0, 8, 0, 0, 8, 1, 0, 4, 0, 0, 8, 0, 0, 5, 0, 7})
	f.Fuzz(func(t *testing.T, moves []byte) {
		w := newWorld(t, 20)
		for moves = moves[:min(len(moves), 900)]; len(moves) >= 3; moves = moves[3:] {
			w.executeAction(moves[0], moves[1], moves[2])
		}
		w.completeActions()
	})
}

// TestPlanNeverExceedsQuota runs the model of FuzzPlan with random events.
func TestPlanNeverExceedsQuota(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t, 20)
		for range 300 {
			action := byte(random.IntN(actions))
			if action >= 10 && action < 13 && random.IntN(10) > 0 { // users change the declaration less often
				action = byte(random.IntN(10))
			}
			w.executeAction(action, byte(random.IntN(8)), byte(random.IntN(256)))
		}
		w.completeActions()
	}
}
