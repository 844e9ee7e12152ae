package e2e

import (
	"context"
	"encoding/json"
	"net"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"

	"croft.dev/croft/internal/test/sandbox"
	"croft.dev/croft/internal/walls/wall/identity"
)

// These are namespaces and groups of document 002. Its platform has the group prefix oidc:,
// which the identity provider's groups do not have.
const (
	ownNamespace, otherNamespace = "sample-team-gitlab-ci", "example-tenant"
	ownGroup                     = "oidc:team.devs.platform-access"
)

// proxyLog is the name of the proxies' log file.
const proxyLog = "croft-proxy.log"

// ownNamespaces are the namespaces in which jane's group has a role, sorted.
var ownNamespaces = []string{"nis-customer-portal", ownNamespace}

// proxiedCluster is a sandbox with document 002's tenants behind croft proxy, and an
// identity provider.
type proxiedCluster struct {
	*migratedDocument
	idp   *openID
	proxy *process
	url   string
	// authentication is the path of the proxy's AuthenticationConfiguration.
	authentication string
	// proxyToken is the token of the proxy's service account.
	proxyToken string
	// authority is the CA bundle of the proxy's certificate, in PEM.
	authority string
	// jane is in a group with a role in two tenants, and joe in one without roles.
	jane, joe testUser
}

// testUser is a user with a token.
type testUser struct {
	token  string
	config *rest.Config
	client *kubernetes.Clientset
	// kubeconfig is the path of the user's kubeconfig.
	kubeconfig string
}

// TestProxy fails if the API server sees another identity than the identity provider's, or
// if the proxy lists more or fewer namespaces than users may get.
func TestProxy(t *testing.T) {
	sandbox.EndToEnd(t)
	t.Parallel() // mostly waits
	p := startProxied(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *proxiedCluster)
	}{
		{"WhoAmI", testProxyIdentity},
		{"Namespaces", testProxyNamespaces},
		{"OwnNamespace", testProxyOwnNamespace},
		{"OtherNamespace", testProxyOtherNamespace},
		{"WithoutRole", testProxyWithoutRole},
		{"Tokens", testProxyTokens},
		{"Impersonation", testProxyImpersonation},
		{"StolenToken", testProxyStolenToken},
		{"ServiceAccount", testProxyServiceAccount},
		{"Login", testProxyLogin},
		{"BrowserLogin", testProxyBrowserLogin},
		{"AccessChanges", testProxyAccessChanges},
		{"AllNamespaces", testProxyAllNamespaces},
		{"AllNamespacesWatched", testProxyAllNamespacesWatched},
		{"Tenancy", testProxyTenancy},
		{"Reviews", testProxyReviews},
		{"TwoProxies", testProxyTwoProxies},
		{"Certificates", testProxyCertificates},
		{"Ledger", testProxyLedger},
		{"Streams", testProxyStreams},
		{"Reload", testProxyReload},
		{"Stop", testProxyStop},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, p) })
	}
}

func startProxied(t *testing.T) *proxiedCluster {
	t.Helper()
	idp := startOpenID(t)
	return addProxy(t, migrateDocument(t, "002"), idp, "croft")
}

// addProxy starts a proxy for a cluster in which jane's group has a role. It accepts the tokens of the
// clients.
func addProxy(t *testing.T, m *migratedDocument, idp *openID, clients ...string) *proxiedCluster {
	t.Helper()
	p := &proxiedCluster{migratedDocument: m, idp: idp}
	p.authentication = writeTempFile(t, buildAuthenticationConfig(t, idp, clients...))
	p.proxyToken = p.enableProxyAccount(t)
	p = p.startProxy(t, p.writeDirectKubeconfig(t, p.proxyToken), "--impersonation-role", identity.ProxyRole)
	p.jane = p.loginUser(t, "jane")
	p.joe = p.loginUser(t, "joe")
	p.awaitReady(t, p.jane)
	return p
}

// startProxy starts another proxy for the cluster, with the credentials of a kubeconfig.
func (p *proxiedCluster) startProxy(t testing.TB, kubeconfig string, flags ...string) *proxiedCluster {
	t.Helper()
	certificate, key := newCertificate(t)
	address := findFreeAddress(t)
	next := *p
	next.url, next.authority = "https://"+address, readFile(t, certificate)
	next.proxy = p.startCroft(t, proxyLog, append([]string{
		"proxy", "--kubeconfig", kubeconfig,
		"--authentication-config", p.authentication,
		"--tls-cert-file", certificate, "--tls-private-key-file", key,
		"--addr", address, "--health-addr", "0", "--drain", "1s",
	}, flags...)...)
	return &next
}

// awaitReady waits until a new proxy authenticates a user, which requires the provider's
// keys.
func (p *proxiedCluster) awaitReady(t testing.TB, u testUser) {
	t.Helper()
	awaitCondition(t, moments, "the proxy to authenticate users", func(context.Context) error {
		select {
		case <-p.proxy.ended:
			t.Fatalf("the proxy exited: %v", p.proxy.err)
		default:
		}
		return u.sendAuthenticated()
	})
}

// sendAuthenticated sends a request that every authenticated user may make.
func (u testUser) sendAuthenticated() error {
	_, err := u.client.Discovery().ServerVersion()
	return err
}

// findFreeAddress returns a local address with an unused port. Another process may take the
// port first; the proxy then fails to start.
func findFreeAddress(t testing.TB) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return address
}

// buildAuthenticationConfig accepts an identity provider's tokens for any of the clients.
func buildAuthenticationConfig(t testing.TB, idp *openID, clients ...string) string {
	t.Helper()
	prefixed := func(claim string) apiserverv1.PrefixedClaimOrExpression {
		return apiserverv1.PrefixedClaimOrExpression{Claim: claim, Prefix: ptr.To("oidc:")}
	}
	issuer := apiserverv1.Issuer{URL: idp.issuer, CertificateAuthority: idp.authority, Audiences: clients}
	if len(clients) > 1 {
		issuer.AudienceMatchPolicy = apiserverv1.AudienceMatchPolicyMatchAny
	}
	content, err := json.Marshal(apiserverv1.AuthenticationConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: apiserverv1.SchemeGroupVersion.String(), Kind: "AuthenticationConfiguration"},
		JWT: []apiserverv1.JWTAuthenticator{{
			Issuer:        issuer,
			ClaimMappings: apiserverv1.ClaimMappings{Username: prefixed("preferred_username"), Groups: prefixed("groups")},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// loginUser returns a user with a token for the client croft.
func (p *proxiedCluster) loginUser(t testing.TB, account string) testUser {
	t.Helper()
	return p.newUser(t, p.idp.getIDToken(t, "croft", account))
}

// newUser returns the user of a token; without a token the user is unauthenticated.
func (p *proxiedCluster) newUser(t testing.TB, token string) testUser {
	t.Helper()
	u := testUser{token: token, config: &rest.Config{
		Host: p.url, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: []byte(p.authority)},
		QPS: p.Config.QPS, Burst: p.Config.Burst, WarningHandlerWithContext: rest.NoWarnings{},
	}}
	var err error
	if u.client, err = kubernetes.NewForConfig(u.config); err != nil {
		t.Fatal(err)
	}
	u.kubeconfig = writeKubeconfig(t, u.config)
	return u
}

// writeDirectKubeconfig returns a kubeconfig with a token for the API server itself.
func (p *proxiedCluster) writeDirectKubeconfig(t testing.TB, token string) string {
	t.Helper()
	config := rest.AnonymousClientConfig(p.Config)
	config.BearerToken = token
	return writeKubeconfig(t, config)
}

// writeKubeconfig writes a kubeconfig with the config's address, CA and token.
func writeKubeconfig(t testing.TB, c *rest.Config) string {
	t.Helper()
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["croft"] = &clientcmdapi.Cluster{Server: c.Host, CertificateAuthorityData: c.CAData, CertificateAuthority: c.CAFile}
	kubeconfig.AuthInfos["croft"] = &clientcmdapi.AuthInfo{Token: c.BearerToken}
	kubeconfig.Contexts["croft"] = &clientcmdapi.Context{Cluster: "croft", AuthInfo: "croft"}
	kubeconfig.CurrentContext = "croft"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*kubeconfig, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// runKubectlAs runs kubectl as a user, through the proxy.
func (p *proxiedCluster) runKubectlAs(t testing.TB, u testUser, input string, args ...string) outcome {
	t.Helper()
	return p.runKubectl(t, input, append([]string{"--kubeconfig", u.kubeconfig}, args...)...)
}
