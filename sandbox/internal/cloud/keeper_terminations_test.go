package cloud_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"croft.dev/croft/internal/network/attach"
	"croft.dev/croft/internal/operate/controller/interfaces"
	"croft.dev/croft/internal/test/sandbox"
)

// terminations terminates an instance during a pass: immediately before a change for it reaches EC2,
// or immediately after.
type terminations struct {
	interfaces.Writer
	*networked

	mu sync.Mutex
	// left is the number of changes until then; 0 for never. If step is set, only changes of
	// this step for this instance count.
	left           int64
	instance, step string
	before         bool
	dead           string
}

// terminateAfter terminates the instance of the nth change from now.
func (d *terminations) terminateAfter(nth int64, before bool) {
	d.left, d.before, d.dead = nth, before, ""
}

// terminateAt terminates an instance at its first change of a step.
func (d *terminations) terminateAt(instance, step string, before bool) {
	d.terminateAfter(1, before)
	d.instance, d.step = instance, step
}

// stopTerminations stops the terminations, and returns the instance that was terminated.
func (d *terminations) stopTerminations() string {
	d.left = 0
	return d.dead
}

// makeChange makes a change, and terminates the instance if its turn has come. Steps are named as
// in "attach n3".
func (d *terminations) makeChange(instance, step string, call func() error) error {
	d.mu.Lock()
	dies := false
	if d.left > 0 && (d.step == "" || d.step == step && d.instance == instance) {
		d.left--
		dies = d.left == 0
	}
	d.mu.Unlock()
	if dies && d.before {
		d.terminateInstance(instance)
	}
	err := call()
	if dies && !d.before {
		d.terminateInstance(instance)
	}
	return err
}

func (d *terminations) terminateInstance(instance string) {
	if err := d.Terminate(instance); err != nil {
		panic(err) // the account's file cannot be written
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dead = instance
}

func (d *terminations) Create(ctx context.Context, c attach.Create) (made attach.Interface, err error) {
	err = d.makeChange(c.Claim.Instance, "create "+c.Network, func() (err error) {
		made, err = d.Writer.Create(ctx, c)
		return err
	})
	return made, err
}

func (d *terminations) Attach(ctx context.Context, a attach.Attach) (id string, err error) {
	err = d.makeChange(a.Instance, "attach "+a.Network, func() (err error) {
		id, err = d.Writer.Attach(ctx, a)
		return err
	})
	return id, err
}

func (d *terminations) Change(ctx context.Context, c attach.Change) error {
	step := "no check "
	if c.Attachment != "" {
		step = "ends with its instance "
	}
	return d.makeChange(d.findInstanceOf(c.Interface), step+c.Network, func() error { return d.Writer.Change(ctx, c) })
}

// findInstanceOf returns the instance for which an interface was created; "" if its claim no longer
// exists.
func (n *networked) findInstanceOf(id string) string {
	made := n.FindInterface(id)
	if made == nil {
		return ""
	}
	for i := range n.desired.Claims {
		if n.desired.Claims[i].UID == made.Tags[attach.ClaimTag] {
			return n.desired.Claims[i].Instance
		}
	}
	return ""
}

// removeClaim removes the claim of an instance.
func (n *networked) removeClaim(instance string) {
	n.desired.Claims = slices.DeleteFunc(slices.Clone(n.desired.Claims), func(c attach.Claim) bool { return c.Instance == instance })
}

// fates are the events that follow the end of an instance.
var fates = map[string]func(n *networked, c *attach.Claim){
	"the claim goes at once":       func(n *networked, c *attach.Claim) { n.removeClaim(c.Instance) },
	"the claim goes later":         func(*networked, *attach.Claim) {},
	"the claim is being deleted":   func(_ *networked, c *attach.Claim) { c.Deleting = true },
	"the operator dies, too":       func(n *networked, _ *attach.Claim) { n.restartKeeper() },
	"the operator and claim, both": func(n *networked, c *attach.Claim) { n.removeClaim(c.Instance); n.restartKeeper() },
}

// TestKeeperAfterInstanceTermination terminates an instance immediately before and immediately
// after each change that croft makes for it. croft must delete its interfaces in all fates of
// its claim, and another node must get all of its own interfaces.
func TestKeeperAfterInstanceTermination(t *testing.T) {
	nth := 0
	for _, step := range []string{"create", "no check", "attach", "ends with its instance"} {
		for _, network := range []string{"n3", "n6"} {
			for _, before := range []bool{true, false} {
				for fate, befall := range fates {
					if nth++; nth%8 != 0 && (testing.Short() || !sandbox.All()) {
						continue // the order of fates is random: each run covers others
					}
					name := fmt.Sprintf("%s %s/before %t/%s", step, network, before, fate)
					t.Run(name, func(t *testing.T) { testEndAt(t, step+" "+network, before, befall) })
				}
			}
		}
	}
}

func testEndAt(t *testing.T, step string, before bool, befall func(*networked, *attach.Claim)) {
	t.Helper()
	n := newNetworkedAccount(t)
	n.launchClaim(t)
	doomed := n.launchClaim(t)
	instance := doomed.Instance
	n.terminations.terminateAt(instance, step, before)
	for range 40 {
		_, _ = n.keeper.Pass(t.Context(), n.desired) // a call for an instance that ends is refused
		if n.terminations.dead != "" {
			break
		}
		n.advanceClock(t, time.Second)
	}
	if n.terminations.stopTerminations() != instance {
		t.Fatalf("no call %q was made for %s", step, instance)
	}
	befall(n, doomed)
	for i := range 30 {
		n.advanceClock(t, 2*time.Second)
		n.runPass(t)
		if i == 10 { // Karpenter deletes the claim
			n.removeClaim(instance)
		}
	}
	if got := n.listWrong(); len(got) > 0 {
		t.Error(strings.Join(got, "; "))
	}
	if got := len(n.listCreated()); got != 2 {
		t.Errorf("%d interfaces exist, want the two of the other node", got)
	}
}
