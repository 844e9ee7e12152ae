package server

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"croft.dev/croft/internal/dashboard/provider"
	"croft.dev/croft/internal/dashboard/provider/providertest"
)

// publicURL is the dashboard's URL for the provider. Browsers of tests replace its host.
const publicURL = "https://dashboard.example.org"

// startProvider starts an identity provider whose ID tokens the API server accepts, and returns the
// options of a dashboard with it.
func startProvider(t *testing.T, a *apiServer) (*providertest.Provider, Options) {
	t.Helper()
	p := providertest.Start(t)
	p.OnIssue = func(token, user string) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.users[token] = user
	}
	o := newOptions(t, a)
	o.TokenLogin, o.Provider = true, newProvider(t, p)
	return p, o
}

func newProvider(t *testing.T, p *providertest.Provider) *provider.Provider {
	t.Helper()
	client, err := provider.New(provider.Options{
		Issuer: p.Issuer, ClientID: providertest.ClientID, ClientSecret: providertest.ClientSecret, CAFile: p.CAFile,
		DefaultScopes: []string{"email", "groups", "offline_access"}, PublicURL: publicURL + "/",
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// startLogin begins a login, and returns the URL of the authorization request.
func (b *browser) startLogin(next string) string {
	b.t.Helper()
	got := b.get(startPath + "?next=" + url.QueryEscape(next))
	if got.status != http.StatusSeeOther {
		b.t.Fatalf("status %d: %s", got.status, got.body)
	}
	return got.header.Get("Location")
}

// finishLogin opens the URL to which the provider redirects.
func (b *browser) finishLogin(back *url.URL) response {
	b.t.Helper()
	if !strings.HasPrefix(back.String(), publicURL+"/login/callback?") {
		b.t.Fatalf("the provider redirects to %s", back)
	}
	return b.get(back.RequestURI())
}

// logInAt logs in at the provider.
func (b *browser) logInAt(p *providertest.Provider, user string) *browser {
	b.t.Helper()
	if got := b.finishLogin(p.Authorize(b.t, b.startLogin("/"), user)); got.status != http.StatusSeeOther {
		b.t.Fatalf("status %d: %s", got.status, got.body)
	}
	return b
}

// cookieNamed returns a cookie of the browser.
func (b *browser) cookieNamed(name string) *http.Cookie {
	b.t.Helper()
	for _, c := range b.listCookies() {
		if c.Name == name {
			return c
		}
	}
	b.t.Fatalf("the browser has no cookie %s", name)
	return nil
}

func (b *browser) listCookies() []*http.Cookie {
	b.t.Helper()
	u, err := url.Parse(b.url)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.client.Jar.Cookies(u)
}

// setCookies sets cookies as a copy of another browser's.
func (b *browser) setCookies(cookies ...*http.Cookie) {
	b.t.Helper()
	u, err := url.Parse(b.url)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, c := range cookies {
		c.Path, c.Secure = "/", true
	}
	b.client.Jar.SetCookies(u, cookies)
}

const attemptCookie, sessionCookie = "__Host-croft-login", "__Host-croft-session"

// TestProviderLogin expects a session with the ID token, and requests for it that only this browser's
// login could have sent.
func TestProviderLogin(t *testing.T) {
	a := startAPIServer(t)
	p, o := startProvider(t, a)
	b := serveHandler(t, New(o))()
	page := b.get("/namespaces/shop/quota")
	page = b.get(page.header.Get("Location"))
	for _, part := range []string{`href="/login/start?next=%2Fnamespaces%2Fshop%2Fquota"`, `name="token"`} {
		if !strings.Contains(page.body, part) {
			t.Errorf("the login page has no %s:\n%s", part, page.body)
		}
	}
	location := b.startLogin("/namespaces/shop/quota")
	query := mustParse(t, location).Query()
	if got := query.Get("scope"); got != "openid groups offline_access" {
		t.Errorf("scope %q", got)
	}
	for _, name := range []string{"state", "nonce", "code_challenge"} {
		if len(query.Get(name)) < 22 {
			t.Errorf("%s %q has less than 128 bits", name, query.Get(name))
		}
	}
	again := mustParse(t, b.startLogin("/namespaces/shop/quota")).Query()
	for _, name := range []string{"state", "nonce", "code_challenge"} {
		if query.Get(name) == again.Get(name) {
			t.Errorf("two logins have the same %s", name)
		}
	}
	got := b.get(startPath)
	if c := got.header.Values("Set-Cookie"); len(c) != 1 || !strings.HasPrefix(c[0], attemptCookie+"=") ||
		!strings.HasSuffix(c[0], "; Path=/; Max-Age=600; HttpOnly; Secure; SameSite=Lax") {
		t.Errorf("the cookies of a login are %q", c)
	}
	before := b.findCSRF("/login")
	got = b.finishLogin(p.Authorize(t, b.startLogin("/namespaces/shop/quota"), "ana"))
	if got.status != http.StatusSeeOther || got.header.Get("Location") != "/namespaces/shop/quota" {
		t.Fatalf("status %d, location %q: %s", got.status, got.header.Get("Location"), got.body)
	}
	if page := b.get("/namespaces/shop/quota"); page.status != http.StatusOK || !strings.Contains(page.body, ">ana<") {
		t.Errorf("status %d: %s", page.status, page.body)
	}
	if b.findCSRF("/") == before {
		t.Error("the session keeps the text of its forms after the login")
	}
	if slices.ContainsFunc(b.listCookies(), func(c *http.Cookie) bool { return c.Name == attemptCookie }) {
		t.Error("the cookie of the login remains")
	}
}

func mustParse(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestForeignLogins expects no login for a response that does not belong to a login of this browser at
// this provider.
func TestForeignLogins(t *testing.T) {
	a := startAPIServer(t)
	p, o := startProvider(t, a)
	open := serveHandler(t, New(o))
	for name, change := range map[string]func(query url.Values, b *browser){
		"without a state":         func(q url.Values, _ *browser) { q.Del("state") },
		"with an empty state":     func(q url.Values, _ *browser) { q.Set("state", "") },
		"with another state":      func(q url.Values, _ *browser) { q.Set("state", strings.Repeat("A", 26)) },
		"of an earlier login":     func(_ url.Values, b *browser) { b.startLogin("/") },
		"of another issuer":       func(q url.Values, _ *browser) { q.Set("iss", "https://evil.example") },
		"without an issuer":       func(q url.Values, _ *browser) { q.Del("iss") },
		"with an empty issuer":    func(q url.Values, _ *browser) { q.Set("iss", "") },
		"an error of another one": func(q url.Values, _ *browser) { q.Del("code"); q.Set("error", "access_denied"); q.Del("state") },
		"without a cookie": func(q url.Values, b *browser) {
			b.setCookies(&http.Cookie{Name: attemptCookie, MaxAge: -1})
			q.Set("state", "")
		},
		// Login CSRF: eve's code and state in ana's browser, which has a login of its own.
		"of another browser": func(q url.Values, _ *browser) {
			eve := open()
			theirs := p.Authorize(t, eve.startLogin("/"), "bob").Query()
			q.Set("code", theirs.Get("code"))
			q.Set("state", theirs.Get("state"))
		},
		// Code injection: eve's code with ana's state.
		"with another browser's code": func(q url.Values, _ *browser) {
			q.Set("code", p.Authorize(t, open().startLogin("/"), "bob").Query().Get("code"))
		},
		"with the cookie of a session": func(_ url.Values, b *browser) {
			c := open().logIn("bob-token").cookieNamed(sessionCookie)
			_, value, _ := strings.Cut(c.Value, ".")
			_, value, _ = strings.Cut(value, ".")
			b.setCookies(&http.Cookie{Name: attemptCookie, Value: value})
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := open()
			back := p.Authorize(t, b.startLogin("/"), "ana")
			query := back.Query()
			change(query, b)
			back.RawQuery = query.Encode()
			got := b.finishLogin(back)
			if got.status < 400 || b.isLoggedIn() {
				t.Errorf("status %d, logged in: %t", got.status, b.isLoggedIn())
			}
		})
	}
	t.Run("a login that is no session", func(t *testing.T) {
		b := open()
		b.startLogin("/")
		b.setCookies(&http.Cookie{Name: sessionCookie, Value: "1.x." + b.cookieNamed(attemptCookie).Value})
		if b.isLoggedIn() {
			t.Error("the cookie of a login is a session")
		}
	})
	t.Run("twice", func(t *testing.T) {
		b := open()
		back := p.Authorize(t, b.startLogin("/"), "ana")
		b.finishLogin(back)
		if got := b.finishLogin(back); got.status != http.StatusForbidden || !b.isLoggedIn() {
			t.Errorf("status %d, logged in: %t", got.status, b.isLoggedIn())
		}
	})
	t.Run("of a provider without an issuer in its responses", func(t *testing.T) {
		p.Change(func() {
			p.ChangeMetadata = func(m map[string]any) { delete(m, "authorization_response_iss_parameter_supported") }
		})
		o.Provider = newProvider(t, p) // without the old document
		open := serveHandler(t, New(o))
		for issuer, accepted := range map[string]bool{"": true, "https://evil.example": false} {
			b := open()
			back := p.Authorize(t, b.startLogin("/"), "ana")
			query := back.Query()
			if query.Set("iss", issuer); issuer == "" {
				query.Del("iss")
			}
			back.RawQuery = query.Encode()
			if b.finishLogin(back); b.isLoggedIn() != accepted {
				t.Errorf("issuer %q: logged in: %t", issuer, b.isLoggedIn())
			}
		}
	})
}

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
	if got := down.get(startPath); got.status != http.StatusBadGateway || !strings.Contains(got.body, "login at the identity provider failed") {
		t.Errorf("status %d: %s", got.status, got.body)
	}
	p.Change(func() {
		p.Down, p.ChangeMetadata = false, func(m map[string]any) { m["token_endpoint"] = "http://login.example.org/token" }
	})
	if got := down.get(startPath); got.status != http.StatusBadGateway {
		t.Errorf("a token endpoint without TLS: status %d", got.status)
	}
	p.Change(func() { p.ChangeMetadata = nil })
	if got := down.get(startPath); got.status != http.StatusSeeOther {
		t.Errorf("the provider answers again, and the dashboard does not: status %d", got.status)
	}
}

// TestProviderRedirects expects every login at the provider to end at the dashboard itself.
func TestProviderRedirects(t *testing.T) {
	a := startAPIServer(t)
	p, o := startProvider(t, a)
	open := serveHandler(t, New(o))
	for next, want := range map[string]string{
		"/namespaces/shop/quota": "/namespaces/shop/quota", "/tenants?q=a": "/tenants?q=a", "": "/", "https://evil.example": "/", "//evil.example": "/",
		"/\\evil.example": "/", "/\t/evil.example": "/", "javascript:alert(1)": "/", "/" + strings.Repeat("a", 5000): "/",
	} {
		b := open()
		if got := b.finishLogin(p.Authorize(t, b.startLogin(next), "ana")); got.header.Get("Location") != want {
			t.Errorf("%.40q leads to %q, want %q", next, got.header.Get("Location"), want)
		}
	}
}

// TestReplicas begins a login at one replica, and finishes it at another with the same keys.
func TestReplicas(t *testing.T) {
	a := startAPIServer(t)
	p, o := startProvider(t, a)
	first, second := serveHandler(t, New(o))(), serveHandler(t, New(o))()
	b := &browser{t: t, client: first.client, url: first.url}
	back := p.Authorize(t, b.startLogin("/"), "ana")
	b.url = second.url // cookies do not depend on the port
	b.client.Transport = second.client.Transport
	if got := b.finishLogin(back); got.status != http.StatusSeeOther || !b.isLoggedIn() {
		t.Errorf("status %d: %s", got.status, got.body)
	}
	other := newOptions(t, a)
	other.Provider = o.Provider
	stranger := serveHandler(t, New(other))()
	b.url, b.client.Transport = stranger.url, stranger.client.Transport
	if b.isLoggedIn() {
		t.Error("a replica with other keys opens the session")
	}
}

// TestTokenLoginOff expects no login with a token if it is off.
func TestTokenLoginOff(t *testing.T) {
	a := startAPIServer(t)
	_, o := startProvider(t, a)
	o.TokenLogin = false
	b := serveHandler(t, New(o))()
	if page := b.get("/login"); strings.Contains(page.body, "<form") || !strings.Contains(page.body, startPath) {
		t.Errorf("the login page is %s", page.body)
	}
	if got := b.send(http.MethodPost, "/login", url.Values{"token": {"ana-token"}}, nil); got.status != http.StatusMethodNotAllowed || b.isLoggedIn() {
		t.Errorf("status %d: %s", got.status, got.body)
	}
}

// TestManyGroups expects the session of a user with 300 groups and a refresh token to fit into the
// cookies of a browser.
func TestManyGroups(t *testing.T) {
	a := startAPIServer(t)
	p, o := startProvider(t, a)
	for i := range 300 {
		p.Groups = append(p.Groups, fmt.Sprintf("cn=team-%03d-developers,ou=platform-access,dc=example,dc=org", i))
	}
	b := serveHandler(t, New(o))().logInAt(p, "ana")
	if !b.isLoggedIn() || len(b.listCookies()) < 8 {
		t.Errorf("logged in: %t, with %d cookies", b.isLoggedIn(), len(b.listCookies()))
	}
}
