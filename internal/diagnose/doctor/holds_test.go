package doctor

import (
	"strings"
	"testing"

	"croft.dev/croft/internal/prove/verify"
)

// TestCheckAttacks fails if doctor counts attacks that were not run.
func TestCheckAttacks(t *testing.T) {
	s := &Snapshot{AttackResults: []AttackResults{{Tenant: "shop", Results: []verify.Result{
		{Name: "a", Result: verify.Held}, {Name: "b", Result: verify.Held}, {Name: "c", Result: verify.NotTried},
	}}}}
	if found := checkAttacks(s); len(found) > 0 {
		t.Errorf("it finds %+v", found)
	}
	if summary := summarizeAttacks(s); !strings.HasPrefix(summary, "the walls stopped 2 attacks") {
		t.Errorf("of three attacks, one of which was not tried, the summary is %q", summary)
	}
	s.AttackResults[0].Results[0].Result = verify.Breached
	if found := checkAttacks(s); len(found) != 1 || !strings.Contains(found[0].Message, "stopped 1 of 2 attacks") {
		t.Errorf("it finds %+v", found)
	}
}
