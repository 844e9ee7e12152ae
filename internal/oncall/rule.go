// Package oncall holds what people on call have of croft, as data: Prometheus rules with a
// runbook for each alert, and Grafana dashboards. The files in monitoring/ and the alerts in
// docs/troubleshooting.md are generated from it; nothing is read here.
package oncall

import (
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// Severity says who is told, and when.
type Severity string

const (
	// Critical wakes somebody up: a wall may not hold, or nothing is put back any more.
	Critical Severity = "critical"
	// Warning is for the next working day.
	Warning Severity = "warning"
	// Info is for dashboards, and for teams to be told.
	Info Severity = "info"
)

// Alert is an alerting rule and its runbook.
type Alert struct {
	// Name is what Prometheus and docs/troubleshooting.md call it.
	Name string
	// Expr is the query. It yields a series for each thing that is wrong.
	Expr string
	// For is how long the query has to yield the series before anybody is told.
	For      time.Duration
	Severity Severity
	// Summary is one line. It may use the labels of the series.
	Summary string
	// Means says what is so when it fires, and what still holds.
	Means string
	// Cure says what to do.
	Cure string
	// Run is the first command to look with.
	Run string
}

// After is For as Prometheus writes it, such as 10m.
func (a Alert) After() string { return model.Duration(a.For).String() }

// Anchor is where the alert stands in docs/troubleshooting.md.
func (a Alert) Anchor() string { return strings.ToLower(a.Name) }

// Runbook is the address of the alert's entry.
func (a Alert) Runbook() string { return runbooks + "#" + a.Anchor() }

// runbooks is docs/troubleshooting.md as it is published.
const runbooks = "https://croft.dev/docs/troubleshooting"

// Record is a recording rule: a query that is evaluated beforehand, under a name.
type Record struct {
	Name, Expr string
}

// Group is a group of rules, which Prometheus evaluates one after the other.
type Group struct {
	// Name is the group's, Title is what it is about, for people.
	Name, Title string
	Records     []Record
	Alerts      []Alert
}

// Groups are all rules.
func Groups() []Group {
	return []Group{
		{Name: "croft-operator", Title: "The operator", Records: operatorRecords, Alerts: operatorAlerts},
		{Name: "croft-walls", Title: "The walls", Records: wallRecords, Alerts: wallAlerts},
		{Name: "croft-tenants", Title: "The platform, its pools and tenants", Records: tenantRecords, Alerts: tenantAlerts},
		{Name: "croft-networks", Title: "Secondary networks", Records: networkRecords, Alerts: networkAlerts},
		{Name: "croft-proxy", Title: "croft proxy", Records: proxyRecords, Alerts: proxyAlerts},
	}
}

// Alerts are the alerts of all groups.
func Alerts() []Alert {
	var all []Alert
	for _, g := range Groups() {
		all = append(all, g.Alerts...)
	}
	return all
}
