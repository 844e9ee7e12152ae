package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"croft.dev/croft/internal/cost/collect"
	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/money"
	"croft.dev/croft/internal/cost/store"
	"croft.dev/croft/internal/declare/budget"
)

// readBudgets returns the answer to croft's operator.
func readBudgets(t *testing.T, s *server) budget.Answer {
	t.Helper()
	status, body := sendRequest(s, "GET "+budget.Path, "operator-token")
	var answer budget.Answer
	if err := json.Unmarshal([]byte(body), &answer); err != nil || status != http.StatusOK {
		t.Fatalf("%d %v: %s", status, err, body)
	}
	return answer
}

// TestBudgets expects each tenant's cost as its own people may read it.
func TestBudgets(t *testing.T) {
	s, _ := newTestServer()
	answer := readBudgets(t, s)
	if answer.Month != "2026-11" || answer.Currency != "USD" || !answer.Now.Equal(now) || answer.Complete {
		t.Errorf("got %+v", answer)
	}
	// The cost of shop without its idle cost in the shared pool apps: 2 × web, old, and test with the idle
	// cost of the pool solo. The bank has its idle cost of the pools vault and, an hour earlier, solo.
	for tenant, want := range map[string]int64{
		"shop": 2*1_000_000 + 50_000 + 200_000 + 300_000,
		"bank": 2*(4_444_444+9_999_999+1_111_111+5_555_555) + 4_141_414 + 4_242_424 + 4_343_434,
	} {
		if got := answer.Tenants[tenant]; got.Spent != want || got.Forecast != nil {
			t.Errorf("%s: got %+v, want %d", tenant, got, want)
		}
	}
	if len(answer.Tenants) != 2 {
		t.Errorf("got %+v, want two tenants", answer.Tenants)
	}
}

// TestBudgetsOfMonth expects the cost of this month only, a forecast, and whether hours are missing.
func TestBudgetsOfMonth(t *testing.T) {
	month := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	build := func(skip int) *world {
		w := &world{view: collect.View{Now: now}}
		rows := []ledger.Row{newRow(ledger.Tenant, "shop", "shop-prod", "Deployment/web", "apps", 1_000_000, 0)}
		w.view.Next = store.Record{Currency: "USD"}
		for day := -3; month.AddDate(0, 0, day).Before(now); day++ {
			until := month.AddDate(0, 0, day+1)
			if until.After(now) {
				until = now
			}
			if day != skip {
				w.records = append(w.records, store.Record{Span: ledger.Span{From: month.AddDate(0, 0, day), Until: until}, Currency: "USD", Rows: rows})
			}
		}
		return w
	}
	s, _ := newTestServer()
	s.Source = build(100)
	answer := readBudgets(t, s)
	// 25 days and a half of the 26th, and then 4.48 days of 1 USD.
	shop := answer.Tenants["shop"]
	if shop.Spent != 26_000_000 || shop.Forecast == nil || *shop.Forecast != 30_479_167 || !answer.Complete {
		t.Errorf("got %+v %v, complete: %t", shop, shop.Forecast, answer.Complete)
	}
	s.Source = build(7)
	if answer := readBudgets(t, s); answer.Complete || answer.Tenants["shop"].Spent != 25_000_000 {
		t.Errorf("a day is missing: got %+v", answer)
	}
	s.Source = build(-2)
	if answer := readBudgets(t, s); !answer.Complete {
		t.Errorf("a day of the last month is missing: got %+v", answer)
	}
}

// TestBudgetPrices expects the price of a tenant's own requests on nodes since the beginning of the last complete day.
func TestBudgetPrices(t *testing.T) {
	// A CPU, or 9 GiB, for an hour.
	const weight = 1000 * 9216 * 3600
	newRow := func(tenant, pool string, cost, weight int64) ledger.Row {
		r := newRow(ledger.Tenant, tenant, tenant, "Deployment/web", pool, money.Amount(cost), 7_000)
		r.Weight = weight
		return r
	}
	volume := newRow("shop", "", 9_000, weight)
	volume.Resource = ledger.VolumeResource
	yesterday := now.Truncate(24*time.Hour).AddDate(0, 0, -1)
	w := &world{view: collect.View{Now: now, Next: store.Record{Currency: "USD"}}, records: []store.Record{
		{Span: ledger.Span{From: yesterday.Add(-time.Hour), Until: yesterday}, Currency: "USD", Rows: []ledger.Row{newRow("shop", "apps", 900_000, weight)}},
		{Span: ledger.Span{From: yesterday, Until: yesterday.Add(time.Hour)}, Currency: "USD", Rows: []ledger.Row{
			newRow("shop", "apps", 40_000, weight), newRow("bank", "apps", 900_000, weight), volume}},
		{Span: ledger.Span{From: now.Add(-time.Hour), Until: now}, Currency: "USD", Rows: []ledger.Row{
			newRow("shop", "apps", 60_000, weight), newRow("shop", "jobs", 20_000, weight/2), newRow("shop", "small", 100, weight/61)}},
	}}
	s, _ := newTestServer()
	s.Source = w
	got := readBudgets(t, s).Tenants["shop"].Prices
	if want := map[string]int64{"apps": 50_000 * 730, "jobs": 40_000 * 730}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// budgetAttacks are requests for the budgets that must get no answer.
var budgetAttacks = []attack{
	{name: "no token", request: "GET " + budget.Path, free: true, without: []guard{tokenRequired, authentication}},
	{name: "an unknown token", request: "GET " + budget.Path, token: "guess", without: []guard{authentication}},
	{name: "an auditor's token, for the API server", request: "GET " + budget.Path, token: "auditor-token", without: []guard{audience, rightToBudgets}},
	{name: "an auditor's token for the ledger", request: "GET " + budget.Path, token: "auditor-ledger-token", without: []guard{rightToBudgets}},
	{name: "a tenant's robot, with a token for the ledger", request: "GET " + budget.Path, token: "robot-ledger-token", without: []guard{rightToBudgets}},
	{name: "a namespace", request: "GET " + budget.Path + "?namespace=shop-prod", token: "operator-token", free: true, without: []guard{noParameters}},
	{name: "a period", request: "GET " + budget.Path + "?since=1h", token: "operator-token", free: true, without: []guard{noParameters}},
	{name: "a POST", request: "POST " + budget.Path, token: "operator-token", free: true, without: []guard{method}},
	{name: "impersonation", request: "GET " + budget.Path, token: "operator-token", headers: []string{"Impersonate-User: auditor"}, free: true, without: []guard{impersonation}},
	{name: "the operator's token for all costs", request: "GET /v1/costs", token: "operator-token", without: []guard{audience, rightInCluster}},
	{name: "the operator's token for charges", request: "GET /v1/charges", token: "operator-token", without: []guard{audience, rightInCluster}},
	{name: "the operator's token for a tenant's cost", request: "GET /v1/costs?namespace=bank", token: "operator-token", without: []guard{audience, rightInNamespace}},
}

// TestBudgetsAreIndependentOfOthers changes the neighbours of shop in random hours. Its cost, and so the stage of its
// budget, stays the same, to the millionth of rounding on each node, and so does its price. Without the guard of idle
// cost it does not.
func TestBudgetsAreIndependentOfOthers(t *testing.T) {
	differ := func(list []filter) (most int64) {
		for seed := range uint64(100) {
			r := rand.New(rand.NewPCG(seed, 5)) //nolint:gosec // a test repeats its numbers
			own := makePods(r, "shop", "shop-prod", 2, 3)
			var spent, price [2]int64
			for i := range spent {
				pods := append(slices.Clone(own), makePods(r, "bank", "bank", 2, r.IntN(6))...)
				s, _ := newTestServer()
				s.filters = list
				answer, err := s.sumMonth(makeView(computeNeighbours(t, pods, 2)))
				if err != nil {
					t.Fatal(err)
				}
				spent[i], price[i] = answer.Tenants["shop"].Spent, answer.Tenants["shop"].Prices["apps"]
			}
			// Two millionths of the cost of an hour, for the price of a CPU in a month.
			rounding := 2*price[0]/max(spent[0], 1) + 1
			if len(list) == len(filters) && (price[0] == 0 || max(price[0]-price[1], price[1]-price[0]) > rounding) {
				t.Errorf("seed %d: the price for shop depends on its neighbours: %v", seed, price)
			}
			most = max(most, spent[0]-spent[1], spent[1]-spent[0])
		}
		return most
	}
	if got := differ(filters); got > 2 {
		t.Errorf("the cost of shop depends on its neighbours: it differs by %d millionths", got)
	}
	without := slices.DeleteFunc(slices.Clone(filters), func(f filter) bool { return f.name == "idle cost" })
	if got := differ(without); got < 1000 {
		t.Errorf("the guard of idle cost has no effect: %d millionths", got)
	}
	if s, _ := newTestServer(); strings.Contains(fmt.Sprint(readBudgets(t, s)), "(idle)") {
		t.Error("the answer has a line for idle capacity")
	}
}
