package openidtest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"
)

// EnvDex names a Dex binary to log in at. Its module cannot be required: none of its tags
// since v2.14 is a version of a Go module.
const EnvDex = "CROFT_DEX"

// anyPassword is the bcrypt hash of the password that Visit enters.
const anyPassword = "$2a$10$mXW6v9427Yn0U9k6MvZjwO4P1yKUhnmxyFlOxS/KIqqjanLMf7BXK"

// StartDex starts Dex with croft's configuration for an issuer. Only storage, addresses and
// certificates are local settings. Jane logs in with her email address. It skips the test
// if there is no Dex.
func StartDex(t testing.TB, configure func(issuer string) ([]byte, error)) *Provider {
	t.Helper()
	binary := os.Getenv(EnvDex)
	if binary == "" {
		t.Skipf("set %s to the path of a Dex binary to log in at it", EnvDex)
	}
	certificate, key := WriteCertificate(t)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	issuer := "https://" + address + "/dex"

	written, err := configure(issuer)
	if err != nil {
		t.Fatal(err)
	}
	config := map[string]any{}
	if err := yaml.Unmarshal(written, &config); err != nil {
		t.Fatal(err)
	}
	// Dex with storage in memory blocks for ever when it renews a token.
	config["storage"] = map[string]any{"type": "sqlite3", "config": map[string]any{"file": filepath.Join(t.TempDir(), "dex.db")}}
	config["web"] = map[string]any{"https": address, "tlsCert": certificate, "tlsKey": key}
	config["enablePasswordDB"] = true
	config["staticPasswords"] = []any{map[string]any{
		"email": "jane@example.org", "userID": "1", "username": "jane", "preferredUsername": "jane",
		"groups": []string{"team.devs.platform-access"}, "hash": anyPassword,
	}}
	if written, err = yaml.Marshal(config); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "dex.yaml")
	if err := os.WriteFile(file, written, 0o600); err != nil {
		t.Fatal(err)
	}
	return startDex(t, exec.Command(binary, "serve", file), issuer, certificate)
}

func startDex(t testing.TB, cmd *exec.Cmd, issuer, certificate string) *Provider {
	t.Helper()
	// Dex rejects unknown fields, and does not expand $ in a hash.
	cmd.Env = append(os.Environ(), "DEX_CONFIG_DISALLOW_UNKNOWN_FIELDS=true", "DEX_EXPAND_ENV=false")
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	authority, err := os.ReadFile(certificate)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority)
	p := &Provider{
		Issuer: issuer, Authority: string(authority), AuthorityFile: certificate,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}},
	}
	err = wait.PollUntilContextTimeout(t.Context(), interval, patience, true, func(context.Context) (bool, error) {
		select {
		case err := <-ended:
			ended <- err
			return false, fmt.Errorf("it ended: %w", err)
		default:
		}
		answer, err := (&http.Client{Transport: p.Transport, Timeout: patience}).Get(issuer + "/.well-known/openid-configuration")
		if err == nil {
			answer.Body.Close()
		}
		return err == nil && answer.StatusCode == http.StatusOK, nil
	})
	if err != nil {
		t.Fatalf("Dex does not start: %v", err)
	}
	return p
}
