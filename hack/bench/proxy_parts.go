package main

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
)

// issuer is an identity provider that signs tokens in this process: the benchmark measures
// token verification, not logins.
type issuer struct {
	*httptest.Server
	key *rsa.PrivateKey
}

const keyID, clientID = "bench", "croft"

func newIssuer() (*issuer, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	i := &issuer{key: key}
	mux := http.NewServeMux()
	answer := func(path string, content func() any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(content()) // a disconnected client retries
		})
	}
	answer("/.well-known/openid-configuration", func() any {
		return map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys", "id_token_signing_alg_values_supported": []string{"RS256"}}
	})
	answer("/keys", func() any {
		return map[string]any{"keys": []any{map[string]string{
			"kty": "RSA", "alg": "RS256", "use": "sig", "kid": keyID,
			"n": encodeBase64(key.N.Bytes()), "e": encodeBase64(big.NewInt(int64(key.E)).Bytes()),
		}}}
	})
	i.Server = httptest.NewTLSServer(mux)
	return i, nil
}

func encodeBase64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// encodeAuthority returns the CA bundle of the issuer's certificate.
func (i *issuer) encodeAuthority() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate().Raw}))
}

// signToken returns a token for a user with groups.
func (i *issuer) signToken(user string, groups ...string) (string, error) {
	var parts []string
	for _, part := range []any{
		map[string]string{"alg": "RS256", "kid": keyID, "typ": "JWT"},
		map[string]any{"iss": i.URL, "aud": clientID, "sub": user, "groups": groups, "exp": time.Now().Add(time.Hour).Unix()},
	} {
		content, err := json.Marshal(part)
		if err != nil {
			return "", err
		}
		parts = append(parts, encodeBase64(content))
	}
	hash := sha256.Sum256([]byte(strings.Join(parts, ".")))
	signature, err := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, hash[:])
	return strings.Join(append(parts, encodeBase64(signature)), "."), err
}

// buildConfiguration returns an AuthenticationConfiguration that accepts the issuer's tokens.
func (i *issuer) buildConfiguration() (string, error) {
	content, err := json.Marshal(map[string]any{
		"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
		"jwt": []any{map[string]any{
			"issuer": map[string]any{"url": i.URL, "certificateAuthority": i.encodeAuthority(), "audiences": []string{clientID}},
			"claimMappings": map[string]any{
				"username": map[string]string{"claim": "sub", "prefix": ""}, "groups": map[string]string{"claim": "groups", "prefix": ""},
			},
		}},
	})
	return string(content), err
}

const (
	// logPath is served by front itself, with a log of logBytes.
	logPath  = "/api/v1/namespaces/n-0000/pods/talker/log"
	logBytes = 1 << 30
)

// newFront forwards to the API server, and serves one pod's log itself, because there is no
// kubelet.
func newFront(config *rest.Config) (*httptest.Server, error) {
	next, err := newReverseProxy(config)
	if err != nil {
		return nil, err
	}
	block := make([]byte, 1<<20)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != logPath {
			next.ServeHTTP(w, r)
			return
		}
		for range logBytes / len(block) {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	return server, nil
}

// newReverseProxy returns a minimal reverse proxy, which only forwards requests.
func newReverseProxy(config *rest.Config) (http.Handler, error) {
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	return &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
	}, nil
}

// proxy is a running croft proxy process.
type proxy struct {
	url, authority string
	pid            int
	stop           func() error
}

// startProxy starts croft proxy in front of a server.
func (b *bench) startProxy(ctx context.Context, dir string, upstream *rest.Config, authentication string) (*proxy, error) {
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return nil, err
	}
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["bench"] = &clientcmdapi.Cluster{Server: upstream.Host, CertificateAuthorityData: upstream.CAData, CertificateAuthority: upstream.CAFile}
	kubeconfig.AuthInfos["bench"] = &clientcmdapi.AuthInfo{
		Token: upstream.BearerToken, ClientCertificateData: upstream.CertData, ClientKeyData: upstream.KeyData,
		ClientCertificate: upstream.CertFile, ClientKey: upstream.KeyFile,
	}
	kubeconfig.Contexts["bench"] = &clientcmdapi.Context{Cluster: "bench", AuthInfo: "bench"}
	kubeconfig.CurrentContext = "bench"
	content, err := clientcmd.Write(*kubeconfig)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{"tls.crt": certificate, "tls.key": key, "authentication.yaml": []byte(authentication), "kubeconfig": content}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return nil, err
		}
	}
	address, health := findFreeAddress(), findFreeAddress()
	path := func(name string) string { return filepath.Join(dir, name) }
	cmd := exec.Command(b.croft, "proxy", "--kubeconfig", path("kubeconfig"), "--authentication-config", path("authentication.yaml"),
		"--tls-cert-file", path("tls.crt"), "--tls-private-key-file", path("tls.key"), "--addr", address, "--health-addr", health, "--drain", "1s")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop := func() error {
		_ = cmd.Process.Kill() // it may have exited already
		_ = cmd.Wait()
		return nil
	}
	err = wait.PollUntilContextTimeout(ctx, restPoll, restTimeout, true, func(ctx context.Context) (bool, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+health+"/readyz", nil)
		if err != nil {
			return false, err
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return false, nil //nolint:nilerr // not listening yet
		}
		return answer.StatusCode == http.StatusOK, answer.Body.Close()
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("croft proxy is not ready: %w: %s", err, stderr.String()), stop())
	}
	return &proxy{url: "https://" + address, authority: string(certificate), pid: cmd.Process.Pid, stop: stop}, nil
}

// findFreeAddress returns a local address with an unused port.
func findFreeAddress() string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "127.0.0.1:0"
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}
