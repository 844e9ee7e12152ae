package page

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"croft.dev/croft/internal/diagnose/me"
	"croft.dev/croft/internal/diagnose/why"
)

// NewQuota returns the page of a tenant's quota: a table for each namespace, the shown one first.
func NewQuota(namespace string, m *me.Me) Page {
	var first, others Sections
	for _, n := range m.Namespaces {
		s := Section{
			Heading: "Quota of " + n.Name, Head: []string{"Resource", "Used", "Of", "Free", "Share"},
			Empty: "There is no quota: a platform admin declares it as quota of the Tenant.",
		}
		if len(n.Unreadable) > 0 && len(n.Quota) == 0 {
			s.Empty = "You may not read the quota of this namespace: ask a platform admin for a role in it."
		}
		for _, u := range n.Quota {
			s.Rows = append(s.Rows, []Cell{{Text: string(u.Resource)}, {Text: u.Used}, {Text: u.Hard}, {Text: computeFree(u)}, newShareCell(u)})
		}
		if n.Name == namespace {
			first = append(first, s)
		} else {
			others = append(others, s)
		}
	}
	return Page{
		Title: "Quota of " + namespace, Heading: "Quota of tenant " + m.Tenant, Namespace: namespace, Tab: TabQuota,
		Commands: []string{"croft me -n " + namespace, "kubectl get resourcequotas -n " + namespace},
		Body:     append(first, others...),
	}
}

// newShareCell marks a nearly used quota.
func newShareCell(u me.Use) Cell {
	share := min(u.Percent, 100)
	cell := Cell{Share: &share}
	if u.IsNearlyUsedUp() {
		cell.Verdict = why.Waiting
	}
	return cell
}

// computeFree returns the part of a quota that objects may still use.
func computeFree(u me.Use) string {
	hard, err := resource.ParseQuantity(u.Hard)
	if err != nil {
		return "-"
	}
	used, err := resource.ParseQuantity(u.Used)
	if err != nil {
		return "-"
	}
	if used.Cmp(hard) >= 0 {
		return "0"
	}
	hard.Sub(used)
	return hard.String()
}
