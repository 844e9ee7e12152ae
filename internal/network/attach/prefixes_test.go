package attach

import (
	"strings"
	"testing"

	"croft.dev/croft/internal/declare/secondary"
)

// newDelegatedState returns a node whose networks assign it prefixes, with its interfaces in place.
func newDelegatedState(prefixes ...string) *State {
	s := newState()
	for _, n := range s.Networks {
		for i := range n.Spec.Zones {
			n.Spec.Zones[i].CIDR, n.Spec.Zones[i].PodCIDR = "10.0.4.0/24", "10.0.4.64/26"
		}
	}
	s.Networks[0].Spec.PrefixesPerNode = 1
	s.Interfaces = []Interface{newAttached("eni-1", "u1", "n3", "i-1", 1), newAttached("eni-2", "u1", "n6", "i-1", 2)}
	for i := range s.Interfaces {
		s.Interfaces[i].MAC = "02:00:00:00:00:03"
	}
	s.Interfaces[0].Prefixes = prefixes
	return s
}

// TestMakePlanRequestsPrefixes fails if an interface is created without the prefixes of its
// network, or if the token does not depend on their number.
func TestMakePlanRequestsPrefixes(t *testing.T) {
	s := newDelegatedState()
	s.Interfaces = nil
	created := MakePlan(s).Create
	if len(created) != 2 || created[0].Prefixes != 1 || created[1].Prefixes != 0 {
		t.Fatalf("%+v", created)
	}
	s.Networks[0].Spec.PrefixesPerNode = 2
	again := MakePlan(s).Create
	if again[0].Prefixes != 2 || again[0].Token == created[0].Token || again[1].Token != created[1].Token {
		t.Errorf("with 1: %s, with 2: %s", created[0].Token, again[0].Token)
	}
}

// TestListAttachedWithPrefixes fails if a node assigns addresses outside its own prefixes, or
// any address if EC2 chose prefixes that pods may not use.
func TestListAttachedWithPrefixes(t *testing.T) {
	for name, test := range map[string]struct {
		prefixes []string
		wantText string
	}{
		"of the reservation": {[]string{"10.0.4.80/28"}, ""},
		"none":               {nil, "has no prefix, and secondary network n3 now requires 1"},
		"of the rest":        {[]string{"10.0.4.80/28", "10.0.4.16/28"}, "reserve this range with the type prefix"},
		"unreadable":         {[]string{"?"}, "reserve this range with the type prefix"},
	} {
		s := newDelegatedState(test.prefixes...)
		p, all := MakePlan(s), ListAttached(s)["u1"]
		if test.wantText == "" {
			if len(p.Problems) > 0 || len(all) != 2 || !strings.Contains(all[0].ZoneFile, `"range": "10.0.4.80-10.0.4.95/24"`) {
				t.Errorf("%s: %v, %+v", name, p.Problems, all)
			}
			if _, file := secondary.ZoneFile("n6", &s.Networks[1].Spec.Zones[0]); all[1].ZoneFile != file {
				t.Errorf("%s: the other network's file is %s", name, all[1].ZoneFile)
			}
			continue
		}
		if len(all) > 0 || len(p.Problems) != 1 || p.Problems[0].Reason != ReasonPrefixes || !strings.Contains(p.Problems[0].Message, test.wantText) {
			t.Errorf("%s: %+v, %+v", name, p.Problems, all)
		}
	}
}
