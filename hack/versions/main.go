// Command versions installs croft on API servers of several versions of Kubernetes, tries all
// attacks on each, and writes docs/reference/versions.md. `make test-versions` calls it. It exits with 1
// if a wall did not withstand an attack, or doctor found a problem.
package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"

	"croft.dev/croft/internal/diagnose/doctor"
	"croft.dev/croft/internal/prove/verify"
	"croft.dev/croft/internal/test/sandbox"
)

// page is the document around the table.
//
//go:embed versions.md.tmpl
var page string

// beta are the API server's arguments with which Kubernetes 1.34 and 1.35 place pods.
var beta = []string{"--feature-gates=MutatingAdmissionPolicy=true", "--runtime-config=admissionregistration.k8s.io/v1beta1=true"}

// trial is a control plane with a placement engine.
type trial struct {
	// programs are the file names of the kube-apiservers in bin, one for each API server. An
	// empty one is croft-sandbox's own.
	programs  []string
	args      []string
	placement string
}

// trials are sequences of trials: the first installs croft in a new sandbox, and each further one
// continues with the sandbox's data, as an upgrade of the control plane does. While several API
// servers are replaced one by one, two versions run on the same etcd.
var trials = [][]trial{
	{{[]string{"kube-apiserver-1.34"}, nil, "Gatekeeper"}},
	{{[]string{"kube-apiserver-1.34"}, beta, "Native"}},
	{{[]string{""}, nil, "Native"}},
	{
		{[]string{"kube-apiserver-1.35"}, beta, "Native"},
		{[]string{"kube-apiserver-1.35", ""}, beta, "Native"},
		{[]string{""}, beta, "Native"},
		{[]string{"", "kube-apiserver-1.37"}, beta, "Native"},
		{[]string{"kube-apiserver-1.37"}, beta, "Native"},
	},
	{{[]string{"kube-apiserver-1.37"}, nil, "Native"}},
}

// row is the outcome of a trial at one API server.
type row struct {
	Version, Placement, Flags string
	// Before is the version before an upgrade, and Other the version of the other API server.
	Before, Other string
	// Outcomes are the numbers of attacks and mirrors by outcome.
	Outcomes map[verify.Outcome]int
	Problems []doctor.Finding
}

func (r row) isGood() bool {
	return r.Outcomes[verify.Held] > 0 && r.Outcomes[verify.Breached]+r.Outcomes[verify.BlockedElsewhere] == 0 && len(r.Problems) == 0
}

// Count returns the number of attacks and mirrors with an outcome. The page's template cannot use
// a text as a key of Outcomes.
func (r row) Count(outcome string) int { return r.Outcomes[verify.Outcome(outcome)] }

func main() {
	bin := flag.String("bin", "bin", "directory of croft, croft-sandbox and the API servers")
	out := flag.String("o", "docs/reference/versions.md", "the file to write")
	only := flag.String("only", "", "only API servers whose file has this in its name; writes no file")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *bin, *out, *only)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "versions:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, bin, out, only string) error {
	var rows []row
	var errs []error
	for _, sequence := range trials {
		if !slices.ContainsFunc(sequence[0].programs, func(name string) bool { return strings.Contains(name, only) }) {
			continue
		}
		tried, err := runSequence(ctx, bin, sequence)
		if err != nil {
			return err
		}
		rows = append(rows, tried...)
	}
	for _, r := range rows {
		if !r.isGood() {
			errs = append(errs, fmt.Errorf("%s with placement %s: %v; doctor: %v", r.Version, r.Placement, r.Outcomes, r.Problems))
		}
	}
	if only != "" {
		return errors.Join(errs...)
	}
	text, err := writePage(rows)
	if err != nil {
		return err
	}
	return errors.Join(append(errs, os.WriteFile(out, text, 0o600))...)
}

func writePage(rows []row) ([]byte, error) {
	var text bytes.Buffer
	err := template.Must(template.New("").Parse(page)).Execute(&text, rows)
	return text.Bytes(), err
}

// runSequence runs trials in one sandbox, one after the other.
func runSequence(ctx context.Context, bin string, sequence []trial) (rows []row, err error) {
	dir, err := os.MkdirTemp("", "croft-versions-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	before := ""
	for _, t := range sequence {
		tried, err := t.runTrial(ctx, bin, dir)
		if err != nil {
			return rows, fmt.Errorf("%q %s: %w", t.programs, t.placement, err)
		}
		for i := range tried {
			tried[i].Before = before
			if len(tried) > 1 {
				tried[i].Other = tried[1-i].Version
			}
			fmt.Fprintf(os.Stderr, "%s %s: %v, %d problems\n", tried[i].Version, t.placement, tried[i].Outcomes, len(tried[i].Problems))
		}
		before = tried[0].Version
		rows = append(rows, tried...)
	}
	return rows, nil
}

// runTrial starts the API servers in a sandbox, declares a tenant, and runs croft verify and croft
// doctor at each API server.
func (t trial) runTrial(ctx context.Context, bin, dir string) (rows []row, err error) {
	croft, err := filepath.Abs(filepath.Join(bin, "croft"))
	if err != nil {
		return nil, err
	}
	o := sandbox.Options{Dir: dir, Croft: croft, APIServers: len(t.programs), APIServerArgs: t.args}
	for _, program := range t.programs {
		if program != "" {
			program = filepath.Join(bin, program)
		}
		o.APIServerPrograms = append(o.APIServerPrograms, program)
	}
	if t.placement == "Gatekeeper" {
		o.With = []string{sandbox.Gatekeeper}
	}
	cluster, err := sandbox.Up(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cluster.Down()) }()
	file := fmt.Sprintf("platform: {clusterName: demo, placement: %s, nodeClass: {kwok: {}}}\npools: {apps: {}}\n"+
		"tenants: {shop: {pool: apps, access: [{group: devs, role: operator}]}}\n", t.placement)
	if _, err := (command{croft, cluster.Kubeconfig}).run(ctx, file, "apply", "-f", "-", "--wait-timeout", "2m"); err != nil {
		return nil, err
	}
	for i := range t.programs {
		server := "kube-apiserver"
		if i > 0 {
			server += fmt.Sprintf("-%d", i+1)
		}
		kubeconfig, err := cluster.WriteKubeconfigAt(server)
		if err != nil {
			return nil, err
		}
		r, err := command{croft, kubeconfig}.tryWalls(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", server, err)
		}
		r.Placement, r.Flags = t.placement, strings.Join(t.args, " ")
		rows = append(rows, r)
	}
	return rows, nil
}

// command runs croft in a cluster.
type command struct{ croft, kubeconfig string }

func (c command) run(ctx context.Context, stdin string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 6*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.croft, append(args, "--kubeconfig", c.kubeconfig)...)
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = strings.NewReader(stdin), &stderr
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("croft %s: %w: %s", args[0], err, stderr.String())
	}
	return out, nil
}

// readJSON decodes the JSON output of a command that exits with 1 if it has findings.
func (c command) readJSON(ctx context.Context, into any, args ...string) error {
	out, err := c.run(ctx, "", append(args, "-o", "json")...)
	if jsonErr := json.Unmarshal(out, into); jsonErr != nil {
		return errors.Join(err, jsonErr)
	}
	return nil
}

// tryWalls reads the API server's version, and runs croft verify and croft doctor.
func (c command) tryWalls(ctx context.Context) (row, error) {
	r := row{Outcomes: map[verify.Outcome]int{}}
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		return r, err
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return r, err
	}
	version, err := client.ServerVersion()
	if err != nil {
		return r, err
	}
	r.Version = strings.TrimPrefix(version.GitVersion, "v")
	var report struct {
		Results []verify.Result `json:"results"`
	}
	if err := c.readJSON(ctx, &report, "verify", "--timeout", "5m"); err != nil {
		return r, err
	}
	for _, result := range report.Results {
		r.Outcomes[result.Result]++
	}
	return r, c.readProblems(ctx, &r)
}

func (c command) readProblems(ctx context.Context, r *row) error {
	var report struct {
		Checks []doctor.Result `json:"checks"`
	}
	if err := c.readJSON(ctx, &report, "doctor"); err != nil {
		return err
	}
	for _, check := range report.Checks {
		for _, f := range check.Findings {
			if f.Severity == doctor.Problem {
				r.Problems = append(r.Problems, f)
			}
		}
	}
	return nil
}
