package server

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// pagePaths are the pages of a namespace, and the others that need a login.
var pagePaths = []string{
	"/", "/tenants", "/pools", "/pools/apps", "/nodes", "/walls", "/namespaces/NS", "/namespaces/NS/workloads", "/namespaces/NS/workloads/pod/web-1", "/namespaces/NS/workloads/pod/web-2",
	"/namespaces/NS/workloads/deployment/web", "/namespaces/NS/workloads/pod/web-1/log?container=main", "/namespaces/NS/jobs", "/namespaces/NS/network", "/namespaces/NS/hosts", "/namespaces/NS/hosts/gateways",
	"/namespaces/NS/hosts/routes", "/namespaces/NS/quota", "/namespaces/NS/access", "/namespaces/NS/try",
	"/namespaces/NS/elevations", "/namespaces/NS/cost",
}

// TestHeaders expects the security headers in every response, also in errors and redirects.
func TestHeaders(t *testing.T) {
	a := startAPIServer(t)
	open := startDashboard(t, a)
	user, stranger := open().logIn("ana-token"), open()
	a.users["root-token"], a.admins["root"] = "root", true
	admin := open().logIn("root-token")
	panics := serveHandler(t, newDashboard(newOptions(t, a)).protect(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("broken") })))()
	form := url.Values{"token": {"x"}}
	a.setStatus("/apis/apps/v1/namespaces/shop/statefulsets", http.StatusInternalServerError)
	a.setStatus("/apis/croft.dev/v1alpha1/tenants", http.StatusForbidden)
	for _, c := range []struct {
		name   string
		b      *browser
		method string
		path   string
		form   url.Values
		status int
	}{
		{"start", user, "GET", "/", nil, 200},
		{"overview", user, "GET", "/namespaces/shop", nil, 200},
		{"workload", user, "GET", "/namespaces/shop/workloads/pod/web-1", nil, 200},
		{"a Deployment", user, "GET", "/namespaces/shop/workloads/deployment/web", nil, 200},
		{"a log", user, "GET", "/namespaces/shop/workloads/pod/web-1/log?container=main", nil, 200},
		{"a forged command", user, "POST", runPath, form, 403},
		{"a command by a link", user, "GET", runPath + "?container=main&command=id", nil, 404},
		{"a forged change", user, "POST", "/namespaces/shop/workloads/deployment/web/restart", form, 403},
		{"network", user, "GET", "/namespaces/shop/network", nil, 200},
		{"hosts", user, "GET", "/namespaces/shop/hosts", nil, 200},
		{"quota", user, "GET", "/namespaces/shop/quota", nil, 200},
		{"access", user, "GET", "/namespaces/shop/access", nil, 200},
		{"elevations", user, "GET", "/namespaces/shop/elevations", nil, 200},
		{"a forged request", user, "POST", "/namespaces/shop/elevations", form, 403},
		{"a forged approval", user, "POST", "/namespaces/shop/elevations/a/approve", form, 403},
		{"cost", user, "GET", "/namespaces/shop/cost", nil, 200},
		{"try", user, "GET", "/namespaces/shop/try", nil, 200},
		{"a forged trial", user, "POST", "/namespaces/shop/try", form, 403},
		{"without a body", user, "HEAD", "/namespaces/shop/access", nil, 200},
		{"a hidden list", user, "GET", "/tenants", nil, 404},
		{"hidden pools", user, "GET", "/pools", nil, 404},
		{"pools", admin, "GET", "/pools", nil, 200},
		{"hidden nodes", user, "GET", "/nodes", nil, 404},
		{"nodes", admin, "GET", "/nodes", nil, 200},
		{"nodes of a pool", admin, "GET", "/pools/apps", nil, 200},
		{"nodes of an invalid pool", admin, "GET", "/pools/$(reboot)", nil, 404},
		{"hidden walls", user, "GET", "/walls", nil, 404},
		{"walls", admin, "GET", "/walls", nil, 200},
		{"an error of the cluster", user, "GET", "/namespaces/shop/workloads", nil, 502},
		{"an unknown workload", user, "GET", "/namespaces/shop/workloads/pod/other", nil, 404},
		{"an unknown kind", user, "GET", "/namespaces/shop/workloads/secret/web", nil, 404},
		{"a cluster-scoped kind", user, "GET", "/namespaces/shop/workloads/node/web", nil, 404},
		{"an invalid namespace", user, "GET", "/namespaces/%3Brm%20-rf%20~", nil, 404},
		{"an invalid name", user, "GET", "/namespaces/shop/workloads/pod/$(reboot)", nil, 404},
		{"an unknown path", user, "GET", "/wp-login.php", nil, 404},
		{"an unknown path without a login", stranger, "GET", "/wp-login.php", nil, 404},
		{"a path with two slashes", user, "GET", "/namespaces//shop", nil, 307},
		{"a form that opens a namespace", user, "GET", "/open?namespace=shop", nil, 303},
		{"a form that opens no namespace", user, "GET", "/open?namespace=//evil.example", nil, 404},
		{"a page without a login", stranger, "GET", "/namespaces/shop", nil, 303},
		{"login", stranger, "GET", "/login", nil, 200},
		{"login with a session", user, "GET", "/login", nil, 303},
		{"a forged login", stranger, "POST", "/login", form, 403},
		{"a forged logout", user, "POST", "/logout", form, 403},
		{"a wrong method", user, "POST", "/tenants", form, 405},
		{"another wrong method", user, "DELETE", "/namespaces/shop", form, 405},
		{"the style sheet", stranger, "GET", "/assets/style.css", nil, 200},
		{"the script", stranger, "GET", "/assets/page.js", nil, 200},
		{"a stream without a login", stranger, "GET", "/namespaces/shop?live=1", nil, 401},
		{"a hidden stream", user, "GET", "/namespaces/bank?live=1", nil, 404},
		{"a page that is not live", user, "GET", "/namespaces/shop/access?live=1", nil, 200},
		{"health", stranger, "GET", "/healthz", nil, 200},
		{"a panic", panics, "GET", "/", nil, 500},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.b.sendRequest(c.method, c.path, c.form, nil)
			if got.status != c.status {
				t.Errorf("status %d, want %d", got.status, c.status)
			}
			for name, want := range map[string]string{
				"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; " +
					"base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
				"Strict-Transport-Security": "max-age=31536000", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
				"X-Frame-Options": "DENY", "Referrer-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
			} {
				if values := got.header.Values(name); len(values) != 1 || values[0] != want {
					t.Errorf("%s: %q, want %q", name, values, want)
				}
			}
		})
	}
}

// TestOwnToken opens every page as two users, on a machine with credentials of its own. Each
// request to the cluster carries the token of the user who looks at the page.
func TestOwnToken(t *testing.T) {
	// Credentials that a process could find: a kubeconfig, and a service account's token.
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte("{apiVersion: v1, kind: Config, users: [{name: me, user: {token: process-token}}]}"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
	a := startAPIServer(t)
	open := startDashboard(t, a)
	stranger := open()
	for _, path := range pagePaths {
		stranger.getPage(strings.ReplaceAll(path, "NS", "shop"))
	}
	stranger.getPage("/login")
	if requests := a.takeRequests(); len(requests) > 0 {
		t.Errorf("%d requests to the cluster without a login", len(requests))
	}
	for token, user := range a.users {
		b := open().logIn(token)
		for _, path := range pagePaths {
			if got := b.getPage(strings.ReplaceAll(path, "NS", a.theirs[user])); got.status == http.StatusBadGateway {
				t.Errorf("%s: status %d", path, got.status)
			}
		}
		requests := a.takeRequests()
		if len(requests) < len(pagePaths) {
			t.Errorf("only %d requests to the cluster", len(requests))
		}
		for _, r := range requests {
			if got := r.Header.Values("Authorization"); !slices.Equal(got, []string{"Bearer " + token}) {
				t.Errorf("%s of %s: Authorization %q", r.URL, user, got)
			}
			for name := range r.Header {
				if strings.HasPrefix(name, "Impersonate") || name == "Cookie" {
					t.Errorf("%s of %s: header %s", r.URL, user, name)
				}
			}
			if len(r.TLS.PeerCertificates) > 0 {
				t.Errorf("%s of %s: a client certificate", r.URL, user)
			}
		}
	}
}

// TestMissingAndHidden compares pages of another tenant with pages that do not exist: the same
// user gets the same response.
func TestMissingAndHidden(t *testing.T) {
	a := startAPIServer(t)
	b := startDashboard(t, a)().logIn("ana-token")
	reference := b.getPage("/namespaces/nowhere")
	for _, path := range pagePaths[1:] {
		path = strings.ReplaceAll(path, "NS", "bank")
		hidden := b.getPage(path)
		a.mu.Lock()
		a.theirs["ana"] = "bank" // ana may read it, and nothing exists
		objects := a.objects
		a.objects = map[string]string{}
		a.mu.Unlock()
		missing := b.getPage(path)
		a.mu.Lock()
		a.theirs["ana"], a.objects = "shop", objects
		a.mu.Unlock()
		if hidden.status != http.StatusNotFound || hidden.body != reference.body {
			t.Errorf("%s hidden: status %d:\n%s", path, hidden.status, hidden.body)
		}
		// An API server returns an empty list for a namespace that does not exist.
		if !strings.HasSuffix(path, "/workloads") && !strings.HasSuffix(path, "/jobs") && (missing.status != hidden.status || missing.body != hidden.body) {
			t.Errorf("%s missing: status %d:\n%s", path, missing.status, missing.body)
		}
	}
	missing := b.getPage("/namespaces/shop/workloads/pod/other")
	a.setStatus("/api/v1/namespaces/shop/pods/other", http.StatusForbidden)
	if hidden := b.getPage("/namespaces/shop/workloads/pod/other"); hidden.status != missing.status || hidden.body != missing.body || missing.body != reference.body {
		t.Errorf("a hidden pod: status %d:\n%s\na missing one: status %d:\n%s", hidden.status, hidden.body, missing.status, missing.body)
	}
}

// TestPages expects the data of the cluster on a page, and an end of the session when the cluster
// no longer accepts the token.
func TestPages(t *testing.T) {
	a := startAPIServer(t)
	b := startDashboard(t, a)().logIn("ana-token")
	for path, part := range map[string]string{
		"/":                                   `name="namespace"`,
		"/namespaces/shop":                    `href="/namespaces/shop/workloads/pod/web-1"`,
		"/namespaces/shop/workloads":          "Pending, no node",
		"/namespaces/shop/workloads/po/web-1": "pod/web-1 in shop: waits for a node",
		"/namespaces/shop/quota":              "There is no quota",
		"/namespaces/shop/hosts":              "refused: outside of the domains",
		"/namespaces/shop/network":            "not among the NetworkPolicies",
		"/namespaces/shop/access":             "You are ana",
	} {
		if got := b.getPage(path); got.status != http.StatusOK || !strings.Contains(got.body, part) {
			t.Errorf("%s: status %d, no %s:\n%s", path, got.status, part, got.body)
		}
	}
	if got := b.getPage("/open?namespace=shop"); got.header.Get("Location") != "/namespaces/shop" {
		t.Errorf("the form opens %s", got.header.Get("Location"))
	}
	a.setStatus("/apis/croft.dev/v1alpha1/namespaces/shop/tenantrules/croft", http.StatusUnauthorized)
	got := b.getPage("/namespaces/shop/quota")
	if got.status != http.StatusSeeOther || got.header.Get("Location") != "/login?next=%2Fnamespaces%2Fshop%2Fquota" {
		t.Errorf("an expired token: status %d, location %s", got.status, got.header.Get("Location"))
	}
	if b.isLoggedIn() {
		t.Error("the session of an expired token continues")
	}
}
