package interfaces

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/secondary"
	"croft.dev/croft/internal/secondary/attach"
)

// Reader looks into the account.
type Reader interface {
	// Instances are the phases of instances; those that are not shown are not in it.
	Instances(ctx context.Context, ids []string) (map[string]attach.Phase, error)
	// Interfaces are those that croft made for a cluster.
	Interfaces(ctx context.Context, cluster string) ([]attach.Interface, error)
	// Limits are how many interfaces types of instances have.
	Limits(ctx context.Context, types []string) (map[string]int, error)
}

// Writer changes interfaces. All of it may be done twice.
type Writer interface {
	Create(ctx context.Context, c attach.Create) (attach.Interface, error)
	Attach(ctx context.Context, t attach.Attach) (attachment string, err error)
	Change(ctx context.Context, c attach.Change) error
	Delete(ctx context.Context, d attach.Delete) error
}

// Wanted is what the cluster asks for.
type Wanted struct {
	Cluster  string
	Networks []*v1alpha1.SecondaryNetwork
	Pools    []attach.Pool
	Claims   []attach.Claim
}

const (
	// Grace is how long an interface is without an owner before it is deleted.
	Grace = 2 * time.Minute
	// pace is how long it is from one look at the account to the next while nodes wait, and
	// resync from a pass to the next otherwise.
	pace   = time.Second
	resync = time.Minute
	// unseen is how long an interface that was made may not be shown, before it is taken
	// for one that is gone.
	unseen = time.Minute
	// together is how many calls are made at a time.
	together = 20
)

// Keeper keeps an account's interfaces as a cluster wants them, one pass at a time. What
// it remembers makes passes cheaper; it can be forgotten at any moment.
type Keeper struct {
	reader Reader
	writer Writer
	now    func() time.Time
	grace  time.Duration

	orphans map[string]time.Time
	limits  map[string]int
	taken   map[string][]int

	mu       sync.Mutex
	attempts map[string]int
	fresh    map[string]fresh // by attach.Key
	failing  map[string]failing
	// throttled are the steps whose calls were refused for their rate.
	throttled map[string]bool
}

// fresh is an interface that was made, and is not shown yet.
type fresh struct {
	attach.Interface
	made time.Time
}

// NewKeeper returns a Keeper. grace is Grace but in tests, now the clock.
func NewKeeper(r Reader, w Writer, now func() time.Time, grace time.Duration) *Keeper {
	return &Keeper{
		reader: r, writer: w, now: now, grace: grace, limits: map[string]int{}, taken: map[string][]int{},
		attempts: map[string]int{}, fresh: map[string]fresh{}, failing: map[string]failing{}, throttled: map[string]bool{},
	}
}

// Result is what a pass came to.
type Result struct {
	// Plan is what was to be done.
	Plan *attach.Plan
	// Attached are the interfaces of the claims that have all of theirs, by UID.
	Attached map[string][]secondary.NodeNetwork
	// Failures are the calls that failed, and that no later pass is expected to mend by
	// itself.
	Failures []Failure
	// Next is after which time the next pass is due.
	Next time.Duration
}

// Pass looks at the account, and does what can be done now.
func (k *Keeper) Pass(ctx context.Context, w Wanted) (*Result, error) {
	began := k.now()
	s, err := k.look(ctx, w)
	if err != nil {
		return nil, err
	}
	plan := attach.Make(s)
	k.orphans = plan.Orphans
	count(s.Interfaces, plan)
	r := &Result{Plan: plan, Attached: attach.Attached(s)}
	later := k.execute(ctx, plan)
	r.Failures = k.failures()
	r.Next = max(gap, k.next(plan, later)-k.now().Sub(began))
	return r, ctx.Err()
}

// look is the state of the cluster and the account.
func (k *Keeper) look(ctx context.Context, w Wanted) (*attach.State, error) {
	interfaces, err := k.reader.Interfaces(ctx, w.Cluster)
	if err != nil {
		return nil, err
	}
	s := &attach.State{
		Cluster: w.Cluster, Networks: w.Networks, Pools: w.Pools, Claims: w.Claims, Interfaces: k.withFresh(w, interfaces),
		Phases: map[string]attach.Phase{}, Taken: k.taken, Attempts: k.attempts, Limits: k.limits, Orphans: k.orphans, Grace: k.grace, Now: k.now(),
	}
	ids := k.uncertain(s)
	if len(ids) == 0 {
		return s, nil
	}
	k.learnLimits(ctx, w)
	s.Phases, err = k.reader.Instances(ctx, ids)
	return s, err
}

// uncertain are the instances whose phases matter: those of claims that do not have all
// their interfaces, or that have one that is attached to nothing.
func (k *Keeper) uncertain(s *attach.State) []string {
	asked := map[string]bool{}
	for _, uid := range attach.Make(s).Waiting {
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

// learnLimits asks once for each type of instance. Without an answer EC2 itself refuses
// what is too much.
func (k *Keeper) learnLimits(ctx context.Context, w Wanted) {
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

// withFresh adds interfaces that were made and are not shown yet, and forgets those that
// never were for so long that they must be gone: the next one gets another token.
func (k *Keeper) withFresh(w Wanted, shown []attach.Interface) []attach.Interface {
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
		case k.now().Sub(f.made) > unseen:
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

// next is when the next pass is due.
func (k *Keeper) next(p *attach.Plan, later bool) time.Duration {
	if later || len(p.Waiting) > 0 || !p.Empty() {
		return pace
	}
	next := resync
	for _, since := range p.Orphans {
		next = min(next, max(pace, since.Add(k.grace).Sub(k.now())))
	}
	return next
}
