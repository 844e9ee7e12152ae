package doctor

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/prove/scratch"
)

// checkLeftovers reports namespaces of runs of `croft verify` that were killed.
func checkLeftovers(s *Snapshot) []Finding {
	var declared []string
	if s.Declared != nil {
		for _, t := range s.Declared.Tenants {
			declared = append(declared, t.Name)
		}
	}
	var namespaces []client.Object
	for i := range s.Namespaces {
		if s.Namespaces[i].DeletionTimestamp == nil {
			namespaces = append(namespaces, &s.Namespaces[i])
		}
	}
	var all []Finding
	for _, run := range scratch.FindExpired(namespaces, declared, s.Now) {
		for _, o := range run.Objects {
			all = append(all, Finding{
				Severity: Warning, Object: "Namespace/" + o.GetName(),
				Message: fmt.Sprintf("a run of `croft verify` created it, and was killed before it could delete it; it expired at %s", run.Until.UTC().Format("2006-01-02 15:04 MST")),
				Fix:     "the next run of `croft verify` deletes it", Run: "croft verify",
			})
		}
	}
	return all
}
