// Package oncall defines Prometheus rules with a runbook for each alert, and Grafana
// dashboards, as data. The files in monitoring/ and the alerts in docs/reference/troubleshooting.md
// are generated from it.
package oncall

import (
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// Severity determines who is notified, and when.
type Severity string

const (
	// Critical pages: a wall may not be enforced, or drift is no longer repaired.
	Critical Severity = "critical"
	// Warning is for the next working day.
	Warning Severity = "warning"
	// Info is for dashboards and for notifications to teams.
	Info Severity = "info"
)

// Alert is an alerting rule and its runbook.
type Alert struct {
	// Name is the alert's name in Prometheus and docs/reference/troubleshooting.md.
	Name string
	// Expr is the query. It returns a series for each problem.
	Expr string
	// For is how long the query must return the series before the alert fires.
	For      time.Duration
	Severity Severity
	// Summary is one line. It may use the labels of the series.
	Summary string
	// Meaning describes the problem, and which guarantees remain.
	Meaning string
	// Fix describes the fix.
	Fix string
	// Run is the first command for the diagnosis.
	Run string
}

// After returns For in Prometheus' format, such as 10m.
func (a Alert) After() string { return model.Duration(a.For).String() }

// Anchor returns the alert's anchor in docs/reference/troubleshooting.md.
func (a Alert) Anchor() string { return strings.ToLower(a.Name) }

// Runbook returns the URL of the alert's runbook.
func (a Alert) Runbook() string { return runbooks + "#" + a.Anchor() }

// runbooks is the URL of docs/reference/troubleshooting.md.
const runbooks = "https://croft.dev/docs/reference/troubleshooting"

// Record is a recording rule: a query whose result is stored under a name.
type Record struct {
	Name, Expr string
}

// Group is a group of rules, which Prometheus evaluates in order.
type Group struct {
	// Name is the group's name. Title is its subject, for people.
	Name, Title string
	Records     []Record
	Alerts      []Alert
}

// Groups returns all rules.
func Groups() []Group {
	return []Group{
		{Name: "croft-operator", Title: "The operator", Records: operatorRecords, Alerts: operatorAlerts},
		{Name: "croft-walls", Title: "The walls", Records: wallRecords, Alerts: wallAlerts},
		{Name: "croft-tenants", Title: "The platform, its pools and tenants", Records: tenantRecords, Alerts: tenantAlerts},
		{Name: "croft-networks", Title: "Secondary networks", Records: networkRecords, Alerts: networkAlerts},
		{Name: "croft-proxy", Title: "croft proxy", Records: proxyRecords, Alerts: proxyAlerts},
		{Name: "croft-ledger", Title: "croft ledger", Records: ledgerRecords, Alerts: ledgerAlerts},
		{Name: "croft-secrets", Title: "croft copy-secrets", Alerts: copierAlerts},
	}
}

// Alerts returns the alerts of all groups.
func Alerts() []Alert {
	var all []Alert
	for _, g := range Groups() {
		all = append(all, g.Alerts...)
	}
	return all
}
