package page

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"croft.dev/croft/internal/diagnose/me"
	"croft.dev/croft/internal/diagnose/why"
)

// NewQuota returns the page of the quota of one of a tenant's namespaces.
func NewQuota(namespace string, m *me.Me) Page {
	var body Sections
	others := Section{Heading: T("Other namespaces"), Note: T("The tenant's quota is divided between its namespaces."), Head: listHeads("Namespace")}
	for _, n := range m.Namespaces {
		if n.Name != namespace {
			others.Rows = append(others.Rows, []Cell{{Text: n.Name, Link: Link("namespaces", n.Name, "quota")}})
			continue
		}
		s := Section{
			Heading: T("Quota of %s", n.Name), Head: listHeads("Resource", "Used", "Of", "Free", "Share"),
			Empty: T("There is no quota: a platform admin declares it as quota of the Tenant."),
		}
		if !n.MayList("resourcequotas") {
			s.Empty = T("You may not read the quota of this namespace: ask a platform admin for a role in it.")
		}
		for _, u := range n.Quota {
			s.Rows = append(s.Rows, []Cell{{Text: string(u.Resource)}, {Text: u.Used}, {Text: u.Hard}, {Text: computeFree(u)}, newShareCell(u)})
		}
		body = append(body, s)
	}
	if len(others.Rows) > 0 {
		body = append(body, others)
	}
	return Page{
		Title: T("Quota of %s", namespace), Heading: T("Quota of tenant %s", m.Tenant), Namespace: namespace, Tab: TabQuota,
		Commands: []string{"croft me -n " + namespace, "kubectl get resourcequotas -n " + namespace},
		Body:     body,
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
