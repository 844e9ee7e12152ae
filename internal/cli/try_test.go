package cli_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"croft.dev/croft/internal/cli"
	"croft.dev/croft/internal/prove/trial"
)

const stranger = `apiVersion: v1
kind: Service
metadata: {name: out}
spec: {type: NodePort, ports: [{port: 80}]}
`

func TestTry(t *testing.T) {
	const file = "../../examples/two-tenants.yaml"
	good := filepath.Join(t.TempDir(), "settings.yaml")
	if err := os.WriteFile(good, []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name     string
		in       string
		args     []string
		status   int
		wantText string
	}{
		{"nothing is refused", "", []string{good}, 0, "0 of 1 object refused, 1 admitted"},
		{"something is", stranger, []string{good, "-"}, 1, "[service-type] spec.type: NodePort"},
		{"no such tenant", "", []string{"--tenant", "nobody", good}, 2, "declares no such tenant"},
		{"a namespace of others", "", []string{"-n", "kube-system", good}, 2, "namespace kube-system does not belong to tenant tenant-a"},
		{"no manifest", "# nothing\n", []string{"-"}, 2, "the file contains no object"},
		{"no YAML", "a: [", []string{"-"}, 2, "<stdin>:1: this is not YAML"},
		{"standard input twice", "", []string{"-f", "-", "-"}, 2, "both standard input"},
		{"no file", "", []string{"--live", good}, 2, "--filename (-f) and --live exclude each other"},
		{"a field of another type", strings.Replace(stranger, "80", "web", 1), []string{"-"}, 2, "<stdin>:4: Service/out: spec.ports.port: the type is string, and must be int32"},
		{"by a service account", stranger, []string{"--as-service-account", "ci", "-"}, 1, "RBAC"},
	} {
		t.Run(test.name, func(t *testing.T) {
			args := append([]string{"try", "-f", file, "--tenant", "tenant-a"}, test.args...)
			status, stdout, stderr := runCroft(t, test.in, args...)
			if status != test.status || !strings.Contains(stdout+stderr, test.wantText) {
				t.Errorf("exit status %d, want %d and %q:\n%s%s", status, test.status, test.wantText, stdout, stderr)
			}
		})
	}
	if status, _, stderr := runCroft(t, "", "try", good); status != 2 || !strings.Contains(stderr, "--live") {
		t.Errorf("neither a file nor a cluster: exit status %d: %s", status, stderr)
	}
}

// web causes refusals, warnings and changes: in the Service, the Deployment and its pod.
const web = stranger + `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeName: node-1
      containers: [{name: web, image: nginx}]
---
apiVersion: v1
kind: Pod
metadata: {name: placed}
spec:
  containers: [{name: web, image: nginx}]
`

func runTryWeb(t *testing.T, output string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "web app.yaml")
	if err := os.WriteFile(file, []byte(web), 0o600); err != nil {
		t.Fatal(err)
	}
	status, stdout, stderr := runCroft(t, "", "try", "-f", "../../examples/two-tenants.yaml", "--tenant", "tenant-a", "-o", output, file)
	if status != 1 || stderr != "" {
		t.Fatalf("exit status %d: %s", status, stderr)
	}
	return stdout
}

func TestTryJSON(t *testing.T) {
	var got trial.Report
	if err := json.Unmarshal([]byte(runTryWeb(t, "json")), &got); err != nil || len(got.Results) != 4 || len(got.Unknown) == 0 {
		t.Fatalf("%v: %+v", err, got)
	}
	if r := got.Results[0]; r.Verdict != trial.Refused || r.Line != 1 || r.Refusals[0].Rule != "service-type" || r.Refusals[0].Line != 4 {
		t.Errorf("%+v", r)
	}
}

func TestTryJUnit(t *testing.T) {
	var got struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Skipped  int `xml:"skipped,attr"`
		Suites   []struct {
			Cases []struct {
				Name    string `xml:"name,attr"`
				File    string `xml:"file,attr"`
				Failure *struct {
					Text string `xml:",chardata"`
				} `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	text := runTryWeb(t, "junit")
	if err := xml.Unmarshal([]byte(text), &got); err != nil || got.Failures != 2 || got.Skipped == 0 || got.Tests != 4+got.Skipped || len(got.Suites) != 2 {
		t.Fatalf("%v:\n%s", err, text)
	}
	if c := got.Suites[0].Cases[0]; c.Name != "Service/out" || c.Failure == nil || !strings.Contains(c.Failure.Text, "web app.yaml:4: [service-type]") || c.File == "" {
		t.Errorf("%+v", c)
	}
}

// TestTrySARIF checks the output against the requirements of SARIF 2.1.0 and of GitHub.
func TestTrySARIF(t *testing.T) {
	var got struct {
		Schema  string `json:"$schema"`
		Version string
		Runs    []struct {
			Tool struct {
				Driver struct {
					Name  string
					Rules []struct {
						ID               string
						ShortDescription struct{ Text string }
					}
				}
			}
			Invocations []struct {
				ExecutionSuccessful        *bool
				ToolExecutionNotifications []struct{ Message struct{ Text string } }
			}
			Results []struct {
				RuleID, Level string
				Message       struct{ Text string }
				Locations     []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine int }
					}
				}
			}
		}
	}
	text := runTryWeb(t, "sarif")
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	if got.Version != "2.1.0" || !strings.HasSuffix(got.Schema, "sarif-2.1.0.json") || len(got.Runs) != 1 {
		t.Fatalf("version %s, schema %s, %d runs", got.Version, got.Schema, len(got.Runs))
	}
	sarif := got.Runs[0]
	if sarif.Tool.Driver.Name == "" || len(sarif.Invocations) != 1 || sarif.Invocations[0].ExecutionSuccessful == nil || len(sarif.Invocations[0].ToolExecutionNotifications) == 0 {
		t.Errorf("%+v %+v", sarif.Tool, sarif.Invocations)
	}
	seen := map[string]int{}
	for _, r := range sarif.Results {
		if len(r.Locations) != 1 || r.Message.Text == "" {
			t.Fatalf("%+v", r)
		}
		place := r.Locations[0].PhysicalLocation
		if uri, err := url.Parse(place.ArtifactLocation.URI); err != nil || !strings.HasSuffix(uri.Path, "/web app.yaml") || strings.Contains(place.ArtifactLocation.URI, " ") {
			t.Errorf("%v: %s", err, place.ArtifactLocation.URI)
		}
		seen[r.Level+" "+r.RuleID] = place.Region.StartLine
		known := 0
		for _, rule := range sarif.Tool.Driver.Rules {
			if rule.ID == r.RuleID && rule.ShortDescription.Text != "" {
				known++
			}
		}
		if known != 1 {
			t.Errorf("rule %s is described %d times", r.RuleID, known)
		}
	}
	for result, line := range map[string]int{"error service-type": 4, "warning node-name": 14, "error node-name": 14, "note changed": 17} {
		if seen[result] != line {
			t.Errorf("%s is on line %d, want %d: %v", result, seen[result], line, seen)
		}
	}
}

// BenchmarkTry tries 500 objects of real workloads, including reading. The budget of `croft
// try` for them is one second on two cores.
func BenchmarkTry(b *testing.B) {
	const workloads = "../test/e2e/testdata/workloads"
	files, err := filepath.Glob(filepath.Join(workloads, "baseline", "*.yaml"))
	if err != nil {
		b.Fatal(err)
	}
	var text []byte
	for objects := 0; objects < 500; {
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				b.Fatal(err)
			}
			read, err := trial.ReadManifests(file, data)
			if err != nil {
				b.Fatal(err)
			}
			if strings.Contains(file, "@") || objects >= 500 {
				continue
			}
			objects += len(read)
			text = append(append(text, data...), "\n---\n"...)
		}
	}
	for b.Loop() {
		var out, errOut bytes.Buffer
		args := []string{"try", "-f", filepath.Join(workloads, "croft.yaml"), "--tenant", "shop", "-o", "json", "-"}
		if status := cli.Main(args, bytes.NewReader(text), &out, &errOut); status != 0 {
			b.Fatalf("exit status %d: %s%s", status, out.String(), errOut.String())
		}
	}
}

// TestPlatformRepository runs in `make test`. It expects the commands in the CI of
// examples/platform-repo to succeed on each of its clusters, and its CI files to run them.
func TestPlatformRepository(t *testing.T) {
	const root = "../../examples/platform-repo/"
	clusters, err := filepath.Glob(root + "clusters/*")
	teams, other := filepath.Glob(root + "workloads/*")
	if err != nil || other != nil || len(clusters) != 2 || len(teams) != 2 {
		t.Fatalf("%v %v: clusters %v, teams %v", err, other, clusters, teams)
	}
	for _, cluster := range clusters {
		files := []string{"-f", cluster, "-f", root + "tenants"}
		if status, stdout, stderr := runCroft(t, "", append([]string{"check", "--strict"}, files...)...); status != 0 || stdout != "good: 2 tenants, 1 pool\n" {
			t.Errorf("croft check %s: exit status %d: %s%s", cluster, status, stdout, stderr)
		}
		_, objects, stderr := runCroft(t, "", append([]string{"render", "--objects"}, files...)...)
		committed, err := os.ReadFile(root + "rendered/" + filepath.Base(cluster) + "/objects.yaml")
		if err != nil || objects != string(committed) {
			t.Errorf("rendered/%s is not what croft render --objects prints: %v %s", filepath.Base(cluster), err, stderr)
		}
		for _, team := range teams {
			args := append([]string{"try", "--tenant", filepath.Base(team), team}, files...)
			if status, stdout, stderr := runCroft(t, "", args...); status != 0 {
				t.Errorf("croft try %s on %s: exit status %d: %s%s", team, cluster, status, stdout, stderr)
			}
		}
	}
	for _, file := range []string{".github/workflows/croft.yaml", ".gitlab-ci.yml"} {
		content, err := os.ReadFile(root + file)
		if err != nil {
			t.Fatal(err)
		}
		var pipeline map[string]any
		if err := yaml.Unmarshal(content, &pipeline); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		for _, command := range []string{"croft check -f", "croft diff --kubeconfig", "croft try -f", "--objects | diff"} {
			if !strings.Contains(string(content), command) {
				t.Errorf("%s does not run %s", file, command)
			}
		}
	}
}
