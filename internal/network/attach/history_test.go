package attach

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"croft.dev/croft/api/v1alpha1"
)

// world is a small model of a cluster and an account. Calls and responses are lost, created
// interfaces are not listed for a while, and instances and the operator may stop at any
// moment.
type world struct {
	*rand.Rand
	now    time.Time
	serial int
	claims map[string]*Claim
	phases map[string]Phase
	// ready is the time at which an instance starts to run.
	ready      map[string]time.Time
	interfaces map[string]*Interface
	// seen is the time from which an interface is listed, done the time at which its attachment
	// is complete.
	seen, done map[string]time.Time
	tokens     map[string]string
	// The operator's memory.
	orphans  map[string]time.Time
	attempts map[string]int
	// pending are the interfaces that the operator has created, with their creation times, by Key.
	pending map[string]pending
}

type pending struct {
	id    string
	since time.Time
}

func newWorld(seed uint64) *world {
	return &world{
		Rand: rand.New(rand.NewPCG(seed, 1)), now: epoch, claims: map[string]*Claim{}, phases: map[string]Phase{}, ready: map[string]time.Time{},
		interfaces: map[string]*Interface{}, seen: map[string]time.Time{}, done: map[string]time.Time{}, tokens: map[string]string{},
		attempts: map[string]int{}, pending: map[string]pending{},
	}
}

func (w *world) makeID(kind string) string {
	w.serial++
	return fmt.Sprintf("%s-%03d", kind, w.serial)
}

// crashOperator simulates a crash of the operator.
func (w *world) crashOperator() {
	w.orphans, w.attempts, w.pending = nil, map[string]int{}, map[string]pending{}
}

// buildState returns the state that the operator observes.
func (w *world) buildState() *State {
	n3 := newNetwork("n3")
	n3.Spec.PrefixesPerNode = 1
	for i := range n3.Spec.Zones {
		n3.Spec.Zones[i].CIDR, n3.Spec.Zones[i].PodCIDR = "10.0.0.0/16", "10.0.128.0/17"
	}
	s := &State{
		Cluster: "demo", Networks: []*v1alpha1.SecondaryNetwork{n3, newNetwork("n6")}, Pools: []Pool{{Name: "telco", Networks: []string{"n3", "n6"}}},
		Phases: map[string]Phase{}, Attempts: w.attempts, Orphans: w.orphans, Grace: grace, Now: w.now,
	}
	for _, uid := range slices.Sorted(maps.Keys(w.claims)) {
		s.Claims = append(s.Claims, *w.claims[uid])
	}
	for id, phase := range w.phases {
		if phase == Starting && !w.now.Before(w.ready[id]) {
			phase = Running
		}
		s.Phases[id] = phase
	}
	for _, id := range slices.Sorted(maps.Keys(w.interfaces)) {
		if w.now.Before(w.seen[id]) {
			continue
		}
		n := *w.interfaces[id]
		if n.Attachment != nil {
			attachment := *n.Attachment
			attachment.Attached = !w.now.Before(w.done[id])
			n.Attachment = &attachment
		}
		s.Interfaces = append(s.Interfaces, n)
	}
	return s
}

// loseCall reports whether a call, or its response, is lost.
func (w *world) loseCall(chaos bool) bool { return chaos && w.IntN(5) == 0 }

// runOperator plans once, and makes the planned calls. It returns the plan.
func (w *world) runOperator(chaos bool) *Plan {
	s := w.buildState()
	for key, p := range w.pending {
		seen := slices.ContainsFunc(s.Interfaces, func(n Interface) bool { return n.ID == p.id })
		if seen {
			delete(w.pending, key)
		} else if w.now.Sub(p.since) > 30*time.Second {
			w.attempts[key]++
			delete(w.pending, key)
		}
	}
	p := MakePlan(s)
	w.orphans = p.Orphans
	for _, c := range p.Create {
		if w.loseCall(chaos) {
			continue
		}
		id := w.createInterface(&c)
		key := Key(c.Claim.UID, c.Network)
		if _, known := w.pending[key]; !known && !w.loseCall(chaos) {
			w.pending[key] = pending{id, w.now}
		}
	}
	for _, a := range p.Attach {
		if n := w.interfaces[a.Interface]; n != nil && n.Attachment == nil && s.Phases[a.Instance] == Running && !w.loseCall(chaos) {
			n.Attachment = &Attachment{ID: w.makeID("attach"), Instance: a.Instance, DeviceIndex: a.DeviceIndex}
			w.done[a.Interface] = w.now.Add(time.Duration(w.IntN(15)) * time.Second)
		}
	}
	for _, c := range p.Change {
		n := w.interfaces[c.Interface]
		switch {
		case n == nil || w.loseCall(chaos):
		case c.Attachment == "":
			n.SourceDestCheck = false
		case n.Attachment != nil && n.Attachment.ID == c.Attachment:
			n.Attachment.DeleteOnTermination = true
		}
	}
	for _, d := range p.Delete {
		if n := w.interfaces[d.Interface]; n != nil && n.Attachment == nil && !w.loseCall(chaos) {
			delete(w.interfaces, d.Interface)
		}
	}
	return p
}

func (w *world) createInterface(c *Create) string {
	if id, known := w.tokens[c.Token]; known {
		return id
	}
	id := w.makeID("eni")
	w.tokens[c.Token] = id
	w.interfaces[id] = &Interface{ID: id, Subnet: c.Subnet, Tags: c.Tags, SourceDestCheck: true}
	for i := range c.Prefixes { // serial makes each interface's prefixes unique
		w.interfaces[id].Prefixes = append(w.interfaces[id].Prefixes, fmt.Sprintf("10.0.%d.%d/28", 128+w.serial/16%128, w.serial%16*16+i))
	}
	w.seen[id] = w.now.Add(time.Duration(w.IntN(10)) * time.Second)
	return id
}

// terminateInstance terminates an instance like EC2.
func (w *world) terminateInstance(instance string) {
	w.phases[instance] = Ended
	for id, n := range w.interfaces {
		switch {
		case n.Attachment == nil || n.Attachment.Instance != instance:
		case n.Attachment.DeleteOnTermination:
			delete(w.interfaces, id)
		default:
			n.Attachment = nil
		}
	}
}

// makeRandomEvent makes one random event happen in the cluster or the account.
func (w *world) makeRandomEvent() {
	claims := slices.Sorted(maps.Keys(w.claims))
	var some *Claim
	if len(claims) > 0 {
		some = w.claims[claims[w.IntN(len(claims))]]
	}
	switch what := w.IntN(9); {
	case what < 3 || some == nil:
		uid := w.makeID("u")
		w.claims[uid] = &Claim{Name: uid, UID: uid, Pool: "telco", Zone: []string{"a", "b"}[w.IntN(2)]}
	case what < 5 && some.Instance == "":
		some.Instance = w.makeID("i")
		w.phases[some.Instance], w.ready[some.Instance] = Starting, w.now.Add(10*time.Second)
	case what == 5:
		some.Deleting = true
	case what == 6: // the claim is deleted, with its instance or before it
		if some.Instance != "" {
			w.terminateInstance(some.Instance)
		}
		delete(w.claims, some.UID)
	case what == 7 && some.Instance != "":
		w.terminateInstance(some.Instance)
	case what == 8 && len(w.interfaces) > 0: // a person deletes an interface
		ids := slices.Sorted(maps.Keys(w.interfaces))
		if id := ids[w.IntN(len(ids))]; w.interfaces[id].Attachment == nil {
			delete(w.interfaces, id)
		}
	}
}

// TestRandomHistoryConverges makes random events happen, with lost calls and an operator that
// crashes. After the last event, the plan must soon be empty, and exactly the interfaces
// that the nodes need must exist.
func TestRandomHistoryConverges(t *testing.T) {
	for seed := range uint64(300) {
		w := newWorld(seed)
		for range 60 {
			w.makeRandomEvent()
			if w.IntN(3) > 0 {
				w.runOperator(true)
			}
			if w.IntN(6) == 0 {
				w.crashOperator()
			}
			w.now = w.now.Add(time.Duration(w.IntN(8)) * time.Second)
		}
		// Claims that are being deleted disappear, as with Karpenter.
		for uid, c := range w.claims {
			if c.Deleting {
				w.terminateInstance(c.Instance)
				delete(w.claims, uid)
			}
		}
		var last *Plan
		for range 60 {
			w.now = w.now.Add(5 * time.Second)
			last = w.runOperator(false)
		}
		if !last.Empty() || len(last.Waiting) > 0 || len(last.Orphans) > 0 {
			t.Fatalf("seed %d: there is always something to do: %s; waiting %v, orphans %v", seed, last, last.Waiting, last.Orphans)
		}
		want := map[string]bool{}
		for uid, c := range w.claims {
			if c.Instance != "" && w.phases[c.Instance] != Ended {
				want[Key(uid, "n3")], want[Key(uid, "n6")] = true, true
			}
		}
		for id, n := range w.interfaces {
			key := Key(n.Tags[ClaimTag], n.Tags[NetworkTag])
			c := w.claims[n.Tags[ClaimTag]]
			if prefixes := n.Tags[NetworkTag] == "n3"; prefixes != (len(n.Prefixes) == 1) {
				t.Fatalf("seed %d: %s has the prefixes %v", seed, id, n.Prefixes)
			}
			if !want[key] || n.Attachment == nil || n.Attachment.Instance != c.Instance || !n.Attachment.DeleteOnTermination || n.SourceDestCheck {
				t.Fatalf("seed %d: %s is not as it should be: %+v", seed, id, n)
			}
			delete(want, key)
		}
		if len(want) > 0 {
			t.Fatalf("seed %d: these are missing: %v", seed, want)
		}
	}
}
