package operator

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/operate/install"
)

// authorizer answers access reviews like an API server.
type authorizer struct {
	client.Writer
	// without is the missing right, as described formats it.
	without string
	// silent authorizers decide, but cannot list rights.
	silent bool
	err    error
	asked  int
}

// Create implements client.Writer.
func (a *authorizer) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	a.asked++
	switch review := o.(type) {
	case *authorizationv1.SelfSubjectRulesReview:
		review.Status.Incomplete = a.silent
		for _, rules := range install.Rights() {
			review.Status.ResourceRules = append(review.Status.ResourceRules, a.listRules(rules)...)
		}
	case *authorizationv1.SelfSubjectAccessReview:
		right := *review.Spec.ResourceAttributes
		right.Resource, right.Subresource = strings.TrimSuffix(right.Resource+"/"+right.Subresource, "/"), ""
		review.Status.Allowed = describeRight(right) != a.without
	}
	return a.err
}

func (a *authorizer) listRules(rules []rbacv1.PolicyRule) (all []authorizationv1.ResourceRule) {
	if a.silent {
		return nil
	}
	for _, rule := range rules {
		for _, right := range expandRights(rule) {
			if describeRight(right) != a.without {
				names := slices.DeleteFunc([]string{right.Name}, func(name string) bool { return name == "" })
				all = append(all, authorizationv1.ResourceRule{
					APIGroups: []string{right.Group}, Resources: []string{right.Resource}, Verbs: []string{right.Verb}, ResourceNames: names,
				})
			}
		}
	}
	return all
}

// TestReadiness fails if an operator that lacks a right is ready, or one with all rights is
// not. TestHealth checks the same on a real API server. Default tier.
func TestReadiness(t *testing.T) {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil)
	if err != nil {
		t.Fatal(err)
	}
	token := "create serviceaccounts/token in namespace croft-elevations"
	for name, test := range map[string]struct {
		by       authorizer
		wantText string
	}{
		"all":                         {authorizer{}, ""},
		"one is missing":              {authorizer{without: "patch tenantrules.croft.dev"}, "the operator may not patch tenantrules.croft.dev: run croft install"},
		"all, and none is listed":     {authorizer{silent: true}, ""},
		"one, and none is listed":     {authorizer{silent: true, without: token}, "may not " + token},
		"it may not ask":              {authorizer{err: apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no"))}, ""},
		"the API server is not there": {authorizer{err: errors.New("connection refused")}, errUnasked.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			err := newRights(&test.by, logr.Discard()).checkRights(request)
			if test.wantText == "" && err != nil || test.wantText != "" && (err == nil || !strings.Contains(err.Error(), test.wantText)) {
				t.Errorf("got %v, want %q", err, test.wantText)
			}
		})
	}

	api := &authorizer{}
	r := newRights(api, logr.Discard())
	if err := r.checkRights(request); err != nil {
		t.Fatal(err)
	}
	asked := api.asked
	if err := r.checkRights(request); err != nil || api.asked != asked {
		t.Errorf("the next probe asked again %d times: %v", api.asked-asked, err)
	}
	r.asked = time.Time{}
	api.err = errors.New("connection refused")
	if err := r.checkRights(request); err != nil {
		t.Errorf("an operator that was ready is not, since the API server does not answer: %v", err)
	}
	r.asked, api.err, api.without = time.Time{}, nil, "delete networkpolicies.networking.k8s.io"
	if err := r.checkRights(request); err == nil {
		t.Error("a right was taken away, and it is ready")
	}
}
