package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	documents = "../adoption/migrate/testdata/documents"

	aPool = `apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: jobs}
spec: {template: {metadata: {labels: {node-pool: jobs}}, spec: {taints: [{key: node-pool, value: jobs, effect: NoSchedule}], nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}}}}
`
	onIt = `apiVersion: mutations.gatekeeper.sh/v1
kind: Assign
metadata: {name: shop}
spec: {applyTo: [{groups: [""], kinds: [Pod], versions: [v1]}], location: spec.nodeSelector, match: {namespaces: [shop]}, parameters: {assign: {value: {node-pool: jobs}}}}
`
)

// TestMigrateBadInput expects, for each possible mistake in the input, one line that names
// the place and the remedy; exit status 2; and the rest of croft.yaml and of the report
// nevertheless.
func TestMigrateBadInput(t *testing.T) {
	for name, c := range map[string]struct {
		bad  string
		line string
	}{
		"truncated YAML":     {aPool + "---\n" + onIt + "---\nkind: [\n", "bad.yaml:11: not YAML: "},
		"a launch template":  {"apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: old}\nspec:\n  provider:\n    launchTemplate: mine\n", "bad.yaml:6: Provisioner/old: spec.provider.launchTemplate: launch templates cannot be converted"},
		"two that disagree":  {strings.ReplaceAll(aPool, "jobs", "apps") + "---\n" + strings.Replace(strings.Replace(onIt, "name: shop", "name: other", 1), "node-pool: jobs", "node-pool: apps", 1), "bad.yaml:9: Assign/other: spec.parameters.assign.value: puts tenant shop on pool apps, but Assign/shop at "},
		"an unknown pool":    {"tenants:\n  bank: {nodePool: jbos}\n", "bad.yaml:2: values: tenants.bank.nodePool: the input has no pool jbos; did you mean jobs?"},
		"two of one name":    {strings.Replace(aPool, "kwok.sh", "azure.com", 1), "bad.yaml:1: NodePool/jobs: this object is ignored, since it has the name of the object at "},
		"a shell variable":   {strings.Replace(strings.ReplaceAll(aPool, "jobs", "apps"), "name: default", "name: $CLASS", 1), "bad.yaml:4: NodePool/apps: spec.template.spec.nodeClassRef.name: $CLASS is a shell variable without a value: replace it by its value"},
		"no object":          {"hello: world\n", "bad.yaml:1: document 1 is neither an object, with apiVersion and kind, nor a values file"},
		"croft.yaml already": {"platform: {clusterName: demo}\n", "bad.yaml:1: this is already a croft.yaml"},
		"a list":             {"- a\n", "bad.yaml:1: a document must be a mapping"},
		"empty":              {"", "bad.yaml: the file is empty"},
		"a duplicate key":    {strings.Replace(aPool, "kind: NodePool", "kind: NodePool\nkind: NodePool", 1), "bad.yaml:3: kind: is set twice, first on line 2"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, content := range map[string]string{"a.yaml": aPool, "deeper/b.yml": onIt, "z/bad.yaml": c.bad} {
				path := filepath.Join(dir, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			status, stdout, stderr := runCroft(t, "", "migrate", "-f", dir, "--cluster-name", "demo")
			if status != 2 {
				t.Errorf("exit status %d, want 2", status)
			}
			if !strings.Contains(stderr, c.line) {
				t.Errorf("no line contains %q:\n%s", c.line, stderr)
			}
			if !strings.Contains(stdout, "  shop:\n    pool: jobs\n") || !strings.Contains(stderr, "1 tenant; values of the input kept") {
				t.Errorf("the rest is missing:\n%s%s", stdout, stderr)
			}
			if status, _, stderr := runCroft(t, stdout, "check", "-f", "-"); status != 0 {
				t.Errorf("croft check refuses what was written: %s\n%s", stderr, stdout)
			}
		})
	}
}

// TestCheckAcceptsMigrated expects croft check to accept the migrated manifests of published
// set-ups.
func TestCheckAcceptsMigrated(t *testing.T) {
	for _, document := range []string{"000", "001", "002"} {
		status, stdout, stderr := runCroft(t, "", "migrate", "-f", filepath.Join(documents, document), "--cluster-name", "demo")
		if status != 0 {
			t.Fatalf("exit status %d: %s", status, stderr)
		}
		if strings.Contains(stdout, "$") {
			t.Errorf("a variable is left:\n%s", stdout)
		}
		if status, _, stderr := runCroft(t, stdout, "check", "-f", "-"); status != 0 {
			t.Errorf("croft check refuses what was made of %s: %s", document, stderr)
		}
	}
}

func TestMigrateOutput(t *testing.T) {
	out := filepath.Join(t.TempDir(), "migrated")
	// croft has no equivalent of this field, so migrate writes a node class.
	context := filepath.Join(t.TempDir(), "template.yaml")
	data, err := os.ReadFile(filepath.Join(documents, "000", "default-awsnodetemplate.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(context, append(data, "\n    context: reserved\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	status, stdout, stderr := runCroft(t, "", "migrate", "-f", filepath.Join(documents, "000", "pool-a.yaml"), "-f", context, "--cluster-name", "demo", "--out", out, "--report", "json")
	if status != 0 || stdout != "" {
		t.Errorf("exit status %d: %s%s", status, stdout, stderr)
	}
	for _, name := range []string{"croft.yaml", "report.md", "report.json", "nodeclasses.yaml"} {
		if data, err := os.ReadFile(filepath.Join(out, name)); err != nil || len(data) == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	status, stdout, stderr = runCroft(t, aPool+"---\n"+onIt, "migrate", "-f", "-", "--cluster-name", "demo", "--report", "json")
	var report struct {
		Summary  map[string]int
		Problems []string
		Findings []struct{ File, Object, Outcome string }
	}
	if err := json.Unmarshal([]byte(stderr), &report); err != nil || status != 0 {
		t.Fatalf("exit status %d, %v: %s", status, err, stderr)
	}
	if report.Summary["tenants"] != 1 || report.Problems == nil || len(report.Findings) == 0 || report.Findings[0].File != "standard input" {
		t.Errorf("%+v\n%s", report, stdout)
	}
	status, _, stderr = runCroft(t, aPool, "migrate", "-f", "-", "--report", "json")
	if err := json.Unmarshal([]byte(stderr), &report); err != nil || status != 2 || len(report.Problems) == 0 {
		t.Errorf("exit status %d, %v: %s", status, err, stderr)
	}
	for _, args := range [][]string{
		{"migrate"}, {"migrate", "-f", "nowhere.yaml"}, {"migrate", "-f", documents, "--report", "html"}, {"migrate", "-f", documents, "--node-class", "aws"}, {"migrate", "-f", t.TempDir()},
	} {
		if status, _, stderr := runCroft(t, "", args...); status != 2 || strings.Count(stderr, "\n") != 1 {
			t.Errorf("croft %s: exit status %d: %s", strings.Join(args, " "), status, stderr)
		}
	}
}
