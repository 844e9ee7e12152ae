package interfaces

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"croft.dev/croft/internal/network/attach"
	"croft.dev/croft/internal/operate/controller/interfaces/account"
)

// Failure is a failed call that a retry is not expected to fix.
type Failure struct {
	// Object is the node claim or the interface of the call.
	Object string
	// Network is the name of the SecondaryNetwork.
	Network string
	// Code is EC2's error code.
	Code string
	// Err is the complete error.
	Err error
}

// recentFailure is a failure that is retried after a pause.
type recentFailure struct {
	Failure
	until, last time.Time
	times       int
}

const (
	firstRetry = 2 * time.Second
	lastRetry  = time.Minute
)

// step is one call of a plan.
type step struct {
	// key identifies a step from one pass to the next.
	key             string
	rank            rank
	object, network string
	run             func(context.Context) error
}

// rank orders steps. If a limit does not allow all of them, the steps that nodes wait for
// come first.
type rank int

const (
	attaching rank = iota
	uncheck
	goWith // sets an interface to be deleted with its instance
	creating
	deleting
)

// executePlan makes the calls of a plan concurrently, except for calls that failed recently.
// It reports whether some were deferred.
func (k *Keeper) executePlan(ctx context.Context, p *attach.Plan) (later bool) {
	steps := k.listSteps(p)
	now := k.clock.Now()
	k.forgetFailures(steps)
	k.sortSteps(steps)
	slots := make(chan struct{}, together)
	var all sync.WaitGroup
	for _, s := range steps {
		if k.isBackingOff(s.key, now) {
			continue
		}
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			err := s.run(k.markContext(ctx, s.key))
			k.recordResult(ctx, s, err)
			if errors.Is(err, account.ErrDeferred) {
				k.mu.Lock()
				later = true
				k.mu.Unlock()
			}
		})
	}
	all.Wait()
	return later
}

func (k *Keeper) listSteps(p *attach.Plan) []step {
	var all []step
	for _, a := range p.Attach {
		all = append(all, step{"attach " + a.Interface, attaching, "node claim " + a.Claim.Name, a.Network, func(ctx context.Context) error { return k.attachInterface(ctx, a) }})
	}
	for _, c := range p.Change {
		r := uncheck
		if c.Attachment != "" {
			r = goWith
		}
		all = append(all, step{"change " + c.Interface + " " + c.Attachment, r, "interface " + c.Interface, c.Network, func(ctx context.Context) error { return k.changeInterface(ctx, c) }})
	}
	for _, c := range p.Create {
		all = append(all, step{"create " + attach.Key(c.Claim.UID, c.Network), creating, "node claim " + c.Claim.Name, c.Network, func(ctx context.Context) error { return k.createInterface(ctx, c) }})
	}
	for _, d := range p.Delete {
		all = append(all, step{"delete " + d.Interface, deleting, "interface " + d.Interface, d.Network, func(ctx context.Context) error {
			err := k.writer.Delete(ctx, d)
			if err == nil {
				log.FromContext(ctx).Info("deleted a network interface", "interface", d.Interface, "because", d.Reason)
			}
			return err
		}})
	}
	return all
}

func (k *Keeper) createInterface(ctx context.Context, c attach.Create) error {
	n, err := k.writer.Create(ctx, c)
	if err != nil || n.ID == "" {
		return err
	}
	key := attach.Key(c.Claim.UID, c.Network)
	k.mu.Lock()
	defer k.mu.Unlock()
	if old, known := k.fresh[key]; !known || old.ID != n.ID {
		k.fresh[key] = createdInterface{n, k.clock.Now()}
	}
	log.FromContext(ctx).Info("created a network interface", "interface", n.ID, "network", c.Network, "nodeclaim", c.Claim.Name)
	return nil
}

func (k *Keeper) attachInterface(ctx context.Context, a attach.Attach) error {
	id, err := k.writer.Attach(ctx, a)
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case err == nil:
		key := attach.Key(a.Claim.UID, a.Network)
		if f, known := k.fresh[key]; known && f.ID == a.Interface {
			f.Attachment = &attach.Attachment{ID: id, Instance: a.Instance, DeviceIndex: a.DeviceIndex}
			k.fresh[key] = f
		}
		log.FromContext(ctx).Info("attached a network interface", "interface", a.Interface, "instance", a.Instance, "network", a.Network)
	case account.Code(err) == "InvalidParameterValue" && strings.Contains(err.Error(), "device index"):
		// Amazon's VPC CNI uses this index already.
		k.taken[a.Instance] = append(k.taken[a.Instance], a.DeviceIndex)
	}
	return err
}

func (k *Keeper) changeInterface(ctx context.Context, c attach.Change) error {
	err := k.writer.Change(ctx, c)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, f := range k.fresh {
		if f.ID != c.Interface {
			continue
		}
		if c.Attachment == "" {
			f.SourceDestCheck = false
		} else if f.Attachment != nil {
			attachment := *f.Attachment
			attachment.DeleteOnTermination = true
			f.Attachment = &attachment
		}
		k.fresh[key] = f
	}
	return nil
}

// passing are EC2's codes of errors that the next pass fixes: an object does not exist yet,
// no longer exists, or is already in the desired state.
var passing = []string{
	"IncorrectState", "IncorrectInstanceState", "InvalidInstanceID.NotFound", "InvalidInstanceID", "InvalidNetworkInterfaceID.NotFound",
	"InvalidNetworkInterface.InUse", "InvalidAttachmentID.NotFound", "RequestLimitExceeded", "Unavailable", "InternalError",
}

// isTransient reports whether a retry is expected to fix an error.
func isTransient(key string, err error) bool {
	code := account.Code(err)
	switch {
	case code == "", slices.Contains(passing, code): // without a code it was a network error
		return true
	case code == "InvalidParameterValue":
		return strings.HasPrefix(key, "delete ") || strings.Contains(err.Error(), "device index") // the interface or the device index is in use
	default:
		return false
	}
}

// recordResult records the result of a step. It delays the retry of a failed step.
func (k *Keeper) recordResult(ctx context.Context, s step, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if account.IsThrottled(err) {
		k.throttled[s.key] = true
	}
	switch {
	case err == nil, errors.Is(err, account.ErrDeferred):
		delete(k.failing, s.key)
	case isTransient(s.key, err):
		log.FromContext(ctx).V(1).Info("a call to EC2 failed, and will be retried", "step", s.key, "error", err.Error())
	default:
		f := k.failing[s.key]
		pause := min(firstRetry<<min(f.times, 10), lastRetry)
		f.times++
		f.last, f.until = k.clock.Now(), k.clock.Now().Add(pause/2+rand.N(pause/2+1))
		f.Failure = Failure{s.object, s.network, account.Code(err), err}
		k.failing[s.key] = f
		if f.times == 1 {
			log.FromContext(ctx).Error(err, "a call to EC2 failed", "step", s.key, "network", s.network, "for", s.object)
		}
	}
}

func (k *Keeper) isBackingOff(key string, now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	f, failed := k.failing[key]
	return failed && now.Before(f.until)
}

// forgetFailures deletes the records of steps that are no longer planned.
func (k *Keeper) forgetFailures(steps []step) {
	planned := map[string]bool{}
	for _, s := range steps {
		planned[s.key] = true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.failing, func(key string, _ recentFailure) bool { return !planned[key] })
	maps.DeleteFunc(k.throttled, func(key string, _ bool) bool { return !planned[key] })
}

// sortSteps sorts steps by rank, and puts steps whose calls were throttled last within their
// rank. EC2's available rate is found by being throttled occasionally, which should not hit
// the same step twice.
func (k *Keeper) sortSteps(steps []step) {
	k.mu.Lock()
	defer k.mu.Unlock()
	refused := func(s step) int {
		if k.throttled[s.key] {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(steps, func(a, b step) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(refused(a), refused(b)))
	})
}

// markContext returns the context for a step's call.
func (k *Keeper) markContext(ctx context.Context, key string) context.Context {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.throttled[key] {
		return account.MarkThrottled(ctx)
	}
	return ctx
}

// listFailures returns the current failures, sorted by network.
func (k *Keeper) listFailures() []Failure {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []Failure
	for _, f := range k.failing {
		all = append(all, f.Failure)
	}
	slices.SortFunc(all, func(a, b Failure) int {
		return strings.Compare(a.Network+" "+a.Object, b.Network+" "+b.Object)
	})
	return all
}
