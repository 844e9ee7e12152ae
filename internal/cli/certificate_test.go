package cli

import (
	"testing"
	"time"

	"croft.dev/croft/internal/prove/certificate"
)

// TestExplainUnverified expects the two tenants and the end of a connection that is open after its
// end.
func TestExplainUnverified(t *testing.T) {
	const expired = "the consent to connections from tenant billing to tenant shop ended at 2027-02-01T00:00:00Z, and they are still open: " +
		"the operator closes them when it runs; `croft doctor` names the policy"
	const attacks = "tenant shop's walls did not stop every attack"
	end := time.Date(2027, 2, 1, 0, 0, 0, 0, time.UTC)
	connections := []certificate.Connection{{Caller: "billing", Callee: "shop", Until: &end, Expired: true}, {Caller: "shop", Callee: "mail"}}
	failed := certificate.Attacks{Failed: map[string][]string{"network": {"call-any-tenant"}}}
	for _, test := range []struct {
		predicate certificate.Predicate
		want      string
	}{
		{certificate.Predicate{Attacks: failed}, attacks},
		{certificate.Predicate{}, attacks},
		{certificate.Predicate{Connections: connections}, expired},
		{certificate.Predicate{Connections: connections, Attacks: failed}, expired + "; " + attacks},
	} {
		test.predicate.Tenant = "shop"
		if got := explainUnverified(&test.predicate); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}
