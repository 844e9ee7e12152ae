package secondary

import (
	"fmt"
	"strings"
	"testing"

	"croft.dev/croft/api/v1alpha1"
)

func TestReservations(t *testing.T) {
	for _, test := range []struct {
		cidr, pods, gateway, excluded string
		usable, left                  uint64
	}{
		{"10.0.4.0/24", "10.0.4.32/27", "10.0.4.1", "", 32, 219},
		{"10.0.4.0/24", "10.0.4.0/25", "", "10.0.4.0/30", 124, 127},
		{"10.0.4.0/24", "10.0.4.128/25", "10.0.4.1", "10.0.4.255/32", 127, 124},
		{"10.0.4.0/24", "10.0.4.128/25", "10.0.4.200", "10.0.4.200/32 10.0.4.255/32", 126, 124},
		{"10.0.4.0/24", "10.0.4.0/24", "", "10.0.4.0/30 10.0.4.255/32", 251, 0},
		{"10.0.4.0/24", "10.0.4.0/31", "", "10.0.4.0/31", 0, 251},
		{"10.0.4.0/28", "10.0.4.8/30", "", "", 4, 7},
		{"fd00::/64", "fd00::/96", "", "fd00::/126", 1<<32 - 4, 1<<63 - 1 - 1<<32 - 1},
	} {
		r, err := ReservationOf("n4", &v1alpha1.SecondaryNetworkZone{CIDR: test.cidr, PodCIDR: test.pods, Gateway: test.gateway})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Trim(fmt.Sprint(r.Excluded()), "[]"); got != test.excluded {
			t.Errorf("of %s in %s is excluded %q, not %q", test.pods, test.cidr, got, test.excluded)
		}
		if r.CountUsable() != test.usable || r.CountLeft() != test.left {
			t.Errorf("%s in %s has %d addresses for pods and leaves %d, not %d and %d",
				test.pods, test.cidr, r.CountUsable(), r.CountLeft(), test.usable, test.left)
		}
	}
}
