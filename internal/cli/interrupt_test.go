package cli_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// writeServerKubeconfig writes a kubeconfig for a server without authentication.
func writeServerKubeconfig(t *testing.T, url string) string {
	t.Helper()
	return writeConfig(t, "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: \""+url+"\"}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n")
}

// TestInterrupted interrupts each command while it waits for the cluster. The command
// reports the interruption at once, and does not report the cluster as unreachable.
func TestInterrupted(t *testing.T) {
	file := writeConfig(t, good)
	for _, line := range []string{
		"status", "diff -f " + file, "apply -f " + file, "verify", "verify --tenant shop", "reach", "why pod/web", "latency", "cost", "cost --recommendations", "doctor",
		"delete tenant shop", "delete pool apps", "adopt tenant shop -f " + file, "adopt tenant shop --undo", "install", "migrate --live",
	} {
		t.Run(line, func(t *testing.T) {
			var once sync.Once
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				once.Do(func() { _ = syscall.Kill(os.Getpid(), syscall.SIGINT) })
				<-r.Context().Done() // the server never answers
			}))
			defer server.Close()
			started := time.Now()
			status, _, stderr := runCroft(t, "", append(strings.Fields(line), "--kubeconfig", writeServerKubeconfig(t, server.URL))...)
			if took := time.Since(started); took > time.Minute {
				t.Errorf("it went on for %s", took)
			}
			last := stderr[strings.LastIndex(strings.TrimSuffix(stderr, "\n"), "\n")+1:]
			if status != 130 || !strings.HasPrefix(last, "croft: interrupted") || strings.Contains(stderr, "cannot reach") {
				t.Errorf("exit status %d: %s", status, stderr)
			}
		})
	}
}
