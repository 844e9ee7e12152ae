package server

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/budget"
)

// issuers accepts the tokens of an identity provider.
var issuers = authenticator.TokenFunc(func(_ context.Context, token string) (*authenticator.Response, bool, error) {
	users := map[string]*user.DefaultInfo{
		"provided-ana":      {Name: "ana", UID: "7", Groups: []string{"devs", "system:authenticated"}, Extra: map[string][]string{"example.org/team": {"shop"}}},
		"provided-operator": {Name: operator},
		"provided-expired":  {Name: "auditor"},
		"robot-token":       nil,
	}
	u, known := users[token]
	if token == "provided-expired" || known && u == nil {
		return &authenticator.Response{User: &user.DefaultInfo{Name: "auditor"}}, known, errors.New("expired")
	}
	return &authenticator.Response{User: u}, known, nil
})

// recorder records the user of each SubjectAccessReview.
type recorder struct {
	*reviews
	reviewed []authorizationv1.SubjectAccessReviewSpec
}

func (r *recorder) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	if review, ok := o.(*authorizationv1.SubjectAccessReview); ok {
		r.reviewed = append(r.reviewed, review.Spec)
	}
	return r.reviews.Create(ctx, o, options...)
}

// TestIssuers fails if a token of an identity provider is accepted for more than the user's costs, or after an error, or
// if the token of another issuer is refused.
func TestIssuers(t *testing.T) {
	for _, c := range []struct {
		request, token string
		want           int
	}{
		{"GET /v1/costs?namespace=shop-prod", "provided-ana", http.StatusOK},
		{"GET /v1/history?namespace=shop-prod", "provided-ana", http.StatusOK},
		{"GET /v1/costs?namespace=bank", "provided-ana", http.StatusForbidden},
		{"GET /v1/costs", "provided-ana", http.StatusForbidden},
		{"GET /v1/metrics", "provided-ana", http.StatusForbidden},
		{"GET /v1/costs?namespace=shop-prod", "ana-token", http.StatusOK},
		{"GET /v1/costs?namespace=shop-dev", "robot-token", http.StatusOK},
		{"GET /v1/costs", "provided-expired", http.StatusUnauthorized},
		{"GET /v1/costs", "guess", http.StatusUnauthorized},
		// This resource is for tokens of the API server with the audience of the ledger.
		{"GET " + budget.Path, "provided-operator", http.StatusUnauthorized},
		{"GET " + budget.Path, "operator-token", http.StatusOK},
	} {
		s, _ := newTestServer()
		s.Tokens = issuers
		if status, body := sendRequest(s, c.request, c.token); status != c.want {
			t.Errorf("%s as %s: %d, want %d: %s", c.request, c.token, status, c.want, body)
		}
	}
	s, answers := newTestServer()
	recorded := &recorder{reviews: answers}
	s.Tokens, s.Reviews = issuers, recorded
	sendRequest(s, "GET /v1/costs?namespace=shop-prod", "provided-ana")
	if len(recorded.reviewed) == 0 {
		t.Fatal("nothing was reviewed")
	}
	for _, reviewed := range recorded.reviewed {
		reviewed.ResourceAttributes = nil
		want := authorizationv1.SubjectAccessReviewSpec{User: "ana", UID: "7", Groups: []string{"devs", "system:authenticated"},
			Extra: map[string]authorizationv1.ExtraValue{"example.org/team": {"shop"}}}
		if !reflect.DeepEqual(reviewed, want) {
			t.Errorf("the review is of %+v, want %+v", reviewed, want)
		}
	}
}
