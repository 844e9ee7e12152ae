package cli_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/dashboard/cluster"
	"croft.dev/croft/internal/dashboard/server"
	"croft.dev/croft/internal/dashboard/session"
)

// csrf finds the text that forms repeat.
var csrf = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

// testDashboard opens the dashboard's pages as a service account with the role viewer in one
// namespace.
func (p *people) testDashboard(t *testing.T) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-prod", Name: "screen"}}
	for _, o := range []client.Object{account, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop-prod", Name: "screen"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "croft-viewer"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "shop-prod", Name: "screen"}},
	}} {
		if err := p.admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	token := &authenticationv1.TokenRequest{}
	if err := p.admin.SubResource("token").Create(t.Context(), account, token); err != nil {
		t.Fatal(err)
	}
	get := p.openDashboard(t, token.Status.Token)
	p.awaitCondition(t, "the role is in force", func(context.Context) error {
		if status, body := get("/namespaces/shop-prod"); status != http.StatusOK {
			return fmt.Errorf("status %d: %s", status, body)
		}
		return nil
	})
	for path, part := range map[string]string{
		"/": "Open a namespace", "/namespaces/shop-prod": "Tenant shop", "/namespaces/shop-prod/workloads": ">web</a>", "/namespaces/shop-prod/quota": "requests.cpu",
		"/namespaces/shop-prod/workloads/deployment/web": "deployment/web in shop-prod: ", "/namespaces/shop-prod/access": "ServiceAccount shop-prod/screen",
		"/namespaces/shop-prod/network": "allowed by shop-prod/croft-isolation", "/namespaces/shop-prod/hosts": "Domains of tenant shop", "/namespaces/shop-prod/try": "Paste manifests", "/namespaces/shop-prod/jobs": "CronJobs",
	} {
		if status, body := get(path); status != http.StatusOK || !strings.Contains(body, part) {
			t.Errorf("%s: status %d, no %s:\n%s", path, status, part, body)
		}
	}
	_, missing := get("/namespaces/nowhere")
	for _, path := range []string{
		"/tenants", "/pools", "/walls", "/namespaces/vault", "/namespaces/vault/network", "/namespaces/vault/hosts", "/namespaces/vault/try", "/namespaces/vault/jobs", "/namespaces/vault/workloads", "/namespaces/vault/quota", "/namespaces/vault/access", "/namespaces/kube-system/workloads",
		"/namespaces/shop-dev/workloads/deployment/web", "/namespaces/shop-prod/workloads/deployment/other", "/namespaces/nowhere/workloads",
	} {
		if status, body := get(path); status != http.StatusNotFound || body != missing {
			t.Errorf("%s: status %d:\n%s", path, status, body)
		}
	}
}

// openDashboard serves the dashboard for the cluster, and logs in. It returns a function that opens
// a page.
func (p *people) openDashboard(t *testing.T, token string) func(path string) (int, string) {
	t.Helper()
	target, err := cluster.NewServer(&clientcmdapi.Cluster{Server: p.Config.Host, CertificateAuthorityData: p.Config.CAData, CertificateAuthority: p.Config.CAFile})
	if err != nil {
		t.Fatal(err)
	}
	pages := httptest.NewTLSServer(server.New(server.Options{Cluster: target, Keys: session.NewKeys(), Log: slog.New(slog.DiscardHandler)}))
	t.Cleanup(pages.Close)
	browser := pages.Client()
	if browser.Jar, err = cookiejar.New(nil); err != nil {
		t.Fatal(err)
	}
	send := func(method, path string, form url.Values) (int, string) {
		request, err := http.NewRequestWithContext(t.Context(), method, pages.URL+path, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		response, err := browser.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(body)
	}
	get := func(path string) (int, string) { return send(http.MethodGet, path, nil) }
	_, login := get("/login")
	match := csrf.FindStringSubmatch(login)
	if match == nil {
		t.Fatalf("no form: %s", login)
	}
	if status, body := send(http.MethodPost, "/login", url.Values{"csrf": {match[1]}, "token": {token}}); status != http.StatusOK {
		t.Fatalf("login: status %d: %s", status, body)
	}
	return get
}
