package cluster_test

import (
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"croft.dev/croft/internal/dashboard/cluster"
	"croft.dev/croft/internal/diagnose/why"
)

// startServer starts an API server, and returns its entry in a kubeconfig.
func startServer(t *testing.T, handler http.HandlerFunc) *clientcmdapi.Cluster {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return &clientcmdapi.Cluster{Server: server.URL, CertificateAuthorityData: ca}
}

// TestServerRefusesUnsafeConnections expects no server to which others could read tokens.
func TestServerRefusesUnsafeConnections(t *testing.T) {
	for name, c := range map[string]struct {
		entry clientcmdapi.Cluster
		want  string
	}{
		"http":                {clientcmdapi.Cluster{Server: "http://k8s.example.org"}, "not an https URL"},
		"no scheme":           {clientcmdapi.Cluster{Server: "k8s.example.org"}, "not an https URL"},
		"empty":               {clientcmdapi.Cluster{}, "not an https URL"},
		"credentials":         {clientcmdapi.Cluster{Server: "https://ana:secret@k8s.example.org"}, "not an https URL"},
		"no certificate":      {clientcmdapi.Cluster{Server: "https://k8s.example.org", InsecureSkipTLSVerify: true}, "insecure-skip-tls-verify"},
		"an invalid CA":       {clientcmdapi.Cluster{Server: "https://k8s.example.org", CertificateAuthorityData: []byte("x")}, "root certificates"},
		"an invalid proxyURL": {clientcmdapi.Cluster{Server: "https://k8s.example.org", ProxyURL: ":"}, "proxy-url"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := cluster.NewServer(&c.entry); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
	s, err := cluster.NewServer(&clientcmdapi.Cluster{Server: "https://k8s.example.org"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Connect(""); err == nil {
		t.Error("a connection without a token is possible")
	}
}

// TestNoRedirect lets the API server redirect to another server, which must not get the token.
func TestNoRedirect(t *testing.T) {
	requests := 0
	other := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests++ }))
	defer other.Close()
	entry := startServer(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: other.Certificate().Raw})
	entry.CertificateAuthorityData = append(entry.CertificateAuthorityData, ca...)
	s, err := cluster.NewServer(entry)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.ReviewUser(t.Context(), "ana"); err == nil || requests != 0 {
		t.Errorf("got %v and %d requests at the other server, want an error and none", err, requests)
	}
}

// TestAnonymous expects an error from a server that does not authenticate.
func TestAnonymous(t *testing.T) {
	s, err := cluster.NewServer(startServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview","status":{"userInfo":{"username":"system:anonymous"}}}`))
	}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.ReviewUser(t.Context(), "ana"); !errors.Is(err, cluster.ErrAnonymous) {
		t.Errorf("got %v, want ErrAnonymous", err)
	}
}

// TestEveryKindIsServed asks for an object of each kind of package why. Without an entry in the
// list of served kinds, there would be no request.
func TestEveryKindIsServed(t *testing.T) {
	var paths []string
	s, err := cluster.NewServer(startServer(t, func(w http.ResponseWriter, r *http.Request) {
		paths = append(paths, r.URL.Path)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"NotFound","code":404}`))
	}))
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Connect("ana")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range why.Kinds() {
		paths = nil
		target, err := why.ParseTarget([]string{kind, "a"}, "shop")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := why.Gather(t.Context(), c, target); !apierrors.IsNotFound(err) {
			t.Errorf("%s: %v, want not found", kind, err)
		}
		if len(paths) == 0 || !strings.HasSuffix(paths[0], "s/a") || strings.Contains(paths[0], "/namespaces/shop/") != (target.Namespace != "") {
			t.Errorf("%s: requests of %q", kind, paths)
		}
	}
}
