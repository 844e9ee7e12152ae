package cli_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// countReads runs croft as the cluster's administrator. It returns the number of requests to get or list objects by path.
func (d *declaringCluster) countReads(t *testing.T, line string) map[string]int {
	t.Helper()
	target, err := url.Parse(d.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(d.Config)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	reads := map[string]int{}
	server := httptest.NewServer(&httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		if r.In.Method == http.MethodGet && r.In.URL.Query().Get("watch") == "" {
			mu.Lock()
			defer mu.Unlock()
			reads[r.In.URL.Path]++
		}
	}})
	defer server.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	content := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n", server.URL)
	if err := os.WriteFile(kubeconfig, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	_, stdout, stderr := runCroft(t, "", append(strings.Fields(line), "--kubeconfig", kubeconfig)...)
	t.Log(stdout, stderr)
	mu.Lock()
	defer mu.Unlock()
	return reads
}

// testRequests fails if a command reads the objects of a large kind more than once. The time limit of apply is below
// its pollInterval, so it does not wait for a second list.
func testRequests(t *testing.T, d *declaringCluster) {
	config := writeConfig(t, estateOfTwo)
	for line, path := range map[string]string{
		"apply --wait-timeout 200ms -f " + config: "/apis/croft.dev/v1alpha1/tenants",
		"diff -f " + config:                       "/api/v1/namespaces",
	} {
		reads := d.countReads(t, line)
		if reads[path] != 1 {
			t.Errorf("croft %s lists %s %d times: %v", line, path, reads[path], reads)
		}
		if single := "/apis/croft.dev/v1alpha1/tenants/shop"; strings.HasPrefix(line, "apply") && reads[single] > 0 {
			t.Errorf("croft %s reads %s %d times: %v", line, single, reads[single], reads)
		}
	}
}
