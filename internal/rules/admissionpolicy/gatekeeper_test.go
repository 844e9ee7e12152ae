package admissionpolicy_test

import (
	"strings"
	"testing"

	"croft.dev/croft/internal/rules/admissionpolicy"
)

// TestMutatorNames fails if a long name exceeds the 63 characters that Gatekeeper allows, or
// if two tenants' mutators have the same name.
func TestMutatorNames(t *testing.T) {
	long := strings.Repeat("a", 62)
	seen := map[string]string{}
	for _, tenant := range []string{"shop", long + "b", long + "c", "pool-shop", "daemonset-shop", "a-" + strings.Repeat("-", 50) + "z"} {
		for _, name := range []string{"pool", "pool-daemonset", "tolerate"} {
			got := admissionpolicy.Mutator{Kind: "Assign", Name: name}.Object(tenant, []string{tenant}).GetName()
			if len(got) > 63 || strings.HasSuffix(got, "-") {
				t.Errorf("%s of %s is called %q", name, tenant, got)
			}
			if other := seen[got]; other != "" {
				t.Errorf("%s of %s and %s are both called %q", name, tenant, other, got)
			}
			seen[got] = name + " of " + tenant
		}
	}
}
