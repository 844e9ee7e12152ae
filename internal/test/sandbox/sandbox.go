// Package sandbox starts real control planes for tests and benchmarks. It runs the
// croft-sandbox binary, which is a separate module, so that the binary's dependencies do not
// become dependencies of croft.
package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// These are sets of components, from the fastest to the most complete.
var (
	// APIOnly is for tests of objects and of their admission. Without controllers there are no
	// service accounts, and the API server admits no pods.
	APIOnly = []string{"etcd", "kube-apiserver"}
	// WithControllers adds the controllers, which create service accounts and replica sets, and
	// complete the deletion of namespaces. Pods are not scheduled.
	WithControllers = []string{"etcd", "kube-apiserver", "kube-controller-manager"}
	// Full is everything: pods get nodes from Karpenter and run.
	Full []string
)

const (
	defaultTimeout = 2 * time.Minute
	// The rate limit must not slow down tests.
	qps, burst = 1000, 2000
	// downTimeout is the time limit for stopping a sandbox.
	downTimeout = time.Minute
)

// Options configure a sandbox.
type Options struct {
	// Components are the components to run, or all if nil.
	Components []string
	// Dir is the sandbox's directory. Defaults to a new temporary one.
	Dir string
	// Croft is the path of a croft binary to install and run in the sandbox, or "" for none.
	Croft string
	// With lists additional components: Gatekeeper, which `make gatekeeper` builds, Flux, which
	// `make flux` builds, or AWS, which `make karpenter-aws` builds.
	With []string
	// AWSSpeed is the factor by which instances of the simulated account are faster than real
	// ones. Defaults to 1.
	AWSSpeed float64
	// AWSCluster is the cluster's name in the simulated account. Defaults to "demo".
	AWSCluster string
	// Unaudited turns off the work of Gatekeeper's audit pod: the audit, and the status of
	// enforced objects.
	Unaudited bool
	// ControllerQPS is kube-controller-manager's rate limit of requests a second. Defaults to a
	// high one for tests.
	ControllerQPS int
	// TypeChecks makes kube-controller-manager check the types in admission policies, which
	// takes ten to twenty seconds of a core.
	TypeChecks bool
	// APIServers and EtcdMembers are the numbers of API servers and members of etcd. They
	// default to 1. The second API server is kube-apiserver-2.
	APIServers, EtcdMembers int
	// APIServerPrograms are the paths of a kube-apiserver of another version for each API server;
	// "" is croft-sandbox's own. APIServerArgs are added to the API servers' arguments.
	APIServerPrograms []string
	APIServerArgs     []string
	// RealNodes runs containerd and a kubelet for each node that Karpenter creates, which
	// needs root and `make nodes`. By default kwok simulates nodes.
	RealNodes bool
	// Enforced runs a network plugin on real nodes, which enforces NetworkPolicies.
	Enforced bool
	// Without are kinds that the API server does not serve, such as MutatingAdmissionPolicy.
	Without []string
	// AuditPolicy is the path of an audit policy for the API server, whose log is AuditLog. If
	// it is empty, there is no log.
	AuditPolicy string
	// Timeout is the time limit for all components to be ready. Defaults to two minutes.
	Timeout time.Duration
}

// Cluster is a running sandbox.
type Cluster struct {
	// Dir is the sandbox's directory.
	Dir string
	// Kubeconfig is the path of its administrator's kubeconfig.
	Kubeconfig string
	// Config is the administrator's client configuration.
	Config *rest.Config

	binary  string
	tempDir bool
}

// Up starts a sandbox and returns when it is ready. The caller must call Down.
func Up(ctx context.Context, o Options) (*Cluster, error) {
	binary, err := FindBinary()
	if err != nil {
		return nil, err
	}
	c := &Cluster{Dir: o.Dir, binary: binary}
	if c.Dir == "" {
		if c.Dir, err = os.MkdirTemp("", "croft-sandbox-"); err != nil {
			return nil, err
		}
		c.tempDir = true
	}
	if err := c.startCluster(ctx, o); err != nil {
		return nil, errors.Join(err, c.Down())
	}
	return c, nil
}

// listNodeArgs returns the arguments of `croft-sandbox up` for real nodes.
func (o *Options) listNodeArgs() []string {
	var args []string
	if o.RealNodes {
		args = append(args, "--nodes", "real")
	}
	if o.Enforced {
		args = append(args, "--network", "enforced")
	}
	return args
}

func (c *Cluster) startCluster(ctx context.Context, o Options) error {
	timeout := o.Timeout
	if timeout == 0 {
		timeout = defaultTimeout
	}
	args := []string{"up", "--timeout", timeout.String()}
	if o.Components != nil {
		args = append(args, "--components", strings.Join(o.Components, ","))
	}
	if o.Croft != "" {
		args = append(args, "--croft", o.Croft)
	}
	if o.With != nil {
		args = append(args, "--with", strings.Join(o.With, ","))
	}
	if o.AWSSpeed != 0 {
		args = append(args, "--aws-speed", strconv.FormatFloat(o.AWSSpeed, 'g', -1, 64))
	}
	if o.AWSCluster != "" {
		args = append(args, "--aws-cluster", o.AWSCluster)
	}
	if o.ControllerQPS != 0 {
		args = append(args, "--controller-qps", strconv.Itoa(o.ControllerQPS))
	}
	if o.TypeChecks {
		args = append(args, "--type-checks")
	}
	if o.Unaudited {
		args = append(args, "--audit=false")
	}
	if o.AuditPolicy != "" {
		args = append(args, "--audit-policy", o.AuditPolicy)
	}
	if o.APIServers > 0 {
		args = append(args, "--api-servers", strconv.Itoa(o.APIServers))
	}
	if o.EtcdMembers > 0 {
		args = append(args, "--etcd-members", strconv.Itoa(o.EtcdMembers))
	}
	if o.APIServerPrograms != nil {
		args = append(args, "--kube-apiserver", strings.Join(o.APIServerPrograms, ","))
	}
	for _, arg := range o.APIServerArgs {
		args = append(args, "--kube-apiserver-arg", arg)
	}
	args = append(args, o.listNodeArgs()...)
	if o.Without != nil {
		args = append(args, "--without", strings.Join(o.Without, ","))
	}
	cmd := c.buildCommand(ctx, args...)
	if err := tieLifetime(cmd); err != nil {
		return err
	}
	if _, err := runCommand(cmd); err != nil {
		return err
	}
	path, err := c.run(ctx, "kubeconfig")
	if err != nil {
		return err
	}
	c.Kubeconfig = strings.TrimSpace(path)
	if c.Config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig); err != nil {
		return err
	}
	c.Config.QPS, c.Config.Burst = qps, burst
	return nil
}

// Down stops the sandbox. It deletes a directory that Up created, and keeps one that it was
// given, with its data. It may be called again.
func (c *Cluster) Down() error {
	ctx, cancel := context.WithTimeout(context.Background(), downTimeout)
	defer cancel()
	if _, err := os.Stat(filepath.Join(c.Dir, "sandbox.json")); err == nil {
		if _, err := c.run(ctx, "down"); err != nil {
			return err
		}
	}
	if c.tempDir {
		return os.RemoveAll(c.Dir)
	}
	return nil
}

// Kubectl runs kubectl as the administrator and returns its output.
func (c *Cluster) Kubectl(args ...string) (string, error) {
	return c.run(context.Background(), append([]string{"kubectl"}, args...)...)
}

// Git returns the URL of a Git repository of a sandbox with Flux, and creates it if it does not
// exist.
func (c *Cluster) Git(name string) (string, error) {
	url, err := c.run(context.Background(), "git", name)
	return strings.TrimSpace(url), err
}

// AuditLog returns the path of the API server's audit log, if Options has an AuditPolicy.
func (c *Cluster) AuditLog() string { return filepath.Join(c.Dir, "audit.log") }

func (c *Cluster) run(ctx context.Context, args ...string) (string, error) {
	return runCommand(c.buildCommand(ctx, args...))
}

func (c *Cluster) buildCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.binary, append([]string{"--dir", c.Dir}, args...)...)
	// This gives croft-sandbox time to stop its processes.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = downTimeout
	return cmd
}

func runCommand(cmd *exec.Cmd) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}
