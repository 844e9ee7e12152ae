package e2e

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// getIdentity returns the user and groups that the API server authenticates.
func (u testUser) getIdentity(t testing.TB) (user string, groups []string) {
	t.Helper()
	return getIdentity(t, u.client)
}

func getIdentity(t testing.TB, client kubernetes.Interface) (user string, groups []string) {
	t.Helper()
	review, err := client.AuthenticationV1().SelfSubjectReviews().
		Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return review.Status.UserInfo.Username, review.Status.UserInfo.Groups
}

// testProxyIdentity fails if the API server sees another identity than the identity provider's.
// Groups without rights are removed.
func testProxyIdentity(t *testing.T, p *proxiedCluster) {
	for _, test := range []struct {
		u    testUser
		user string
		want []string
	}{
		{p.jane, "oidc:jane", []string{ownGroup, "system:authenticated"}},
		{p.joe, "oidc:joe", []string{"system:authenticated"}},
	} {
		user, groups := test.u.getIdentity(t)
		if user != test.user || !slices.Equal(groups, test.want) {
			t.Errorf("the API server sees %s as %s with groups %v", test.user, user, groups)
		}
	}
	if output := p.runKubectlAs(t, p.jane, "", "auth", "whoami").expectExit(t, 0).stdout; !slices.Contains(cutColumns(output, 2), "Username oidc:jane") {
		t.Errorf("unexpected output of kubectl auth whoami:\n%s", output)
	}
}

// testProxyTokens fails if the proxy accepts a token that the identity provider did not sign,
// or that it issued to another client.
func testProxyTokens(t *testing.T, p *proxiedCluster) {
	parts := strings.Split(p.jane.token, ".")
	admin := encodeBase64(strings.Replace(decodeBase64(t, parts[1]), "team.devs.platform-access", "platform-admins", 1))
	for _, test := range []struct{ what, token string }{
		{"no token", ""},
		{"not a JWT", "swordfish"},
		{"a token for another client", p.idp.getIDToken(t, "another", "jane")},
		{"a token signed with another key", signToken(t, parts[0]+"."+parts[1])},
		{"a token with changed groups", parts[0] + "." + admin + "." + parts[2]},
		{"an unsigned token", encodeBase64(`{"alg":"none"}`) + "." + admin + "."},
	} {
		_, err := p.newUser(t, test.token).client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
		if !apierrors.IsUnauthorized(err) || !strings.Contains(err.Error(), "run croft login") {
			t.Errorf("%s: want 401 with a remedy, got: %v", test.what, err)
		}
	}
	// kubectl shows the message.
	o := p.runKubectlAs(t, p.newUser(t, "swordfish"), "", "get", "pods", "-n", ownNamespace).expectExit(t, 1)
	if !strings.Contains(o.stderr, "croft login") {
		t.Errorf("kubectl does not show the remedy: %s", o)
	}
}

// signToken returns a token signed with a key that is not the provider's.
func signToken(t testing.TB, content string) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256([]byte(content))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, hash[:])
	if err != nil {
		t.Fatal(err)
	}
	return content + "." + encodeBase64(string(signature))
}

func encodeBase64(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

func decodeBase64(t testing.TB, s string) string {
	t.Helper()
	content, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// testProxyImpersonation fails if a client can impersonate others with the proxy's permission
// to do so.
func testProxyImpersonation(t *testing.T, p *proxiedCluster) {
	asAdmin := p.runKubectlAs(t, p.jane, "", "--as", "admin", "--as-group", "system:masters", "get", "nodes").expectExit(t, 1)
	if !strings.Contains(asAdmin.stderr, "impersonation is not allowed") {
		t.Errorf("the proxy does not report why it rejects --as: %s", asAdmin)
	}
	for _, name := range []string{"Impersonate-User", "Impersonate-Group", "Impersonate-Uid", "Impersonate-Extra-Scopes", "Impersonate_User"} {
		client := p.jane.newClientWithHeaders(t, http.Header{name: {"system:masters"}})
		if _, err := client.Discovery().ServerVersion(); !apierrors.IsForbidden(err) {
			t.Errorf("%s: want 403, got: %v", name, err)
		}
	}
	// Front proxies' headers are removed, not rejected, because a user's own proxy may send
	// them without bad intent.
	user, groups := getIdentity(t, p.jane.newClientWithHeaders(t, http.Header{"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}}))
	if user != "oidc:jane" || slices.Contains(groups, "system:masters") {
		t.Errorf("with X-Remote-User the API server sees jane as %s with groups %v", user, groups)
	}
}

// newClientWithHeaders returns a client that sends additional headers.
func (u testUser) newClientWithHeaders(t testing.TB, headers http.Header) kubernetes.Interface {
	t.Helper()
	config := rest.CopyConfig(u.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			for name, values := range headers {
				r.Header[name] = values
			}
			return next.RoundTrip(r)
		})
	})
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// newServiceAccount returns a service account without a role, which uses its own token.
func (p *proxiedCluster) newServiceAccount(t testing.TB) testUser {
	t.Helper()
	admin, err := kubernetes.NewForConfig(p.Config)
	if err != nil {
		t.Fatal(err)
	}
	given, err := admin.CoreV1().ServiceAccounts(ownNamespace).
		CreateToken(t.Context(), "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p.newUser(t, given.Status.Token)
}

// testProxyServiceAccount fails if service accounts cannot use the proxy, or if the API server
// authenticates one as the proxy.
func testProxyServiceAccount(t *testing.T, p *proxiedCluster) {
	account := p.newServiceAccount(t)
	if user, _ := account.getIdentity(t); user != "system:serviceaccount:"+ownNamespace+":default" {
		t.Errorf("the API server sees the service account as %s", user)
	}
	expectNoAccess(t, account, ownNamespace)
	account.startNamespaceInformer(t)
}

// testProxyCertificates fails if users cannot authenticate with client certificates, or if the API
// server accepts a certificate for anything but a user. It shares TestProxy's cluster, so it is
// part of make test; TestClientCertificates of package proxy tests forged certificates.
func testProxyCertificates(t *testing.T, p *proxiedCluster) {
	accepting := p.startProxy(t, p.Kubeconfig, "--client-ca-file", writeTempFile(t, string(p.Config.CAData)))
	accepting.awaitReady(t, accepting.newUser(t, p.jane.token))
	as := func(user string, groups ...string) kubernetes.Interface {
		t.Helper()
		issued, err := clientcmd.BuildConfigFromFlags("", p.writeUserKubeconfig(t, user, groups...))
		if err != nil {
			t.Fatal(err)
		}
		config := rest.CopyConfig(accepting.jane.config)
		config.Host, config.BearerToken, config.CAData = accepting.url, "", []byte(accepting.authority)
		config.CertData, config.KeyData, config.CertFile, config.KeyFile = issued.CertData, issued.KeyData, issued.CertFile, issued.KeyFile
		return kubernetes.NewForConfigOrDie(config)
	}
	if user, groups := getIdentity(t, as("carol", ownGroup, "system:masters", "system:nodes")); user != "carol" || !slices.Equal(groups, []string{ownGroup, "system:authenticated"}) {
		t.Errorf("the API server sees carol as %s with groups %v", user, groups)
	}
	for _, user := range []string{"system:kube-controller-manager", "system:node:n1", "system:serviceaccount:kube-system:default"} {
		if _, err := as(user).Discovery().ServerVersion(); !apierrors.IsUnauthorized(err) {
			t.Errorf("a certificate for %s: want 401, got: %v", user, err)
		}
	}
	// A proxy without --client-ca-file ignores certificates.
	plain := rest.CopyConfig(p.jane.config)
	plain.BearerToken = ""
	issued, err := clientcmd.BuildConfigFromFlags("", p.writeUserKubeconfig(t, "carol", ownGroup))
	if err != nil {
		t.Fatal(err)
	}
	plain.CertData, plain.KeyData, plain.CertFile, plain.KeyFile = issued.CertData, issued.KeyData, issued.CertFile, issued.KeyFile
	if _, err := kubernetes.NewForConfigOrDie(plain).Discovery().ServerVersion(); !apierrors.IsUnauthorized(err) {
		t.Errorf("a certificate without --client-ca-file: want 401, got: %v", err)
	}
}

// testProxyReload fails if the proxy does not reload a changed configuration, or rejects users
// while it does.
func testProxyReload(t *testing.T, p *proxiedCluster) {
	put := func(content string) {
		t.Helper()
		next := writeTempFile(t, content)
		if err := os.Rename(next, p.authentication); err != nil { // atomic, as in a ConfigMap volume
			t.Fatal(err)
		}
	}
	another := p.newUser(t, p.idp.getIDToken(t, "another", "jane"))
	put(buildAuthenticationConfig(t, p.idp, "croft", "another"))
	awaitCondition(t, moments, "tokens for another client to be accepted", func(context.Context) error {
		for range 100 { // often, to notice short interruptions
			if err := p.jane.sendAuthenticated(); err != nil {
				t.Fatalf("jane's token is valid before and after the reload, but was rejected: %v", err)
			}
		}
		return another.sendAuthenticated()
	})

	// The proxy ignores an invalid file, and logs the error.
	put("{}")
	log := filepath.Join(p.Dir, "logs", proxyLog)
	awaitCondition(t, moments, "the log to report the invalid file", func(context.Context) error {
		if !strings.Contains(readFile(t, log), "invalid authentication configuration") {
			return errors.New("no such message")
		}
		return nil
	})
	if err := another.sendAuthenticated(); err != nil {
		t.Errorf("with an invalid file the previous configuration should stay: %v", err)
	}
}

// testProxyStop fails if a proxy does not stop on request, or does not end the open watches,
// which clients then resume at another replica.
func testProxyStop(t *testing.T, p *proxiedCluster) {
	events, err := p.jane.client.CoreV1().Namespaces().Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.proxy.stopProcess(t)
	awaitCondition(t, moments, "the watch to end", func(context.Context) error {
		for {
			select {
			case event, open := <-events.ResultChan():
				if !open {
					return nil
				}
				if event.Type != watch.Added {
					return fmt.Errorf("it received %s %v", event.Type, event.Object)
				}
			default:
				return errors.New("it is still open")
			}
		}
	})
}
