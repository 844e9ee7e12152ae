package server

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// TestProviderLogin expects a session with the ID token, and requests for it that only this browser's
// login could have sent.
func TestProviderLogin(t *testing.T) {
	a := startAPIServer(t)
	p, o := startProvider(t, a)
	b := serveHandler(t, New(o))()
	page := b.getPage("/namespaces/shop/quota")
	page = b.getPage(page.header.Get("Location"))
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
	got := b.getPage(startPath)
	if c := got.header.Values("Set-Cookie"); len(c) != 1 || !strings.HasPrefix(c[0], attemptCookie+"=") ||
		!strings.HasSuffix(c[0], "; Path=/; Max-Age=600; HttpOnly; Secure; SameSite=Lax") {
		t.Errorf("the cookies of a login are %q", c)
	}
	before := b.findCSRF("/login")
	got = b.finishLogin(p.Authorize(t, b.startLogin("/namespaces/shop/quota"), "ana"))
	if got.status != http.StatusSeeOther || got.header.Get("Location") != "/namespaces/shop/quota" {
		t.Fatalf("status %d, location %q: %s", got.status, got.header.Get("Location"), got.body)
	}
	if page := b.getPage("/namespaces/shop/quota"); page.status != http.StatusOK || !strings.Contains(page.body, ">ana<") {
		t.Errorf("status %d: %s", page.status, page.body)
	}
	if b.findCSRF("/") == before {
		t.Error("the session keeps the text of its forms after the login")
	}
	if slices.ContainsFunc(b.listCookies(), func(c *http.Cookie) bool { return c.Name == attemptCookie }) {
		t.Error("the cookie of the login remains")
	}
}

// TestForeignLogins expects no login for a response that does not belong to a login of this browser at
// this provider.
func TestForeignLogins(t *testing.T) {
	a := startAPIServer(t)
	p, o := startProvider(t, a)
	open := serveHandler(t, New(o))
	const codeOfAnother = "with another browser's code"
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
		codeOfAnother: func(q url.Values, _ *browser) {
			q.Set("code", p.Authorize(t, open().startLogin("/"), "bob").Query().Get("code"))
		},
		"with the cookie of a session": func(_ url.Values, b *browser) {
			c := open().logIn("bob-token").findCookie(sessionCookie)
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
			want := http.StatusForbidden
			if name == codeOfAnother {
				want = http.StatusBadGateway // the provider refuses the code without its verifier
			}
			if got.status != want || b.isLoggedIn() {
				t.Errorf("status %d, logged in: %t", got.status, b.isLoggedIn())
			}
		})
	}
	t.Run("a login that is no session", func(t *testing.T) {
		b := open()
		b.startLogin("/")
		b.setCookies(&http.Cookie{Name: sessionCookie, Value: "1.x." + b.findCookie(attemptCookie).Value})
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
	if page := b.getPage("/login"); strings.Contains(page.body, "<form") || !strings.Contains(page.body, startPath) {
		t.Errorf("the login page is %s", page.body)
	}
	if got := b.sendRequest(http.MethodPost, "/login", url.Values{"token": {"ana-token"}}, nil); got.status != http.StatusMethodNotAllowed || b.isLoggedIn() {
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
