package server

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"croft.dev/croft/internal/dashboard/provider"
	"croft.dev/croft/internal/test/openidtest"
)

// TestRealProvider logs in at a certified OpenID provider, renews the token, and logs out. It needs
// Node.js.
func TestRealProvider(t *testing.T) {
	p := openidtest.Start(t)
	a := startAPIServer(t)
	a.theirs["jane"] = "shop"
	a.findUser = readUser
	o := newOptions(t, a)
	var err error
	if o.Provider, err = provider.New(provider.Options{
		Issuer: p.Issuer, ClientID: "dashboard", ClientSecret: "a secret: 100%", CAFile: p.AuthorityFile, PublicURL: publicURL,
		Scopes: []string{"profile", "groups", "offline_access"}, Prompt: "consent",
	}); err != nil {
		t.Fatal(err)
	}
	b := serveHandler(t, New(o))()
	if got := b.finishLogin(p.Visit(t, b.startLogin("/namespaces/shop"), "jane")); got.header.Get("Location") != "/namespaces/shop" {
		t.Fatalf("status %d: %s", got.status, got.body)
	}
	expireToken(b, o.Keys)
	if got := b.getPage("/namespaces/shop/quota"); got.status != http.StatusOK || !strings.Contains(got.body, ">jane<") {
		t.Errorf("status %d: %s", got.status, got.body)
	}
	after, err := o.Keys.Open(b.listCookies(), time.Now())
	if err != nil || !after.TokenExpiry.After(time.Now()) || after.Refresh == "" || after.Subject != "jane" {
		t.Errorf("the token was not renewed: expiry %s, %v", after.TokenExpiry, err)
	}
	refused := b.finishLogin(p.Refuse(t, b.startLogin("/")))
	if refused.status != http.StatusForbidden || !strings.Contains(refused.body, "refused the login") {
		t.Errorf("a cancelled login: status %d: %s", refused.status, refused.body)
	}
	got := b.sendRequest(http.MethodPost, "/logout", url.Values{"csrf": {b.findCSRF("/namespaces/shop")}}, nil)
	if end := got.header.Get("Refresh"); !strings.HasPrefix(end, "0; url="+p.Issuer+"/session/end?client_id=dashboard&") || b.isLoggedIn() {
		t.Errorf("status %d, Refresh %q", got.status, end)
	}
	if _, err := o.Provider.Renew(t.Context(), after.Refresh, after.Subject); !errors.Is(err, provider.ErrEnded) {
		t.Errorf("a renewal after the logout: %v", err)
	}
}

// readUser returns the user in an ID token, which the API server would verify.
func readUser(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	var claims struct {
		User string `json:"preferred_username"`
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err = errors.Join(err, json.Unmarshal(payload, &claims)); err != nil {
		return ""
	}
	return claims.User
}
