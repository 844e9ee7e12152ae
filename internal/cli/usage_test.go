package cli_test

import (
	"os"
	"strings"
	"testing"
)

func TestExitStatus(t *testing.T) {
	nowhere := write(t, "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: \"http://127.0.0.1:1\"}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n")
	file := write(t, good)
	for name, c := range map[string]struct {
		args   []string
		status int
		says   string
	}{
		"good":                 {[]string{"check", "-f", file}, 0, ""},
		"unknown command":      {[]string{"frobnicate"}, 2, `unknown command "frobnicate"`},
		"unknown flag":         {[]string{"check", "--frob"}, 2, "unknown flag: --frob"},
		"missing flag":         {[]string{"check"}, 2, `"filename" not set`},
		"unknown format":       {[]string{"render", "-f", file, "-o", "xml"}, 2, "write one of yaml|json"},
		"unknown wall":         {[]string{"verify", "--wall", "moat"}, 2, "write one of network, nodes, identity, policy"},
		"unknown attack":       {[]string{"verify", "--list", "--attack", "siege"}, 2, "croft verify --list"},
		"no such file":         {[]string{"check", "-f", file + ".no"}, 2, "there is no such file"},
		"no cluster":           {[]string{"status", "--kubeconfig", file + ".no"}, 1, "--kubeconfig or --context"},
		"cluster out of reach": {[]string{"status", "--kubeconfig", nowhere}, 1, "cannot reach the cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			status, _, stderr := run(t, "", c.args...)
			if status != c.status {
				t.Errorf("exit status %d, want %d", status, c.status)
			}
			if !strings.Contains(stderr, c.says) {
				t.Errorf("want %q in: %s", c.says, stderr)
			}
			if strings.Count(stderr, "\n") > 1 {
				t.Errorf("want one line at most, got:\n%s", stderr)
			}
		})
	}
}

// TestRenderIsDeterministic renders the same file twice, to the byte the same:
// a GitOps repository must not change by itself.
func TestRenderIsDeterministic(t *testing.T) {
	const example = "../../examples/platform.yaml"
	content, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	_, first, _ := run(t, "", "render", "-f", example)
	for range 5 {
		status, again, stderr := run(t, string(content), "render", "-f", "-")
		if status != 0 {
			t.Fatal(stderr)
		}
		if first != again {
			t.Fatal("the same file rendered differently")
		}
	}
	for _, noise := range []string{"creationTimestamp", "status:", "resourceVersion", "managedFields"} {
		if strings.Contains(first, noise) {
			t.Errorf("what only a server can know was rendered: %s", noise)
		}
	}
}
