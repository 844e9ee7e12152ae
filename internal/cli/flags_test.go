package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestListAsData expects lists in the requested format.
func TestListAsData(t *testing.T) {
	status, stdout, stderr := runCroft(t, "", "verify", "--list", "--attack", "choose-node", "-o", "json")
	var listed struct {
		Attacks []struct{ Name, Wall, Kind, StoppedBy, Summary string }
	}
	if err := json.Unmarshal([]byte(stdout), &listed); err != nil || status != 0 || len(listed.Attacks) != 1 || listed.Attacks[0].Wall != "nodes" || listed.Attacks[0].Summary == "" {
		t.Errorf("--list: exit status %d, %v: %s%s", status, err, stdout, stderr)
	}
	status, stdout, stderr = runCroft(t, "", "verify", "--explain", "choose-node", "-o", "json")
	var explained struct{ Name, Why, By string }
	if err := json.Unmarshal([]byte(stdout), &explained); err != nil || status != 0 || explained.Name != "choose-node" || explained.Why == "" || explained.By == "" {
		t.Errorf("--explain: exit status %d, %v: %s%s", status, err, stdout, stderr)
	}
	if status, stdout, _ = runCroft(t, "", "verify", "--list", "-o", "yaml"); status != 0 || !strings.HasPrefix(stdout, "attacks:\n") {
		t.Errorf("--list -o yaml: exit status %d: %s", status, stdout[:min(len(stdout), 200)])
	}
}

// TestNoFlagIsIgnored expects bad input where a flag would have no effect.
func TestNoFlagIsIgnored(t *testing.T) {
	file := writeConfig(t, good)
	for _, line := range []string{
		"verify --list -o junit", "verify --explain choose-node -o junit",
		"verify --explain choose-node --wall nodes", "verify --explain choose-node --attack run-a-pod", "verify --list --timeout 5m",
		"verify --pool apps", "verify --image croft:test", "verify --packets --list", "verify --packets --attack choose-node", "verify --packets --tenant shop",
		"verify --phase 5s", "verify --stop-above 2s", "verify --yes", "verify --floods --wall nodes", "verify --floods --packets", "verify --floods --all",
		"verify --floods --yes -o junit", "verify --floods=hail --yes", "verify --floods --yes --phase 0s",
		"adopt tenant shop --undo -o json", "migrate -f " + file + " --replace-nodes", "why -f " + file + " -n shop",
		"apply -f " + file + " --wait=false --wait-timeout 1m", "install --export --context other", "install --kinds --image croft:test", "iam -f " + file + " --oidc-provider oidc.example.org",
		"reach --from a --to b --port 70000",
		"cost --certificate-authority ca.crt", "cost -n shop", "cost --ledger https://l.example.org --prices p", "cost --ledger https://l.example.org --explain",
		"cost --ledger https://l.example.org --karpenter-metrics m", "cost --ledger https://l.example.org --as ana", "cost --ledger https://l.example.org --as-group devs",
		"cost -o focus --by pool", "cost -o opencost --by pool", "cost -o opencost --billing-account a", "cost --forecast -o opencost", "cost --forecast -o svg", "cost --budgets -o svg", "cost --budgets -o opencost",
		"cost --billing-account a", "cost --pool-tag a", "cost --cost-code-tag a", "cost --reconcile bill.csv --since 1h",
		"cost --reconcile bill.csv --by pool", "cost --reconcile bill.csv --explain", "cost --reconcile bill.csv -o csv", "cost --reconcile bill.csv -o focus",
		"cost --forecast --since 1h", "cost --forecast --explain", "cost --forecast -o csv", "cost --forecast --reconcile bill.csv",
		"cost --reconcile bill.csv -n shop --ledger https://l.example.org",
		"cost --budgets --by pool", "cost --budgets --since 1h", "cost --budgets --forecast", "cost --budgets -o csv", "cost --budgets --prices p",
		"cost --recommendations --ledger https://l.example.org", "cost --recommendations --since 1h", "cost --recommendations --by pool", "cost --recommendations --explain",
		"cost --recommendations --forecast", "cost --recommendations --reconcile bill.csv", "cost --recommendations --budgets", "cost --recommendations -o csv", "cost --recommendations -o focus",
		"operator --ledger-token-file token", "operator --ledger http://l.example.org", "operator --ledger https://l.example.org",
		"dashboard --certificate-authority ca.crt", "dashboard --server https://k8s.example.org --context other", "dashboard --as ana", "dashboard --as-group devs",
	} {
		t.Run(line, func(t *testing.T) {
			status, stdout, stderr := runCroft(t, "", strings.Fields(line)...)
			if status != 2 || stdout != "" || strings.Count(stderr, "\n") != 1 {
				t.Errorf("exit status %d, %d bytes on standard output, and: %s", status, len(stdout), stderr)
			}
		})
	}
}

// TestMigrateKeepsEdits expects edited files not to be overwritten.
func TestMigrateKeepsEdits(t *testing.T) {
	out := filepath.Join(t.TempDir(), "migrated")
	again := func(status int, flags ...string) string {
		t.Helper()
		got, stdout, stderr := runCroft(t, aPool+"---\n"+onIt, append([]string{"migrate", "-f", "-", "--cluster-name", "demo", "-o", out}, flags...)...)
		if got != status || stdout != "" {
			t.Fatalf("exit status %d, want %d: %s%s", got, status, stdout, stderr)
		}
		return stderr
	}
	read := func(name string) string {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	again(0)
	again(0) // a second run with the same result loses no data
	written, edited := read("croft.yaml"), read("croft.yaml")+"# reviewed\n"
	report := filepath.Join(out, "report.md")
	if err := os.WriteFile(filepath.Join(out, "croft.yaml"), []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(report); err != nil {
		t.Fatal(err)
	}
	if message := again(2); !strings.Contains(message, "croft.yaml: ") || !strings.Contains(message, "--force") || strings.Count(message, "\n") != 1 {
		t.Errorf("the message is %s", message)
	}
	if read("croft.yaml") != edited {
		t.Error("croft.yaml was edited, and is written over")
	}
	if _, err := os.Stat(report); err == nil {
		t.Error("report.md was written although croft.yaml was not")
	}
	again(0, "--force")
	if read("croft.yaml") != written {
		t.Error("croft.yaml is not written over with --force")
	}
}
