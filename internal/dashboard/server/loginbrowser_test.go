package server

import (
	"net/http"
	"net/url"
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
	got := b.getPage(startPath + "?next=" + url.QueryEscape(next))
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
	return b.getPage(back.RequestURI())
}

// logInAt logs in at the provider.
func (b *browser) logInAt(p *providertest.Provider, user string) *browser {
	b.t.Helper()
	if got := b.finishLogin(p.Authorize(b.t, b.startLogin("/"), user)); got.status != http.StatusSeeOther {
		b.t.Fatalf("status %d: %s", got.status, got.body)
	}
	return b
}

// findCookie returns a cookie of the browser.
func (b *browser) findCookie(name string) *http.Cookie {
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

func mustParse(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
