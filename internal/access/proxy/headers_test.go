package proxy

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/token/tokenfile"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
)

// jane is the user of most tests; her token is "janes".
var jane = &user.DefaultInfo{Name: "jane", UID: "7", Groups: []string{"devs"}, Extra: map[string][]string{"example.org/team": {"shop"}}}

// recordingCluster is an API server that records the requests it receives, behind a proxy.
type recordingCluster struct {
	proxy    *httptest.Server
	requests []*http.Request
}

func newRecordingCluster(t *testing.T) *recordingCluster {
	t.Helper()
	h := &recordingCluster{}
	upstream := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { h.requests = append(h.requests, r) }))
	t.Cleanup(upstream.Close)
	forward, err := newForwarder(&rest.Config{Host: upstream.URL, BearerToken: "the proxy's own", TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	if err != nil {
		t.Fatal(err)
	}
	authenticator := newRequestAuthenticator(tokenfile.New(map[string]*user.DefaultInfo{
		"janes":       jane,
		"promoted":    {Name: "jane", UID: "7", Groups: []string{"devs", "system:masters", "system:nodes"}, Extra: jane.Extra},
		"controllers": {Name: "system:kube-controller-manager"},
		"nameless":    {},
		"nodes":       {Name: "system:node:n1", Groups: []string{"system:nodes"}},
		"claims":      {Name: "system:serviceaccount:shop:robot"},
	}), tokenfile.New(map[string]*user.DefaultInfo{
		"robots":       {Name: "system:serviceaccount:shop:robot", Groups: []string{"system:serviceaccounts"}},
		"bootstrapper": {Name: "system:bootstrap:abcdef", Groups: []string{"system:bootstrappers"}},
	}), nil)
	h.proxy = httptest.NewUnstartedServer(chain{authenticator: authenticator, metrics: newMetrics(), next: forward}.buildHandler())
	h.proxy.StartTLS()
	t.Cleanup(h.proxy.Close)
	return h
}

// sendLines sends header lines unchanged, and returns the response's status code.
func (h *recordingCluster) sendLines(t *testing.T, lines ...string) int {
	t.Helper()
	h.requests = nil
	c, err := tls.Dial("tcp", h.proxy.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	text := "GET /api/v1/namespaces/shop/pods HTTP/1.1\r\nHost: proxy\r\n" + strings.Join(lines, "\r\n") + "\r\n\r\n"
	if _, err := fmt.Fprint(c, text); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

const janes = "Authorization: Bearer janes"

// TestIdentityHeaders fails if headers of a client change the identity that the API server
// receives: each request must be rejected or arrive with jane's identity.
func TestIdentityHeaders(t *testing.T) {
	h := newRecordingCluster(t)
	for _, c := range []struct {
		about string
		want  int
		lines []string
	}{
		{"jane", 200, []string{janes}},
		{"her token, oddly cased", 200, []string{"aUTHORIZATION: bEARER janes"}},
		{"no token", 401, nil},
		{"an unknown token", 401, []string{"Authorization: Bearer eves"}},
		{"an empty token", 400, []string{"Authorization: Bearer "}},
		{"an empty header", 400, []string{"Authorization:"}},
		{"a password", 400, []string{"Authorization: Basic amFuZTpqYW5l"}},
		{"two tokens", 400, []string{janes, "Authorization: Bearer eves"}},
		{"two tokens, the other first", 400, []string{"Authorization: Bearer eves", janes}},
		{"an empty token before hers", 400, []string{"Authorization:", janes}},
		{"a Proxy-Authorization header", 200, []string{janes, "Proxy-Authorization: Bearer eves"}},
		{"a cookie", 200, []string{janes, "Cookie: session=eves"}},
		{"impersonation of a user", 403, []string{janes, "Impersonate-User: admin"}},
		{"impersonation, oddly cased", 403, []string{janes, "iMPERSONATE-uSER: admin"}},
		{"impersonation, with an underscore", 403, []string{janes, "Impersonate_User: admin"}},
		{"impersonation of an empty user", 403, []string{janes, "Impersonate-User:"}},
		{"impersonation of a group alone", 403, []string{janes, "Impersonate-Group: system:masters"}},
		{"impersonation of a UID alone", 403, []string{janes, "Impersonate-Uid: 1"}},
		{"impersonation of an extra value alone", 403, []string{janes, "Impersonate-Extra-Scopes: all"}},
		{"an unknown impersonation header", 403, []string{janes, "Impersonate-Tomorrow: all"}},
		{"impersonation without a token", 401, []string{"Impersonate-User: admin"}},
		{"Connection names an identity header", 400, []string{janes, "Connection: Impersonate-User"}},
		{"Connection names an identity header among others", 400, []string{janes, "Connection: keep-alive, impersonate-group"}},
		{"a second Connection header names an identity header", 400, []string{janes, "Connection: keep-alive", "Connection: Impersonate-Group"}},
		{"Connection names Authorization", 400, []string{janes, "Connection: Authorization"}},
		{"Connection names an extra value", 400, []string{janes, "Connection: Impersonate-Extra-Example.org%2fteam"}},
		{"a front proxy's user", 200, []string{janes, "X-Remote-User: admin"}},
		{"a front proxy's group", 200, []string{janes, "X-Remote-Group: system:masters"}},
		{"a front proxy's extra value", 200, []string{janes, "X-Remote-Extra-Scopes: all"}},
		{"a front proxy's user, with underscores", 200, []string{janes, "X_Remote_User: admin"}},
		{"a front proxy's user and no token", 401, []string{"X-Remote-User: admin"}},
		{"a load balancer's client certificate", 200, []string{janes, "X-Forwarded-Client-Cert: Subject=\"CN=admin\""}},
		{"a client certificate header of RFC 9440", 200, []string{janes, "Client-Cert: :Zm9v:"}},
		{"a client certificate header of nginx", 200, []string{janes, "Ssl-Client-Subject-Dn: CN=admin"}},
		{"an authenticating gateway's user", 200, []string{janes, "X-Forwarded-User: admin", "X-Forwarded-Groups: system:masters"}},
		{"forged client addresses", 200, []string{janes, "Forwarded: for=10.0.0.1", "X-Real-Ip: 10.0.0.1", "X-Forwarded-For: 10.0.0.1"}},
		{"an upgrade to h2c", 400, []string{janes, "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA"}},
		{"an upgrade to an unknown protocol", 400, []string{janes, "Connection: Upgrade", "Upgrade: tls/1.0"}},
		{"an unknown token in a WebSocket subprotocol", 401, []string{"Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.ZXZlcw, base64.binary.k8s.io", "Connection: Upgrade", "Upgrade: websocket"}},
		{"a robot's own token", 200, []string{"Authorization: Bearer robots"}},
		{"Kubernetes' own groups, from an identity provider", 200, []string{"Authorization: Bearer promoted"}},
		{"no user name, from an identity provider", 401, []string{"Authorization: Bearer nameless"}},
		{"Kubernetes' own user, from an identity provider", 401, []string{"Authorization: Bearer controllers"}},
		{"a node, from an identity provider", 401, []string{"Authorization: Bearer nodes"}},
		{"a service account, from an identity provider", 401, []string{"Authorization: Bearer claims"}},
		{"a user of Kubernetes' own, reviewed", 401, []string{"Authorization: Bearer bootstrapper"}},
	} {
		if got := h.sendLines(t, append(c.lines, "Connection: close")...); got != c.want {
			t.Errorf("%s: status %d, want %d", c.about, got, c.want)
		}
		if c.want != http.StatusOK {
			if len(h.requests) > 0 {
				t.Errorf("%s: the request reached the API server", c.about)
			}
			continue
		}
		if len(h.requests) != 1 {
			t.Errorf("%s: the API server received %d requests, want 1", c.about, len(h.requests))
			continue
		}
		want := []string{
			"Authorization: Bearer the proxy's own", "Impersonate-Extra-Example.org%2fteam: shop", "Impersonate-Group: devs", "Impersonate-Uid: 7", "Impersonate-User: jane",
			"X-Forwarded-For: 127.0.0.1",
		}
		if strings.Contains(c.about, "robot") {
			want = []string{"Authorization: Bearer robots", "X-Forwarded-For: 127.0.0.1"}
		}
		if got := listIdentityHeaders(h.requests[0].Header); !slices.Equal(got, want) {
			t.Errorf("%s: the API server received\n  %s\nwant\n  %s", c.about, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
		}
	}
}

// listIdentityHeaders returns all headers except the ones that every client sends.
func listIdentityHeaders(h http.Header) []string {
	var all []string
	for name, values := range h {
		if !slices.Contains([]string{"Accept-Encoding", "User-Agent", "Connection", "Audit-Id"}, name) {
			for _, v := range values {
				all = append(all, name+": "+v)
			}
		}
	}
	slices.Sort(all)
	return all
}
