package attach

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const grace = time.Minute

func newNetwork(name string) *v1alpha1.SecondaryNetwork {
	n := &v1alpha1.SecondaryNetwork{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, zone := range []string{"a", "b"} {
		n.Spec.Zones = append(n.Spec.Zones, v1alpha1.SecondaryNetworkZone{Zone: zone, Subnet: "subnet-" + name + zone, SecurityGroups: []string{"sg-" + name}})
	}
	return n
}

// newState returns a cluster with one node of a pool that has two networks.
func newState() *State {
	return &State{
		Cluster: "demo", Networks: []*v1alpha1.SecondaryNetwork{newNetwork("n3"), newNetwork("n6")},
		Pools:  []Pool{{Name: "telco", Networks: []string{"n3", "n6"}, Tags: map[string]string{"CostCode": "42"}}, {Name: "plain"}},
		Claims: []Claim{{Name: "telco-1", UID: "u1", Pool: "telco", Zone: "a", Instance: "i-1", InstanceType: "m5.large"}},
		Phases: map[string]Phase{"i-1": Running}, Limits: map[string]int{"m5.large": 3, "t3.micro": 2}, Now: epoch, Grace: grace,
	}
}

// newInterface returns an available interface of that node.
func newInterface(id, claim, network string) Interface {
	return Interface{ID: id, Tags: map[string]string{ClusterTag: "demo", ClaimTag: claim, NetworkTag: network}}
}

// newAttached returns an attached interface that needs no change.
func newAttached(id, claim, network, instance string, index int) Interface {
	n := newInterface(id, claim, network)
	n.Attachment = &Attachment{ID: "attach-" + id, Instance: instance, DeviceIndex: index, Attached: true, DeleteOnTermination: true}
	return n
}

func TestMakePlan(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*State)
		want    string
		waiting int
	}{
		"a node that was just launched":                {func(s *State) { s.Phases["i-1"] = Starting }, "create telco-1/n3, create telco-1/n6", 1},
		"an instance that the cloud does not show yet": {func(s *State) { s.Phases = nil }, "", 1},
		"a claim that is not launched":                 {func(s *State) { s.Claims[0].Instance = "" }, "", 0},
		"a pool without networks":                      {func(s *State) { s.Claims[0].Pool = "plain" }, "", 0},
		"an unknown pool":                              {func(s *State) { s.Claims[0].Pool = "other" }, "", 0},
		"an instance that does not run yet": {func(s *State) {
			s.Phases["i-1"] = Starting
			s.Interfaces = []Interface{newInterface("eni-1", "u1", "n3"), newInterface("eni-2", "u1", "n6")}
		}, "", 1},
		"an instance that runs": {func(s *State) {
			s.Interfaces = []Interface{newInterface("eni-1", "u1", "n3"), newInterface("eni-2", "u1", "n6")}
		}, "attach eni-1 to i-1 at 1, attach eni-2 to i-1 at 2", 1},
		"another has taken a device": {func(s *State) {
			s.Interfaces = []Interface{newInterface("eni-1", "u1", "n3"), newAttached("eni-2", "u1", "n6", "i-1", 2)}
			s.Taken = map[string][]int{"i-1": {1}}
		}, "attach eni-1 to i-1 at 3", 1},
		"a new interface checks source and destination": {func(s *State) {
			n := newInterface("eni-1", "u1", "n3")
			n.SourceDestCheck = true
			s.Interfaces = []Interface{n, newAttached("eni-2", "u1", "n6", "i-1", 2)}
		}, "attach eni-1 to i-1 at 1, no source/dest check of eni-1", 1},
		"being attached": {func(s *State) {
			n := newAttached("eni-1", "u1", "n3", "i-1", 1)
			n.Attachment.Attached, n.Attachment.DeleteOnTermination = false, false
			s.Interfaces = []Interface{n, newAttached("eni-2", "u1", "n6", "i-1", 2)}
		}, "delete eni-1 on termination", 1},
		"all there": {func(s *State) {
			s.Interfaces = []Interface{newAttached("eni-1", "u1", "n3", "i-1", 1), newAttached("eni-2", "u1", "n6", "i-1", 2)}
		}, "", 0},
		"two for the same": {func(s *State) {
			s.Interfaces = []Interface{newInterface("eni-0", "u1", "n3"), newAttached("eni-1", "u1", "n3", "i-1", 1), newAttached("eni-2", "u1", "n6", "i-1", 2)}
		}, "delete eni-0", 0},
		"the claim is being deleted": {func(s *State) {
			s.Claims[0].Deleting = true
			s.Interfaces = []Interface{newAttached("eni-1", "u1", "n3", "i-1", 1), newInterface("eni-2", "u1", "n6")}
		}, "delete eni-2", 0},
		"the instance has ended": {func(s *State) {
			s.Phases["i-1"] = Ended
			s.Interfaces = []Interface{newInterface("eni-2", "u1", "n6")}
		}, "delete eni-2", 0},
		"the claim was deleted a moment ago": {func(s *State) {
			s.Claims, s.Interfaces = nil, []Interface{newInterface("eni-1", "u1", "n3")}
		}, "", 0},
		"the claim was deleted long ago": {func(s *State) {
			s.Claims, s.Interfaces = nil, []Interface{newInterface("eni-1", "u1", "n3")}
			s.Orphans = map[string]time.Time{"eni-1": epoch.Add(-grace)}
		}, "delete eni-1", 0},
		"the claim was deleted, and the instance runs": {func(s *State) {
			n := newAttached("eni-1", "u1", "n3", "i-1", 1)
			n.Attachment.DeleteOnTermination = false
			s.Claims, s.Interfaces = nil, []Interface{n}
			s.Orphans = map[string]time.Time{"eni-1": epoch.Add(-grace)}
		}, "delete eni-1 on termination", 0},
		"the pool gave a network up": {func(s *State) {
			s.Pools[0].Networks = []string{"n3"}
			s.Interfaces = []Interface{newAttached("eni-1", "u1", "n3", "i-1", 1), newInterface("eni-2", "u1", "n6")}
			s.Orphans = map[string]time.Time{"eni-2": epoch.Add(-grace)}
		}, "delete eni-2", 0},
		"an attached interface of a network that was given up stays": {func(s *State) {
			s.Pools[0].Networks = []string{"n3"}
			s.Interfaces = []Interface{newAttached("eni-1", "u1", "n3", "i-1", 1), newAttached("eni-2", "u1", "n6", "i-1", 2)}
		}, "", 0},
		"another cluster's interfaces": {func(s *State) {
			s.Claims = nil
			n := newInterface("eni-1", "u9", "n3")
			n.Tags[ClusterTag] = "other"
			s.Interfaces, s.Orphans = []Interface{n, {ID: "eni-2"}}, map[string]time.Time{"eni-1": epoch.Add(-grace), "eni-2": epoch.Add(-grace)}
		}, "", 0},
		"an instance type with too few interfaces": {func(s *State) { s.Claims[0].InstanceType = "t3.micro" }, ReasonTooManyNetworks, 0},
		"an unknown instance type":                 {func(s *State) { s.Claims[0].InstanceType = "x9.large" }, "create telco-1/n3, create telco-1/n6", 1},
		"a zone that a network is not in": {func(s *State) {
			s.Networks[1].Spec.Zones = s.Networks[1].Spec.Zones[1:]
			s.Interfaces = []Interface{newAttached("eni-1", "u1", "n3", "i-1", 1)}
		}, ReasonNoZone, 0},
		"attached to another instance": {func(s *State) {
			s.Interfaces = []Interface{newAttached("eni-1", "u1", "n3", "i-2", 1), newAttached("eni-2", "u1", "n6", "i-1", 2)}
		}, ReasonElsewhere, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newState()
			test.change(s)
			p := MakePlan(s)
			if got := p.String(); got != test.want || len(p.Waiting) != test.waiting {
				t.Errorf("%q, and %d are waiting; want %q, %d", got, len(p.Waiting), test.want, test.waiting)
			}
			if p.Empty() != (len(p.Create)+len(p.Attach)+len(p.Change)+len(p.Delete) == 0) {
				t.Error("Empty is wrong")
			}
		})
	}
}

func TestCreate(t *testing.T) {
	s := newState()
	c := MakePlan(s).Create[0]
	if c.Subnet != "subnet-n3a" || len(c.Groups) != 1 || c.Groups[0] != "sg-n3" {
		t.Errorf("where it is made: %+v", c)
	}
	for key, want := range map[string]string{
		ClusterTag: "demo", PoolTag: "telco", ClaimTag: "u1", NetworkTag: "n3", UnmanagedTag: "true", "CostCode": "42",
	} {
		if c.Tags[key] != want {
			t.Errorf("the tag %s is %q, not %q", key, c.Tags[key], want)
		}
	}
	if got := MakePlan(s).Create[0].Token; got != c.Token || len(got) > 64 {
		t.Errorf("the token is %q, and was %q", got, c.Token)
	}
	seen := map[string]string{c.Token: "as it was"}
	for name, change := range map[string]func(*State){
		"another network":  func(s *State) { s.Pools[0].Networks = []string{"n6"} },
		"another claim":    func(s *State) { s.Claims[0].UID = "u2" },
		"another group":    func(s *State) { s.Networks[0].Spec.Zones[0].SecurityGroups = nil },
		"another tag":      func(s *State) { s.Pools[0].Tags["CostCode"] = "43" },
		"a second attempt": func(s *State) { s.Attempts = map[string]int{Key("u1", "n3"): 1} },
	} {
		s := newState()
		change(s)
		got := MakePlan(s).Create[0].Token
		if seen[got] != "" {
			t.Errorf("%s has the token of %s", name, seen[got])
		}
		seen[got] = name
	}
}

func TestMakePlanKeepsOrphans(t *testing.T) {
	s := newState()
	s.Claims, s.Interfaces = nil, []Interface{newInterface("eni-1", "u1", "n3")}
	first := MakePlan(s)
	s.Orphans, s.Now = first.Orphans, epoch.Add(grace/2)
	second := MakePlan(s)
	if !second.Empty() || !second.Orphans["eni-1"].Equal(epoch) {
		t.Errorf("%v, orphans %v", second, second.Orphans)
	}
	s.Orphans, s.Now = second.Orphans, epoch.Add(grace)
	if got := MakePlan(s).String(); got != "delete eni-1" {
		t.Errorf("after the grace period: %q", got)
	}
}

func TestProblemsSayWhatToDo(t *testing.T) {
	s := newState()
	s.Claims[0].InstanceType = "t3.micro"
	got := fmt.Sprint(MakePlan(s).Problems)
	for _, part := range []string{"telco", "t3.micro has 2 network interfaces", "need 3"} {
		if !strings.Contains(got, part) {
			t.Errorf("there is no %q in %s", part, got)
		}
	}
}
