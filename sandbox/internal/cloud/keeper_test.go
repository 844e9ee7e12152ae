package cloud_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/network/attach"
	"croft.dev/croft/internal/operate/controller/interfaces"
	operator "croft.dev/croft/internal/operate/controller/interfaces/account"
	"croft.dev/croft/internal/test/sandbox"
	"croft.dev/croft/sandbox/internal/cloud"
	"croft.dev/croft/sandbox/internal/cloud/account"
)

// graced is the grace period after which the keeper of these tests deletes interfaces without
// an owner.
const graced = 30 * time.Second

// networked is an account with two secondary networks of a cluster, and the operator's keeper.
type networked struct {
	*simulated
	desired      interfaces.DesiredState
	keeper       *interfaces.Keeper
	terminations *terminations
	claims       int
}

// newNetworkedAccount returns an account whose nodes have a prefix of their own in n3, and share
// the addresses of n6.
func newNetworkedAccount(t *testing.T) *networked {
	t.Helper()
	n := &networked{simulated: startAccount(t)}
	n.createTemplate(t)
	n.desired = interfaces.DesiredState{Cluster: "demo", Pools: []attach.Pool{{Name: "telco", Networks: []string{"n3", "n6"}, Tags: map[string]string{"CostCode": "42"}}}}
	for i, name := range []string{"n3", "n6"} {
		network := &v1alpha1.SecondaryNetwork{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for j, zone := range settings.Zones {
			subnet := requireValue[account.Subnet](t)(n.client.AddSubnet(t.Context(), zone, fmt.Sprintf("10.%d.%d.0/20", 1+i, 16*j), nil))
			part := v1alpha1.SecondaryNetworkZone{
				Zone: zone, Subnet: subnet.ID, SecurityGroups: []string{n.ListSecurityGroups(nil)[0].ID},
				CIDR: subnet.CIDR, PodCIDR: fmt.Sprintf("10.%d.%d.0/21", 1+i, 16*j+8),
			}
			network.Spec.Zones = append(network.Spec.Zones, part)
			if name == "n3" {
				network.Spec.PrefixesPerNode = 1
				requireValue[account.CIDRReservation](t)(n.ReserveCIDR(account.CIDRReservation{Subnet: part.Subnet, CIDR: part.PodCIDR, Kind: account.Prefix}))
			}
		}
		n.desired.Networks = append(n.desired.Networks, network)
	}
	n.restartKeeper()
	return n
}

// restartKeeper replaces the keeper, as a new process of the operator does: it has no state.
func (n *networked) restartKeeper() {
	a := operator.New(n.config, n.clock)
	n.terminations = &terminations{Writer: a, networked: n}
	n.keeper = interfaces.NewKeeper(a, n.terminations, n.clock, graced)
}

// launchClaim launches an instance, and adds its NodeClaim.
func (n *networked) launchClaim(t *testing.T) *attach.Claim {
	t.Helper()
	offer := account.Offer{Template: "lt", Type: "m5.large", Subnet: n.ListSubnets(nil)[n.claims%2].ID, Zone: settings.Zones[n.claims%2]}
	started, refused, err := n.Launch(account.Order{Offers: []account.Offer{offer}, Capacity: account.OnDemand, Count: 1})
	if err != nil || len(started) != 1 {
		t.Fatalf("%v: %+v", err, refused)
	}
	n.claims++
	n.desired.Claims = append(n.desired.Claims, attach.Claim{
		Name: fmt.Sprintf("telco-%d", n.claims), UID: fmt.Sprintf("u%d", n.claims), Pool: "telco", Zone: offer.Zone, Instance: started[0].IDs[0], InstanceType: "m5.large",
	})
	return &n.desired.Claims[len(n.desired.Claims)-1]
}

func (n *networked) runPass(t *testing.T) *interfaces.Result {
	t.Helper()
	for {
		r, err := n.keeper.Pass(t.Context(), n.desired)
		switch {
		case err == nil:
			return r
		case operator.Code(err) != "" || t.Context().Err() != nil:
			t.Fatal(err)
		}
		// The connection broke, or the limiter deferred the call: the operator makes the next
		// pass.
		n.advanceClock(t, time.Second)
	}
}

// advanceClock moves the account's clock.
func (n *networked) advanceClock(t *testing.T, d time.Duration) {
	t.Helper()
	n.advanceTime(d)
	requireValue[[]account.Instance](t)(n.Advance())
}

// listCreated returns all interfaces except the instances' primary ones.
func (n *networked) listCreated() []account.Interface {
	return slices.DeleteFunc(n.ListAllInterfaces(), func(i account.Interface) bool { return i.Attachment != nil && i.Attachment.DeviceIndex == 0 })
}

// listWrong describes each interface that is left over, incomplete or missing after the last pass.
func (n *networked) listWrong() (all []string) {
	want := map[string]*attach.Claim{}
	for i := range n.desired.Claims {
		c := &n.desired.Claims[i]
		if state := n.FindInstance(c.Instance).State; state == account.Running || state == account.Pending {
			want[attach.Key(c.UID, "n3")], want[attach.Key(c.UID, "n6")] = c, c
		}
	}
	for _, i := range n.listCreated() {
		key := attach.Key(i.Tags[attach.ClaimTag], i.Tags[attach.NetworkTag])
		c := want[key]
		switch {
		case c == nil:
			all = append(all, "left: "+i.ID+" of "+key)
		case i.Attachment == nil || i.Attachment.Instance != c.Instance || !i.Attachment.DeleteOnTermination || i.SourceDestCheck:
			all = append(all, "not as it should be: "+i.ID+" of "+key)
		}
		delete(want, key)
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		all = append(all, "missing: "+key)
	}
	return append(all, n.listWrongPrefixes()...)
}

// listWrongPrefixes describes each interface of n3 that does not have exactly one prefix of the
// reservation of its own, and each interface of n6 that has a prefix.
func (n *networked) listWrongPrefixes() (all []string) {
	taken := map[string]string{}
	for _, i := range n.listCreated() {
		if i.Tags[attach.NetworkTag] != "n3" {
			if len(i.Prefixes) > 0 {
				all = append(all, fmt.Sprintf("%s has the prefixes %v", i.ID, i.Prefixes))
			}
			continue
		}
		at := slices.IndexFunc(n.desired.Networks[0].Spec.Zones, func(z v1alpha1.SecondaryNetworkZone) bool { return z.Subnet == i.Subnet })
		pods := netip.MustParsePrefix(n.desired.Networks[0].Spec.Zones[at].PodCIDR)
		if len(i.Prefixes) != 1 || !pods.Contains(netip.MustParsePrefix(i.Prefixes[0]).Addr()) || taken[i.Prefixes[0]] != "" {
			all = append(all, fmt.Sprintf("%s has the prefixes %v of %s; they are of %s", i.ID, i.Prefixes, pods, taken[i.Prefixes[0]]))
			continue
		}
		taken[i.Prefixes[0]] = i.ID
	}
	return all
}

// TestKeeper runs the keeper for the life of a node.
func TestKeeper(t *testing.T) {
	n := newNetworkedAccount(t)
	c := n.launchClaim(t)
	n.runPass(t)
	if got := n.listCreated(); len(got) != 2 || got[0].Attachment != nil || got[0].Tags["CostCode"] != "42" {
		t.Fatalf("while the instance is pending: %+v", got)
	}
	for range 5 { // the instance is pending: croft must not try to attach
		n.advanceClock(t, time.Second)
		n.runPass(t)
	}
	calls := requireValue[[]cloud.Call](t)(n.client.ListCalls(t.Context()))
	if slices.ContainsFunc(calls, func(c cloud.Call) bool { return c.Action == "AttachNetworkInterface" }) {
		t.Error("an instance that is pending was asked to take an interface")
	}
	n.advanceClock(t, 6*time.Second)
	n.runPass(t)
	if got := n.listCreated(); got[0].Attachment == nil || got[1].Attachment == nil || got[0].Attachment.DeviceIndex == got[1].Attachment.DeviceIndex {
		t.Fatalf("at the first look at the running instance: %+v", got)
	}
	n.advanceClock(t, 16*time.Second)
	for range 3 {
		n.runPass(t)
	}
	if got := n.listWrong(); len(got) > 0 {
		t.Error(got)
	}
	if r := n.runPass(t); !r.Plan.Empty() || len(r.Plan.Waiting) > 0 || r.Next < 10*time.Second {
		t.Errorf("there is nothing to do, and the next pass is in %s: %v", r.Next, r.Plan)
	}
	made := 0
	for _, c := range requireValue[[]cloud.Call](t)(n.client.ListCalls(t.Context())) {
		if c.Error != "" {
			t.Errorf("%s: %s", c.Action, c.Error)
		}
		if c.Action == "CreateNetworkInterface" || c.Action == "AttachNetworkInterface" || c.Action == "ModifyNetworkInterfaceAttribute" {
			made++
		}
	}
	if made != 2*4 {
		t.Errorf("%d calls changed something, and 8 would do", made)
	}
	if err := n.Terminate(c.Instance); err != nil {
		t.Fatal(err)
	}
	n.desired.Claims = nil
	n.advanceClock(t, 10*time.Second)
	n.runPass(t)
	if got := n.listCreated(); len(got) > 0 {
		t.Errorf("the node is deleted, and these interfaces are left: %+v", got)
	}
}

// TestPrefixesOfReservations tests prefixes that EC2 chooses. By its documentation, it chooses
// them from a reservation of type prefix, and from the rest of the subnet without one. Without
// one, croft must not give pods their addresses, and must report the problem on the network.
func TestPrefixesOfReservations(t *testing.T) {
	for name, test := range map[string]struct {
		kind string
		want bool
	}{"prefix": {account.Prefix, true}, "explicit": {account.Explicit, false}, "none": {"", false}} {
		t.Run(name, func(t *testing.T) {
			n := newNetworkedAccount(t)
			part := &n.desired.Networks[0].Spec.Zones[0]
			for _, r := range requireValue[[]account.CIDRReservation](t)(n.ListCIDRReservations(part.Subnet, nil)) {
				requireValue[account.CIDRReservation](t)(n.DeleteCIDRReservation(r.ID))
				if test.kind != "" {
					requireValue[account.CIDRReservation](t)(n.ReserveCIDR(account.CIDRReservation{Subnet: part.Subnet, CIDR: part.PodCIDR, Kind: test.kind}))
				}
			}
			c := n.launchClaim(t)
			r := n.runPass(t)
			for range 4 {
				n.advanceClock(t, 10*time.Second)
				r = n.runPass(t)
			}
			if networks, ready := r.Attached[c.UID]; ready != test.want || ready && !strings.Contains(networks[0].ZoneFile, `"range": "10.1.8.`) {
				t.Errorf("attached: %+v", r.Attached)
			}
			reported := slices.ContainsFunc(r.Plan.Problems, func(p attach.Problem) bool { return p.Reason == attach.ReasonPrefixes && p.Networks[0] == "n3" })
			if reported == test.want {
				t.Errorf("problems: %+v", r.Plan.Problems)
			}
		})
	}
}

// TestKeeperReportsProblems fails if croft does not report an error that persists, or retries
// it too often.
func TestKeeperReportsProblems(t *testing.T) {
	for name, test := range map[string]struct {
		change func(t *testing.T, n *networked)
		want   string
	}{
		"a subnet that is not there": {func(_ *testing.T, n *networked) { n.desired.Networks[0].Spec.Zones[0].Subnet = "subnet-none" }, "InvalidSubnetID.NotFound"},
		"a group that is not there": {func(_ *testing.T, n *networked) {
			n.desired.Networks[0].Spec.Zones[0].SecurityGroups = []string{"sg-none"}
		}, "InvalidGroup.NotFound"},
		"a full subnet": {func(t *testing.T, n *networked) {
			t.Helper()
			requireValue[account.Fault](t)(n.AddFault(account.Fault{Kind: account.SubnetFull, Case: account.Case{Subnet: n.desired.Networks[0].Spec.Zones[0].Subnet}}))
		}, "InsufficientFreeAddressesInSubnet"},
		"no rights": {func(t *testing.T, n *networked) {
			t.Helper()
			requireValue[account.Fault](t)(n.AddFault(account.Fault{Kind: account.Unauthorized, Case: account.Case{Action: "ec2:CreateNetworkInterface"}}))
		}, "UnauthorizedOperation"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNetworkedAccount(t)
			test.change(t, n)
			n.launchClaim(t)
			r := n.runPass(t)
			if len(r.Failures) == 0 || r.Failures[0].Code != test.want || r.Failures[0].Network != "n3" || r.Failures[0].Object != "node claim telco-1" {
				t.Fatalf("%+v", r.Failures)
			}
			for range 20 {
				n.advanceClock(t, time.Second)
				r = n.runPass(t)
			}
			tries := 0
			for _, c := range requireValue[[]cloud.Call](t)(n.client.ListCalls(t.Context())) {
				if c.Action == "CreateNetworkInterface" && c.Error == test.want {
					tries++
				}
			}
			if len(r.Failures) == 0 || tries > 16 {
				t.Errorf("%d tries in 20 s, failures %+v", tries, r.Failures)
			}
		})
	}
}

// TestKeeperChoosesFreeDeviceIndex fails if croft does not choose another device index when
// Amazon's VPC CNI has taken one.
func TestKeeperChoosesFreeDeviceIndex(t *testing.T) {
	n := newNetworkedAccount(t)
	n.desired.Pools[0].Networks = []string{"n3"}
	c := n.launchClaim(t)
	n.advanceClock(t, 11*time.Second)
	theirs := n.createInterface(t, &ec2.CreateNetworkInterfaceInput{SubnetId: &n.ListSubnets(nil)[0].ID})
	requireValue[string](t)(n.AttachInterface(*theirs.NetworkInterfaceId, c.Instance, 1))
	for range 4 {
		n.advanceClock(t, 5*time.Second)
		n.runPass(t)
	}
	own := slices.DeleteFunc(n.listCreated(), func(i account.Interface) bool { return i.Tags[attach.NetworkTag] == "" })
	if len(own) != 1 || own[0].Attachment == nil || own[0].Attachment.DeviceIndex != 2 {
		t.Errorf("%+v", own)
	}
}

// TestKeeperWithHundredNodes fails if a node does not get its interfaces within EC2's limits,
// if a successful call is made twice, or if EC2 refuses more than a few calls for their rate.
func TestKeeperWithHundredNodes(t *testing.T) {
	sandbox.Thorough(t) // TestKeeper and TestLimiter have the parts
	const nodes = 100
	n := newNetworkedAccount(t)
	for range nodes {
		n.launchClaim(t)
	}
	passes := 0
	for r := n.runPass(t); len(r.Plan.Waiting) > 0 || !r.Plan.Empty(); r = n.runPass(t) {
		n.advanceClock(t, time.Second)
		if passes++; passes > 600 {
			t.Fatalf("after %d s %d nodes wait", passes, len(r.Plan.Waiting))
		}
	}
	if got := n.listWrong(); len(got) > 0 {
		t.Fatal(got)
	}
	counts, refused := map[string]int{}, 0
	for _, c := range requireValue[[]cloud.Call](t)(n.client.ListCalls(t.Context())) {
		if c.Error == "RequestLimitExceeded" {
			refused++
		} else {
			counts[c.Action]++
		}
	}
	t.Logf("%d nodes after %d s; calls %v, %d refused for their rate", nodes, passes, counts, refused)
	if counts["CreateNetworkInterface"] != 2*nodes || counts["AttachNetworkInterface"] != 2*nodes || counts["ModifyNetworkInterfaceAttribute"] != 4*nodes {
		t.Errorf("calls were wasted: %v", counts)
	}
	if refused > 20 {
		t.Errorf("%d calls were refused for their rate", refused)
	}
}

// TestKeeperRecoversFromKills kills the operator at random calls, terminates instances at
// random steps, lets calls fail, and hides new interfaces for some time. It fails if at the
// end an interface is left over or missing.
func TestKeeperRecoversFromKills(t *testing.T) {
	rounds := 100
	if testing.Short() || !sandbox.All() {
		rounds = 12
	}
	for seed := range uint64(rounds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { testKilledKeeper(t, rand.New(rand.NewPCG(seed, 7))) })
	}
}

// killer cancels a context at the nth change.
type killer struct {
	interfaces.Writer
	left atomic.Int64
	kill context.CancelFunc
}

func (k *killer) countChange() {
	if k.left.Add(-1) == 0 {
		k.kill()
	}
}

func testKilledKeeper(t *testing.T, r *rand.Rand) {
	t.Helper()
	n := newNetworkedAccount(t)
	for range 12 {
		switch what := r.IntN(8); {
		case what < 3:
			n.launchClaim(t)
		case what == 3 && len(n.desired.Claims) > 0: // an instance dies, and its claim with it or later
			i := r.IntN(len(n.desired.Claims))
			if err := n.Terminate(n.desired.Claims[i].Instance); err != nil {
				t.Fatal(err)
			}
			if r.IntN(2) == 0 {
				n.desired.Claims = slices.Delete(slices.Clone(n.desired.Claims), i, i+1)
			}
		case what == 4:
			requireValue[account.Fault](t)(n.AddFault(account.Fault{Kind: account.Throttled, Times: 1 + r.IntN(3)}))
		case what == 5:
			requireValue[account.Fault](t)(n.AddFault(account.Fault{Kind: account.Stale, Delay: time.Duration(r.IntN(5)) * time.Second}))
		}
		ctx, cancel := context.WithCancel(t.Context())
		switch r.IntN(3) {
		case 0: // the operator dies within the pass
			a := operator.New(n.config, n.clock)
			k := &killer{Writer: a, kill: cancel}
			k.left.Store(1 + r.Int64N(4))
			n.keeper = interfaces.NewKeeper(a, killedWriter{k}, n.clock, graced)
			_, _ = n.keeper.Pass(ctx, n.desired) // the result is lost with the process
			n.restartKeeper()
		case 1: // an instance dies within the pass, and its claim goes at once or later
			n.terminations.terminateAfter(1+r.Int64N(4), r.IntN(2) == 0)
			_, _ = n.keeper.Pass(ctx, n.desired)
			if dead := n.terminations.stopTerminations(); dead != "" && r.IntN(2) == 0 {
				n.removeClaim(dead)
			}
		default:
			_, _ = n.keeper.Pass(ctx, n.desired) // a call may be refused
		}
		cancel()
		n.advanceClock(t, time.Duration(r.IntN(6000))*time.Millisecond)
	}
	requireValue[int](t)(n.ClearFaults())
	for range 60 {
		n.advanceClock(t, 2*time.Second)
		n.runPass(t)
	}
	// Karpenter deletes the claims of terminated instances.
	n.desired.Claims = slices.DeleteFunc(n.desired.Claims, func(c attach.Claim) bool { return n.FindInstance(c.Instance).State != account.Running })
	for range 30 {
		n.advanceClock(t, 2*time.Second)
		n.runPass(t)
	}
	if got := n.listWrong(); len(got) > 0 {
		t.Errorf("%s", strings.Join(got, "; "))
	}
}

// killedWriter counts each change for the killer.
type killedWriter struct{ *killer }

func (m killedWriter) Create(ctx context.Context, c attach.Create) (attach.Interface, error) {
	defer m.countChange()
	return m.Writer.Create(ctx, c)
}

func (m killedWriter) Attach(ctx context.Context, a attach.Attach) (string, error) {
	defer m.countChange()
	return m.Writer.Attach(ctx, a)
}

func (m killedWriter) Change(ctx context.Context, c attach.Change) error {
	defer m.countChange()
	return m.Writer.Change(ctx, c)
}

func (m killedWriter) Delete(ctx context.Context, d attach.Delete) error {
	defer m.countChange()
	return m.Writer.Delete(ctx, d)
}
