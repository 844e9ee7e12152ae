package quotaplan_test

import (
	"testing"

	"croft.dev/croft/internal/declare/quotaplan"
)

// FuzzParseRefusal fails if a message that a tenant forges causes a panic, a negative demand, or an
// amount whose computation takes long.
func FuzzParseRefusal(f *testing.F) {
	for _, message := range []string{
		"pods \"a\" is forbidden: exceeded quota: croft, requested: pods=1,requests.cpu=100m, used: pods=2,requests.cpu=1, limited: pods=2",
		"exceeded quota: croft, requested: cpu=1e99, used: cpu=1e99, limited: ",
		"exceeded quota: croft, requested: cpu=-1, used: cpu=1, limited: ",
		"exceeded quota: croft, requested: =1,,a==1, used: =9223372036854775807, limited: ",
	} {
		f.Add(message)
	}
	f.Fuzz(func(t *testing.T, message string) {
		refusal, ok := quotaplan.ParseRefusal(message)
		if demand := refusal.Demand(); ok != (len(demand) > 0) {
			t.Errorf("a demand for %v, and it is a refusal: %t", demand, ok)
		}
		for name, amount := range refusal.Demand() {
			if amount.Sign() < 0 {
				t.Errorf("a demand for %s %s", amount.String(), name)
			}
			amount.MilliValue()
		}
	})
}
