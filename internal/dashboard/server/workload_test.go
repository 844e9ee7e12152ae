package server

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

const webPath = "/namespaces/shop/workloads/deployment/web"

// listPatches returns the patches that the dashboard has sent, with their bodies.
func listPatches(t *testing.T, a *apiServer) []string {
	t.Helper()
	var all []string
	for _, r := range a.takeRequests() {
		if r.Method == http.MethodPatch {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, r.URL.RequestURI()+" "+string(body))
		}
	}
	return all
}

// TestChanges expects a dry run and a question before each change, and the refusal of the API
// server on the page.
func TestChanges(t *testing.T) {
	a := startAPIServer(t)
	b := startDashboard(t, a)().logIn("ana-token")
	csrf := b.findCSRF(webPath)
	const object = "/apis/apps/v1/namespaces/shop/deployments/web"
	send := func(path string, form url.Values) response {
		t.Helper()
		a.takeRequests()
		form.Set("csrf", csrf)
		return b.sendRequest(http.MethodPost, path, form, nil)
	}
	for name, c := range map[string]struct {
		path string
		form url.Values
		// asks is on the page that asks, and patch in the request.
		asks, patch string
	}{
		"restart": {"/restart", url.Values{}, "kubectl rollout restart deployment/web -n shop", `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"2`},
		"scale":   {"/scale", url.Values{"replicas": {"5"}}, `name="replicas" value="5"`, `{"spec":{"replicas":5}}`},
	} {
		t.Run(name, func(t *testing.T) {
			got := send(webPath+c.path, c.form)
			patches := listPatches(t, a)
			if got.status != http.StatusOK || !strings.Contains(got.body, c.asks) || !strings.Contains(got.body, `name="confirmed" value="yes"`) {
				t.Errorf("status %d, no %s:\n%s", got.status, c.asks, got.body)
			}
			if len(patches) != 1 || !strings.HasPrefix(patches[0], object+"?dryRun=All&") || !strings.Contains(patches[0], c.patch) {
				t.Errorf("before the confirmation: %q", patches)
			}
			c.form.Set("confirmed", "yes")
			got = send(webPath+c.path, c.form)
			patches = listPatches(t, a)
			if got.status != http.StatusSeeOther || got.header.Get("Location") != webPath {
				t.Errorf("confirmed: status %d, location %s", got.status, got.header.Get("Location"))
			}
			if len(patches) != 1 || strings.Contains(patches[0], "dryRun") || !strings.Contains(patches[0], c.patch) {
				t.Errorf("after the confirmation: %q", patches)
			}
			for _, status := range []int{http.StatusForbidden, http.StatusUnprocessableEntity} {
				a.setStatus("PATCH "+object, status)
				for _, confirmed := range []string{"", "yes"} {
					c.form.Set("confirmed", confirmed)
					if got := send(webPath+c.path, c.form); got.status != http.StatusOK || !strings.Contains(got.body, "The cluster refuses this: because") || strings.Contains(got.body, `name="confirmed"`) {
						t.Errorf("a refusal with %d: status %d:\n%s", status, got.status, got.body)
					}
				}
				a.setStatus("PATCH "+object, 0)
			}
		})
	}
	a.setStatus("PATCH "+object, http.StatusUnauthorized)
	if got := b.sendRequest(http.MethodPost, webPath+"/restart", url.Values{"csrf": {csrf}}, nil); got.status != http.StatusSeeOther || got.header.Get("Location") != "/login" {
		t.Errorf("an expired token: status %d, location %s", got.status, got.header.Get("Location"))
	}
	a.setStatus("PATCH "+object, 0)
	b.logIn("ana-token")
	csrf = b.findCSRF(webPath)
	for _, replicas := range []string{"", "-1", "x", "99999999999"} {
		if got := send(webPath+"/scale", url.Values{"replicas": {replicas}, "confirmed": {"yes"}}); got.status != http.StatusOK || !strings.Contains(got.body, "must be a whole number, 0 or more") || len(listPatches(t, a)) > 0 {
			t.Errorf("%q replicas: status %d:\n%s", replicas, got.status, got.body)
		}
	}
	missing := b.getPage("/namespaces/nowhere")
	for _, path := range []string{
		"/namespaces/bank/workloads/deployment/web/restart", "/namespaces/shop/workloads/deployment/other/restart", "/namespaces/shop/workloads/job/nightly/restart",
		"/namespaces/shop/workloads/daemonset/agents/scale", "/namespaces/shop/workloads/deployment/web/delete", "/namespaces/shop/workloads/secret/web/restart", "/namespaces/shop/workloads/node/web/restart",
	} {
		if got := send(path, url.Values{"replicas": {"1"}, "confirmed": {"yes"}}); got.status != http.StatusNotFound || got.body != missing.body || len(listPatches(t, a)) > 0 {
			t.Errorf("%s: status %d:\n%s", path, got.status, got.body)
		}
	}
}

// TestForgedChanges expects no request to the cluster for forms that no page of the session has
// sent.
func TestForgedChanges(t *testing.T) {
	a := startAPIServer(t)
	open := startDashboard(t, a)
	b, stranger, eve := open().logIn("ana-token"), open(), open().logIn("bob-token")
	own, theirs := b.findCSRF(webPath), eve.findCSRF("/")
	a.takeRequests()
	for name, c := range map[string]struct {
		b       *browser
		csrf    string
		headers map[string]string
		status  int
	}{
		"no text":            {b, "", nil, 403},
		"another user's":     {b, theirs, nil, 403},
		"another site":       {b, own, map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		"without a login":    {stranger, own, nil, 403},
		"before the login":   {stranger, stranger.findCSRF("/login"), nil, 303},
		"a link, not a form": {b, "GET", nil, 404},
	} {
		t.Run(name, func(t *testing.T) {
			method := http.MethodPost
			if c.csrf == "GET" {
				method = http.MethodGet
			}
			got := c.b.sendRequest(method, webPath+"/restart", url.Values{"csrf": {c.csrf}, "confirmed": {"yes"}}, c.headers)
			if requests := a.takeRequests(); got.status != c.status || len(requests) > 0 {
				t.Errorf("status %d, want %d, and %d requests to the cluster", got.status, c.status, len(requests))
			}
		})
	}
}

// TestLogs expects the end of a log on the page of a pod, and the whole log as a download.
func TestLogs(t *testing.T) {
	a := startAPIServer(t)
	b := startDashboard(t, a)().logIn("ana-token")
	const pod, log = "/namespaces/shop/workloads/pod/web-1", "/api/v1/namespaces/shop/pods/web-1/log"
	for name, c := range map[string]struct {
		path   string
		status int
		// part is on the page, and query in the request for the log.
		part, query string
	}{
		"the first container":   {pod, 200, "last line &lt;b&gt;", "container=main&limitBytes=262144&tailLines=200"},
		"another container":     {pod + "?container=side", 200, "Log of side", "container=side&limitBytes=262144&tailLines=200"},
		"before a restart":      {pod + "?container=side&previous=yes", 200, "before its last restart", "container=side&limitBytes=262144&previous=true&tailLines=200"},
		"an unknown container":  {pod + "?container=other", 404, "Not found", ""},
		"a download":            {pod + "/log?container=side", 200, "last line <b>", "container=side"},
		"an earlier download":   {pod + "/log?container=side&previous=yes", 200, "first line", "container=side&previous=true"},
		"no container":          {pod + "/log", 404, "Not found", ""},
		"an invalid container":  {pod + "/log?container=%0d%0aSet-Cookie", 404, "Not found", ""},
		"a log of another team": {"/namespaces/bank/workloads/pod/web-1/log?container=main", 404, "Not found", "container=main"},
	} {
		t.Run(name, func(t *testing.T) {
			a.takeRequests()
			got := b.getPage(c.path)
			query := ""
			for _, r := range a.takeRequests() {
				if strings.HasSuffix(r.URL.Path, "/log") {
					query = r.URL.RawQuery
				}
			}
			if got.status != c.status || !strings.Contains(got.body, c.part) || query != c.query {
				t.Errorf("status %d, request %q, want %d, %q and %q:\n%s", got.status, query, c.status, c.query, c.part, got.body)
			}
			if !strings.Contains(c.path, "/log?") || got.status != http.StatusOK {
				return
			}
			if kind, disposition := got.header.Get("Content-Type"), got.header.Get("Content-Disposition"); kind != "text/plain; charset=utf-8" || disposition != `attachment; filename="web-1-side.log"` || got.header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s, %s", kind, disposition)
			}
		})
	}
	for status, want := range map[int]int{400: 404, 403: 404, 500: 502} {
		a.setStatus(log, status)
		if got := b.getPage(pod); got.status != http.StatusOK || !strings.Contains(got.body, "There is no log: because") {
			t.Errorf("%d: status %d:\n%s", status, got.status, got.body)
		}
		if got := b.getPage(pod + "/log?container=main"); got.status != want || got.header.Get("Content-Disposition") != "" {
			t.Errorf("a download with %d: status %d, want %d", status, got.status, want)
		}
	}
}

// TestLongDownload expects the whole log, though the download takes longer than a page may, with both
// versions of HTTP.
func TestLongDownload(t *testing.T) {
	a := startAPIServer(t)
	a.pause = time.Second
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(New(newOptions(t, a)))
			server.EnableHTTP2 = http2
			server.Config.ReadTimeout, server.Config.WriteTimeout = 300*time.Millisecond, 300*time.Millisecond
			b := serveWith(t, server)().logIn("ana-token")
			if got := b.getPage("/namespaces/shop/workloads/pod/web-1/log?container=main"); got.body != "first line\nlast line <b>\n" {
				t.Errorf("status %d: %q", got.status, got.body)
			}
		})
	}
}
