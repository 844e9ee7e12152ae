package server

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"croft.dev/croft/internal/dashboard/cluster"
	"croft.dev/croft/internal/dashboard/session"
)

// browser keeps cookies as a browser does, and follows no redirects.
type browser struct {
	t      *testing.T
	client *http.Client
	url    string
}

// startDashboard serves a dashboard for an API server. The function returns new browsers.
func startDashboard(t *testing.T, a *apiServer) func() *browser {
	t.Helper()
	return serveHandler(t, New(newOptions(t, a)))
}

func newOptions(t *testing.T, a *apiServer) Options {
	t.Helper()
	c, err := cluster.NewServer(a.entry)
	if err != nil {
		t.Fatal(err)
	}
	return Options{Cluster: c, Keys: session.NewKeys(), Log: slog.New(slog.DiscardHandler)}
}

func serveHandler(t *testing.T, handler http.Handler) func() *browser {
	t.Helper()
	return serveWith(t, httptest.NewUnstartedServer(handler))
}

// serveWith starts a server with limits of its own.
func serveWith(t *testing.T, server *httptest.Server) func() *browser {
	t.Helper()
	server.StartTLS()
	t.Cleanup(server.Close)
	return func() *browser {
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		return &browser{t: t, url: server.URL, client: &http.Client{
			Transport: server.Client().Transport, Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}}
	}
}

// response is a response to a browser.
type response struct {
	status int
	header http.Header
	body   string
}

func (b *browser) sendRequest(method, path string, form url.Values, headers map[string]string) response {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	got, err := b.client.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return response{got.StatusCode, got.Header, string(body)}
}

func (b *browser) getPage(path string) response {
	b.t.Helper()
	return b.sendRequest(http.MethodGet, path, nil, nil)
}

// findCSRF returns the text that the forms of a page repeat.
func (b *browser) findCSRF(path string) string {
	b.t.Helper()
	tree, err := html.Parse(strings.NewReader(b.getPage(path).body))
	if err != nil {
		b.t.Fatal(err)
	}
	for n := range tree.Descendants() {
		var name, value string
		for _, a := range n.Attr {
			switch a.Key {
			case "name":
				name = a.Val
			case "value":
				value = a.Val
			}
		}
		if name == "csrf" {
			return value
		}
	}
	b.t.Fatalf("%s has no form", path)
	return ""
}

// logIn logs in with a token.
func (b *browser) logIn(token string) *browser {
	b.t.Helper()
	got := b.sendRequest(http.MethodPost, "/login", url.Values{"csrf": {b.findCSRF("/login")}, "token": {token}}, nil)
	if got.status != http.StatusSeeOther {
		b.t.Fatalf("login: status %d: %s", got.status, got.body)
	}
	return b
}

// isLoggedIn reports whether pages need no login.
func (b *browser) isLoggedIn() bool {
	b.t.Helper()
	return b.getPage("/").status == http.StatusOK
}
