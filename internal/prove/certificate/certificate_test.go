package certificate_test

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/prove/certificate"
	"croft.dev/croft/internal/prove/verify"
	"croft.dev/croft/internal/walls/wall/network"
)

func newObject(name string) client.Object {
	return &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
}

func newStatement(t *testing.T, objects []client.Object, results ...verify.Result) *certificate.Statement {
	t.Helper()
	s, err := certificate.New(certificate.Predicate{Tenant: "shop", At: time.Unix(0, 0).UTC(), Version: "v1"}, objects, results)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestVerified expects a verified statement only if all attacks were held.
func TestVerified(t *testing.T) {
	held := verify.Result{Wall: "network", Name: "call", Result: verify.Held, Variants: 3}
	for name, c := range map[string]struct {
		results  []verify.Result
		verified bool
		tried    int
	}{
		"all held":          {[]verify.Result{held}, true, 3},
		"some not tried":    {[]verify.Result{held, {Wall: "policy", Name: "route", Result: verify.NotTried}}, true, 3},
		"a breach":          {[]verify.Result{held, {Wall: "policy", Name: "route", Result: verify.Breached}}, false, 4},
		"blocked elsewhere": {[]verify.Result{held, {Wall: "policy", Name: "route", Result: verify.BlockedElsewhere}}, false, 4},
		"nothing tried":     {[]verify.Result{{Wall: "policy", Name: "route", Result: verify.NotTried}}, false, 0},
		"nothing":           {nil, false, 0},
	} {
		got := newStatement(t, nil, c.results...).Predicate
		if got.Verified != c.verified || got.Attacks.Tried != c.tried {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if s := newStatement(t, nil, held); !slices.Equal(s.Predicate.Attacks.Held["network"], []string{"call"}) {
		t.Errorf("%+v", s.Predicate.Attacks)
	}
}

// TestNewListsConnections expects the connections of the tenant in the statement, and no verified
// statement while a connection is open after its end.
func TestNewListsConnections(t *testing.T) {
	held := verify.Result{Wall: "network", Name: "call", Result: verify.Held}
	end := time.Date(2027, 2, 1, 0, 0, 0, 0, time.UTC)
	open := []network.OpenConnection{{Caller: "billing", Callee: "shop", End: end}, {Caller: "shop", Callee: "mail"}}
	for _, test := range []struct {
		name    string
		at      time.Time
		expired int
	}{
		{"before the end", end.Add(-time.Hour), 0},
		{"while the operator closes it", end.Add(network.ClosingTime), 0},
		{"after the end", end.Add(network.ClosingTime + time.Second), 1},
	} {
		s, err := certificate.New(certificate.Predicate{Tenant: "shop", At: test.at, Connections: certificate.ListConnections(open, test.at)}, nil, []verify.Result{held})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		mail := `,{"caller":"shop","callee":"mail"}`
		want := `"connections":[{"caller":"billing","callee":"shop","until":"2027-02-01T00:00:00Z"}` + mail
		if test.expired > 0 {
			want = `"connections":[{"caller":"billing","callee":"shop","until":"2027-02-01T00:00:00Z","expired":true}` + mail
		}
		if !strings.Contains(string(text), want) || s.Predicate.Verified != (test.expired == 0) || len(s.Predicate.ListExpired()) != test.expired {
			t.Errorf("%s: %s", test.name, text)
		}
	}
}

// TestDigest expects a digest of the tenant's objects that does not depend on their order.
func TestDigest(t *testing.T) {
	digest := func(objects ...client.Object) string { return newStatement(t, objects).Subject[0].Digest["sha256"] }
	if digest(newObject("a"), newObject("b")) != digest(newObject("b"), newObject("a")) {
		t.Error("the order counts")
	}
	if digest(newObject("a")) == digest(newObject("b")) || len(digest()) != 64 {
		t.Error("other objects have the same digest")
	}
}

// TestSign expects a signed statement to open with the signer's key only, and only unchanged.
func TestSign(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	key, err := certificate.ParseKey(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	if err != nil {
		t.Fatal(err)
	}
	s := newStatement(t, []client.Object{newObject("a")}, verify.Result{Wall: "nodes", Name: "choose", Result: verify.Held})
	e, err := certificate.Sign(s, key)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := certificate.Open(e, public)
	if err != nil || opened.Predicate.Tenant != "shop" || !opened.Predicate.Verified || opened.Type != certificate.StatementType {
		t.Errorf("%v: %+v", err, opened)
	}
	other, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := certificate.Open(e, other); err == nil {
		t.Error("another key opens it")
	}
	text, err := base64.StdEncoding.DecodeString(e.Payload)
	if err != nil {
		t.Fatal(err)
	}
	e.Payload = base64.StdEncoding.EncodeToString([]byte(strings.Replace(string(text), "shop", "bank", 1)))
	if _, err := certificate.Open(e, public); err == nil {
		t.Error("it was changed, and is opened")
	}
	for name, text := range map[string]string{"nothing": "", "a certificate": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"} {
		if _, err := certificate.ParseKey([]byte(text)); err == nil || !strings.Contains(err.Error(), "openssl genpkey") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
