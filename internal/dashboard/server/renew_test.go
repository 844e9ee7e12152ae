package server

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"croft.dev/croft/internal/dashboard/provider/providertest"
	"croft.dev/croft/internal/dashboard/session"
)

// startBrief is startProvider with tokens that expire so soon that each page renews them.
func startBrief(t *testing.T, a *apiServer) (*providertest.Provider, Options) {
	t.Helper()
	p, o := startProvider(t, a)
	p.Lifetime = renewBefore - 20*time.Second
	return p, o
}

// copyBrowser returns a browser with the cookies of another one: another tab with its own request, or
// a thief.
func copyBrowser(b *browser, open func() *browser) *browser {
	b.t.Helper()
	c := open()
	c.setCookies(b.listCookies()...)
	return c
}

// TestRenewal expects a new token before the old one expires, and the same session with it.
func TestRenewal(t *testing.T) {
	a := startAPIServer(t)
	p, o := startBrief(t, a)
	b := serveHandler(t, New(o))().logInAt(p, "ana")
	csrf := ""
	for i := range 3 {
		a.takeRequests()
		got := b.findCSRF("/")
		if csrf != "" && got != csrf {
			t.Error("the renewal changes the text of the forms: forms of other tabs would fail")
		}
		csrf = got
		requests := a.takeRequests()
		if n := p.CountRequests("/token"); n != i+2 || len(requests) == 0 {
			t.Errorf("%d token requests, want %d; %d requests to the cluster", n, i+2, len(requests))
		}
	}
	if valid := p.ListRefreshTokens(); len(valid) != 1 {
		t.Errorf("%d valid refresh tokens, want one", len(valid))
	}
	p.Change(func() { p.Lifetime = time.Hour })
	b.getPage("/")
	requests := p.CountRequests("/token")
	if b.getPage("/"); p.CountRequests("/token") != requests {
		t.Error("a token that is valid for an hour is renewed")
	}
}

// TestTwoTabs lets the tabs of a browser renew a token at once, at a provider that ends the session if
// a refresh token is used twice. Each tab keeps its session.
func TestTwoTabs(t *testing.T) {
	a := startAPIServer(t)
	p, o := startBrief(t, a)
	open := serveHandler(t, New(o))
	b := open().logInAt(p, "ana")
	p.Change(func() { p.Lifetime = time.Hour })
	tabs := make([]*browser, 8)
	for i := range tabs {
		tabs[i] = copyBrowser(b, open)
	}
	var group sync.WaitGroup
	for _, tab := range tabs {
		group.Go(func() {
			if !tab.isLoggedIn() {
				t.Error("a tab is logged out")
			}
		})
	}
	group.Wait()
	if n := p.CountRequests("/token"); n != 2 {
		t.Errorf("%d token requests, want one for the login and one for the renewal", n)
	}
	// A tab whose connection broke before the response has the previous cookies.
	if late := copyBrowser(b, open); !late.isLoggedIn() || p.CountRequests("/token") != 2 {
		t.Error("a request with the previous cookies renews the token again")
	}
}

// TestTwoReplicas lets two replicas renew a token at once. The second one fails, and uses the token
// that is still valid, without a change of the cookies.
func TestTwoReplicas(t *testing.T) {
	a := startAPIServer(t)
	p, o := startBrief(t, a)
	first, second := serveHandler(t, New(o)), serveHandler(t, New(o))
	b := first().logInAt(p, "ana")
	late := copyBrowser(b, second)
	if !b.isLoggedIn() {
		t.Fatal("not logged in")
	}
	got := late.getPage("/")
	if got.status != http.StatusOK || len(got.header.Values("Set-Cookie")) > 0 {
		t.Errorf("status %d, cookies %q", got.status, got.header.Values("Set-Cookie"))
	}
}

// TestMixedCookies lets two responses set their cookies at the same time, in each order that a browser
// may have. Each request between them has a whole session.
func TestMixedCookies(t *testing.T) {
	a := startAPIServer(t)
	p, o := startBrief(t, a)
	p.Groups = slices.Repeat([]string{"a-group-of-the-platform"}, 200)
	open := serveHandler(t, New(o))
	b := open().logInAt(p, "ana")
	var responses [2][]*http.Cookie
	for i := range responses {
		tab := copyBrowser(b, open)
		responses[i] = (&http.Response{Header: tab.getPage("/").header}).Cookies()
	}
	if len(responses[0]) < 4 {
		t.Fatalf("only %d cookies", len(responses[0]))
	}
	p.Change(func() { p.Lifetime = time.Hour })
	for shift := range responses[1] {
		browser := copyBrowser(b, open)
		for i := range len(responses[0]) + shift {
			if i < len(responses[0]) {
				browser.setCookies(responses[0][i])
			}
			if i >= shift {
				browser.setCookies(responses[1][i-shift])
			}
			if _, err := o.Keys.Open(browser.listCookies(), time.Now()); err != nil {
				t.Fatalf("shift %d, after cookie %d: %v", shift, i, err)
			}
		}
	}
}

// expireToken changes the session of a browser as if its token had expired.
func expireToken(b *browser, k *session.Keys) {
	b.t.Helper()
	now := time.Now()
	s, err := k.Open(b.listCookies(), now)
	if err != nil {
		b.t.Fatal(err)
	}
	s.TokenExpiry = now.Add(-time.Second)
	cookies, err := k.Seal(s, b.listCookies(), now)
	if err != nil {
		b.t.Fatal(err)
	}
	b.setCookies(cookies...)
}

// TestEndedRenewal expects a login page after the end of the session at the provider, and an error
// during an outage.
func TestEndedRenewal(t *testing.T) {
	a := startAPIServer(t)
	for name, c := range map[string]struct {
		change func(*providertest.Provider)
		status int
	}{
		"ended":              {func(p *providertest.Provider) { p.Revoke() }, http.StatusSeeOther},
		"of another user":    {func(p *providertest.Provider) { p.ChangeClaims = func(c map[string]any) { c["sub"] = "id-of-bob" } }, http.StatusSeeOther},
		"an outage":          {func(p *providertest.Provider) { p.Down = true }, http.StatusBadGateway},
		"a foreign audience": {func(p *providertest.Provider) { p.ChangeClaims = func(c map[string]any) { c["aud"] = "other" } }, http.StatusBadGateway},
	} {
		t.Run(name, func(t *testing.T) {
			p, o := startBrief(t, a)
			b := serveHandler(t, New(o))().logInAt(p, "ana")
			p.Change(func() { c.change(p) })
			if got := b.getPage("/"); got.status != http.StatusOK {
				t.Errorf("with a valid token: status %d", got.status)
			}
			expireToken(b, o.Keys)
			got := b.getPage("/tenants")
			if got.status != c.status {
				t.Errorf("status %d, want %d: %s", got.status, c.status, got.body)
			}
			if page := b.getPage("/login"); page.status != http.StatusOK || strings.Contains(page.body, "Log out") {
				t.Errorf("the login page: status %d: %s", page.status, page.body)
			}
		})
	}
}

// TestProviderLogout expects the end of the session in the browser and at the provider. A copy of the
// cookies is valid until the ID token expires, and cannot be renewed.
func TestProviderLogout(t *testing.T) {
	a := startAPIServer(t)
	p, o := startBrief(t, a)
	open := serveHandler(t, New(o))
	b := open().logInAt(p, "ana")
	b.getPage("/") // renews
	thief := copyBrowser(b, open)
	form := url.Values{"csrf": {thief.findCSRF("/")}}
	b = copyBrowser(thief, open)
	got := b.sendRequest(http.MethodPost, "/logout", form, nil)
	end := p.Issuer + "/end?client_id=croft-dashboard&post_logout_redirect_uri=https%3A%2F%2Fdashboard.example.org%2Flogin&tenant=a"
	if got.status != http.StatusOK || got.header.Get("Refresh") != "0; url="+end || !strings.Contains(got.body, "Log out at your identity provider") {
		t.Errorf("status %d, Refresh %q:\n%s", got.status, got.header.Get("Refresh"), got.body)
	}
	if b.isLoggedIn() || len(p.ListRefreshTokens()) > 0 {
		t.Errorf("logged in: %t, %d refresh tokens", b.isLoggedIn(), len(p.ListRefreshTokens()))
	}
	requests := p.CountRequests("/token")
	if !thief.isLoggedIn() {
		t.Error("the copy is invalid before its ID token expires: the limit in the documentation is out of date")
	}
	if p.CountRequests("/token") == requests || len(p.ListRefreshTokens()) > 0 {
		t.Error("the copy was renewed, or was not tried")
	}
	// A login with a token has no session at the provider.
	token := open().logIn("bob-token")
	if got := token.sendRequest(http.MethodPost, "/logout", url.Values{"csrf": {token.findCSRF("/")}}, nil); got.status != http.StatusSeeOther {
		t.Errorf("status %d", got.status)
	}
}
