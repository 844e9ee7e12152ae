package server

import (
	"net/http"
	"slices"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"croft.dev/croft/internal/declare/budget"
)

// sumOfAll is a metric with the cost of all tenants.
const sumOfAll = `croft_ledger_cost_per_hour{currency="USD",kind="tenant"} 123.456789`

// TestMetricsOfScraper expects the metrics for a user with the right to them.
func TestMetricsOfScraper(t *testing.T) {
	s, _ := newTestServer()
	if status, body := ask(s, "GET "+MetricsPath, "scraper-token"); status != http.StatusOK || body != sumOfAll {
		t.Errorf("%d %s", status, body)
	}
}

// metricsAttacks are requests for metrics that must get no answer, and requests for costs with the right to metrics.
var metricsAttacks = []attack{
	{name: "no token", request: "GET " + MetricsPath, free: true},
	{name: "the token in the query", request: "GET " + MetricsPath + "?token=scraper-token", free: true},
	{name: "an unknown token", request: "GET " + MetricsPath, token: "guess"},
	{name: "a tenant's member", request: "GET " + MetricsPath, token: "ana-token"},
	{name: "a tenant's robot", request: "GET " + MetricsPath, token: "robot-token"},
	{name: "a reader of a platform namespace", request: "GET " + MetricsPath, token: "sre-token"},
	{name: "the operator's token for the ledger", request: "GET " + MetricsPath, token: "operator-token"},
	{name: "a namespace", request: "GET " + MetricsPath + "?namespace=shop-prod", token: "scraper-token", free: true},
	{name: "a choice of metrics", request: "GET " + MetricsPath + "?name[]=croft_ledger_cost_per_hour", token: "scraper-token", free: true},
	{name: "a POST", request: "POST " + MetricsPath, token: "scraper-token", free: true},
	{name: "impersonation", request: "GET " + MetricsPath, token: "scraper-token", headers: []string{"Impersonate-User: auditor"}, free: true},
	{name: "the path of the other address", request: "GET /metrics", token: "scraper-token", free: true},
	{name: "a longer path", request: "GET " + MetricsPath + "/costs", token: "scraper-token", free: true},
	{name: "the scraper's token for all costs", request: "GET " + Path, token: "scraper-token"},
	{name: "the scraper's token for charges", request: "GET " + ChargesPath, token: "scraper-token"},
	{name: "the scraper's token for months", request: "GET " + HistoryPath, token: "scraper-token"},
	{name: "the scraper's token for a tenant's cost", request: "GET " + Path + "?namespace=bank", token: "scraper-token"},
	{name: "the scraper's token for budgets", request: "GET " + budget.Path, token: "scraper-token"},
}

// TestMetricsAttacks expects that no attack succeeds, and that one does without each guard.
func TestMetricsAttacks(t *testing.T) {
	for i := range metricsAttacks {
		metricsAttacks[i].refused = true
		s, r := newTestServer()
		if a := metricsAttacks[i]; a.succeeds(s, func() int { return r.count }) {
			t.Errorf("%s succeeds", a.name)
		}
	}
	for name, l := range map[string]*lenient{
		"without authentication": {authenticates: func(*authorizationv1.SubjectAccessReview) bool { return true },
			allows: func(*authorizationv1.SubjectAccessReview) bool { return true }},
		"without the right": {allows: func(r *authorizationv1.SubjectAccessReview) bool {
			return r.Spec.ResourceAttributes.Subresource == MetricsSubresource
		}},
		"with the right to metrics as one to costs": {allows: func(r *authorizationv1.SubjectAccessReview) bool {
			return r.Spec.User == scraper
		}},
	} {
		s, _ := newTestServer()
		s.Reviews = l
		if !slices.ContainsFunc(metricsAttacks, func(a attack) bool { return a.succeeds(s, func() int { return l.count }) }) {
			t.Errorf("no attack succeeds %s", name)
		}
	}
}
