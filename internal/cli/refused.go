package cli

import (
	"strconv"

	"croft.dev/croft/api/v1alpha1"
)

// refusedCount returns the number of a tenant's workloads whose pods are refused.
func refusedCount(t *v1alpha1.Tenant) string {
	if t.Status.RefusedPods == nil {
		return "-"
	}
	return strconv.FormatInt(t.Status.RefusedPods.Workloads, 10)
}

// printFirstRefused prints one refused workload of each tenant: the status contains only
// the first.
func (a *app) printFirstRefused(tenants []v1alpha1.Tenant) {
	var first []v1alpha1.RefusedWorkload
	for i := range tenants {
		if refused := tenants[i].Status.RefusedPods; refused != nil {
			first = append(first, refused.First)
		}
	}
	if len(first) > 0 {
		say(a.out, "\n")
		a.printRefused(first)
	}
}

// printRefused prints workloads whose pods are refused. It prints no table, since messages
// may be long.
func (a *app) printRefused(refused []v1alpha1.RefusedWorkload) {
	say(a.out, "Pods are refused:\n")
	for _, w := range refused[:min(len(refused), mostRows)] {
		say(a.out, "%s\n", folded(w.Kind+" "+w.Namespace+"/"+w.Name+": "+w.Message, "  - ", "    "))
	}
	if more := len(refused) - mostRows; more > 0 {
		say(a.out, "  and %d more\n", more)
	}
}
