package secondary

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"croft.dev/croft/api/v1alpha1"
)

func newZone(name, subnet string, third string) v1alpha1.SecondaryNetworkZone {
	return v1alpha1.SecondaryNetworkZone{
		Zone: name, Subnet: subnet, CIDR: "10.0." + third + ".0/24", PodCIDR: "10.0." + third + ".32/27", Gateway: "10.0." + third + ".1",
	}
}

// TestDefinitions covers the documentation's first network, with two zones and with one.
func TestDefinitions(t *testing.T) {
	both := &v1alpha1.SecondaryNetworkSpec{
		Type: v1alpha1.SecondaryNetworkIPVLAN, MTU: 9001, Routes: []string{"10.20.0.0/16"},
		Zones: []v1alpha1.SecondaryNetworkZone{newZone("us-west-2a", "subnet-a", "4"), newZone("us-west-2b", "subnet-b", "5")},
	}
	const begin = `"cniVersion": "0.3.1", "name": "n4", "type": "ipvlan", "master": "croft-n4", "mode": "l2", "mtu": 9001`
	const a = `{` + begin + `, "ipam": {"type": "whereabouts", "range": "10.0.4.32-10.0.4.63/24", "gateway": "10.0.4.1", "routes": [{"dst": "10.20.0.0/16"}]}}`
	const b = `{` + begin + `, "ipam": {"type": "whereabouts", "range": "10.0.5.32-10.0.5.63/24", "gateway": "10.0.5.1", "routes": [{"dst": "10.20.0.0/16"}]}}`
	const any = `{` + begin + `, "ipam": {"type": "whereabouts", "configuration_path": "/etc/cni/net.d/croft.d/n4.conf", "routes": [{"dst": "10.20.0.0/16"}]}}`
	expectDefinitions(t, Definitions("n4", both), map[string]string{"n4": any, "n4-us-west-2a": a, "n4-us-west-2b": b})

	one := both.DeepCopy()
	one.Zones = one.Zones[:1]
	expectDefinitions(t, Definitions("n4", one), map[string]string{"n4": a, "n4-us-west-2a": a})
}

// TestPlugins covers the differences between the types, and the plugin sbr.
func TestPlugins(t *testing.T) {
	const ipam = `"ipam": {"type": "whereabouts", "range": "10.0.4.32-10.0.4.63/24", "gateway": "10.0.4.1"}`
	for _, test := range []struct {
		spec v1alpha1.SecondaryNetworkSpec
		want string
	}{
		{v1alpha1.SecondaryNetworkSpec{}, `{"cniVersion": "0.3.1", "name": "n4", "type": "ipvlan", "master": "croft-n4", "mode": "l2", ` + ipam + `}`},
		{
			v1alpha1.SecondaryNetworkSpec{Type: v1alpha1.SecondaryNetworkMACVLAN, MTU: 1500},
			`{"cniVersion": "0.3.1", "name": "n4", "type": "macvlan", "master": "croft-n4", "mode": "bridge", "mtu": 1500, ` + ipam + `}`,
		},
		{
			v1alpha1.SecondaryNetworkSpec{Type: v1alpha1.SecondaryNetworkHostDevice, MTU: 1500},
			`{"cniVersion": "0.3.1", "name": "n4", "type": "host-device", "device": "croft-n4", ` + ipam + `}`,
		},
		{
			v1alpha1.SecondaryNetworkSpec{SBR: true},
			`{"cniVersion": "0.3.1", "name": "n4", "plugins": [{"type": "ipvlan", "master": "croft-n4", "mode": "l2", ` + ipam + `}, {"type": "sbr"}]}`,
		},
		{
			v1alpha1.SecondaryNetworkSpec{DNS: &v1alpha1.SecondaryNetworkDNS{Nameservers: []string{"10.0.4.2"}, Domain: "telco.example", Search: []string{"example"}}},
			`{"cniVersion": "0.3.1", "name": "n4", "type": "ipvlan", "master": "croft-n4", "mode": "l2", ` + strings.TrimSuffix(ipam, "}") +
				`, "dns": {"nameservers": ["10.0.4.2"], "domain": "telco.example", "search": ["example"]}}}`,
		},
	} {
		test.spec.Zones = []v1alpha1.SecondaryNetworkZone{newZone("us-west-2a", "subnet-a", "4")}
		expectDefinitions(t, Definitions("n4", &test.spec)[:1], map[string]string{"n4": test.want})
	}
}

// TestZoneFile covers a range that contains addresses that the VPC reserves.
func TestZoneFile(t *testing.T) {
	path, content := ZoneFile("n4", &v1alpha1.SecondaryNetworkZone{CIDR: "10.0.4.0/24", PodCIDR: "10.0.4.0/25"})
	if want := "/etc/cni/net.d/croft.d/n4.conf"; path != want {
		t.Errorf("the file is %s, not %s", path, want)
	}
	expectJSON(t, content, `{"range": "10.0.4.0-10.0.4.127/24", "exclude": ["10.0.4.0/30"], "kubernetes": {"kubeconfig": "/etc/cni/net.d/whereabouts.d/whereabouts.kubeconfig"}}`)
}

// TestPrefixesOfNodes fails if a pod does not get an address of its node's prefixes,
// whichever definition of the network it names.
func TestPrefixesOfNodes(t *testing.T) {
	n := &v1alpha1.SecondaryNetwork{Spec: v1alpha1.SecondaryNetworkSpec{PrefixesPerNode: 2, Zones: []v1alpha1.SecondaryNetworkZone{newZone("us-west-2a", "subnet-a", "4")}}}
	n.Name = "n4"
	const node = `{"cniVersion": "0.3.1", "name": "n4", "type": "ipvlan", "master": "croft-n4", "mode": "l2",
		"ipam": {"type": "whereabouts", "configuration_path": "/etc/cni/net.d/croft.d/n4.conf"}}`
	expectDefinitions(t, Definitions("n4", &n.Spec), map[string]string{"n4": node, "n4-us-west-2a": node})

	const rest = `"gateway": "10.0.4.1", "kubernetes": {"kubeconfig": "/etc/cni/net.d/whereabouts.d/whereabouts.kubeconfig"}}`
	for _, test := range []struct{ podCIDR, prefixes, want string }{
		{"10.0.4.32/27", "10.0.4.48/28", `{"range": "10.0.4.48-10.0.4.63/24", ` + rest},
		{"10.0.4.32/27", "10.0.4.48/28 10.0.4.32/28", `{"range": "10.0.4.32-10.0.4.63/24", ` + rest},
		{"10.0.4.0/25", "10.0.4.96/28 10.0.4.16/28", `{"range": "10.0.4.16-10.0.4.111/24", "exclude": ["10.0.4.32/27", "10.0.4.64/27"], ` + rest},
		// Without a reservation EC2 may choose a prefix that contains the subnet's reserved
		// last address, which must be excluded.
		{"10.0.4.128/25", "10.0.4.240/28", `{"range": "10.0.4.240-10.0.4.255/24", "exclude": ["10.0.4.255/32"], ` + rest},
	} {
		z := newZone("us-west-2a", "subnet-a", "4")
		z.PodCIDR = test.podCIDR
		var prefixes []netip.Prefix
		for p := range strings.FieldsSeq(test.prefixes) {
			prefixes = append(prefixes, netip.MustParsePrefix(p))
		}
		own := NodeNetworkOf(n, &z, "02:00:00:00:00:04", prefixes...)
		expectJSON(t, own.ZoneFile, test.want)
	}
}

// TestCoverGap checks each address between prefixes.
func TestCoverGap(t *testing.T) {
	for _, test := range [][2]string{{"10.0.0.0", "10.0.0.0"}, {"10.0.0.16", "10.0.1.16"}, {"10.0.0.48", "10.0.3.224"}, {"0.0.0.16", "0.0.4.0"}} {
		from, to := netip.MustParseAddr(test[0]), netip.MustParseAddr(test[1])
		at := from
		for _, p := range coverGap(from, to) {
			if p.Masked() != p || p.Addr() != at {
				t.Errorf("from %s to %s: %s at %s", from, to, p, at)
			}
			at = FindLastAddress(p).Next()
		}
		if at != to {
			t.Errorf("from %s to %s: it ends at %s", from, to, at)
		}
	}
}

func TestPrefixesIn(t *testing.T) {
	for _, test := range []struct {
		podCIDR, gateway string
		want             uint64
	}{
		{"10.0.4.32/27", "10.0.4.1", 2}, {"10.0.4.0/25", "10.0.4.1", 7}, {"10.0.4.128/25", "10.0.4.1", 7}, {"10.0.4.128/25", "10.0.4.200", 6},
		{"10.0.4.32/29", "", 0}, {"10.0.4.0/24", "", 14},
	} {
		r, err := ReservationOf("n4", &v1alpha1.SecondaryNetworkZone{CIDR: "10.0.4.0/24", PodCIDR: test.podCIDR, Gateway: test.gateway})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.CountPrefixes(); got != test.want {
			t.Errorf("%s has %d prefixes, not %d", test.podCIDR, got, test.want)
		}
	}
}

func TestLink(t *testing.T) {
	for network, want := range map[string]string{"n4": "croft-n4", "signaling": "croft-signaling"} {
		if got := LinkName(network); got != want {
			t.Errorf("the interface in %s is called %s, not %s", network, got, want)
		}
	}
	long, other := LinkName("signaling-a"), LinkName("signaling-b")
	if len(long) != longestLink || len(other) != longestLink || long == other {
		t.Errorf("long names become %s and %s", long, other)
	}
}

func expectDefinitions(t *testing.T, got []Definition, want map[string]string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("there are %d definitions, not %d", len(got), len(want))
	}
	for _, d := range got {
		expectJSON(t, d.Config, want[d.Name])
	}
}

func expectJSON(t *testing.T, got, want string) {
	t.Helper()
	var a, b any
	if err := json.Unmarshal([]byte(got), &a); err != nil {
		t.Fatalf("%v in %s", err, got)
	}
	if err := json.Unmarshal([]byte(want), &b); err != nil {
		t.Fatalf("%v in %q", err, want)
	}
	if diff := cmp.Diff(b, a); diff != "" {
		t.Errorf("- expected, + got\n%s", diff)
	}
}
