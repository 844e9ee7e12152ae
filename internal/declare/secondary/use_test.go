package secondary

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"croft.dev/croft/api/v1alpha1"
)

// newIPPool returns an IPPool as whereabouts writes it.
func newIPPool(cidr string, keys ...string) unstructured.Unstructured {
	allocations := map[string]any{}
	for _, key := range keys {
		allocations[key] = map[string]any{"id": "c-" + key, "podref": "core/web-" + key, "ifname": "net1"}
	}
	u := unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"range": cidr, "allocations": allocations}}}
	u.SetGroupVersionKind(IPPool)
	return u
}

func listOffsets(from, to int) []string {
	var all []string
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprint(i))
	}
	return all
}

// TestUse counts like whereabouts, whose keys are offsets from the start of the subnet, and
// not of the reservation.
func TestUse(t *testing.T) {
	two := &v1alpha1.SecondaryNetworkSpec{Zones: []v1alpha1.SecondaryNetworkZone{
		{Zone: "a", CIDR: "10.0.4.0/24", PodCIDR: "10.0.4.32/28"},
		{Zone: "b", CIDR: "10.0.5.0/24", PodCIDR: "10.0.5.0/28", Gateway: "10.0.5.5"}, // the VPC reserves four addresses, and one is the gateway
	}}
	six := &v1alpha1.SecondaryNetworkSpec{Zones: []v1alpha1.SecondaryNetworkZone{{Zone: "a", CIDR: "fd00::/64", PodCIDR: "fd00::1:0/124"}}}
	for name, test := range map[string]struct {
		spec  *v1alpha1.SecondaryNetworkSpec
		pools []unstructured.Unstructured
		want  string
	}{
		"no pods":     {two, nil, "a 0/16 b 0/11"},
		"some in one": {two, []unstructured.Unstructured{newIPPool("10.0.4.0/24", listOffsets(32, 35)...)}, "a 3/16 b 0/11"},
		"outside of the reservation": {
			two, []unstructured.Unstructured{newIPPool("10.0.4.0/24", listOffsets(0, 32)...), newIPPool("10.0.4.0/24", listOffsets(48, 60)...)},
			"a 0/16 b 0/11",
		},
		"of others' definitions": {
			two, []unstructured.Unstructured{newIPPool("10.0.4.0/24", "32", "33"), newIPPool("10.0.4.32/28", "1", "2"), newIPPool("192.168.0.0/16", "32")},
			"a 3/16 b 0/11",
		},
		"excluded":   {two, []unstructured.Unstructured{newIPPool("10.0.5.0/24", listOffsets(0, 16)...)}, "a 0/16 b 11/11"},
		"unreadable": {two, []unstructured.Unstructured{newIPPool("?", "32"), newIPPool("10.0.4.0/24", "x", "-1", "99999999999"), {}}, "a 0/16 b 0/11"},
		"IPv6":       {six, []unstructured.Unstructured{newIPPool("fd00::/64", "65536", "65551", "65552")}, "a 2/16"},
	} {
		var all []string
		for _, u := range CountUse("n4", test.spec, test.pools) {
			all = append(all, fmt.Sprintf("%s %d/%d", u.Zone, u.Used, u.Total))
		}
		if got := strings.Join(all, " "); got != test.want {
			t.Errorf("%s: %s, not %s", name, got, test.want)
		}
	}
	pool := newIPPool("10.0.5.0/24")
	if !IsServedBy("n4", two, &pool) || IsServedBy("n4", six, &pool) {
		t.Error("the IPPool of a subnet belongs to other networks")
	}
}

func TestNearlyFull(t *testing.T) {
	var near []uint64
	for used := range uint64(32 + 1) {
		u := Use{Used: used, Total: 32}
		if u.IsNearlyFull() {
			near = append(near, used)
		}
		if u.IsFull() != (used == 32) {
			t.Errorf("%d of 32 is full: %t", used, u.IsFull())
		}
	}
	if !slices.Equal(near, []uint64{29, 30, 31, 32}) {
		t.Errorf("nearly full with %d of 32", near)
	}
}
