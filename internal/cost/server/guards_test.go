package server

import (
	"cmp"
	"context"
	"encoding/base64"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/cost/collect"
	"croft.dev/croft/internal/declare/budget"
)

// guard is a reason for which the server refuses a request, or leaves out a part of an answer.
type guard string

// The checks of requests, by their names.
const (
	noParameters  guard = "no parameters"
	method        guard = "method"
	impersonation guard = "impersonation"
	parameters    guard = "parameters"
	grouping      guard = "grouping"
	period        guard = "period"
	namespace     guard = "namespace"
)

// The filters of rows, by their names.
const (
	filterNamespace guard = "filter namespace"
	filterTenant    guard = "filter tenant"
	filterIdle      guard = "filter idle cost"
)

// The guards of tokens, users and rights.
const (
	// tokenRequired refuses requests without a token.
	tokenRequired guard = "a token is required"
	// tokenForm is that a request has one header, with one bearer token.
	tokenForm guard = "the form of a token"
	// tokenPlace is that the token is in the header Authorization.
	tokenPlace       guard = "the place of a token"
	authentication   guard = "authentication"
	audience         guard = "the audience of a token"
	userName         guard = "the name of a user"
	rightInCluster   guard = "the right in the cluster"
	rightInNamespace guard = "the right in a namespace"
	rightToBudgets   guard = "the right to budgets"
	rightToMetrics   guard = "the right to metrics"
	// existence is that a namespace exists.
	existence guard = "the existence of a namespace"
)

// listGuards returns all guards.
func listGuards() []guard {
	all := []guard{tokenForm, tokenPlace, tokenRequired, authentication, audience, userName, rightInCluster, rightInNamespace, rightToBudgets,
		rightToMetrics, existence}
	for _, c := range slices.Concat(checks, bareChecks) {
		all = append(all, guard(c.name))
	}
	for _, f := range filters {
		all = append(all, guard("filter "+f.name))
	}
	return all
}

// newServerWithout returns a test server without some guards.
func newServerWithout(removed ...guard) *server {
	s, _ := newTestServer()
	lacks := func(g guard) bool { return slices.Contains(removed, g) }
	s.Reviews = &lenientServer{lacks: lacks}
	isRemoved := func(c check) bool { return lacks(guard(c.name)) }
	s.checks, s.bareChecks = slices.DeleteFunc(slices.Clone(checks), isRemoved), slices.DeleteFunc(slices.Clone(bareChecks), isRemoved)
	s.filters = slices.DeleteFunc(slices.Clone(filters), func(f filter) bool { return lacks(guard("filter " + f.name)) })
	s.findToken = func(r *http.Request) string {
		token := findToken(r)
		if headers := r.Header.Values("Authorization"); lacks(tokenForm) && len(headers) > 0 {
			words := strings.Fields(headers[len(headers)-1])
			token = words[len(words)-1]
		}
		if lacks(tokenPlace) {
			token = cmp.Or(token, findMisplacedToken(r))
		}
		if lacks(tokenRequired) {
			token = cmp.Or(token, "none")
		}
		return token
	}
	if lacks(existence) {
		s.Source = inventedNamespaces{s.Source}
	}
	return s
}

// findMisplacedToken returns the token of a parameter, a cookie or a protocol.
func findMisplacedToken(r *http.Request) string {
	token := cmp.Or(r.URL.Query().Get("token"), r.URL.Query().Get("access_token"))
	if cookie, err := r.Cookie("token"); err == nil {
		token = cookie.Value
	}
	encoded, found := strings.CutPrefix(r.Header.Get("Sec-WebSocket-Protocol"), "base64url.bearer.authorization.k8s.io.")
	if decoded, err := base64.RawURLEncoding.DecodeString(encoded); found && err == nil {
		token = string(decoded)
	}
	return token
}

// inventedNamespaces has namespaces that do not exist, each with the tenant to which it belonged, or which it seems to have.
type inventedNamespaces struct{ Source }

func (i inventedNamespaces) Read(from time.Time) (collect.View, error) {
	v, err := i.Source.Read(from)
	v.Tenants = maps.Clone(v.Tenants)
	for namespace, tenant := range map[string]string{
		"shop-old": "shop", "deleted": "", "shop-prod/../bank": "bank", "shop-prod,bank": "bank", "shop-prod\nbank": "bank",
	} {
		v.Tenants[namespace] = tenant
	}
	return v, err
}

// lenientServer answers as an API server that lacks some guards.
type lenientServer struct {
	reviews
	lacks func(guard) bool
}

func (l *lenientServer) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	err := l.reviews.Create(ctx, o, options...)
	switch review := o.(type) {
	case *authenticationv1.TokenReview:
		status := &review.Status
		user, known := users[review.Spec.Token]
		switch {
		case l.lacks(audience) && known:
			status.Authenticated, status.User.Username, status.Audiences = true, user.name, review.Spec.Audiences
		case l.lacks(authentication) && !status.Authenticated, l.lacks(userName) && known && user.name == "":
			status.Authenticated, status.User.Username, status.Audiences = true, root, review.Spec.Audiences
		}
	case *authorizationv1.SubjectAccessReview:
		review.Status.Allowed = review.Status.Allowed || l.lacks(findRight(review.Spec.ResourceAttributes))
	}
	return err
}

// findRight returns the guard that a right is.
func findRight(a *authorizationv1.ResourceAttributes) guard {
	switch {
	case a.Subresource == budget.Subresource:
		return rightToBudgets
	case a.Subresource == MetricsSubresource:
		return rightToMetrics
	case a.Namespace == "":
		return rightInCluster
	default:
		return rightInNamespace
	}
}

// TestGuards removes the guards of each attack, and expects it to succeed. If one of them stays, it does not succeed: so nothing
// else refuses it. An attack whose path does not exist does not succeed without all guards. Each guard is needed by some attack.
func TestGuards(t *testing.T) {
	needed := map[guard]bool{}
	for _, a := range listAttacks() {
		if a.noPath {
			if a.isSuccessful(newServerWithout(listGuards()...)) {
				t.Errorf("%s: %s: a path exists", a.name, a.request)
			}
			continue
		}
		for _, removed := range append(a.also, a.without) {
			if len(removed) == 0 {
				t.Errorf("%s: %s names no guard", a.name, a.request)
			}
			if !a.isSuccessful(newServerWithout(removed...)) {
				status, body := sendRequest(newServerWithout(removed...), a.request, a.token, a.headers...)
				t.Errorf("%s: %s does not succeed without %q: %d %s", a.name, a.request, removed, status, body)
			}
			for i, g := range removed {
				needed[g] = true
				if a.isSuccessful(newServerWithout(slices.Delete(slices.Clone(removed), i, i+1)...)) {
					t.Errorf("%s: %s succeeds with the guard %q", a.name, a.request, g)
				}
			}
		}
	}
	for _, g := range listGuards() {
		if !needed[g] {
			t.Errorf("no attack needs the guard %q", g)
		}
	}
}
