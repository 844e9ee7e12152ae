package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"croft.dev/croft/sandbox/internal/control"
	"croft.dev/croft/sandbox/internal/home"
)

// global is the options of all commands.
type global struct {
	dir string
}

func (g *global) findHome() (home.Home, error) { return home.FindHome(g.dir) }

// findExisting returns the home of a sandbox that was started at least once; otherwise an error.
func (g *global) findExisting() (home.Home, error) {
	h, err := g.findHome()
	if err != nil {
		return h, err
	}
	_, err = h.ReadConfig()
	if errors.Is(err, home.ErrNone) {
		err = fmt.Errorf("there is no sandbox in %s: start one with `croft-sandbox up`, or name another directory with --dir", h.Dir)
	}
	return h, err
}

// dialSupervisor connects to the supervisor of a running sandbox.
func (g *global) dialSupervisor() (home.Home, *control.Client, error) {
	h, err := g.findExisting()
	if err != nil {
		return h, nil, err
	}
	client, err := control.Dial(h)
	if errors.Is(err, control.ErrDown) {
		err = fmt.Errorf("the sandbox in %s is not up: start it with `croft-sandbox up`", h.Dir)
	}
	return h, client, err
}

func newRoot() *cobra.Command {
	g := &global{}
	root := &cobra.Command{
		Use:   "croft-sandbox",
		Short: "A real Kubernetes control plane with Karpenter, in one binary",
		Long: `croft-sandbox runs a real control plane on this machine: etcd, kube-apiserver,
kube-controller-manager, kube-scheduler, Karpenter, and kwok, which simulates
the nodes. It downloads nothing, needs no container runtime, and listens only
on the loopback interface.

  croft-sandbox up
  croft-sandbox kubectl get nodes
  croft-sandbox down`,
		SilenceUsage:  true,
		SilenceErrors: true,
		// Flags before `kubectl` are croft-sandbox's, flags after it are kubectl's.
		TraverseChildren: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unknown command %q: see `croft-sandbox --help`", args[0])}
			}
			return cmd.Help()
		},
		Args: cobra.ArbitraryArgs,
	}
	dir := home.DefaultDir
	if env := os.Getenv(home.EnvDir); env != "" {
		dir = env
	}
	root.PersistentFlags().StringVar(&g.dir, "dir", dir, "directory of the sandbox; "+home.EnvDir+" sets the default")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w: see `%s --help`", err, cmd.CommandPath())}
	})
	root.AddCommand(
		newUp(g), newDown(g), newStatus(g), newLogs(g), newKubeconfig(g), newKubectl(g),
		newStart(g), newStop(g), newFreeze(g), newThaw(g), newCut(g), newKill(g), newAWS(g), newGit(g), newVersion(),
		newComponent(), newSupervise(g),
	)
	return root
}

// checkArgs checks the number of arguments; an error is a usage error.
func checkArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{fmt.Errorf("%w: see `%s --help`", err, cmd.CommandPath())}
		}
		return nil
	}
}
