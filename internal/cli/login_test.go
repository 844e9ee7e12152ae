package cli_test

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

// TestLoginBadInput runs in `make test`. It expects one line, and an exit status that
// distinguishes bad input from other failures.
func TestLoginBadInput(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	const nowhere = "https://127.0.0.1:1"
	for _, test := range []struct {
		line     string
		status   int
		wantText string
	}{
		{"login", 2, "--issuer is not set"},
		{"login frobnicate", 2, "unknown command"},
		{"login --issuer " + nowhere + " --redirect-url http://evil.example/", 2, "the host must be 127.0.0.1"},
		{"login --no-browser --issuer " + nowhere, 1, "cannot reach the identity provider"},
		{"login get-token --issuer " + nowhere, 1, "run croft login"},
		{"kubeconfig", 2, "--tenant is not set"},
		{"kubeconfig --tenant Shop", 2, "write the name of a tenant"},
		{"kubeconfig --tenant shop -n Shop", 2, "write the name of a namespace"},
		{"kubeconfig --tenant shop", 1, "--server"},
		{"kubeconfig --tenant shop --server http://k8s.example.org", 2, "write an https URL"},
		{"kubeconfig --tenant shop --duration 1h --server " + nowhere, 2, "it is for --robot"},
		{"kubeconfig --tenant shop --server " + nowhere + " --robot x --duration 1m", 2, "write at least 10m"},
		{"kubeconfig --tenant shop --robot x --kubelogin", 2, "--kubelogin and --robot exclude each other"},
		{"kubeconfig token --robot x", 2, "--namespace (-n) is not set"},
	} {
		status, stdout, stderr := runCroft(t, "", strings.Fields(test.line)...)
		if status != test.status || stdout != "" || !strings.Contains(stderr, test.wantText) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("croft %s: exit status %d: %s%s", test.line, status, stdout, stderr)
		}
	}
	for asked, status := range map[string]int{
		"{": 2, `{"kind":"Pod","apiVersion":"v1"}`: 2,
		`{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1alpha1"}`:                        2,
		`{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"interactive":false}}`: 1,
	} {
		t.Setenv("KUBERNETES_EXEC_INFO", asked)
		if got, stdout, stderr := runCroft(t, "", "login", "get-token", "--issuer", nowhere); got != status || stdout != "" || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit status %d: %s%s", asked, got, stdout, stderr)
		}
	}
}

// TestLoginSanitizes runs in `make test`. It expects no control characters of a provider's
// answer in the output.
func TestLoginSanitizes(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	var issuer string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path != "/.well-known/openid-configuration" {
			w.WriteHeader(http.StatusBadRequest)
		}
		_ = json.NewEncoder(w).Encode(map[string]string{
			"issuer": issuer, "jwks_uri": issuer, "authorization_endpoint": issuer, "token_endpoint": issuer, "device_authorization_endpoint": issuer + "/device",
			"error": "odd\x1b[2J", "error_description": "first\nsecond \x1b]0;title\x07",
		})
	}))
	t.Cleanup(server.Close)
	issuer = server.URL
	status, stdout, stderr := runCroft(t, "", "login", "--device", "--no-browser", "--issuer", issuer, "--issuer-certificate-authority", writeAuthority(t, server))
	if status != 1 || stdout != "" || strings.ContainsAny(stderr, "\x1b\x07") || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, `\x1b`) {
		t.Errorf("exit status %d: %q", status, stderr)
	}
}

// TestKubeconfig runs in `make test`. It expects croft kubeconfig to write flags that croft
// login reads, and to keep the file's other entries.
func TestKubeconfig(t *testing.T) {
	file := writeServerKubeconfig(t, "https://127.0.0.1:1")
	t.Setenv("KUBECONFIG", file)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	args := []string{
		"kubeconfig", "--tenant", "shop", "-n", "shop-prod", "--issuer", "https://127.0.0.1:1/realm", "--client-id", "web",
		"--scope", "groups,email", "--device", "--write",
	}
	for range 2 { // a second run changes nothing
		if status, stdout, stderr := runCroft(t, "", args...); status != 0 || stdout != "" || !strings.Contains(stderr, "croft-shop") {
			t.Fatalf("exit status %d: %s%s", status, stdout, stderr)
		}
	}
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v, %v", info.Mode(), err)
	}
	user, context := config.AuthInfos["croft-shop"], config.Contexts["croft-shop"]
	if user == nil || context == nil || config.CurrentContext != "croft-shop" || context.Namespace != "shop-prod" || config.Contexts["c"] == nil || len(config.Contexts) != 2 {
		t.Fatalf("the file has %v", config.Contexts)
	}
	want := "login get-token --client-id=web --device=true --issuer=https://127.0.0.1:1/realm --scope=groups --scope=email"
	if got := strings.Join(user.Exec.Args, " "); got != want || user.Exec.InteractiveMode != "IfAvailable" {
		t.Errorf("the plugin is called with %s", got)
	}
	// croft login without flags uses the context's provider.
	if status, _, stderr := runCroft(t, "", "login"); status != 1 || !strings.Contains(stderr, "cannot reach the identity provider https://127.0.0.1:1/realm") {
		t.Errorf("exit status %d: %s", status, stderr)
	}
}

func writeAuthority(t *testing.T, server *httptest.Server) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.crt")
	content := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
