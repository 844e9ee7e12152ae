package tier_test

import (
	"strings"
	"testing"

	"croft.dev/croft/internal/observe/netpol/tier"
)

// newFixedPolicy returns a policy with a constant result.
func newFixedPolicy(name string, order float64, selects tier.Match, decides tier.Action) *tier.Policy {
	return &tier.Policy{Name: name, Order: order, Evaluate: func(*tier.Connection, tier.Direction) (tier.Match, tier.Action) { return selects, decides }}
}

func TestDecide(t *testing.T) {
	allow, deny, pass := newFixedPolicy("allow", 10, tier.Yes, tier.Allow), newFixedPolicy("deny", 10, tier.Yes, tier.Deny), newFixedPolicy("pass", 10, tier.Yes, tier.Pass)
	silent, absent := newFixedPolicy("silent", 10, tier.Yes, ""), newFixedPolicy("absent", 1, tier.No, tier.Deny)
	early := newFixedPolicy("early", 5, tier.Yes, tier.Deny)
	for name, test := range map[string]struct {
		tiers     []tier.Tier
		allowed   bool
		by        string
		selecting string
	}{
		"without any policy everything is let through":     {nil, true, "", ""},
		"the lowest order decides":                         {[]tier.Tier{{Policies: []*tier.Policy{allow, early}}}, false, "early", "early"},
		"of one order, the name":                           {[]tier.Tier{{Policies: []*tier.Policy{deny, allow}}}, true, "allow", "allow"},
		"the lowest tier decides":                          {[]tier.Tier{{Order: 2, Policies: []*tier.Policy{allow}}, {Order: 1, Policies: []*tier.Policy{deny}}}, false, "deny", "deny"},
		"who does not select is not asked":                 {[]tier.Tier{{Policies: []*tier.Policy{absent, allow}}}, true, "allow", "allow"},
		"a silent policy leaves it to the next":            {[]tier.Tier{{Denies: true, Policies: []*tier.Policy{silent, newFixedPolicy("later", 20, tier.Yes, tier.Allow)}}}, true, "later", "silent later"},
		"a tier that selects denies at its end":            {[]tier.Tier{{Denies: true, Policies: []*tier.Policy{silent}}}, false, "", "silent"},
		"unless it lets on":                                {[]tier.Tier{{Policies: []*tier.Policy{silent}}}, true, "", "silent"},
		"or selects not":                                   {[]tier.Tier{{Denies: true, Policies: []*tier.Policy{absent}}}, true, "", ""},
		"Pass leaves it to the next tier":                  {[]tier.Tier{{Order: 1, Denies: true, Policies: []*tier.Policy{pass, early}}, {Order: 2, Policies: []*tier.Policy{allow}}}, false, "early", "early"},
		"and not to the rest of its own":                   {[]tier.Tier{{Order: 1, Denies: true, Policies: []*tier.Policy{pass, newFixedPolicy("later", 20, tier.Yes, tier.Deny)}}, {Order: 2, Policies: []*tier.Policy{allow}}}, true, "allow", "pass allow"},
		"without a known order, the policy that opens":     {[]tier.Tier{{Tied: true, Policies: []*tier.Policy{newFixedPolicy("a", 1, tier.Yes, tier.Deny), newFixedPolicy("b", 1, tier.Yes, tier.Allow)}}}, true, "b", "a b"},
		"but not before those of a lower order":            {[]tier.Tier{{Tied: true, Policies: []*tier.Policy{newFixedPolicy("a", 1, tier.Yes, tier.Deny), newFixedPolicy("b", 2, tier.Yes, tier.Allow)}}}, false, "a", "a"},
		"who may select and denies is not relied on":       {[]tier.Tier{{Policies: []*tier.Policy{newFixedPolicy("maybe", 1, tier.Maybe, tier.Deny), allow}}}, true, "allow", "maybe allow"},
		"who may select and allows is taken to do so":      {[]tier.Tier{{Policies: []*tier.Policy{newFixedPolicy("maybe", 1, tier.Maybe, tier.Allow), deny}}}, true, "maybe", "maybe"},
		"who may select does not make a tier deny its end": {[]tier.Tier{{Denies: true, Policies: []*tier.Policy{newFixedPolicy("maybe", 1, tier.Maybe, "")}}}, true, "", "maybe"},
	} {
		t.Run(name, func(t *testing.T) {
			tier.SortTiers(test.tiers)
			got := tier.Decide(test.tiers, &tier.Connection{}, tier.Ingress)
			if got.Allowed != test.allowed || got.DecidedBy != test.by || strings.Join(got.Selecting, " ") != test.selecting {
				t.Errorf("%+v; want allowed %v by %q, selecting %q", got, test.allowed, test.by, test.selecting)
			}
		})
	}
}
