package doctor

import (
	"cmp"
	"fmt"

	"croft.dev/croft/api/v1alpha1"
)

// checkCallers reports TenantCallers that the operator ignores. Their teams may expect that they are in
// force. TenantCallers that wait for another tenant, or that have expired, are no findings.
func checkCallers(s *Snapshot) []Finding {
	if s.Estate == nil {
		return nil
	}
	var all []Finding
	for _, t := range s.Estate.Tenants {
		for i := range t.Callers {
			d := &t.Callers[i]
			if d.Refused == "" {
				continue
			}
			all = append(all, Finding{
				Severity: Warning, Object: "TenantCaller/" + d.Namespace + "/" + d.Name,
				Message: fmt.Sprintf("the operator ignores this consent of tenant %s to connections from tenant %s: %s", t.Name, d.Spec.Tenant, d.Message),
				Fix:     cmp.Or(callerFixes[d.Refused], "ask the team to delete the TenantCaller"),
			})
		}
	}
	return all
}

// callerFixes are the ways to make a TenantCaller count, by the reason why it is ignored.
var callerFixes = map[string]string{
	v1alpha1.ReasonNotAllowed: "add the tenant to network.callersFrom in croft.yaml, or ask the team to delete the TenantCaller",
	v1alpha1.ReasonInvalid:    "ask the team to correct the TenantCaller",
	v1alpha1.ReasonRefused:    "ask the team to delete the TenantCaller, and to create it again if it still agrees",
}
