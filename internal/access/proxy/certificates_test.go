package proxy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/token/tokenfile"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/rest"
)

// authority issues client certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	issued := a.issueCertificate(t, template)
	a.certificate = issued.Leaf
	return a
}

// issueCertificate signs a certificate. An authority without a certificate signs its own.
func (a *authority) issueCertificate(t *testing.T, template *x509.Certificate) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, parent := a.key, a.certificate
	if parent == nil {
		a.key = key
		signer, parent = key, template
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	}
	content, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(content)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{content}, PrivateKey: key, Leaf: leaf}
}

func (a *authority) encodePEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

func newPersonTemplate(name string, groups ...string) *x509.Certificate {
	return &x509.Certificate{
		Subject: pkix.Name{CommonName: name, Organization: groups}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

// TestClientCertificates fails if the proxy accepts a certificate that its authority did
// not issue for a user, or if a certificate gives an identity that is reserved for
// Kubernetes. It needs no cluster, so it runs in make test. TestProxy/Certificates tests
// the same on a real cluster.
func TestClientCertificates(t *testing.T) {
	var received []*http.Request
	upstream := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { received = append(received, r) }))
	defer upstream.Close()
	forward, err := newForwarder(&rest.Config{Host: upstream.URL, BearerToken: "the proxy's own", TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	if err != nil {
		t.Fatal(err)
	}
	ours, others := newAuthority(t, "people"), newAuthority(t, "people")
	accepted, err := dynamiccertificates.NewStaticCAContent("clients", ours.encodePEM())
	if err != nil {
		t.Fatal(err)
	}
	tokens := tokenfile.New(map[string]*user.DefaultInfo{"janes": jane})
	server := httptest.NewUnstartedServer(chain{authenticator: newRequestAuthenticator(tokens, nil, accepted), metrics: newMetrics(), next: forward}.buildHandler())
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert} //nolint:gosec // a test
	server.StartTLS()
	defer server.Close()

	expired, server1, weak := newPersonTemplate("carol", "devs"), newPersonTemplate("carol", "devs"), newPersonTemplate("carol", "devs")
	expired.NotBefore, expired.NotAfter = time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)
	server1.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	weak.Subject.CommonName = ""
	carol := ours.issueCertificate(t, newPersonTemplate("carol", "devs", "system:masters"))
	// The other authority's certificate is followed by carol's, as if carol's were an
	// intermediate certificate.
	appended := others.issueCertificate(t, newPersonTemplate("admin"))
	appended.Certificate = append(appended.Certificate, carol.Certificate...)
	// byCarol is signed with carol's certificate, which is no authority.
	byCarol := (&authority{carol.Leaf, carol.PrivateKey.(*ecdsa.PrivateKey)}).issueCertificate(t, newPersonTemplate("admin"))
	byCarol.Certificate = append(byCarol.Certificate, carol.Certificate...)
	for _, c := range []struct {
		about       string
		certificate *tls.Certificate
		header      [2]string
		want        int
		as          string
	}{
		{"carol's", &carol, [2]string{}, 200, "carol"},
		{"carol's, and another's forwarded", &carol, [2]string{"X-Forwarded-Client-Cert", `Subject="CN=admin"`}, 200, "carol"},
		{"carol's, and jane's token", &carol, [2]string{"Authorization", "Bearer janes"}, 200, "jane"},
		{"none", nil, [2]string{}, 401, ""},
		{"none, but a forwarded one", nil, [2]string{"X-Forwarded-Client-Cert", `Subject="CN=carol"`}, 401, ""},
		{"none, but one by RFC 9440", nil, [2]string{"Client-Cert", ":" + string(carol.Certificate[0][:0]) + ":"}, 401, ""},
		{"none, but one by nginx", nil, [2]string{"Ssl-Client-Cert", string(ours.encodePEM())[:20]}, 401, ""},
		{"another authority's of the same name", new(others.issueCertificate(t, newPersonTemplate("carol", "devs"))), [2]string{}, 401, ""},
		{"her own authority", new(newSelfSigned(t, "carol")), [2]string{}, 401, ""},
		{"another's with carol's behind it", &appended, [2]string{}, 401, ""},
		{"one that carol signed", &byCarol, [2]string{}, 401, ""},
		{"an expired one", new(ours.issueCertificate(t, expired)), [2]string{}, 401, ""},
		{"a server's", new(ours.issueCertificate(t, server1)), [2]string{}, 401, ""},
		{"without a name", new(ours.issueCertificate(t, weak)), [2]string{}, 401, ""},
		{"a controller's", new(ours.issueCertificate(t, newPersonTemplate("system:kube-controller-manager"))), [2]string{}, 401, ""},
		{"a node's", new(ours.issueCertificate(t, newPersonTemplate("system:node:n1", "system:nodes"))), [2]string{}, 401, ""},
		{"a service account's", new(ours.issueCertificate(t, newPersonTemplate("system:serviceaccount:shop:robot"))), [2]string{}, 401, ""},
	} {
		received = nil
		config := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // a test
		if c.certificate != nil {
			config.Certificates = []tls.Certificate{*c.certificate}
		}
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/api/v1/namespaces/shop/pods", nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.header[0] != "" {
			r.Header.Set(c.header[0], c.header[1])
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatalf("%s: %v", c.about, err)
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		client.CloseIdleConnections()
		if answer.StatusCode != c.want {
			t.Errorf("%s: status %d, want %d", c.about, answer.StatusCode, c.want)
		}
		if c.want != http.StatusOK {
			if len(received) > 0 {
				t.Errorf("%s: the request reached the API server", c.about)
			}
			continue
		}
		want := []string{c.as, "devs"}
		got := append(received[0].Header.Values("Impersonate-User"), received[0].Header.Values("Impersonate-Group")...)
		if !slices.Equal(got, want) || received[0].Header.Get("X-Forwarded-Client-Cert") != "" {
			t.Errorf("%s: the API server sees %v, want %v", c.about, got, want)
		}
	}
}

func newSelfSigned(t *testing.T, name string) tls.Certificate {
	t.Helper()
	return (&authority{}).issueCertificate(t, newPersonTemplate(name, "devs"))
}
