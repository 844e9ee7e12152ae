package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"croft.dev/croft/internal/cost/report"
)

// attack is a request with which a user tries to learn about others.
type attack struct {
	name, request, token string
	headers              []string
	// refused means that every answer is a success of the attack. Otherwise, an answer with one
	// of the texts in reveals is.
	refused bool
	reveals []string
	// free means that the request must not even cause one to the API server: anyone can send it.
	free bool
	// without are the guards without which the attack succeeds. With any one of them, it does not. also are other such sets.
	without []guard
	also    [][]guard
	// noPath means that no guard refuses the attack: its path does not exist.
	noPath bool
}

// others are texts that only rows of others have, or sums with others, for the people of shop.
var others = []string{
	"bank", "vault", "secret", "kube-system", "DaemonSet", "(platform)", "(idle)", "(unallocated)", "pod-of-ledger", "lost",
	"7.777777", "15.555554", "6.666666", "3.333333", "1.212121", "2.424242", "4.444444", "8.888888", "9.999999", "1.111111",
	"5.555555", "123.456789", "0.098765", "4.141414", "4.242424", "4.343434",
	// Its own share of the idle cost of apps, alone, twice, and with the rest.
	"2.222222", "4.444444", "0.060000", "4.504444", "4.804444", "3.722222", "2.522222", "7.054444",
	// A job of the bank in the former namespace, with the tenant's own job.
	"4.341414",
}

// refused are the attacks that must get no answer.
var refused = []attack{
	{name: "no token", request: "GET /v1/costs", free: true, without: []guard{tokenRequired, authentication}},
	{name: "no token, with a namespace", request: "GET /v1/costs?namespace=shop-prod", free: true, without: []guard{tokenRequired, authentication}},
	{name: "an empty token", request: "GET /v1/costs", headers: []string{"Authorization: Bearer "}, free: true, without: []guard{tokenRequired, authentication}},
	{name: "a password", request: "GET /v1/costs", headers: []string{"Authorization: Basic YW5hOmFuYQ=="}, free: true, without: []guard{tokenForm, authentication}},
	{name: "the token in the query", request: "GET /v1/costs?token=auditor-token", free: true, without: []guard{parameters, tokenPlace}},
	{name: "the token as access_token", request: "GET /v1/costs?access_token=auditor-token", free: true, without: []guard{parameters, tokenPlace}},
	{name: "the token in a cookie", request: "GET /v1/costs", headers: []string{"Cookie: token=auditor-token"}, free: true, without: []guard{tokenPlace}},
	{name: "the token of a protocol", request: "GET /v1/costs", free: true,
		headers: []string{"Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.YXVkaXRvci10b2tlbg"}, without: []guard{tokenPlace}},
	{name: "two tokens", request: "GET /v1/costs", token: "ana-token", headers: []string{"Authorization: Bearer auditor-token"}, free: true, without: []guard{tokenForm}},
	{name: "two tokens in one header", request: "GET /v1/costs", headers: []string{"Authorization: Bearer ana-token, Bearer auditor-token"}, free: true, without: []guard{tokenForm}},
	{name: "an unknown token", request: "GET /v1/costs", token: "guess", without: []guard{authentication}},
	{name: "an unknown token, with a namespace", request: "GET /v1/costs?namespace=bank", token: "guess", without: []guard{authentication}},
	{name: "a user without a name", request: "GET /v1/costs", token: "nameless", without: []guard{userName}},
	{name: "a user without rights", request: "GET /v1/costs", token: "none-token", without: []guard{rightInCluster}},
	{name: "a user without rights, with a namespace", request: "GET /v1/costs?namespace=shop-prod", token: "none-token", without: []guard{rightInNamespace}},
	{name: "the cluster", request: "GET /v1/costs", token: "ana-token", without: []guard{rightInCluster}},
	{name: "the cluster by pool", request: "GET /v1/costs?by=pool", token: "ana-token", without: []guard{rightInCluster}},
	{name: "the cluster as a robot", request: "GET /v1/costs?by=namespace", token: "robot-token", without: []guard{rightInCluster}},
	{name: "another tenant's namespace", request: "GET /v1/costs?namespace=bank", token: "ana-token", without: []guard{rightInNamespace}},
	{name: "another tenant's namespace as a robot", request: "GET /v1/costs?namespace=bank", token: "robot-token", without: []guard{rightInNamespace}},
	{name: "another tenant's namespace by pool", request: "GET /v1/costs?namespace=bank&by=pool", token: "dev-token", without: []guard{rightInNamespace}},
	{name: "another namespace of the same tenant", request: "GET /v1/costs?namespace=shop-prod", token: "dev-token", without: []guard{rightInNamespace}},
	{name: "a former namespace of the tenant", request: "GET /v1/costs?namespace=shop-dev", token: "bob-token", without: []guard{rightInNamespace}},
	{name: "a deleted namespace of the tenant", request: "GET /v1/costs?namespace=shop-old", token: "ana-token", without: []guard{rightInNamespace, existence}},
	{name: "a deleted namespace, with a right in it", request: "GET /v1/costs?namespace=deleted", token: "gone-token", without: []guard{existence}},
	{name: "a platform namespace", request: "GET /v1/costs?namespace=kube-system", token: "ana-token", without: []guard{rightInNamespace}},
	{name: "an empty namespace", request: "GET /v1/costs?namespace=", token: "auditor-token", free: true, without: []guard{namespace}},
	{name: "a namespace with a slash", request: "GET /v1/costs?namespace=shop-prod/../bank", token: "ana-token", free: true, without: []guard{namespace, rightInNamespace, existence}},
	{name: "all namespaces", request: "GET /v1/costs?namespace=*", token: "auditor-token", free: true, without: []guard{namespace}},
	{name: "a list of namespaces", request: "GET /v1/costs?namespace=shop-prod,bank", token: "ana-token", free: true, without: []guard{namespace, rightInNamespace, existence}},
	{name: "a namespace twice", request: "GET /v1/costs?namespace=shop-prod&namespace=bank", token: "ana-token", free: true, without: []guard{parameters}},
	{name: "a namespace with a line break", request: "GET /v1/costs?namespace=shop-prod%0abank", token: "ana-token", free: true, without: []guard{namespace, rightInNamespace, existence}},
	{name: "a namespace in capitals", request: "GET /v1/costs?namespace=BANK", token: "auditor-token", free: true, without: []guard{namespace}},
	{name: "a tenant", request: "GET /v1/costs?namespace=shop-prod&tenant=bank", token: "ana-token", free: true, without: []guard{parameters}},
	{name: "a pool", request: "GET /v1/costs?namespace=shop-prod&pool=apps", token: "ana-token", free: true, without: []guard{parameters}},
	{name: "a label", request: "GET /v1/costs?namespace=shop-prod&labelSelector=app", token: "ana-token", free: true, without: []guard{parameters}},
	{name: "a filter", request: "GET /v1/costs?namespace=shop-prod&filter=tenant:bank", token: "ana-token", free: true, without: []guard{parameters}},
	{name: "the end of a period", request: "GET /v1/costs?namespace=shop-prod&until=2026-11-26T12:00:00Z", token: "ana-token", free: true, without: []guard{parameters}},
	{name: "a step", request: "GET /v1/costs?namespace=shop-prod&step=1m", token: "ana-token", free: true, without: []guard{parameters}},
	{name: "an explanation", request: "GET /v1/costs?namespace=shop-prod&explain=true", token: "ana-token", free: true, without: []guard{parameters}},
	{name: "a malformed query", request: "GET /v1/costs?namespace=shop-prod;by=pool", token: "ana-token", free: true, without: []guard{parameters, rightInCluster}},
	{name: "a grouping by node", request: "GET /v1/costs?namespace=shop-prod&by=node", token: "ana-token", free: true, without: []guard{grouping}},
	{name: "a grouping by label", request: "GET /v1/costs?namespace=shop-prod&by=label:team", token: "ana-token", free: true, without: []guard{grouping}},
	{name: "two groupings", request: "GET /v1/costs?namespace=shop-prod&by=pool&by=tenant", token: "ana-token", free: true, without: []guard{parameters}},
	{name: "two groupings in one", request: "GET /v1/costs?namespace=shop-prod&by=pool,tenant", token: "ana-token", free: true, without: []guard{grouping}},
	{name: "an empty grouping", request: "GET /v1/costs?namespace=shop-prod&by=", token: "ana-token", free: true, without: []guard{grouping}},
	{name: "the future", request: "GET /v1/costs?namespace=shop-prod&since=-5h", token: "ana-token", free: true, without: []guard{period}},
	{name: "no time", request: "GET /v1/costs?namespace=shop-prod&since=0s", token: "ana-token", free: true, without: []guard{period}},
	{name: "all times", request: "GET /v1/costs?namespace=shop-prod&since=9000d", token: "ana-token", free: true, without: []guard{period}},
	{name: "an overflow", request: "GET /v1/costs?namespace=shop-prod&since=65535d", token: "ana-token", free: true, without: []guard{period}},
	{name: "no period", request: "GET /v1/costs?namespace=shop-prod&since=", token: "ana-token", free: true, without: []guard{period}},
	{name: "impersonation", request: "GET /v1/costs", token: "ana-token", headers: []string{"Impersonate-User: auditor"}, free: true, without: []guard{impersonation, rightInCluster}},
	{name: "impersonation of a group", request: "GET /v1/costs?namespace=shop-prod", token: "ana-token",
		headers: []string{"Impersonate-Group: system:masters"}, free: true, without: []guard{impersonation}},
	{name: "a front proxy", request: "GET /v1/costs", headers: []string{"X-Remote-User: auditor", "X-Remote-Group: system:masters"}, free: true, without: []guard{impersonation, tokenRequired, authentication}},
	{name: "a front proxy with a token", request: "GET /v1/costs?namespace=shop-prod", token: "ana-token", headers: []string{"X-Remote-User: auditor"}, free: true, without: []guard{impersonation}},
	{name: "a POST", request: "POST /v1/costs?namespace=shop-prod", token: "ana-token", free: true, without: []guard{method}},
	{name: "another method", request: "GET /v1/costs", headers: []string{"X-HTTP-Method-Override: POST"}, free: true, without: []guard{tokenRequired, authentication}},
	{name: "a longer path", request: "GET /v1/costs/bank", token: "auditor-token", free: true, noPath: true},
	{name: "a dotted path", request: "GET /v1/costs/../tenants", token: "auditor-token", free: true, noPath: true},
	{name: "metrics", request: "GET /metrics", token: "auditor-token", free: true, noPath: true},
	{name: "profiles", request: "GET /debug/pprof/heap", token: "auditor-token", free: true, noPath: true},
	{name: "files", request: "GET /hours/20261126T01.000000000001", token: "auditor-token", free: true, noPath: true},
}

// listAnswered are the requests that get an answer, in all groupings and periods: it must not reveal others.
func listAnswered() []attack {
	ofDev := append([]string{"shop-prod", "shop-old", "1.000000", "1.500000", "2.250000", "2.550000"}, others...)
	ofPlatform := append([]string{"shop", "1.313131", "2.626262", "5.050504"}, slices.DeleteFunc(slices.Clone(others), func(text string) bool {
		return slices.Contains([]string{"kube-system", "DaemonSet", "(platform)", "1.212121", "2.424242"}, text)
	})...)
	ofBank := []string{"shop-prod", "shop-old", "shop-code", `"name":"shop"`, "kube-system", "(platform)", "(idle)", "7.777777", "17.777776",
		`"idle":"8.888888"`, "24.343432", "72.727266", "4.442424", "0.200000", "lost"}
	var all []attack
	for _, path := range []string{Path, ChargesPath, HistoryPath} {
		for _, by := range report.Groupings() {
			// Sums by pool and by instance type have no shares of idle cost. Rows and totals have them.
			var idle [][]guard
			if path != Path || by != report.ByPool && by != report.ByInstanceType {
				idle = [][]guard{{filterIdle}}
			}
			for _, since := range []string{"1s", "1h", "2h", "35d"} {
				query := fmt.Sprintf("GET %s?since=%s&by=%s&namespace=", path, since, by)
				all = append(all,
					// All rows of the tenant have one of its namespaces.
					attack{name: "as ana", request: query + "shop-prod", token: "ana-token", reveals: others, without: []guard{filterTenant}, also: idle},
					attack{name: "as ana", request: query + "shop-dev", token: "ana-token", reveals: others, without: []guard{filterTenant}, also: idle},
					attack{name: "as bob", request: query + "bank", token: "bob-token", reveals: ofBank, without: []guard{filterTenant}, also: idle},
					// The pool is exclusive, so that its idle cost is shown.
					attack{name: "as dev", request: query + "shop-dev", token: "dev-token", reveals: ofDev, without: []guard{filterNamespace},
						also: [][]guard{{filterTenant}}},
					attack{name: "as a robot", request: query + "shop-dev", token: "robot-token", reveals: ofDev, without: []guard{filterNamespace},
						also: [][]guard{{filterTenant}}},
					// Either filter leaves only the rows of the platform.
					attack{name: "as sre", request: query + "kube-system", token: "sre-token", reveals: ofPlatform,
						without: []guard{filterNamespace, filterTenant}, also: idle})
			}
		}
	}
	return all
}

// listAttacks returns all attacks: requests that must get no answer, on each resource, and requests whose answer must not
// reveal others.
func listAttacks() []attack {
	all := slices.Concat(refused, budgetAttacks, metricsAttacks)
	for _, a := range refused {
		for _, path := range []string{ChargesPath, HistoryPath} {
			other := a
			if other.request = strings.Replace(a.request, Path, path, 1); other.request != a.request {
				all = append(all, other)
			}
		}
	}
	for i := range all {
		all[i].refused = true
	}
	return append(all, listAnswered()...)
}

// isSuccessful reports whether an attack gets an answer or, if it may get one, an answer that
// reveals others.
func (a *attack) isSuccessful(s *server) bool {
	status, body := sendRequest(s, a.request, a.token, a.headers...)
	if a.refused {
		return status == http.StatusOK
	}
	return status != http.StatusOK || slices.ContainsFunc(a.reveals, func(text string) bool { return strings.Contains(body, text) })
}

// TestAttacks expects that no attack succeeds.
func TestAttacks(t *testing.T) {
	for _, a := range listAttacks() {
		s, r := newTestServer()
		if a.isSuccessful(s) || a.free && r.count > 0 {
			status, body := sendRequest(s, a.request, a.token, a.headers...)
			t.Errorf("%s succeeds: %s: %d %s", a.name, a.request, status, body)
		}
	}
}

// TestSameRefusal expects the same answer for a namespace of another tenant and one that does not exist.
func TestSameRefusal(t *testing.T) {
	s, _ := newTestServer()
	foreignStatus, foreign := sendRequest(s, "GET /v1/costs?namespace=bank", "ana-token")
	missingStatus, missing := sendRequest(s, "GET /v1/costs?namespace=missing", "ana-token")
	if foreign != missing || foreignStatus != missingStatus {
		t.Errorf("%d %s and %d %s", foreignStatus, foreign, missingStatus, missing)
	}
}
