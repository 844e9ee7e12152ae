package cli_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDashboardFlags expects one line about each setting under which others could read tokens.
func TestDashboardFlags(t *testing.T) {
	dir := t.TempDir()
	writeFile := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	kubeconfig := func(name, cluster string) string {
		return writeFile(name, "{apiVersion: v1, kind: Config, current-context: here, contexts: [{name: here, context: {cluster: here}}], clusters: [{name: here, cluster: {"+cluster+"}}]}")
	}
	const identity = " --oidc-issuer-url https://login.example.org --oidc-client-id croft --public-url https://dashboard.example.org"
	short := base64.StdEncoding.EncodeToString([]byte("short"))
	for line, want := range map[string]string{
		"--listen :9443":                              "--listen :9443 is not a loopback address",
		"--listen 9443":                               "--listen 9443 is not an address",
		"--tls-cert-file tls.crt":                     "tls-private-key-file",
		"--session-key-file " + dir + "/missing":      "--session-key-file",
		"--session-key-file -":                        "--session-key-file -: the file must have one or two lines",
		"--session-key-file " + writeFile("k", short): "line 1 is not a key of 32 bytes",
		"--server http://k8s.example.org":             "--server http://k8s.example.org: write an https URL",
		"--ledger http://ledger.example.org":          "--ledger \"http://ledger.example.org\": write an https URL",
		"--ledger-ca-file ca.crt":                     "it is for --ledger",
		"--ledger https://a.example.org --ledger-ca-file " + writeFile("l", short): "the file has no PEM certificate",
		"--oidc-issuer-url https://login.example.org":                              "--oidc-client-id and --public-url",
		"--oidc-scopes groups": "--oidc-scopes has no effect here",
		"--token-login=false":  "without --oidc-issuer-url, there is no other login",
		strings.Replace(identity, "https://login", "http://login", 1): "--oidc-issuer-url \"http://login.example.org\": write an https URL",
		identity + "/pages": "--public-url \"https://dashboard.example.org/pages\"",
		identity + "?a=b":   "--public-url \"https://dashboard.example.org?a=b\"",
		identity + " --oidc-ca-file " + writeFile("ca", short):                                                 "the file has no PEM certificate",
		identity + " --oidc-client-secret-file " + writeFile("secret", " "):                                    "the file is empty",
		"--kubeconfig " + kubeconfig("a", `server: "http://k8s.example.org"`):                                  "the API server's address http://k8s.example.org is not an https URL",
		"--kubeconfig " + kubeconfig("b", `server: "https://k8s.example.org", insecure-skip-tls-verify: true`): "insecure-skip-tls-verify",
	} {
		t.Run(strings.ReplaceAll(line, dir, ""), func(t *testing.T) {
			status, stdout, stderr := runCroft(t, "", append([]string{"dashboard"}, strings.Fields(line)...)...)
			if status != 2 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, want) || strings.Contains(stderr, short) {
				t.Errorf("exit status %d: %s%s\nwant %s", status, stdout, stderr, want)
			}
		})
	}
}

// TestInstallDashboard expects one line about arguments with which the dashboard would not start.
func TestInstallDashboard(t *testing.T) {
	const with = "--image croft:test --dashboard "
	for line, want := range map[string]string{
		"--dashboard": "--dashboard has no effect here", "--image croft:test --dashboard-arg=--token-login=false": "add --dashboard",
		with + "--dashboard-arg=--oidc-issuer=https://login.example.org": "--dashboard-arg: unknown flag: --oidc-issuer",
		with + "--dashboard-arg=oidc":                                    "--dashboard-arg oidc: write a flag",
		with + "--dashboard-egress-port=https":                           "https",
	} {
		if status, stdout, stderr := runCroft(t, "", append([]string{"install", "--export"}, strings.Fields(line)...)...); status != 2 || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit status %d: %s%s\nwant %s", line, status, stdout, stderr, want)
		}
	}
	status, stdout, stderr := runCroft(t, "", append([]string{"install", "--export", "--dashboard-arg=--oidc-client-id=croft"}, strings.Fields(with)...)...)
	if status != 0 || !strings.Contains(stdout, "- --oidc-client-id=croft\n") {
		t.Fatalf("exit status %d: %s", status, stderr)
	}
	// Also the Platform's objects, which are not in package install, bind no role to the dashboard.
	for document := range strings.SplitSeq(stdout, "\n---\n") {
		if strings.Contains(document, "RoleBinding") && strings.Contains(document, "\nsubjects:") &&
			(strings.Contains(document, "croft-dashboard") || strings.Contains(document, "system:serviceaccounts") || strings.Contains(document, "system:authenticated")) {
			t.Errorf("a binding of the dashboard: %s", document)
		}
	}
}
