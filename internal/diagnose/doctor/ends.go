package doctor

import (
	"fmt"
	"time"
)

// deleting is the time that a running operator needs at most to delete a TenantNamespace.
const deleting = time.Minute

// checkEnds reports namespaces that tenants requested and whose end has passed.
func checkEnds(s *Snapshot) []Finding {
	if s.Declared == nil {
		return nil
	}
	var all []Finding
	for i := range s.Declared.Requests {
		r := &s.Declared.Requests[i]
		end := r.Status.Until
		if r.Status.Tenant == "" || end == nil || r.DeletionTimestamp != nil || s.Now.Sub(end.Time) <= deleting {
			continue
		}
		all = append(all, Finding{
			Severity: Problem, Object: "TenantNamespace/" + r.Namespace + "/" + r.Name,
			Message: fmt.Sprintf("namespace %s of tenant %s ended at %s, and still exists",
				r.Name, r.Status.Tenant, end.UTC().Format(time.RFC3339)),
			Fix: "run the operator, which deletes the namespace with everything in it; to keep it, write a later spec.until before that",
		})
	}
	return all
}
