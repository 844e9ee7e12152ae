package proxy

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticator"
)

// startIssuer starts an identity provider. It returns an AuthenticationConfiguration that maps names and groups without
// a prefix, and a function that signs tokens.
func startIssuer(t *testing.T) (file string, sign func(claims map[string]any) string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	var provider *httptest.Server
	provider = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/keys" {
			_, _ = fmt.Fprintf(w, `{"keys": [{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "k", "n": %q, "e": %q}]}`,
				encode(key.N.Bytes()), encode(big.NewInt(int64(key.E)).Bytes()))
			return
		}
		_, _ = fmt.Fprintf(w, `{"issuer": %q, "jwks_uri": %q}`, provider.URL, provider.URL+"/keys")
	}))
	t.Cleanup(provider.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: provider.Certificate().Raw})
	config := fmt.Sprintf(`{"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": [{
"issuer": {"url": %q, "audiences": ["croft"], "certificateAuthority": %q},
"claimMappings": {"username": {"claim": "sub", "prefix": ""}, "groups": {"claim": "groups", "prefix": ""}}}]}`, provider.URL, authority)
	file = filepath.Join(t.TempDir(), "authentication.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, func(claims map[string]any) string {
		all := map[string]any{"iss": provider.URL, "aud": "croft", "exp": time.Now().Add(time.Hour).Unix()}
		for name, value := range claims {
			all[name] = value
		}
		payload, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		content := encode([]byte(`{"alg":"RS256","kid":"k"}`)) + "." + encode(payload)
		hash := sha256.Sum256([]byte(content))
		signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, hash[:])
		if err != nil {
			t.Fatal(err)
		}
		return content + "." + encode(signature)
	}
}

// TestTokenAuthenticator fails if a token gives its user a name or a group that is reserved for Kubernetes, or if the
// groups lack the group of all users.
func TestTokenAuthenticator(t *testing.T) {
	file, sign := startIssuer(t)
	tokens, err := NewTokenAuthenticator(t.Context(), file, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	janes := sign(map[string]any{"sub": "jane", "groups": []string{"devs", "system:masters"}})
	var response *authenticator.Response
	if waited := wait.PollUntilContextTimeout(t.Context(), keysInterval, keysTimeout, true, func(ctx context.Context) (ok bool, _ error) {
		response, ok, err = tokens.AuthenticateToken(ctx, janes)
		return ok, nil
	}); waited != nil {
		t.Fatalf("%v: %v", waited, err)
	}
	if name, groups := response.User.GetName(), response.User.GetGroups(); name != "jane" || !slices.Equal(groups, []string{"devs", "system:authenticated"}) {
		t.Errorf("jane is %s in %v", name, groups)
	}
	for about, token := range map[string]string{
		"no name":            sign(map[string]any{"sub": ""}),
		"Kubernetes' own":    sign(map[string]any{"sub": "system:kube-controller-manager"}),
		"a service account":  sign(map[string]any{"sub": "system:serviceaccount:shop:robot"}),
		"another audience":   sign(map[string]any{"sub": "jane", "aud": "other"}),
		"expired":            sign(map[string]any{"sub": "jane", "exp": time.Now().Add(-time.Hour).Unix()}),
		"another issuer":     sign(map[string]any{"sub": "jane", "iss": "https://evil.example.org"}),
		"another signature":  strings.TrimSuffix(janes, janes[len(janes)-8:]) + "AAAAAAAA",
		"no token":           "",
		"not a JWT":          "janes",
		"a part of a token ": janes[:len(janes)/2],
	} {
		if response, ok, _ := tokens.AuthenticateToken(t.Context(), token); ok {
			t.Errorf("%s: authenticated as %s", about, response.User.GetName())
		}
	}
	if _, err := NewTokenAuthenticator(t.Context(), filepath.Join(t.TempDir(), "none"), slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a missing file is no error")
	}
}
