package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"croft.dev/croft/sandbox/internal/component"
	"croft.dev/croft/sandbox/internal/control"
	"croft.dev/croft/sandbox/internal/home"
	"croft.dev/croft/sandbox/internal/instancetypes"
	"croft.dev/croft/sandbox/internal/lifeline"
	"croft.dev/croft/sandbox/internal/supervisor"
)

type upOptions struct {
	components, zones []string
	croft             string
	controllerQPS     int
	typeChecks        bool
	auditPolicy       string
	apiServers        int
	nodes             string
	network           string
	etcdMembers       int
	apiServerPrograms []string
	apiServerArgs     []string
	with              withOptions
	wait              bool
	timeout           time.Duration
}

func newUp(g *global) *cobra.Command {
	o := &upOptions{}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the sandbox, or resume it with its data",
		Long: `Start a sandbox in --dir, and return when all its components are ready. If the
directory contains a sandbox already, resume it with its data, its certificate
authority and its previous options. Options of this command replace previous ones.

--with gatekeeper also runs a real Gatekeeper (webhooks, controllers and audit) with
its own service account. Its webhooks have the failure policy Fail instead of Ignore,
as croft requires for placement by Gatekeeper.

--with flux runs the real kustomize-controller with the multi-tenancy lockdown and its
own service account, and a Git server that it fetches from: see ` + "`croft-sandbox git`" + `.
No source-controller runs: GitRepositories on other servers are not fetched.

--with aws runs a simulated AWS account, and Karpenter with its published AWS provider
instead of the kwok provider: nodes are instances in the account. See
` + "`croft-sandbox aws`" + `.`,
		Args: checkArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd, g)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.components, "components", component.All, "the components to start")
	f.StringSliceVar(&o.zones, "zones", instancetypes.DefaultZones, "the zones in which Karpenter finds instances")
	f.StringVar(&o.croft, "croft", "", "path of a croft binary to install and run")
	f.IntVar(&o.controllerQPS, "controller-qps", 300, "the limit of requests a second of kube-controller-manager, half as many more in a burst; the default of clusters is 20")
	f.BoolVar(&o.typeChecks, "type-checks", false, "have kube-controller-manager check the types in admission policies, as clusters do; croft's policies take one core ten to twenty seconds")
	f.StringVar(&o.auditPolicy, "audit-policy", "", "path of an audit policy (audit.k8s.io): the API server logs requests in DIR/audit.log; --audit-policy= turns it off")
	f.IntVar(&o.apiServers, "api-servers", 1, "the number of API servers; each can be stopped, frozen and cut off from etcd")
	f.StringVar(&o.nodes, "nodes", nodesKwok, "the nodes that Karpenter creates: kwok simulates them, real runs containerd and a kubelet for each; needs root")
	f.StringVar(&o.network, "network", networkOpen, "with real nodes: enforced runs a network plugin that enforces NetworkPolicies")
	f.IntVar(&o.etcdMembers, "etcd-members", 1, "the number of members of etcd")
	f.StringSliceVar(&o.apiServerPrograms, "kube-apiserver", nil, "path of a kube-apiserver of another version to run, or one for each API server; an empty one, or --kube-apiserver=, is the built-in one")
	f.StringArrayVar(&o.apiServerArgs, "kube-apiserver-arg", nil, "a further argument of the API server, such as --feature-gates=NAME=true; may be repeated")
	o.with.addFlags(cmd)
	f.BoolVar(&o.wait, "wait", true, "wait until all components are ready")
	f.DurationVar(&o.timeout, "timeout", 2*time.Minute, "how long to wait")
	return cmd
}

func (o *upOptions) run(cmd *cobra.Command, g *global) error {
	ctx, show := cmd.Context(), newProgress(cmd.ErrOrStderr())
	h, err := g.findHome()
	if err != nil {
		return err
	}
	config, err := o.buildConfig(cmd, h)
	if err != nil {
		return err
	}
	if _, err := control.Dial(h); !errors.Is(err, control.ErrDown) {
		if err != nil {
			return fmt.Errorf("a supervisor runs in %s, but its socket cannot be found: stop it with `croft-sandbox down` (%w)", h.Dir, err)
		}
		show.printLine("the sandbox in %s is up already; to change it, stop it first with `croft-sandbox down`", h.Dir)
		return nil
	}
	if err := h.SaveConfig(config); err != nil {
		return err
	}
	started := time.Now()
	client, err := startSupervisor(ctx, h)
	if err != nil {
		return err
	}
	if !o.wait {
		show.printLine("starting; see `croft-sandbox status`")
		return nil
	}
	everything := func(s []supervisor.Status) []supervisor.Status { return s }
	if err := awaitReady(ctx, client, h, o.timeout, everything, show.printReady); err != nil {
		// A failed start must not leave components running.
		cleanup := context.WithoutCancel(ctx)
		if _, downErr := stopSandbox(cleanup, h, 20*time.Second); downErr != nil {
			return errors.Join(err, downErr)
		}
		if ctx.Err() != nil {
			return errors.New("interrupted; the sandbox is down again")
		}
		return err
	}
	show.printLine("up in %.1f s: export KUBECONFIG=%s", time.Since(started).Seconds(), h.Kubeconfig(component.Admin))
	return nil
}

// buildConfig returns the saved configuration, if any, with the requested changes.
func (o *upOptions) buildConfig(cmd *cobra.Command, h home.Home) (home.Config, error) {
	config, err := h.ReadConfig()
	resumed := err == nil
	if err != nil && !errors.Is(err, home.ErrNone) {
		return config, err
	}
	if !resumed || cmd.Flags().Changed("components") {
		if config.Components, err = component.Select(o.components); err != nil {
			return config, usageError{err}
		}
	}
	if !resumed || cmd.Flags().Changed("zones") {
		config.Zones = o.zones
	}
	if cmd.Flags().Changed("controller-qps") {
		if o.controllerQPS < 1 {
			return config, usageError{fmt.Errorf("--controller-qps %d: kube-controller-manager needs at least 1", o.controllerQPS)}
		}
		config.ControllerQPS = o.controllerQPS
	}
	if cmd.Flags().Changed("type-checks") {
		config.TypeChecks = o.typeChecks
	}
	if cmd.Flags().Changed("audit-policy") {
		if config.AuditPolicy, err = findAuditPolicy(o.auditPolicy); err != nil {
			return config, err
		}
	}
	if err := o.setReplicas(cmd, resumed, &config); err != nil {
		return config, err
	}
	if err := o.setNodes(cmd, &config); err != nil {
		return config, err
	}
	if cmd.Flags().Changed("kube-apiserver") {
		if config.APIServerPrograms, err = findAPIServers(o.apiServerPrograms); err != nil {
			return config, err
		}
	}
	if cmd.Flags().Changed("kube-apiserver-arg") {
		config.APIServerArgs = o.apiServerArgs
	}
	if cmd.Flags().Changed("croft") {
		if config.Croft, err = findProgram("croft", o.croft, "build it with `make build`"); err != nil {
			return config, err
		}
	}
	return config, o.addOptional(cmd, &config)
}

// setReplicas sets the numbers of API servers and of members of etcd. An existing etcd cluster
// keeps its members.
func (o *upOptions) setReplicas(cmd *cobra.Command, resumed bool, config *home.Config) error {
	for name, count := range map[string]int{"api-servers": o.apiServers, "etcd-members": o.etcdMembers} {
		if count < 1 || count > 5 {
			return usageError{fmt.Errorf("--%s %d: choose from 1 to 5", name, count)}
		}
	}
	if cmd.Flags().Changed("api-servers") {
		config.APIServers = o.apiServers
	}
	if cmd.Flags().Changed("etcd-members") {
		if resumed && o.etcdMembers != max(config.EtcdMembers, 1) {
			return usageError{fmt.Errorf("--etcd-members %d: this sandbox has %d: choose another directory with --dir", o.etcdMembers, max(config.EtcdMembers, 1))}
		}
		config.EtcdMembers = o.etcdMembers
	}
	return nil
}

// addOptional sets the optional components, and refuses options that exclude each other.
func (o *upOptions) addOptional(cmd *cobra.Command, config *home.Config) error {
	if err := o.with.applyTo(cmd, config); err != nil {
		return err
	}
	if config.Nodes != "" && config.AWS != nil {
		return usageError{errors.New("--nodes real: nodes of a simulated account are simulated: leave out --with aws")}
	}
	return nil
}

// setNodes sets the kind of nodes, and whether they enforce NetworkPolicies.
func (o *upOptions) setNodes(cmd *cobra.Command, config *home.Config) (err error) {
	if cmd.Flags().Changed("nodes") {
		if config.Nodes, err = findNodeProgram(o.nodes); err != nil {
			return err
		}
	}
	if cmd.Flags().Changed("network") {
		config.Enforced, err = parseNetwork(o.network, config.Nodes)
	}
	return err
}

// findProgram returns the absolute path of a flag's program, which can be run; "" means none.
func findProgram(flag, path, hint string) (string, error) {
	if path == "" {
		return "", nil
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if _, err := exec.LookPath(abs); err != nil {
		return "", usageError{fmt.Errorf("--%s: %w: %s", flag, err, hint)}
	}
	return abs, nil
}

// findAPIServers returns the absolute paths of programs of API servers.
func findAPIServers(paths []string) ([]string, error) {
	var programs []string
	for _, path := range paths {
		program, err := findProgram("kube-apiserver", path, "build one with `make kube-apiserver-1.35`")
		if err != nil {
			return nil, err
		}
		programs = append(programs, program)
	}
	return programs, nil
}

// findAuditPolicy returns the absolute path of an audit policy that can be read; "" means none.
func findAuditPolicy(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if _, err := os.ReadFile(abs); err != nil {
		return "", usageError{fmt.Errorf("--audit-policy: %w", err)}
	}
	return abs, nil
}

// startSupervisor starts this program as the supervisor, detached from the
// terminal, and returns when it answers.
func startSupervisor(ctx context.Context, h home.Home) (*control.Client, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(h.Log("supervisor"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(binary, "--dir", h.Dir, "supervise")
	cmd.Stdout, cmd.Stderr = log, log
	lifeline.Forward(cmd)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	// The previous supervisor's socket must not be mistaken for the new one's.
	if err := h.ForgetSocket(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()

	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if client, err := control.Dial(h); err == nil {
			return client, nil
		}
		select {
		case err := <-exited:
			tail, _ := supervisor.ReadTail(log.Name(), 5)
			return nil, fmt.Errorf("the supervisor ended at once (%w): see %s%s", err, log.Name(), indentLines(tail))
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), cmd.Process.Kill())
		case <-tick.C:
		}
	}
}
