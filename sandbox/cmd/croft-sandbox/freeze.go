package main

import (
	"fmt"
	"syscall"

	"github.com/spf13/cobra"

	"croft.dev/croft/sandbox/internal/component"
)

func newFreeze(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "freeze COMPONENT",
		Short: "Stop a component's process in the middle of its work, until `thaw`",
		Args:  checkArgs(cobra.ExactArgs(1)),
		RunE:  func(cmd *cobra.Command, args []string) error { return g.sendSignal(cmd, syscall.SIGSTOP, args[0]) },
	}
}

func newThaw(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "thaw COMPONENT",
		Short: "Resume a frozen component, and reconnect an API server that was cut off",
		Args:  checkArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.sendSignal(cmd, syscall.SIGCONT, args[0], component.NameLink(args[0]))
		},
	}
}

func newCut(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "cut API-SERVER",
		Short: "Cut an API server off from etcd, until `thaw`: its connections stay open, but transfer no data",
		Long: `Cut an API server off from etcd, until thaw: its connections stay open, but transfer
no data. The sandbox needs several API servers or members of etcd
(up --api-servers, --etcd-members).`,
		Args: checkArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.sendSignal(cmd, syscall.SIGSTOP, component.NameLink(args[0]))
		},
	}
}

func newKill(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "kill COMPONENT",
		Short: "Kill a component's process; the supervisor restarts it",
		Args:  checkArgs(cobra.ExactArgs(1)),
		RunE:  func(cmd *cobra.Command, args []string) error { return g.sendSignal(cmd, syscall.SIGKILL, args[0]) },
	}
}

// sendSignal sends a signal to the processes of components. The first of names must run; the others
// are skipped if they do not.
func (g *global) sendSignal(cmd *cobra.Command, signal syscall.Signal, names ...string) error {
	_, client, err := g.dialSupervisor()
	if err != nil {
		return err
	}
	statuses, err := client.GetStatuses(cmd.Context())
	if err != nil {
		return err
	}
	pids := map[string]int{}
	for _, s := range statuses {
		pids[s.Name] = s.PID
	}
	for i, name := range names {
		pid, known := pids[name]
		switch {
		case !known && i == 0:
			return usageError{fmt.Errorf("the sandbox has no component %q: see `croft-sandbox status`", name)}
		case pid == 0 && i == 0:
			return fmt.Errorf("%s does not run", name)
		case pid == 0:
			continue
		}
		// Each component leads a process group of its own.
		if err := syscall.Kill(-pid, signal); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}
