package service_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/cost/report"
	"croft.dev/croft/internal/cost/server"
	"croft.dev/croft/internal/cost/service"
	"croft.dev/croft/internal/operate/install"
	"croft.dev/croft/internal/operate/operator/operatortest"
	"croft.dev/croft/internal/test/sandbox"
)

// createInstalledRights creates the service account of an installed ledger, and its rights.
func createInstalledRights(f *operatortest.Fixture) {
	f.Helper()
	objects, err := install.Objects(install.Options{Image: "croft:test", Ledger: true, KeepKinds: true})
	if err != nil {
		f.Fatal(err)
	}
	for _, o := range objects {
		if o.GetName() != install.LedgerName {
			continue
		}
		switch o.(type) {
		case *corev1.ServiceAccount, *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding, *rbacv1.Role, *rbacv1.RoleBinding:
			f.Create(o)
		}
	}
}

// addRights binds a role with rules to a service account: in a namespace, or in the cluster if it is empty.
func addRights(f *operatortest.Fixture, name, namespace string, account rbacv1.Subject, rules ...rbacv1.PolicyRule) {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
	f.Create(role)
	if namespace == "" {
		f.Create(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: ref, Subjects: []rbacv1.Subject{account}})
		return
	}
	f.Create(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, RoleRef: ref, Subjects: []rbacv1.Subject{account}})
}

func newAccount(namespace, name string) (*corev1.ServiceAccount, rbacv1.Subject) {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}},
		rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
}

// createWorkload creates a tenant's namespace with a pod on a node.
func createWorkload(f *operatortest.Fixture) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"karpenter.sh/nodepool": "apps",
		"karpenter.sh/capacity-type": "on-demand", corev1.LabelInstanceTypeStable: "m5.large"}}}
	f.Create(node)
	f.PatchStatus(node, `{"status": {"allocatable": {"cpu": "2", "memory": "18Gi"}}}`)
	shop := operatortest.NewNamespace("shop")
	shop.Labels = map[string]string{v1alpha1.TenantLabel: "shop"}
	account, _ := newAccount("shop", "default")
	f.Create(shop, account, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.PodSpec{NodeName: "a",
		Containers: []corev1.Container{{Name: "web", Image: "web", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("9Gi")}}}}}})
}

// TestLedger runs the service twice with the rights of an installation, and asks it with the tokens of
// users of a real API server.
func TestLedger(t *testing.T) {
	sandbox.EndToEnd(t)
	f := operatortest.Start(t, sandbox.APIOnly)
	createWorkload(f)
	createInstalledRights(f)
	viewer, viewerSubject := newAccount("shop", "viewer")
	auditor, auditorSubject := newAccount("shop", "auditor")
	scraper, scraperSubject := newAccount("shop", "scraper")
	f.Create(viewer, auditor, scraper)
	costs := rbacv1.PolicyRule{APIGroups: []string{"croft.dev"}, Resources: []string{"costs"}, Verbs: []string{"get"}}
	addRights(f, "viewer", "shop", viewerSubject, costs)
	addRights(f, "auditor", "", auditorSubject, costs)
	addRights(f, "scraper", "", scraperSubject, rbacv1.PolicyRule{APIGroups: []string{"croft.dev"}, Resources: []string{"costs/metrics"}, Verbs: []string{"get"}})
	tokens := map[string]string{"guess": "a.b.c"}
	for _, account := range []*corev1.ServiceAccount{viewer, auditor, scraper} {
		request := &authenticationv1.TokenRequest{}
		if err := f.Client.SubResource("token").Create(t.Context(), account, request); err != nil {
			t.Fatal(err)
		}
		tokens[account.Name] = request.Status.Token
	}
	directory := t.TempDir()
	for range 2 {
		get, stop := runService(f, directory)
		ask := func(query, token string) (int, report.Report, error) {
			var r report.Report
			status, body, err := get(server.Path+query, token)
			if err == nil {
				err = json.Unmarshal(body, &r)
			}
			return status, r, err
		}
		f.Await("an answer", func() string {
			if status, _, err := ask("", tokens["auditor"]); status != http.StatusOK {
				return fmt.Sprint(status, err)
			}
			return ""
		})
		for _, c := range []struct {
			query, user string
			status      int
			line        string
		}{
			{"", "auditor", http.StatusOK, "shop 0.180000 false"},
			{"?namespace=shop", "viewer", http.StatusOK, "shop 0.090000 true"},
			{"", "viewer", http.StatusForbidden, ""},
			{"?namespace=default", "viewer", http.StatusForbidden, ""},
			{"", "scraper", http.StatusForbidden, ""},
			{"", "guess", http.StatusUnauthorized, ""},
			{"", "", http.StatusUnauthorized, ""},
		} {
			status, r, err := ask(c.query, tokens[c.user])
			if err != nil || status != c.status {
				t.Errorf("%s as %s: %d %v, want %d", c.query, c.user, status, err, c.status)
			} else if c.line != "" && fmt.Sprint(r.Lines[0].Name, " ", r.Lines[0].PerHourNow, " ", r.Lines[0].IdleHidden) != c.line {
				t.Errorf("%s as %s: %+v, want %s", c.query, c.user, r.Lines[0], c.line)
			}
		}
		for user, want := range map[string]int{"scraper": http.StatusOK, "auditor": http.StatusForbidden, "viewer": http.StatusForbidden} {
			status, body, err := get(server.MetricsPath, tokens[user])
			const tenants = `croft_ledger_cost_per_hour{currency="USD",kind="tenant"} 0.09`
			if err != nil || status != want || strings.Contains(string(body), tenants) != (want == http.StatusOK) {
				t.Errorf("metrics as %s: %d %v, want %d: %s", user, status, err, want, body)
			}
		}
		stop()
	}
}

// runService runs the service with the rights of its service account, and returns functions that send it a
// request and that stop it.
func runService(f *operatortest.Fixture, directory string) (get func(target, token string) (int, []byte, error), stop func()) {
	f.Helper()
	pem, key, err := cert.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		f.Fatal(err)
	}
	files := f.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(files, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			f.Fatal(err)
		}
		return path
	}
	listener, err := (&net.ListenConfig{}).Listen(f.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		f.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		f.Fatal(err)
	}
	options := service.Options{
		Directory: directory, HealthAddr: "0", MetricsAddr: "0", LeaderElect: true, Log: slog.New(slog.NewTextHandler(f.Output(), nil)),
		Serving: server.Serving{Addr: address, CertFile: write("tls.crt", pem), KeyFile: write("tls.key", key)},
		Prices:  service.PriceFiles{Prices: write("prices.yaml", []byte("instances: {m5.large: {on-demand: 0.18}}\n"))},
	}
	config := rest.CopyConfig(f.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + v1alpha1.SystemNamespace + ":" + install.LedgerName}
	ctx, cancel := context.WithCancel(f.Context())
	ended := make(chan error, 1)
	go func() { ended <- service.Run(ctx, config, options) }()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	get = func(target, token string) (int, []byte, error) {
		request, err := http.NewRequestWithContext(f.Context(), http.MethodGet, "https://"+address+target, nil)
		if err != nil {
			return 0, nil, err
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := client.Do(request)
		if err != nil {
			return 0, nil, err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		return response.StatusCode, body, err
	}
	return get, func() {
		cancel()
		if err := <-ended; err != nil {
			f.Errorf("the service ended with %v", err)
		}
	}
}
