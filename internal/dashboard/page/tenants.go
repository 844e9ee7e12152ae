package page

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/diagnose/why"
)

// Filter selects tenants.
type Filter struct {
	// Query is a part of the names.
	Query string
	// NotReady selects the tenants that are not Ready.
	NotReady bool
	// WithoutOperator means that no operator runs. The conditions may be out of date then.
	WithoutOperator bool
}

// mostTenants is the maximum number of rows.
const mostTenants = 200

// NewTenants returns the page of the tenants that the user may list.
func NewTenants(tenants []v1alpha1.Tenant, f Filter, now time.Time) Page {
	s := Section{
		Heading: T("Tenants"), Head: listHeads("Tenant", "Ready", "Reason", "Message", "Pools", "Namespaces", "Refused", "Age", "Owner", "Contact", "Description"),
		Search: &Search{Action: "/tenants", Name: "q", Value: f.Query, Label: T("Part of the name"), Button: T("Search"), Option: "not-ready", OptionLabel: T("only tenants that are not Ready"), On: f.NotReady},
		Empty:  T("There are no such tenants: declare them in croft.yaml, and run croft apply."),
	}
	rows := selectTenants(tenants, f)
	if more := len(rows) - mostTenants; more > 0 {
		s.Note = T("%d more tenants are not shown: search for a part of the name.", more)
	}
	for _, r := range rows[:min(len(rows), mostTenants)] {
		s.Rows = append(s.Rows, r.listCells(now))
	}
	return Page{
		Title: T("Tenants"), Heading: T("Tenants"),
		Commands: []string{"croft status --all", "kubectl get tenants"},
		Body:     Sections{s},
	}
}

// tenantRow is a tenant with its condition Ready.
type tenantRow struct {
	*v1alpha1.Tenant
	ready   metav1.Condition
	refused int64
}

// selectTenants returns the selected tenants, problems first.
func selectTenants(tenants []v1alpha1.Tenant, f Filter) []tenantRow {
	var rows []tenantRow
	for i := range tenants {
		r := tenantRow{Tenant: &tenants[i], ready: findReady(tenants[i].Generation, tenants[i].Status.Status)}
		if f.WithoutOperator {
			r.ready = metav1.Condition{Status: metav1.ConditionUnknown, Reason: "NoOperator"}
		}
		if refused := r.Status.RefusedPods; refused != nil {
			r.refused = refused.Workloads
		}
		if strings.Contains(r.Name, f.Query) && (!f.NotReady || r.ready.Status != metav1.ConditionTrue) {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b tenantRow) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.Name, b.Name))
	})
	return rows
}

// findReady returns the condition Ready, with the words of `croft status` if there is none for the
// current generation.
func findReady(generation int64, status v1alpha1.Status) metav1.Condition {
	c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	if c == nil || status.ObservedGeneration != generation {
		return metav1.Condition{Status: metav1.ConditionUnknown, Reason: "NotSeenYet"}
	}
	return *c
}

func (r tenantRow) rank() int {
	switch {
	case r.ready.Status == metav1.ConditionFalse:
		return 0
	case r.ready.Status != metav1.ConditionTrue:
		return 1
	case r.refused > 0:
		return 2
	default:
		return 3
	}
}

func (r tenantRow) listCells(now time.Time) []Cell {
	verdict := []why.Verdict{why.Bad, why.Waiting, why.Good, why.Good}[r.rank()]
	name, refused := Cell{Text: r.Name}, Cell{Text: strconv.FormatInt(r.refused, 10)}
	if len(r.Status.Namespaces) > 0 {
		name.Link = Link("namespaces", r.Status.Namespaces[0])
	}
	if r.refused > 0 {
		refused.Verdict = why.Bad
	}
	message := r.ready.Message
	if r.ready.Status == metav1.ConditionTrue {
		message = ""
	}
	return []Cell{
		name, {Text: string(r.ready.Status), Verdict: verdict}, {Text: r.ready.Reason}, {Text: message}, {PageText: listFirst(r.Status.Pools)},
		{PageText: listFirst(r.Status.Namespaces)}, refused, newAgeCell(r.CreationTimestamp.Time, now),
		{Text: cmp.Or(r.Spec.Owner, "-")}, {Text: cmp.Or(r.Spec.Contact, "-")}, {Text: cmp.Or(r.Spec.Description, "-")},
	}
}

// listFirst lists the first names.
func listFirst(names []string) Text {
	const most = 3
	if more := len(names) - most; more > 0 {
		return T("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return Raw(cmp.Or(strings.Join(names, ", "), "-"))
}
