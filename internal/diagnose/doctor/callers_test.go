package doctor

import (
	"strings"
	"testing"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
)

// TestIgnoredCallers expects a warning with a fix for each TenantCaller that is ignored, and none for
// others.
func TestIgnoredCallers(t *testing.T) {
	for _, test := range []struct{ refused, message, fix string }{
		{"", "", ""},
		{"", "waits for tenant billing, whose network.calls does not name shop", ""},
		{v1alpha1.ReasonNotAllowed, "spec.tenant: teams may not", "callersFrom"},
		{v1alpha1.ReasonInvalid, "spec.ports[0]: http", "correct"},
		{v1alpha1.ReasonLimitReached, "the tenant already has", "delete"},
		{v1alpha1.ReasonRefused, "was created for an earlier tenant", "create it again"},
	} {
		d := estate.CallerDecision{Namespace: "shop", Name: "api", Refused: test.refused, Message: test.message}
		d.Spec.Tenant = "billing"
		found := checkCallers(&Snapshot{Estate: &estate.Estate{Tenants: []*estate.Tenant{{Name: "shop", Callers: []estate.CallerDecision{d}}}}})
		switch {
		case test.fix == "" && len(found) > 0:
			t.Errorf("%s: %+v", test.message, found)
		case test.fix == "":
		case len(found) != 1 || found[0].Severity != Warning || found[0].Object != "TenantCaller/shop/api" ||
			!strings.Contains(found[0].Message, test.message) || !strings.Contains(found[0].Fix, test.fix):
			t.Errorf("%s: %+v", test.refused, found)
		}
	}
	if found := checkCallers(&Snapshot{}); found != nil {
		t.Errorf("without an estate: %+v", found)
	}
}
