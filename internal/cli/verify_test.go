package cli

import (
	"bytes"
	"encoding/xml"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"croft.dev/croft/internal/prove/verify"
	"croft.dev/croft/internal/rules/attack"
)

var results = []verify.Result{
	{Wall: "network", Kind: attack.Breach, Name: "call-other-tenant", Result: verify.Held, StoppedBy: "network policy"},
	{Wall: "nodes", Kind: attack.Breach, Name: "choose-node", Result: verify.Held, StoppedBy: "policy croft-pods, rule node-name",
		Message: "pods \"x\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: [node-name] spec.nodeName: no"},
	{Wall: "nodes", Kind: attack.Breach, Name: "choose-scheduler", Result: verify.Breached, Summary: "choose <one> & \x01 another", StoppedBy: "policy", Message: "the request \"went\" through"},
	{Wall: "nodes", Kind: attack.Mirror, Name: "run-a-pod", Result: verify.NotTried, Message: "no user has the role"},
	{Wall: "identity", Kind: attack.Breach, Name: "read-anything", Result: verify.BlockedElsewhere, Message: "connection refused", Variants: 40},
}

// TestJUnit expects a report that CI systems can read, with any characters in messages.
func TestJUnit(t *testing.T) {
	var out bytes.Buffer
	if err := printJUnit(&out, "croft verify", buildVerifySuites(results), time.Second); err != nil {
		t.Fatal(err)
	}
	var report junitSuites
	if err := xml.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatalf("not XML: %v\n%s", err, out.String())
	}
	if report.Tests != 5 || report.Failures != 2 || report.Skipped != 1 || len(report.Suites) != 3 {
		t.Errorf("%d tests, %d failures, %d skipped in %d suites", report.Tests, report.Failures, report.Skipped, len(report.Suites))
	}
	nodes := report.Suites[1]
	if nodes.Name != "nodes" || nodes.Cases[1].Failure == nil || nodes.Cases[1].Failure.Type != "BREACHED" || nodes.Cases[2].Skipped == nil || nodes.Cases[0].Failure != nil {
		t.Errorf("the suite of nodes is %+v", nodes)
	}
}

// TestTable expects a line for each attack with the tenant's message, and failures in
// full.
func TestTable(t *testing.T) {
	var out bytes.Buffer
	(&app{out: &out}).printResults(results, true, 2*time.Second)
	lines := strings.Split(out.String(), "\n")
	column := strings.Index(lines[0], "MESSAGE")
	if column < 0 || !strings.HasPrefix(lines[2][column:], "[node-name] spec.nodeName: no") {
		t.Errorf("the message is not below its header:\n%s", out.String())
	}
	for _, want := range []string{
		"not tried: no user has the role: nodes/run-a-pod\n\nnodes/choose-scheduler: BREACHED\n  tried: choose",
		"2 of 5 held, 1 BREACHED, 1 blocked elsewhere, 1 not tried; 43 requests and connections tried in 2.0 s\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %q in:\n%s", want, out.String())
		}
	}
}

// TestWallsTable expects a line for each wall, each reason once, and failures in full.
func TestWallsTable(t *testing.T) {
	var out bytes.Buffer
	all := slices.Clone(results)
	for _, name := range []string{"run-a-job", "run-a-set", "run-two", "run-three"} {
		all = append(all, verify.Result{Wall: "nodes", Kind: attack.Mirror, Name: name, Result: verify.NotTried, Message: "no user has the role"})
	}
	(&app{out: &out}).printResults(all, false, 2*time.Second)
	want := `WALL       ATTACKS STOPPED   MIRRORS ALLOWED   NOT TRIED
network    1 of 1            0 of 0            -
nodes      1 of 2            0 of 0            5
identity   0 of 1            0 of 0            -

not tried: no user has the role: nodes/run-a-pod, nodes/run-a-job, nodes/run-a-set, nodes/run-two, nodes/run-three

nodes/choose-scheduler: BREACHED
  tried: choose <one> & \x01 another
  the request "went" through

identity/read-anything: blocked elsewhere
  tried: 
  connection refused

2 of 9 held, 1 BREACHED, 1 blocked elsewhere, 5 not tried; 43 requests and connections tried in 2.0 s
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
