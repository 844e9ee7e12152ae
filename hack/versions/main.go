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
	"strings"
	"text/template"
	"time"

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

// trial is an API server with a placement engine.
type trial struct {
	// binary is the file name of the kube-apiserver in bin. If it is empty, croft-sandbox's own
	// is used.
	binary    string
	args      []string
	placement string
}

var trials = []trial{
	{"kube-apiserver-1.34", nil, "Gatekeeper"},
	{"kube-apiserver-1.34", beta, "Native"},
	{"kube-apiserver-1.35", beta, "Native"},
	{"", nil, "Native"},
	{"kube-apiserver-1.37", nil, "Native"},
}

// row is the outcome of a trial.
type row struct {
	Version, Placement, Flags string
	// Outcomes are the numbers of attacks and mirrors by outcome.
	Outcomes map[verify.Outcome]int
	Problems []doctor.Finding
}

func (r row) isGood() bool {
	return r.Outcomes[verify.Held] > 0 && r.Outcomes[verify.Breached]+r.Outcomes[verify.BlockedElsewhere] == 0 && len(r.Problems) == 0
}

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
	for _, t := range trials {
		if !strings.Contains(t.binary, only) {
			continue
		}
		r, err := t.runTrial(ctx, bin)
		if err != nil {
			return fmt.Errorf("%s %s: %w", t.binary, t.placement, err)
		}
		rows = append(rows, r)
		fmt.Fprintf(os.Stderr, "%s %s: %v, %d problems\n", r.Version, r.Placement, r.Outcomes, len(r.Problems))
		if !r.isGood() {
			errs = append(errs, fmt.Errorf("%s with placement %s: %v; doctor: %v", r.Version, r.Placement, r.Outcomes, r.Problems))
		}
	}
	if only != "" {
		return errors.Join(errs...)
	}
	var text bytes.Buffer
	if err := template.Must(template.New("").Parse(page)).Execute(&text, rows); err != nil {
		return err
	}
	return errors.Join(append(errs, os.WriteFile(out, text.Bytes(), 0o600))...)
}

// runTrial installs croft in a sandbox with the API server, declares a tenant, and runs croft verify
// and croft doctor.
func (t trial) runTrial(ctx context.Context, bin string) (_ row, err error) {
	croft, err := filepath.Abs(filepath.Join(bin, "croft"))
	if err != nil {
		return row{}, err
	}
	o := sandbox.Options{Croft: croft, APIServerArgs: t.args}
	if t.binary != "" {
		o.APIServer = filepath.Join(bin, t.binary)
	}
	if t.placement == "Gatekeeper" {
		o.With = []string{sandbox.Gatekeeper}
	}
	cluster, err := sandbox.Up(ctx, o)
	if err != nil {
		return row{}, err
	}
	defer func() { err = errors.Join(err, cluster.Down()) }()
	c := command{croft, cluster.Kubeconfig}
	file := fmt.Sprintf("platform: {clusterName: demo, placement: %s, nodeClass: {kwok: {}}}\npools: {apps: {}}\n"+
		"tenants: {shop: {pool: apps, access: [{group: devs, role: operator}]}}\n", t.placement)
	if _, err := c.run(ctx, file, "apply", "-f", "-", "--wait-timeout", "2m"); err != nil {
		return row{}, err
	}
	r := row{Placement: t.placement, Flags: strings.Join(t.args, " "), Outcomes: map[verify.Outcome]int{}}
	version, err := cluster.Kubectl("version", "-o", "json")
	if err != nil {
		return row{}, err
	}
	var server struct {
		ServerVersion struct{ GitVersion string }
	}
	if err := json.Unmarshal([]byte(version), &server); err != nil {
		return row{}, err
	}
	r.Version = strings.TrimPrefix(server.ServerVersion.GitVersion, "v")
	var report struct {
		Results []verify.Result `json:"results"`
	}
	if err := c.readJSON(ctx, &report, "verify", "--timeout", "5m"); err != nil {
		return row{}, err
	}
	for _, result := range report.Results {
		r.Outcomes[result.Result]++
	}
	return r, c.readProblems(ctx, &r)
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
