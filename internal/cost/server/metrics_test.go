package server

import (
	"net/http"
	"testing"

	"croft.dev/croft/internal/declare/budget"
)

// sumOfAll is a metric with the cost of all tenants.
const sumOfAll = `croft_ledger_cost_per_hour{currency="USD",kind="tenant"} 123.456789`

// TestMetricsOfScraper expects the metrics for a user with the right to them.
func TestMetricsOfScraper(t *testing.T) {
	s, _ := newTestServer()
	if status, body := sendRequest(s, "GET "+MetricsPath, "scraper-token"); status != http.StatusOK || body != sumOfAll {
		t.Errorf("%d %s", status, body)
	}
}

// metricsAttacks are requests for metrics that must get no answer, and requests for costs with the right to metrics.
var metricsAttacks = []attack{
	{name: "no token", request: "GET " + MetricsPath, free: true, without: []guard{tokenRequired, authentication}},
	{name: "the token in the query", request: "GET " + MetricsPath + "?token=scraper-token", free: true, without: []guard{noParameters, parameters, tokenPlace}},
	{name: "an unknown token", request: "GET " + MetricsPath, token: "guess", without: []guard{authentication}},
	{name: "a tenant's member", request: "GET " + MetricsPath, token: "ana-token", without: []guard{rightToMetrics}},
	{name: "a tenant's robot", request: "GET " + MetricsPath, token: "robot-token", without: []guard{rightToMetrics}},
	{name: "a reader of a platform namespace", request: "GET " + MetricsPath, token: "sre-token", without: []guard{rightToMetrics}},
	{name: "the operator's token for the ledger", request: "GET " + MetricsPath, token: "operator-token", without: []guard{audience, rightToMetrics}},
	{name: "a namespace", request: "GET " + MetricsPath + "?namespace=shop-prod", token: "scraper-token", free: true, without: []guard{noParameters}},
	{name: "a choice of metrics", request: "GET " + MetricsPath + "?name[]=croft_ledger_cost_per_hour", token: "scraper-token", free: true, without: []guard{noParameters, parameters}},
	{name: "a POST", request: "POST " + MetricsPath, token: "scraper-token", free: true, without: []guard{method}},
	{name: "impersonation", request: "GET " + MetricsPath, token: "scraper-token", headers: []string{"Impersonate-User: auditor"}, free: true, without: []guard{impersonation}},
	{name: "the path of the other address", request: "GET /metrics", token: "scraper-token", free: true, noPath: true},
	{name: "a longer path", request: "GET " + MetricsPath + "/costs", token: "scraper-token", free: true, noPath: true},
	{name: "the scraper's token for all costs", request: "GET " + Path, token: "scraper-token", without: []guard{rightInCluster}},
	{name: "the scraper's token for charges", request: "GET " + ChargesPath, token: "scraper-token", without: []guard{rightInCluster}},
	{name: "the scraper's token for months", request: "GET " + HistoryPath, token: "scraper-token", without: []guard{rightInCluster}},
	{name: "the scraper's token for a tenant's cost", request: "GET " + Path + "?namespace=bank", token: "scraper-token", without: []guard{rightInNamespace}},
	{name: "the scraper's token for budgets", request: "GET " + budget.Path, token: "scraper-token", without: []guard{audience, rightToBudgets}},
}
