package interfaces

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/secondary"
	"croft.dev/croft/internal/network/attach"
)

// Reader reads from the account.
type Reader interface {
	// Instances returns the phases of instances. Instances that EC2 does not return are
	// missing.
	Instances(ctx context.Context, ids []string) (map[string]attach.Phase, error)
	// Interfaces returns the interfaces that croft created for a cluster.
	Interfaces(ctx context.Context, cluster string) ([]attach.Interface, error)
	// Limits returns the maximum number of interfaces of instance types.
	Limits(ctx context.Context, types []string) (map[string]int, error)
}

// Writer changes interfaces. Its methods are idempotent.
type Writer interface {
	Create(ctx context.Context, c attach.Create) (attach.Interface, error)
	Attach(ctx context.Context, t attach.Attach) (attachment string, err error)
	Change(ctx context.Context, c attach.Change) error
	Delete(ctx context.Context, d attach.Delete) error
}

// DesiredState is the desired state that the cluster declares.
type DesiredState struct {
	Cluster  string
	Networks []*v1alpha1.SecondaryNetwork
	Pools    []attach.Pool
	Claims   []attach.Claim
}

const (
	// Grace is how long an interface without an owner is kept.
	Grace = 2 * time.Minute
	// pace is the time between passes while nodes wait, resync the time between passes
	// otherwise.
	pace   = time.Second
	resync = time.Minute
	// unseen is how long EC2 may omit a new interface from its lists, before the interface
	// is considered deleted.
	unseen = time.Minute
	// together is the number of concurrent calls.
	together = 20
)

// Keeper brings the interfaces of an account to a cluster's desired state, one pass at a
// time. Its memory only makes passes cheaper, and may be lost at any moment.
type Keeper struct {
	reader Reader
	writer Writer
	clock  clock.PassiveClock
	grace  time.Duration

	orphans map[string]time.Time
	limits  map[string]int
	taken   map[string][]int

	mu       sync.Mutex
	attempts map[string]int
	fresh    map[string]createdInterface // by attach.Key
	failing  map[string]recentFailure
	// throttled are the keys of the steps whose calls were throttled.
	throttled map[string]bool
}

// createdInterface is a created interface that EC2 does not list yet.
type createdInterface struct {
	attach.Interface
	made time.Time
}

// NewKeeper returns a Keeper. grace is Grace, except in tests.
func NewKeeper(r Reader, w Writer, clock clock.PassiveClock, grace time.Duration) *Keeper {
	return &Keeper{
		reader: r, writer: w, clock: clock, grace: grace, limits: map[string]int{}, taken: map[string][]int{},
		attempts: map[string]int{}, fresh: map[string]createdInterface{}, failing: map[string]recentFailure{}, throttled: map[string]bool{},
	}
}

// Result is the result of a pass.
type Result struct {
	// Plan has the planned calls.
	Plan *attach.Plan
	// Attached are the interfaces of the claims that are complete, by UID.
	Attached map[string][]secondary.NodeNetwork
	// Failures are the failed calls that no later pass is expected to fix.
	Failures []Failure
	// Next is the time until the next pass.
	Next time.Duration
}

// Pass reads the account, and makes the calls that are possible now.
func (k *Keeper) Pass(ctx context.Context, w DesiredState) (*Result, error) {
	began := k.clock.Now()
	s, err := k.readState(ctx, w)
	if err != nil {
		return nil, err
	}
	plan := attach.MakePlan(s)
	k.orphans = plan.Orphans
	updateMetrics(s.Interfaces, plan)
	r := &Result{Plan: plan, Attached: attach.ListAttached(s)}
	later := k.executePlan(ctx, plan)
	r.Failures = k.listFailures()
	r.Next = max(gap, k.computeDelay(plan, later)-k.clock.Since(began))
	return r, ctx.Err()
}

// readState reads the state of the cluster and the account.
func (k *Keeper) readState(ctx context.Context, w DesiredState) (*attach.State, error) {
	interfaces, err := k.reader.Interfaces(ctx, w.Cluster)
	if err != nil {
		return nil, err
	}
	s := &attach.State{
		Cluster: w.Cluster, Networks: w.Networks, Pools: w.Pools, Claims: w.Claims, Interfaces: k.addCreated(w, interfaces),
		Phases: map[string]attach.Phase{}, Taken: k.taken, Attempts: k.attempts, Limits: k.limits, Orphans: k.orphans, Grace: k.grace, Now: k.clock.Now(),
	}
	ids := k.findUncertainInstances(s)
	if len(ids) == 0 {
		return s, nil
	}
	k.learnLimits(ctx, w)
	s.Phases, err = k.reader.Instances(ctx, ids)
	return s, err
}

// findUncertainInstances returns the instances whose phases matter: their claims lack an
// interface, or have one without an attachment.
func (k *Keeper) findUncertainInstances(s *attach.State) []string {
	asked := map[string]bool{}
	for _, uid := range attach.MakePlan(s).Waiting {
		asked[uid] = true
	}
	for i := range s.Interfaces {
		if s.Interfaces[i].Attachment == nil {
			asked[s.Interfaces[i].Tags[attach.ClaimTag]] = true
		}
	}
	var ids []string
	for i := range s.Claims {
		if c := &s.Claims[i]; c.Instance != "" && asked[c.UID] {
			ids = append(ids, c.Instance)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// learnLimits requests the limit of each instance type once. Without a response EC2 itself
// refuses interfaces beyond the limit.
func (k *Keeper) learnLimits(ctx context.Context, w DesiredState) {
	unknown := map[string]bool{}
	for i := range w.Claims {
		if t := w.Claims[i].InstanceType; t != "" {
			if _, known := k.limits[t]; !known {
				unknown[t] = true
			}
		}
	}
	if len(unknown) == 0 {
		return
	}
	learned, err := k.reader.Limits(ctx, slices.Sorted(maps.Keys(unknown)))
	if err != nil {
		log.FromContext(ctx).Info("the limits of instance types are not known", "error", err.Error())
		return
	}
	maps.Copy(k.limits, learned)
}

// addCreated adds created interfaces that EC2 does not list yet. It drops
// interfaces that were missing for so long that they must be deleted, so that the next one
// is created with another token.
func (k *Keeper) addCreated(w DesiredState, shown []attach.Interface) []attach.Interface {
	seen := map[string]bool{}
	for i := range shown {
		seen[shown[i].ID] = true
	}
	claims := map[string]bool{}
	for i := range w.Claims {
		claims[w.Claims[i].UID] = true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, f := range k.fresh {
		switch {
		case seen[f.ID] || !claims[f.Tags[attach.ClaimTag]]:
			delete(k.fresh, key)
		case k.clock.Since(f.made) > unseen:
			delete(k.fresh, key)
			k.attempts[key]++
		default:
			shown = append(shown, f.Interface)
		}
	}
	for key := range k.attempts {
		if uid, _, _ := strings.Cut(key, "/"); !claims[uid] {
			delete(k.attempts, key)
		}
	}
	for instance := range k.taken {
		if !slices.ContainsFunc(w.Claims, func(c attach.Claim) bool { return c.Instance == instance }) {
			delete(k.taken, instance)
		}
	}
	return shown
}

// computeDelay returns the time until the next pass.
func (k *Keeper) computeDelay(p *attach.Plan, later bool) time.Duration {
	if later || len(p.Waiting) > 0 || !p.Empty() {
		return pace
	}
	next := resync
	for _, since := range p.Orphans {
		next = min(next, max(pace, since.Add(k.grace).Sub(k.clock.Now())))
	}
	return next
}
