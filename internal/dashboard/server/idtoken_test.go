package server

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"croft.dev/croft/internal/dashboard/provider/providertest"
)

// TestIDTokens expects no login with an ID token of another login, client, issuer or time.
func TestIDTokens(t *testing.T) {
	a := startAPIServer(t)
	p, o := startProvider(t, a)
	open := serveHandler(t, New(o))
	for name, c := range map[string]struct {
		change   func(map[string]any)
		accepted bool
	}{
		"as issued": {nil, true},
		"for several clients": {func(c map[string]any) {
			c["aud"], c["azp"] = []string{"kubernetes", providertest.ClientID}, providertest.ClientID
		}, true},
		"with another nonce":       {func(c map[string]any) { c["nonce"] = "other" }, false},
		"without a nonce":          {func(c map[string]any) { delete(c, "nonce") }, false},
		"for another audience":     {func(c map[string]any) { c["aud"] = "kubernetes" }, false},
		"without an audience":      {func(c map[string]any) { delete(c, "aud") }, false},
		"issued to another client": {func(c map[string]any) { c["aud"], c["azp"] = []string{providertest.ClientID, "other"}, "other" }, false},
		"of another issuer":        {func(c map[string]any) { c["iss"] = "https://evil.example" }, false},
		"expired":                  {func(c map[string]any) { c["exp"] = 1 }, false},
		"without an expiry":        {func(c map[string]any) { delete(c, "exp") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			p.Change(func() { p.ChangeClaims = c.change })
			b := open()
			got := b.finishLogin(p.Authorize(t, b.startLogin("/"), "ana"))
			if b.isLoggedIn() != c.accepted {
				t.Errorf("status %d, logged in: %t", got.status, b.isLoggedIn())
			}
		})
	}
	p.Change(func() { p.ChangeClaims = nil })
	t.Run("with another signature", func(t *testing.T) {
		other := providertest.Start(t)
		p.Change(func() { p.ChangeMetadata = func(m map[string]any) { m["jwks_uri"] = other.Issuer + "/keys" } })
		defer p.Change(func() { p.ChangeMetadata = nil })
		o := o
		o.Provider = newProvider(t, p)
		b := serveHandler(t, New(o))()
		if got := b.finishLogin(p.Authorize(t, b.startLogin("/"), "ana")); got.status != http.StatusBadGateway || b.isLoggedIn() {
			t.Errorf("status %d, logged in: %t", got.status, b.isLoggedIn())
		}
	})
	t.Run("that the cluster does not accept", func(t *testing.T) {
		onIssue := p.OnIssue
		p.Change(func() { p.OnIssue = nil })
		defer p.Change(func() { p.OnIssue = onIssue })
		b := open()
		got := b.finishLogin(p.Authorize(t, b.startLogin("/"), "ana"))
		if got.status != http.StatusUnauthorized || !strings.Contains(got.body, "does not accept the tokens of your identity provider") || b.isLoggedIn() {
			t.Errorf("status %d: %s", got.status, got.body)
		}
	})
}

// TestProviderFailures expects a page that explains a failed login.
func TestProviderFailures(t *testing.T) {
	a := startAPIServer(t)
	p, o := startProvider(t, a)
	open := serveHandler(t, New(o))
	b := open()
	back := p.Authorize(t, b.startLogin("/"), "ana")
	query := back.Query()
	back.RawQuery = url.Values{"error": {"access_denied"}, "error_description": {"<b>no</b>"}, "state": {query.Get("state")}, "iss": {p.Issuer}}.Encode()
	if got := b.finishLogin(back); got.status != http.StatusForbidden || !strings.Contains(got.body, "refused the login") || strings.Contains(got.body, "no</b>") {
		t.Errorf("status %d: %s", got.status, got.body)
	}
	back = p.Authorize(t, b.startLogin("/"), "ana")
	p.Change(func() { p.Down = true })
	if got := b.finishLogin(back); got.status != http.StatusBadGateway || b.isLoggedIn() {
		t.Errorf("status %d: %s", got.status, got.body)
	}
	o.Provider = newProvider(t, p)
	down := serveHandler(t, New(o))()
	if got := down.getPage(startPath); got.status != http.StatusBadGateway || !strings.Contains(got.body, "login at the identity provider failed") {
		t.Errorf("status %d: %s", got.status, got.body)
	}
	p.Change(func() {
		p.Down, p.ChangeMetadata = false, func(m map[string]any) { m["token_endpoint"] = "http://login.example.org/token" }
	})
	if got := down.getPage(startPath); got.status != http.StatusBadGateway {
		t.Errorf("a token endpoint without TLS: status %d", got.status)
	}
	p.Change(func() { p.ChangeMetadata = nil })
	if got := down.getPage(startPath); got.status != http.StatusSeeOther {
		t.Errorf("the provider answers again, and the dashboard does not: status %d", got.status)
	}
}
