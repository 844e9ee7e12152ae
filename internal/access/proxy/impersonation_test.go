package proxy

import (
	"context"
	"errors"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/walls/wall/identity"
)

// TestImpersonationFilter fails if users keep groups or extra values that the proxy's role
// does not let it impersonate, or lose any that it does.
func TestImpersonationFilter(t *testing.T) {
	u := &user.DefaultInfo{
		Name: "jane", UID: "7", Groups: []string{"devs", "cloud-admins", "system:masters", user.AllAuthenticated},
		Extra: map[string][]string{"authentication.kubernetes.io/credential-id": {"JTI=1"}, "scopes": {"all"}},
	}
	rule := func(verb string, resource string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{"authentication.k8s.io"}, Resources: []string{resource}, ResourceNames: names}
	}
	for about, c := range map[string]struct {
		rules  []rbacv1.PolicyRule
		groups []string
		extras int
	}{
		"no role":         {nil, []string{user.AllAuthenticated}, 0},
		"groups by name":  {[]rbacv1.PolicyRule{rule("impersonate:user-info", "groups", "devs", "ops")}, []string{"devs", user.AllAuthenticated}, 0},
		"legacy":          {[]rbacv1.PolicyRule{rule("impersonate", "groups", "devs")}, []string{"devs", user.AllAuthenticated}, 0},
		"all groups":      {[]rbacv1.PolicyRule{rule("impersonate", "groups")}, u.Groups, 0},
		"another verb":    {[]rbacv1.PolicyRule{rule("get", "groups")}, []string{user.AllAuthenticated}, 0},
		"an extra value":  {[]rbacv1.PolicyRule{rule("impersonate", "userextras/authentication.kubernetes.io/credential-id")}, []string{user.AllAuthenticated}, 1},
		"an admin's role": {[]rbacv1.PolicyRule{rule("*", "*")}, u.Groups, 2},
	} {
		f := &impersonationFilter{}
		if c.rules != nil {
			f.setRules(c.rules)
		}
		got := f.filterUser(u)
		if !slices.Equal(got.GetGroups(), c.groups) || len(got.GetExtra()) != c.extras || got.GetName() != "jane" || got.GetUID() != "7" {
			t.Errorf("%s: %+v", about, got)
		}
	}

	// This is the role that croft generates.
	p := &estate.Platform{PlatformSpec: v1alpha1.PlatformSpec{Proxy: &v1alpha1.Proxy{Impersonation: v1alpha1.ImpersonationConstrained}}, Groups: []string{"devs"}}
	for _, o := range (identity.Wall{}).Platform(p) {
		if role, ok := o.(*rbacv1.ClusterRole); ok && role.Name == identity.ProxyRole {
			f := &impersonationFilter{}
			f.setRules(role.Rules)
			if got := f.filterUser(u); !slices.Equal(got.GetGroups(), []string{"devs", user.AllAuthenticated}) || len(got.GetExtra()) != 1 {
				t.Errorf("with croft's generated role: %+v", got)
			}
			return
		}
	}
	t.Error("croft generates no role for the proxy")
}

// TestReviews fails if a client that guesses tokens can cause a review for each of them, or
// if it delays clients at other addresses.
func TestReviews(t *testing.T) {
	reviews := 0
	limited := limitReviews(authenticator.TokenFunc(func(context.Context, string) (*authenticator.Response, bool, error) {
		reviews++
		return nil, false, nil
	}))
	authenticate := func(address, token string) error {
		_, _, err := limited.AuthenticateToken(context.WithValue(t.Context(), clientAddressKey{}, address), token)
		return err
	}
	if err := authenticate("10.0.0.1", "swordfish"); err != nil || reviews > 0 {
		t.Errorf("a token that is not a JWT was reviewed %d times: %v", reviews, err)
	}
	var err error
	for range 10 * reviewBurst {
		err = errors.Join(err, authenticate("10.0.0.1", "a.b.c"))
	}
	if !errors.Is(err, errTooManyReviews) || reviews > 2*reviewBurst {
		t.Errorf("got %d reviews: %v", reviews, err)
	}
	if err := authenticate("10.0.0.2", "a.b.c"); err != nil {
		t.Errorf("another address: %v", err)
	}
}
