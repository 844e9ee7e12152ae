package server

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestLogin expects a session only for a token that the cluster accepts.
func TestLogin(t *testing.T) {
	a := startAPIServer(t)
	open := startDashboard(t, a)
	for name, c := range map[string]struct {
		token    string
		status   int
		wantText string
	}{
		"valid":            {"ana-token", 303, ""},
		"as a header":      {"  Bearer ana-token\n", 303, ""},
		"invalid":          {"eve-token", 401, "does not accept this token"},
		"empty":            {"", 400, "no bearer token"},
		"other characters": {"ana-token\r\nImpersonate-User: admin", 400, "no bearer token"},
		"too large":        {strings.Repeat("a", 50_000), 401, "does not accept"},
	} {
		t.Run(name, func(t *testing.T) {
			b := open()
			got := b.sendRequest(http.MethodPost, "/login", url.Values{"csrf": {b.findCSRF("/login")}, "token": {c.token}}, nil)
			if got.status != c.status || !strings.Contains(got.body, c.wantText) {
				t.Errorf("status %d, want %d with %q:\n%s", got.status, c.status, c.wantText, got.body)
			}
			if b.isLoggedIn() != (c.status == 303) {
				t.Errorf("logged in: %t", b.isLoggedIn())
			}
			if strings.Contains(got.body, c.token) && c.token != "" {
				t.Error("the response repeats the token")
			}
		})
	}
	t.Run("too large for cookies", func(t *testing.T) {
		a.users["large"+strings.Repeat("a", 50_000)] = "ana"
		b := open()
		got := b.sendRequest(http.MethodPost, "/login", url.Values{"csrf": {b.findCSRF("/login")}, "token": {"large" + strings.Repeat("a", 50_000)}}, nil)
		if got.status != http.StatusRequestEntityTooLarge || b.isLoggedIn() {
			t.Errorf("status %d:\n%s", got.status, got.body)
		}
	})
	t.Run("300 groups", func(t *testing.T) {
		token := "groups" + strings.Repeat("a", 25_000)
		a.users[token] = "ana"
		if b := open().logIn(token); !b.isLoggedIn() {
			t.Error("not logged in")
		}
	})
	t.Run("no answer", func(t *testing.T) {
		a.setStatus("/apis/authentication.k8s.io/v1/selfsubjectreviews", http.StatusInternalServerError)
		defer a.setStatus("/apis/authentication.k8s.io/v1/selfsubjectreviews", 0)
		b := open()
		if got := b.sendRequest(http.MethodPost, "/login", url.Values{"csrf": {b.findCSRF("/login")}, "token": {"ana-token"}}, nil); got.status != http.StatusBadGateway || b.isLoggedIn() {
			t.Errorf("status %d:\n%s", got.status, got.body)
		}
	})
}

// TestLogOut expects the end of the session, and a session before the login that is not the
// session after it.
func TestLogOut(t *testing.T) {
	open := startDashboard(t, startAPIServer(t))
	b := open()
	before := b.findCSRF("/login")
	b.logIn("ana-token")
	after := b.findCSRF("/")
	if before == after {
		t.Error("the session keeps the text of its forms after the login")
	}
	if got := b.sendRequest(http.MethodPost, "/logout", url.Values{"csrf": {after}}, nil); got.status != http.StatusSeeOther || b.isLoggedIn() {
		t.Errorf("status %d, logged in: %t", got.status, b.isLoggedIn())
	}
}

// TestForgedForms expects forms of other sites and of other sessions to have no effect.
func TestForgedForms(t *testing.T) {
	open := startDashboard(t, startAPIServer(t))
	eve := open().logIn("bob-token")
	theirs, visitors := eve.findCSRF("/"), open().findCSRF("/login")
	for name, c := range map[string]struct {
		headers map[string]string
		// csrf is the text in the form; OWN is the right one.
		csrf, query string
	}{
		"another site":                    {map[string]string{"Sec-Fetch-Site": "cross-site"}, "OWN", ""},
		"another host of the domain":      {map[string]string{"Sec-Fetch-Site": "same-site"}, "OWN", ""},
		"another origin":                  {map[string]string{"Sec-Fetch-Site": "", "Origin": "https://evil.example"}, "OWN", ""},
		"an opaque origin":                {map[string]string{"Sec-Fetch-Site": "", "Origin": "null"}, "OWN", ""},
		"no text":                         {nil, "", ""},
		"another text":                    {nil, "AAAAAAAAAAAAAAAAAAAAAAAAAA", ""},
		"another user's text":             {nil, theirs, ""},
		"a text from before the login":    {nil, visitors, ""},
		"the text in the address":         {nil, "", "?csrf=OWN"},
		"an old browser without a header": {map[string]string{"Sec-Fetch-Site": ""}, theirs, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := open().logIn("ana-token")
			own := b.findCSRF("/")
			form := url.Values{}
			if c.csrf != "" {
				form.Set("csrf", strings.ReplaceAll(c.csrf, "OWN", own))
			}
			if got := b.sendRequest(http.MethodPost, "/logout"+strings.ReplaceAll(c.query, "OWN", own), form, c.headers); got.status != http.StatusForbidden || !b.isLoggedIn() {
				t.Errorf("logout: status %d, logged in: %t", got.status, b.isLoggedIn())
			}
			visitor := open()
			own = visitor.findCSRF("/login")
			form.Set("token", "bob-token")
			if c.csrf != "" {
				form.Set("csrf", strings.ReplaceAll(c.csrf, "OWN", own))
			}
			if got := visitor.sendRequest(http.MethodPost, "/login"+strings.ReplaceAll(c.query, "OWN", own), form, c.headers); got.status != http.StatusForbidden || visitor.isLoggedIn() {
				t.Errorf("login: status %d, logged in: %t", got.status, visitor.isLoggedIn())
			}
		})
	}
	t.Run("no cookies", func(t *testing.T) {
		b := open()
		if got := b.sendRequest(http.MethodPost, "/login", url.Values{"csrf": {""}, "token": {"bob-token"}}, nil); got.status != http.StatusForbidden || b.isLoggedIn() {
			t.Errorf("status %d, logged in: %t", got.status, b.isLoggedIn())
		}
	})
	t.Run("a large form", func(t *testing.T) {
		b := open()
		form := url.Values{"csrf": {b.findCSRF("/login")}, "token": {"bob-token"}, "x": {strings.Repeat("a", 2*largestForm)}}
		if got := b.sendRequest(http.MethodPost, "/login", form, nil); got.status != http.StatusForbidden || b.isLoggedIn() {
			t.Errorf("status %d, logged in: %t", got.status, b.isLoggedIn())
		}
	})
}

// TestOpenRedirects expects every redirect to lead to the dashboard itself.
func TestOpenRedirects(t *testing.T) {
	open := startDashboard(t, startAPIServer(t))
	for next, want := range map[string]string{
		"/namespaces/shop/quota": "/namespaces/shop/quota", "/tenants?q=a": "/tenants?q=a", "": "/",
		"https://evil.example": "/", "//evil.example": "/", "///evil.example": "/", "/\\evil.example": "/", "\\\\evil.example": "/", "/\t/evil.example": "/", "/\n/evil.example": "/",
		"javascript:alert(1)": "/", "evil.example": "/", "https:evil.example": "/", "https:///evil.example": "/", "//ana@evil.example": "/", "/%zz": "/", "/\x00": "/",
	} {
		b := open()
		form := url.Values{"csrf": {b.findCSRF("/login?next=" + url.QueryEscape(next))}, "token": {"ana-token"}, "next": {next}}
		if got := b.sendRequest(http.MethodPost, "/login", form, nil).header.Get("Location"); got != want {
			t.Errorf("after the login, %q leads to %q, want %q", next, got, want)
		}
		if got := b.getPage("/login?next=" + url.QueryEscape(next)).header.Get("Location"); got != want {
			t.Errorf("with a session, %q leads to %q, want %q", next, got, want)
		}
	}
	b := open()
	for _, path := range []string{"//evil.example", "//evil.example/..", "/%5Cevil.example", "/namespaces//..//evil.example"} {
		if location := b.getPage(path).header.Get("Location"); strings.HasPrefix(location, "//") || strings.HasPrefix(location, "/\\") || strings.Contains(location, "://") {
			t.Errorf("%s leads to %s", path, location)
		}
	}
}

// TestServing expects a self-signed certificate only on the loopback interface.
func TestServing(t *testing.T) {
	for addr, valid := range map[string]bool{
		"127.0.0.1:0": true, "[::1]:0": true, "localhost:0": true, "127.0.0.2:0": true,
		":9443": false, "0.0.0.0:9443": false, "[::]:9443": false, "192.0.2.1:9443": false, "localhost.evil.example:9443": false, "9443": false,
	} {
		if err := (Serving{Addr: addr}).Check(); (err == nil) != valid {
			t.Errorf("%s: %v", addr, err)
		}
	}
	if err := (Serving{Addr: ":9443", CertFile: "tls.crt"}).Check(); err != nil {
		t.Error(err)
	}
}
