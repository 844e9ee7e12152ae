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
	short := base64.StdEncoding.EncodeToString([]byte("short"))
	for line, want := range map[string]string{
		"--listen :9443":                              "--listen :9443 is no loopback address",
		"--listen 9443":                               "--listen 9443 is no HOST:PORT",
		"--tls-cert-file tls.crt":                     "tls-private-key-file",
		"--session-key-file " + dir + "/missing":      "--session-key-file",
		"--session-key-file -":                        "--session-key-file -: the file must have one or two lines",
		"--session-key-file " + writeFile("k", short): "line 1 is no key of 32 bytes",
		"--server http://k8s.example.org":             "--server http://k8s.example.org: write an https URL",
		"--kubeconfig " + kubeconfig("a", `server: "http://k8s.example.org"`):                                  "the API server's address http://k8s.example.org is no https URL",
		"--kubeconfig " + kubeconfig("b", `server: "https://k8s.example.org", insecure-skip-tls-verify: true`): "insecure-skip-tls-verify",
	} {
		t.Run(strings.ReplaceAll(line, dir, ""), func(t *testing.T) {
			status, stdout, stderr := run(t, "", append([]string{"dashboard"}, strings.Fields(line)...)...)
			if status != 2 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, want) || strings.Contains(stderr, short) {
				t.Errorf("exit status %d: %s%s\nwant %s", status, stdout, stderr, want)
			}
		})
	}
}
