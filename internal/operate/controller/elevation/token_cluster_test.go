package elevation_test

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// newTokenClient returns a client that authenticates with a token.
func (f *fixture) newTokenClient(token string) client.Client {
	f.Helper()
	config := rest.AnonymousClientConfig(f.Config)
	config.BearerToken = token
	return f.NewClient(config)
}

// signWithExpiry returns a token with the same claims and another expiry, signed with the
// cluster's own key. It replaces the token at an earlier or later time.
func (f *fixture) signWithExpiry(token string, end time.Time) string {
	f.Helper()
	var path string
	if err := filepath.WalkDir(f.Cluster.Dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "sa.key" {
			path = p
		}
		return err
	}); err != nil {
		f.Fatal(err)
	}
	pem, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	parsed, err := keyutil.ParsePrivateKeyPEM(pem)
	if err != nil {
		f.Fatal(err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		f.Fatalf("the signing key is a %T", parsed)
	}
	claims := f.decodeClaims(token)
	claims["exp"] = end.Unix()
	body, err := json.Marshal(claims)
	if err != nil {
		f.Fatal(err)
	}
	signed := strings.SplitN(token, ".", 2)[0] + "." + base64.RawURLEncoding.EncodeToString(body)
	hash := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, key, hash[:])
	if err != nil {
		f.Fatal(err)
	}
	signature := append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func (f *fixture) decodeClaims(token string) map[string]any {
	f.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	if err != nil {
		f.Fatal(err)
	}
	claims := map[string]any{}
	if err := json.Unmarshal(raw, &claims); err != nil {
		f.Fatal(err)
	}
	return claims
}
