package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/token/tokenfile"
	"k8s.io/apiserver/pkg/authentication/user"

	"croft.dev/croft/internal/cost/server"
)

const costsPath = LedgerPath + "/v1/costs"

// ledgerCluster is a ledger and an API server behind a proxy. Both record the requests that they receive.
type ledgerCluster struct {
	proxy *httptest.Server
	// answer is the ledger's answer.
	answer http.HandlerFunc
	// toLedger are the requests to the ledger, and toServer the paths of the requests to the API server.
	toLedger []*http.Request
	toServer []string
}

func startLedger(t *testing.T) *ledgerCluster {
	t.Helper()
	l := &ledgerCluster{answer: func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "costs") }}
	upstream := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.toLedger = append(l.toLedger, r)
		l.answer(w, r)
	}))
	t.Cleanup(upstream.Close)
	authority := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: upstream.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(upstream.URL + "/base")
	if err != nil {
		t.Fatal(err)
	}
	apiServer := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { l.toServer = append(l.toServer, r.URL.Path) })
	tokens := newRequestAuthenticator(tokenfile.New(map[string]*user.DefaultInfo{"janes": jane}),
		tokenfile.New(map[string]*user.DefaultInfo{"robots": {Name: "system:serviceaccount:shop:robot"}}), nil)
	// A client certificate, as newRequestAuthenticator accepts it, but in a header.
	authenticate := authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		if response, ok, err := tokens.AuthenticateRequest(r); ok || r.Header.Get("Test-Certificate") == "" {
			return response, ok, err
		}
		return &authenticator.Response{User: jane}, true, nil
	})
	l.proxy = httptest.NewUnstartedServer(chain{authenticator: authenticate, metrics: newMetrics(),
		next: withLedger(&ledger{address: address, authorityFile: authority, log: slog.New(slog.DiscardHandler)}, apiServer)}.buildHandler())
	l.proxy.StartTLS()
	t.Cleanup(l.proxy.Close)
	return l
}

// answer is a response whose body has been read.
type answer struct {
	status int
	header http.Header
	body   string
}

// send sends a request line and header lines unchanged, and returns the response with its body.
func (l *ledgerCluster) send(t *testing.T, line string, headers ...string) (answer, error) {
	t.Helper()
	l.toLedger, l.toServer = nil, nil
	c, err := tls.Dial("tcp", l.proxy.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	lines := append([]string{line + " HTTP/1.1", "Host: proxy", "Connection: close"}, headers...)
	if _, err := fmt.Fprint(c, strings.Join(lines, "\r\n")+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	method, _, _ := strings.Cut(line, " ")
	response, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, string(body)}, err
}

// expectOnly fails if the ledger's request has another path or query, or any header but the token and the headers
// that each Go client sends.
func (l *ledgerCluster) expectOnly(t *testing.T, about, token, target string) {
	t.Helper()
	if len(l.toLedger) != 1 {
		t.Errorf("%s: the ledger received %d requests", about, len(l.toLedger))
		return
	}
	r := l.toLedger[0]
	var headers []string
	for name, values := range r.Header {
		headers = append(headers, name+": "+strings.Join(values, "|"))
	}
	slices.Sort(headers)
	want := []string{"Accept-Encoding: gzip", "Authorization: Bearer " + token, "User-Agent: Go-http-client/1.1"}
	if r.Method != http.MethodGet || r.RequestURI != target || !slices.Equal(headers, want) || r.ContentLength != 0 {
		t.Errorf("%s: the ledger received %s %s with %d bytes and\n  %s", about, r.Method, r.RequestURI, r.ContentLength, strings.Join(headers, "\n  "))
	}
}

// TestLedgerAttacks fails if a request below LedgerPath reaches another path of the ledger or the API server, or
// reaches the ledger by another method, without the token that has authenticated it, or with other headers.
func TestLedgerAttacks(t *testing.T) {
	l := startLedger(t)
	const toLedger, toServer, nowhere = "ledger", "API server", "nowhere"
	get := func(path string) string { return "GET " + path }
	for _, c := range []struct {
		about, line string
		status      int
		to          string
		headers     []string
	}{
		{"costs", get(costsPath), 200, toLedger, []string{janes}},
		{"a robot", get(costsPath), 200, toLedger, []string{"Authorization: Bearer robots"}},
		{"an absolute URL", get("https://evil.example.org" + costsPath), 200, toLedger, []string{janes}},
		{"another host", get(costsPath), 200, toLedger, []string{janes, "X-Forwarded-Host: evil.example.org", "Forwarded: host=evil.example.org"}},
		{"the API", get("/api/v1/namespaces"), 200, toServer, []string{janes}},
		{"a longer first word", get("/croft.dev/ledgers/v1/costs"), 200, toServer, []string{janes}},

		{"the prefix", get(LedgerPath), 404, nowhere, []string{janes}},
		{"the root", get(LedgerPath + "/"), 404, nowhere, []string{janes}},
		{"budgets of all tenants", get(LedgerPath + "/v1/budgets"), 404, nowhere, []string{janes}},
		{"metrics", get(LedgerPath + "/v1/metrics"), 404, nowhere, []string{janes}},
		{"a longer path", get(costsPath + "/bank"), 404, nowhere, []string{janes}},
		{"a slash at the end", get(costsPath + "/"), 404, nowhere, []string{janes}},
		{"dots to another resource", get(costsPath + "/../metrics"), 404, nowhere, []string{janes}},
		{"dots out of the prefix", get(LedgerPath + "/../../v1/metrics"), 404, nowhere, []string{janes}},
		{"dots to the API", get(LedgerPath + "/../../api/v1/secrets"), 404, nowhere, []string{janes}},
		{"one dot", get(LedgerPath + "/./v1/costs"), 404, nowhere, []string{janes}},
		{"encoded dots", get(LedgerPath + "/%2e%2e/%2e%2e/v1/metrics"), 404, nowhere, []string{janes}},
		{"dots encoded twice", get(LedgerPath + "/%252e%252e/v1/metrics"), 404, nowhere, []string{janes}},
		{"half-encoded dots", get(costsPath + "/.%2e/metrics"), 404, nowhere, []string{janes}},
		{"encoded slashes", get(LedgerPath + "%2fv1%2fcosts"), 404, nowhere, []string{janes}},
		{"an encoded letter", get(LedgerPath + "/v1/cost%73"), 404, nowhere, []string{janes}},
		{"an encoded prefix", get("/croft%2edev/ledger/v1/costs"), 404, nowhere, []string{janes}},
		{"backslashes", get(LedgerPath + `/..\..\v1\metrics`), 404, nowhere, []string{janes}},
		{"two slashes", get(LedgerPath + "//v1/costs"), 404, nowhere, []string{janes}},
		{"slashes and another host", get(LedgerPath + "//evil.example.org/v1/costs"), 404, nowhere, []string{janes}},
		{"an absolute URL in the path", get(LedgerPath + "/https://evil.example.org/v1/costs"), 404, nowhere, []string{janes}},
		{"another host as a user", get(LedgerPath + "@evil.example.org/v1/costs"), 200, toServer, []string{janes}},
		{"a semicolon", get(costsPath + ";/../metrics"), 404, nowhere, []string{janes}},
		{"a null byte", get(costsPath + "%00"), 404, nowhere, []string{janes}},
		{"an encoded question mark", get(costsPath + "%3fby=pool"), 404, nowhere, []string{janes}},

		{"HEAD", "HEAD " + costsPath, 405, nowhere, []string{janes}},
		{"POST", "POST " + costsPath, 405, nowhere, []string{janes, "Content-Length: 0"}},
		{"DELETE", "DELETE " + costsPath, 405, nowhere, []string{janes}},
		{"OPTIONS", "OPTIONS " + costsPath, 405, nowhere, []string{janes}},
		{"CONNECT", "CONNECT " + costsPath, 405, nowhere, []string{janes}},
		{"a lower-case method", "get " + costsPath, 405, nowhere, []string{janes}},
		{"another method in a header", get(costsPath), 200, toLedger, []string{janes, "X-HTTP-Method-Override: DELETE"}},

		{"no token", get(costsPath), 401, nowhere, nil},
		{"an unknown token", get(costsPath), 401, nowhere, []string{"Authorization: Bearer eves"}},
		{"two tokens", get(costsPath), 400, nowhere, []string{janes, "Authorization: Bearer eves"}},
		{"a certificate", get(costsPath), 401, nowhere, []string{"Test-Certificate: jane"}},
		// The ledger, whose API server may know another user by this token, must not get it.
		{"a certificate and an unknown token", get(costsPath), 401, nowhere, []string{"Test-Certificate: jane", "Authorization: Bearer eves"}},
		{"a certificate and her token", get(costsPath), 200, toLedger, []string{"Test-Certificate: jane", janes}},
		{"a token in a WebSocket subprotocol", get(costsPath), 200, toLedger, []string{"Upgrade: websocket",
			"Connection: Upgrade", "Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.amFuZXM, v4"}},

		{"impersonation", get(costsPath), 403, nowhere, []string{janes, "Impersonate-User: admin"}},
		{"impersonation, with an underscore", get(costsPath), 403, nowhere, []string{janes, "Impersonate_Group: system:masters"}},
		{"a front proxy's user", get(costsPath), 200, toLedger, []string{janes, "X-Remote-User: admin", "X-Remote-Group: system:masters"}},
		{"cookies", get(costsPath), 200, toLedger, []string{janes, "Cookie: token=eves"}},
		{"another proxy's credentials", get(costsPath), 200, toLedger, []string{janes, "Proxy-Authorization: Bearer eves"}},
		{"headers of a connection", get(costsPath), 200, toLedger, []string{janes, "Connection: X-Secret", "X-Secret: 1", "Keep-Alive: 5", "Te: trailers"}},
		{"Connection names the token", get(costsPath), 400, nowhere, []string{janes, "Connection: Authorization"}},
		{"an upgrade", get(costsPath), 200, toLedger, []string{janes, "Connection: Upgrade", "Upgrade: websocket"}},
		{"an upgrade to h2c", get(costsPath), 400, nowhere, []string{janes, "Connection: Upgrade", "Upgrade: h2c"}},
		{"a body", get(costsPath), 200, toLedger, []string{janes, "Content-Length: 0", "Expect: 100-continue", "Range: bytes=0-1", "X-Any: 1"}},
	} {
		got, err := l.send(t, c.line, c.headers...)
		if err != nil || got.status != c.status {
			t.Errorf("%s: status %d, want %d: %s %v", c.about, got.status, c.status, got.body, err)
		}
		if c.to == toLedger {
			token := "janes"
			if c.about == "a robot" {
				token = "robots"
			}
			l.expectOnly(t, c.about, token, "/base/v1/costs")
		} else if len(l.toLedger) > 0 {
			t.Errorf("%s: the ledger received %s", c.about, l.toLedger[0].RequestURI)
		}
		if (c.to == toServer) != (len(l.toServer) > 0) {
			t.Errorf("%s: the API server received %v", c.about, l.toServer)
		}
	}
}

// TestLedgerQueries fails if the proxy changes the parameters of a request, which the ledger checks.
func TestLedgerQueries(t *testing.T) {
	l := startLedger(t)
	for query, want := range map[string]string{
		"?since=30d&by=tenant&namespace=shop": "?since=30d&by=tenant&namespace=shop",
		"?by=pool&by=tenant":                  "?by=pool&by=tenant",
		"?namespace=../../v1/metrics":         "?namespace=../../v1/metrics",
		"?by=a;namespace=b%00%zz":             "?by=a;namespace=b%00%zz",
		"?":                                   "",
		"?by=pool#/v1/metrics":                "?by=pool",
	} {
		if got, err := l.send(t, "GET "+costsPath+query, janes); err != nil || got.status != http.StatusOK {
			t.Errorf("%s: %d %s %v", query, got.status, got.body, err)
		}
		l.expectOnly(t, query, "janes", "/base/v1/costs"+want)
	}
}

// TestLedgerResources fails if the proxy does not forward a resource of the ledger for users.
func TestLedgerResources(t *testing.T) {
	l := startLedger(t)
	for _, path := range []string{server.Path, server.ChargesPath, server.HistoryPath} {
		if got, err := l.send(t, "GET "+LedgerPath+path, janes); err != nil || got.status != http.StatusOK || got.body != "costs" {
			t.Errorf("%s: %d %s %v", path, got.status, got.body, err)
		}
		l.expectOnly(t, path, "janes", "/base"+path)
	}
}

// TestLedgerAnswers fails if more than the status, the type and the body of an answer reaches the client, or if a
// part of an answer seems to be the whole.
func TestLedgerAnswers(t *testing.T) {
	l := startLedger(t)
	for status, want := range map[int]int{200: 200, 400: 400, 401: 401, 403: 403, 404: 404, 503: 503, 302: 502, 304: 502} {
		l.answer = func(w http.ResponseWriter, _ *http.Request) {
			for name, value := range map[string]string{"Location": "https://evil.example.org", "Set-Cookie": "a=b", "Content-Type": "application/json",
				"Access-Control-Allow-Origin": "*", "Cache-Control": "public", "Www-Authenticate": "Basic", "X-Any": "1"} {
				w.Header().Set(name, value)
			}
			w.WriteHeader(status)
		}
		got, err := l.send(t, "GET "+costsPath, janes)
		if err != nil || got.status != want || got.header.Get("Content-Type") != "application/json" {
			t.Errorf("%d: %d %s %v", status, got.status, got.body, err)
		}
		for name, values := range got.header {
			if !slices.Contains([]string{"Content-Type", "Content-Length", "Date", "Cache-Control", "X-Content-Type-Options", "Audit-Id", "Connection"}, name) ||
				name == "Cache-Control" && !slices.Equal(values, []string{"no-store"}) {
				t.Errorf("%d: the client received %s: %v", status, name, values)
			}
		}
	}
	l.answer = func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, strings.Repeat("costs\n", 1<<14))
		panic(http.ErrAbortHandler)
	}
	if got, err := l.send(t, "GET "+costsPath, janes); err == nil {
		t.Errorf("an answer that ends early has status %d and %d bytes, and no error", got.status, len(got.body))
	}
}

// TestLedgerUnreachable fails if the proxy trusts a ledger without a certificate of the authority, or reveals
// addresses.
func TestLedgerUnreachable(t *testing.T) {
	l := startLedger(t)
	address, _ := url.Parse("https://127.0.0.1:1")
	upstream, _ := url.Parse(l.proxy.URL)
	ctx := context.WithValue(t.Context(), tokenHolderKey{}, new(string))
	*ctx.Value(tokenHolderKey{}).(*string) = "janes"
	broken := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(broken, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for about, to := range map[string]*ledger{
		"nothing":                 {address: address},
		"an unknown authority":    {address: upstream},
		"an authority of nothing": {address: upstream, authorityFile: broken},
	} {
		to.log = slog.New(slog.DiscardHandler)
		w := httptest.NewRecorder()
		to.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, costsPath, nil))
		if body := w.Body.String(); w.Code != http.StatusServiceUnavailable || strings.Contains(body, "127.0.0.1") || strings.Contains(body, "janes") || !strings.Contains(body, "cannot reach croft ledger") {
			t.Errorf("%s: %d %s", about, w.Code, body)
		}
	}
}
