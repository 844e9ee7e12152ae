package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	// free means that a request to the API server is a success, too: anyone can cause it.
	free bool
}

// others are texts that only rows of others have, or sums with others, for the people of shop.
var others = []string{
	"bank", "vault", "secret", "kube-system", "DaemonSet", "(platform)", "(idle)", "(unallocated)", "pod-of-ledger", "lost",
	"7.777777", "15.555554", "6.666666", "3.333333", "1.212121", "2.424242", "4.444444", "8.888888", "9.999999", "1.111111",
	"5.555555", "123.456789", "0.098765", "4.141414", "4.242424", "4.343434",
	// Its own share of the idle cost of apps, alone, twice, and with the rest.
	"2.222222", "4.444444", "0.060000", "4.504444", "4.804444", "3.722222", "2.522222",
}

// refused are the attacks that must get no answer.
var refused = []attack{
	{name: "no token", request: "GET /v1/costs", free: true},
	{name: "no token, with a namespace", request: "GET /v1/costs?namespace=shop-prod", free: true},
	{name: "an empty token", request: "GET /v1/costs", headers: []string{"Authorization: Bearer "}, free: true},
	{name: "a password", request: "GET /v1/costs", headers: []string{"Authorization: Basic YW5hOmFuYQ=="}, free: true},
	{name: "the token in the query", request: "GET /v1/costs?token=auditor-token", free: true},
	{name: "the token as access_token", request: "GET /v1/costs?access_token=auditor-token", free: true},
	{name: "the token in a cookie", request: "GET /v1/costs", headers: []string{"Cookie: token=auditor-token"}, free: true},
	{name: "the token of a protocol", request: "GET /v1/costs", free: true,
		headers: []string{"Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.YXVkaXRvci10b2tlbg"}},
	{name: "two tokens", request: "GET /v1/costs", token: "ana-token", headers: []string{"Authorization: Bearer auditor-token"}, free: true},
	{name: "two tokens in one header", request: "GET /v1/costs", headers: []string{"Authorization: Bearer ana-token, Bearer auditor-token"}, free: true},
	{name: "an unknown token", request: "GET /v1/costs", token: "guess"},
	{name: "an unknown token, with a namespace", request: "GET /v1/costs?namespace=bank", token: "guess"},
	{name: "a user without a name", request: "GET /v1/costs", token: "nameless"},
	{name: "a user without rights", request: "GET /v1/costs", token: "none-token"},
	{name: "a user without rights, with a namespace", request: "GET /v1/costs?namespace=shop-prod", token: "none-token"},
	{name: "the cluster", request: "GET /v1/costs", token: "ana-token"},
	{name: "the cluster by pool", request: "GET /v1/costs?by=pool", token: "ana-token"},
	{name: "the cluster as a robot", request: "GET /v1/costs?by=namespace", token: "robot-token"},
	{name: "another tenant's namespace", request: "GET /v1/costs?namespace=bank", token: "ana-token"},
	{name: "another tenant's namespace as a robot", request: "GET /v1/costs?namespace=bank", token: "robot-token"},
	{name: "another tenant's namespace by pool", request: "GET /v1/costs?namespace=bank&by=pool", token: "dev-token"},
	{name: "another namespace of the same tenant", request: "GET /v1/costs?namespace=shop-prod", token: "dev-token"},
	{name: "a former namespace of the tenant", request: "GET /v1/costs?namespace=shop-dev", token: "bob-token"},
	{name: "a deleted namespace of the tenant", request: "GET /v1/costs?namespace=shop-old", token: "ana-token"},
	{name: "a deleted namespace, with a right in it", request: "GET /v1/costs?namespace=deleted", token: "gone-token"},
	{name: "a platform namespace", request: "GET /v1/costs?namespace=kube-system", token: "ana-token"},
	{name: "an empty namespace", request: "GET /v1/costs?namespace=", token: "auditor-token", free: true},
	{name: "a namespace with a slash", request: "GET /v1/costs?namespace=shop-prod/../bank", token: "ana-token", free: true},
	{name: "all namespaces", request: "GET /v1/costs?namespace=*", token: "auditor-token", free: true},
	{name: "a list of namespaces", request: "GET /v1/costs?namespace=shop-prod,bank", token: "ana-token", free: true},
	{name: "a namespace twice", request: "GET /v1/costs?namespace=shop-prod&namespace=bank", token: "ana-token", free: true},
	{name: "a namespace with a line break", request: "GET /v1/costs?namespace=shop-prod%0abank", token: "ana-token", free: true},
	{name: "a namespace in capitals", request: "GET /v1/costs?namespace=BANK", token: "auditor-token", free: true},
	{name: "a tenant", request: "GET /v1/costs?namespace=shop-prod&tenant=bank", token: "ana-token", free: true},
	{name: "a pool", request: "GET /v1/costs?namespace=shop-prod&pool=apps", token: "ana-token", free: true},
	{name: "a label", request: "GET /v1/costs?namespace=shop-prod&labelSelector=app", token: "ana-token", free: true},
	{name: "a filter", request: "GET /v1/costs?namespace=shop-prod&filter=tenant:bank", token: "ana-token", free: true},
	{name: "the end of a period", request: "GET /v1/costs?namespace=shop-prod&until=2026-11-26T12:00:00Z", token: "ana-token", free: true},
	{name: "a step", request: "GET /v1/costs?namespace=shop-prod&step=1m", token: "ana-token", free: true},
	{name: "an explanation", request: "GET /v1/costs?namespace=shop-prod&explain=true", token: "ana-token", free: true},
	{name: "a malformed query", request: "GET /v1/costs?namespace=shop-prod;by=pool", token: "ana-token", free: true},
	{name: "a grouping by node", request: "GET /v1/costs?namespace=shop-prod&by=node", token: "ana-token", free: true},
	{name: "a grouping by label", request: "GET /v1/costs?namespace=shop-prod&by=label:team", token: "ana-token", free: true},
	{name: "two groupings", request: "GET /v1/costs?namespace=shop-prod&by=pool&by=tenant", token: "ana-token", free: true},
	{name: "two groupings in one", request: "GET /v1/costs?namespace=shop-prod&by=pool,tenant", token: "ana-token", free: true},
	{name: "an empty grouping", request: "GET /v1/costs?namespace=shop-prod&by=", token: "ana-token", free: true},
	{name: "the future", request: "GET /v1/costs?namespace=shop-prod&since=-5h", token: "ana-token", free: true},
	{name: "no time", request: "GET /v1/costs?namespace=shop-prod&since=0s", token: "ana-token", free: true},
	{name: "all times", request: "GET /v1/costs?namespace=shop-prod&since=9000d", token: "ana-token", free: true},
	{name: "an overflow", request: "GET /v1/costs?namespace=shop-prod&since=65535d", token: "ana-token", free: true},
	{name: "no period", request: "GET /v1/costs?namespace=shop-prod&since=", token: "ana-token", free: true},
	{name: "impersonation", request: "GET /v1/costs", token: "ana-token", headers: []string{"Impersonate-User: auditor"}, free: true},
	{name: "impersonation of a group", request: "GET /v1/costs?namespace=shop-prod", token: "ana-token",
		headers: []string{"Impersonate-Group: system:masters"}, free: true},
	{name: "a front proxy", request: "GET /v1/costs", headers: []string{"X-Remote-User: auditor", "X-Remote-Group: system:masters"}, free: true},
	{name: "a front proxy with a token", request: "GET /v1/costs?namespace=shop-prod", token: "ana-token", headers: []string{"X-Remote-User: auditor"}, free: true},
	{name: "a POST", request: "POST /v1/costs?namespace=shop-prod", token: "ana-token", free: true},
	{name: "another method", request: "GET /v1/costs", headers: []string{"X-HTTP-Method-Override: POST"}, free: true},
	{name: "a longer path", request: "GET /v1/costs/bank", token: "auditor-token", free: true},
	{name: "a dotted path", request: "GET /v1/costs/../tenants", token: "auditor-token", free: true},
	{name: "metrics", request: "GET /metrics", token: "auditor-token", free: true},
	{name: "profiles", request: "GET /debug/pprof/heap", token: "auditor-token", free: true},
	{name: "files", request: "GET /hours/20261126T01.000000000001", token: "auditor-token", free: true},
}

// listAttacks returns the attacks above, and answers in all groupings and periods that must not reveal others,
// for both resources.
func listAttacks() []attack {
	var all []attack
	for _, a := range refused {
		a.refused = true
		all = append(all, a)
	}
	for _, by := range report.Groupings() {
		for _, since := range []string{"1s", "1h", "2h", "35d"} {
			query := fmt.Sprintf("GET /v1/costs?since=%s&by=%s&namespace=", since, by)
			all = append(all,
				attack{name: "as ana", request: query + "shop-prod", token: "ana-token", reveals: others},
				attack{name: "as ana", request: query + "shop-dev", token: "ana-token", reveals: others},
				attack{name: "as dev", request: query + "shop-dev", token: "dev-token", reveals: append([]string{"shop-prod", "shop-old", "1.000000"}, others...)},
				attack{name: "as a robot", request: query + "shop-dev", token: "robot-token", reveals: append([]string{"shop-prod", "shop-old"}, others...)},
				attack{name: "as sre", request: query + "kube-system", token: "sre-token",
					reveals: []string{"shop", "bank", "secret", "(idle)", "7.777777", "1.313131", "2.626262", "lost"}},
				attack{name: "as bob", request: query + "bank", token: "bob-token",
					reveals: []string{"shop-prod", "shop-old", "kube-system", "(idle)", "7.777777", "17.777776", "lost"}})
		}
	}
	for _, a := range slices.Clone(all) {
		for _, path := range []string{ChargesPath, HistoryPath} {
			other := a
			other.request = strings.Replace(a.request, Path, path, 1)
			all = append(all, other)
		}
	}
	return all
}

// succeeds reports whether an attack succeeds.
func (a attack) succeeds(s *server, count func() int) bool {
	before := count()
	status, body := ask(s, a.request, a.token, a.headers...)
	if a.refused {
		return status == http.StatusOK || a.free && count() > before
	}
	return status != http.StatusOK || slices.ContainsFunc(a.reveals, func(text string) bool { return strings.Contains(body, text) })
}

// TestAttacks expects that no attack succeeds.
func TestAttacks(t *testing.T) {
	for _, a := range listAttacks() {
		s, r := newTestServer()
		if a.succeeds(s, func() int { return r.count }) {
			status, body := ask(s, a.request, a.token, a.headers...)
			t.Errorf("%s succeeds: %s: %d %s", a.name, a.request, status, body)
		}
	}
}

// lenient answers as an API server without one of its refusals.
type lenient struct {
	reviews
	authenticates, allows func(r *authorizationv1.SubjectAccessReview) bool
	// changes changes the answer to a TokenReview.
	changes func(r *authenticationv1.TokenReview)
}

func (l *lenient) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	err := l.reviews.Create(ctx, o, options...)
	switch review := o.(type) {
	case *authenticationv1.TokenReview:
		if l.authenticates != nil && !review.Status.Authenticated {
			review.Status.Authenticated, review.Status.User.Username = true, "auditor"
		}
		if l.changes != nil {
			if user, known := users[review.Spec.Token]; known {
				review.Status.Authenticated, review.Status.User.Username = true, user.name
			}
			l.changes(review)
		}
	case *authorizationv1.SubjectAccessReview:
		if l.allows != nil && l.allows(review) {
			review.Status.Allowed = true
		}
	}
	return err
}

// TestGuards removes each guard once, and expects an attack to succeed.
func TestGuards(t *testing.T) {
	without := map[string]func(s *server) (count func() int){}
	for i, c := range checks {
		without["check "+c.name] = func(s *server) func() int {
			s.checks = slices.Delete(slices.Clone(checks), i, i+1)
			return nil
		}
	}
	for i, f := range filters {
		without["filter "+f.name] = func(s *server) func() int {
			s.filters = slices.Delete(slices.Clone(filters), i, i+1)
			return nil
		}
	}
	for name, l := range map[string]*lenient{
		"authentication": {authenticates: func(*authorizationv1.SubjectAccessReview) bool { return true }},
		"authorization for the cluster": {allows: func(r *authorizationv1.SubjectAccessReview) bool {
			return r.Spec.ResourceAttributes.Namespace == ""
		}},
		"authorization for a namespace": {allows: func(r *authorizationv1.SubjectAccessReview) bool {
			return r.Spec.ResourceAttributes.Namespace != ""
		}},
	} {
		without[name] = func(s *server) func() int {
			s.Reviews = l
			return func() int { return l.count }
		}
	}
	for name, remove := range without {
		s, r := newTestServer()
		s.limiter.SetBurst(1 << 20)
		count := remove(s)
		if count == nil {
			count = func() int { return r.count }
		}
		if !slices.ContainsFunc(listAttacks(), func(a attack) bool { return a.succeeds(s, count) }) {
			t.Errorf("no attack succeeds without the guard %q", name)
		}
	}
}

// TestSameRefusal expects the same answer for a namespace of another tenant and one that does not exist.
func TestSameRefusal(t *testing.T) {
	s, _ := newTestServer()
	foreignStatus, foreign := ask(s, "GET /v1/costs?namespace=bank", "ana-token")
	missingStatus, missing := ask(s, "GET /v1/costs?namespace=missing", "ana-token")
	if foreign != missing || foreignStatus != missingStatus {
		t.Errorf("%d %s and %d %s", foreignStatus, foreign, missingStatus, missing)
	}
}
