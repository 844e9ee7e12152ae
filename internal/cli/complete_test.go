package cli_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestCompletion requests completions as a shell does.
func TestCompletion(t *testing.T) {
	kubeconfig := writeServerKubeconfig(t, "http://127.0.0.1:1")
	for line, want := range map[string]string{
		"verify --attack choose-no": "choose-node", "verify --attack run-a-pod,choose-no": "run-a-pod,choose-node", "verify --explain choose-no": "choose-node",
		"verify --wall ": "identity", "verify --wall network,": "network,nodes", "verify -o ": "junit", "render -f x -o ": "yaml", "check -o ": "json",
		"why ": "pod/", "reach --protocol ": "SCTP", "migrate --report ": "markdown", "iam --identity ": "irsa", "delete ": "pool\tDelete a pool that no tenant uses, after listing its nodes",
		"status --context ": "c", "check -f ": "yaml",
	} {
		status, stdout, _ := runCroft(t, "", append([]string{"__complete", "--kubeconfig", kubeconfig}, strings.Split(line, " ")...)...)
		if lines := strings.Split(stdout, "\n"); status != 0 || !slices.Contains(lines, want) {
			t.Errorf("croft %s<TAB>: exit status %d, no %q in:\n%s", line, status, want, stdout)
		}
	}
	file := writeConfig(t, good+"tenants: {bank: {pool: apps}}")
	if _, stdout, _ := runCroft(t, "", "__complete", "--kubeconfig", kubeconfig, "adopt", "tenant", "-f", file, ""); !strings.HasPrefix(stdout, "bank\n") {
		t.Errorf("adopt does not know the file's tenant: %s", stdout)
	}
	// Without a cluster, completion returns soon, without suggestions and without a
	// message.
	started := time.Now()
	status, stdout, _ := runCroft(t, "", "__complete", "--kubeconfig", kubeconfig, "delete", "tenant", "")
	if status != 0 || stdout != ":4\n" || time.Since(started) > 20*time.Second {
		t.Errorf("out of reach: exit status %d after %s: %s", status, time.Since(started), stdout)
	}
}

// TestCheckAsData expects problems as data for programs, in JSON.
func TestCheckAsData(t *testing.T) {
	bad := writeConfig(t, good+"tenants: {shop: {pool: app}}")
	status, stdout, stderr := runCroft(t, "", "check", "-o", "json", "-f", bad)
	var report struct {
		Good     *bool
		Problems []struct {
			Severity, File, Path, Message string
			Line                          int
		}
	}
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || status != 2 || stderr != "" || report.Good == nil || *report.Good {
		t.Fatalf("exit status %d, %v: %s%s", status, err, stdout, stderr)
	}
	if p := report.Problems; len(p) != 1 || p[0].Severity != "Error" || p[0].File != bad || p[0].Line != 3 || p[0].Path != "tenants.shop.pool" || p[0].Message == "" {
		t.Errorf("problems are %+v", p)
	}
	if status, stdout, _ := runCroft(t, "", "check", "-o", "yaml", "-f", writeConfig(t, good)); status != 0 || !strings.Contains(stdout, "good: true\n") || !strings.Contains(stdout, "problems: []\n") {
		t.Errorf("a good file: exit status %d: %s", status, stdout)
	}
	if status, stdout, stderr := runCroft(t, "", "check", "-o", "json", "-f", bad+".no"); status != 2 || stdout != "" || strings.Count(stderr, "\n") != 1 {
		t.Errorf("no file: exit status %d: %s%s", status, stdout, stderr)
	}
}
