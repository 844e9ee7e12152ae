package cli_test

import (
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/klog/v2"
)

// TestVerbosity expects -v 6 to print each request with its status and duration, and -v 8
// also headers and the body, without the credentials.
func TestVerbosity(t *testing.T) {
	t.Cleanup(func() {
		var flags flag.FlagSet
		klog.InitFlags(&flags)
		if err := flags.Set("v", "0"); err != nil {
			t.Error(err)
		}
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404, "message": "a long body"}`)
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	config := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: here,
contexts: [{name: here, context: {cluster: here, user: me}}], users: [{name: me, user: {token: secret-token}}],
clusters: [{name: here, cluster: {server: %q}}]}`, server.URL)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		verbosity     string
		prints, hides []string
	}{
		{"0", nil, []string{"GET", "Response"}},
		{"6", []string{`verb="GET" url="` + server.URL + "/", `status="404 Not Found"`, "milliseconds="}, []string{"Content-Type", "a long body"}},
		{"8", []string{`verb="GET" url="` + server.URL + "/", "Content-Type", "a long body"}, []string{"secret-token"}},
	} {
		t.Run(test.verbosity, func(t *testing.T) {
			_, stdout, stderr := runCroft(t, "", "status", "--kubeconfig", file, "-v", test.verbosity)
			for _, part := range test.prints {
				if !strings.Contains(stderr, part) {
					t.Errorf("standard error lacks %s:\n%s", part, stderr)
				}
			}
			for _, part := range test.hides {
				if strings.Contains(stderr, part) {
					t.Errorf("standard error has %s:\n%s", part, stderr)
				}
			}
			if strings.Contains(stdout, "GET") {
				t.Errorf("standard output has the log:\n%s", stdout)
			}
		})
	}
}

// TestLogFlags expects bad levels and formats to be one line with the allowed values.
func TestLogFlags(t *testing.T) {
	for line, want := range map[string]string{
		"operator --log-level loud":               `croft operator: --log-level "loud": write a valid value: "loud" is no level: the levels are debug, info, warn and error`,
		"agent --node a --log-level info,x=loud":  `"loud" is no level: the levels are debug, info, warn and error`,
		"proxy --log-format yaml":                 `croft proxy: --log-format "yaml": write a valid value: "yaml" is no format: the formats are json and text`,
		"status -v many":                          "croft status: --v (-v) \"many\": write a whole number",
		"version --client -v 6":                   "--v has no effect here: --client uses no cluster",
		"operator --log-level debug --log-format": "croft operator: --log-format needs a value",
	} {
		t.Run(line, func(t *testing.T) {
			status, stdout, stderr := runCroft(t, "", strings.Fields(line)...)
			if status != 2 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, want) {
				t.Errorf("exit status %d: %s%s\nwant %s", status, stdout, stderr, want)
			}
		})
	}
}
