// Package providertest runs an OpenID Connect provider in the process of a test. It accepts every user
// without a password, and is as strict as the specifications allow: a code and a refresh token are valid
// once, PKCE is required, and a second use of a refresh token ends the user's session.
package providertest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// The client of the dashboard.
const (
	ClientID     = "croft-dashboard"
	ClientSecret = "client secret %"
)

// Provider is an OpenID Connect provider.
type Provider struct {
	Issuer string
	// CAFile is the path of the CA of the provider's certificate.
	CAFile string
	// Lifetime is the lifetime of ID tokens; an hour by default.
	Lifetime time.Duration
	// Groups are in every ID token.
	Groups []string
	// ChangeClaims changes the claims of the next ID tokens, and ChangeMetadata the discovery
	// document.
	ChangeClaims, ChangeMetadata func(map[string]any)
	// OnIssue gets every ID token.
	OnIssue func(idToken, user string)
	// Down makes every request fail.
	Down bool

	mu  sync.Mutex
	key *ecdsa.PrivateKey
	// codes are the authorization requests by their codes, and grants the users by their refresh
	// tokens. Used refresh tokens stay, without a user.
	codes    map[string]url.Values
	grants   map[string]string
	requests map[string]int
}

// Start starts a provider, which ends with the test.
func Start(t testing.TB) *Provider {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := &Provider{Lifetime: time.Hour, key: key, codes: map[string]url.Values{}, grants: map[string]string{}, requests: map[string]int{}}
	server := httptest.NewTLSServer(p)
	t.Cleanup(server.Close)
	p.Issuer, p.CAFile = server.URL, filepath.Join(t.TempDir(), "ca.crt")
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(p.CAFile, ca, 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// Authorize logs a user in at the URL of an authorization request. It returns the URL to which the
// provider redirects the browser.
func (p *Provider) Authorize(t testing.TB, location, user string) *url.URL {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	u, err := url.Parse(location)
	if err != nil || !strings.HasPrefix(location, p.Issuer+"/auth?") {
		t.Fatalf("%s is no authorization request: %v", location, err)
	}
	query := u.Query()
	if query.Get("client_id") != ClientID || query.Get("response_type") != "code" || query.Get("code_challenge_method") != "S256" || query.Get("code_challenge") == "" {
		t.Fatalf("the authorization request is %s", location)
	}
	back, err := url.Parse(query.Get("redirect_uri"))
	if err != nil {
		t.Fatal(err)
	}
	code := rand.Text()
	query.Set("user", user)
	p.codes[code] = query
	back.RawQuery = url.Values{"code": {code}, "state": {query.Get("state")}, "iss": {p.Issuer}}.Encode()
	return back
}

// CountRequests returns the number of requests to a path.
func (p *Provider) CountRequests(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests[path]
}

// ServeHTTP implements http.Handler.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests[r.URL.Path]++
	w.Header().Set("Content-Type", "application/json")
	switch {
	case p.Down:
		http.Error(w, "down", http.StatusServiceUnavailable)
	case r.URL.Path == "/.well-known/openid-configuration":
		document := map[string]any{
			"issuer": p.Issuer, "authorization_endpoint": p.Issuer + "/auth", "token_endpoint": p.Issuer + "/token", "jwks_uri": p.Issuer + "/keys",
			"end_session_endpoint": p.Issuer + "/end?tenant=a", "revocation_endpoint": p.Issuer + "/revoke",
			"id_token_signing_alg_values_supported": []string{"ES256"}, "scopes_supported": []string{"openid", "groups", "offline_access"},
			"authorization_response_iss_parameter_supported": true,
		}
		if p.ChangeMetadata != nil {
			p.ChangeMetadata(document)
		}
		_ = json.NewEncoder(w).Encode(document)
	case r.URL.Path == "/keys":
		point, err := p.key.PublicKey.Bytes() // 4, x and y
		if err != nil {
			panic(err)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{map[string]string{"kty": "EC", "crv": "P-256", "use": "sig", "x": encode(point[1:33]), "y": encode(point[33:])}}})
	case !p.isClient(r):
		respondError(w, "invalid_client")
	case r.URL.Path == "/token":
		p.respondTokens(w, r.PostForm)
	case r.URL.Path == "/revoke":
		delete(p.grants, r.PostForm.Get("token"))
	default:
		http.NotFound(w, r)
	}
}

func (p *Provider) isClient(r *http.Request) bool {
	id, secret, ok := r.BasicAuth()
	id, errID := url.QueryUnescape(id)
	secret, errSecret := url.QueryUnescape(secret)
	return ok && id == ClientID && secret == ClientSecret && errors.Join(errID, errSecret, r.ParseForm()) == nil
}

func (p *Provider) respondTokens(w http.ResponseWriter, form url.Values) {
	var user, nonce string
	switch form.Get("grant_type") {
	case "authorization_code":
		request := p.codes[form.Get("code")]
		delete(p.codes, form.Get("code"))
		challenge := sha256.Sum256([]byte(form.Get("code_verifier")))
		if request == nil || request.Get("redirect_uri") != form.Get("redirect_uri") || request.Get("code_challenge") != encode(challenge[:]) {
			respondError(w, "invalid_grant")
			return
		}
		user, nonce = request.Get("user"), request.Get("nonce")
	case "refresh_token":
		refresh := form.Get("refresh_token")
		user = p.grants[refresh]
		if user == "" {
			if _, used := p.grants[refresh]; used {
				clear(p.grants)
			}
			respondError(w, "invalid_grant")
			return
		}
		p.grants[refresh] = ""
	}
	refresh := rand.Text()
	p.grants[refresh] = user
	id := p.sign(user, nonce)
	if p.OnIssue != nil {
		p.OnIssue(id, user)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"access_token": rand.Text(), "token_type": "Bearer", "id_token": id, "refresh_token": refresh})
}

// sign returns an ID token.
func (p *Provider) sign(user, nonce string) string {
	now := time.Now()
	claims := map[string]any{
		"iss": p.Issuer, "aud": ClientID, "sub": "id-of-" + user, "preferred_username": user, "groups": p.Groups,
		"iat": now.Unix(), "exp": now.Add(p.Lifetime).Unix(), "jti": rand.Text(),
	}
	if nonce != "" {
		claims["nonce"] = nonce
	}
	if p.ChangeClaims != nil {
		p.ChangeClaims(claims)
	}
	header, _ := json.Marshal(map[string]string{"alg": "ES256"})
	payload, _ := json.Marshal(claims)
	text := encode(header) + "." + encode(payload)
	sum := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, p.key, sum[:])
	if err != nil {
		panic(err)
	}
	return text + "." + encode(slices.Concat(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))))
}

// ListRefreshTokens returns the valid refresh tokens.
func (p *Provider) ListRefreshTokens() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	valid := maps.Clone(p.grants)
	maps.DeleteFunc(valid, func(_, user string) bool { return user == "" })
	return slices.Collect(maps.Keys(valid))
}

// Revoke revokes all refresh tokens. Call it within Change.
func (p *Provider) Revoke() { clear(p.grants) }

// Change changes the provider while it serves requests.
func (p *Provider) Change(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

func respondError(w http.ResponseWriter, code string) {
	w.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": code})
}

func encode(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }
