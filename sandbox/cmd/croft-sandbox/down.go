package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"croft.dev/croft/sandbox/internal/cgroup"
	"croft.dev/croft/sandbox/internal/component"
	"croft.dev/croft/sandbox/internal/control"
	"croft.dev/croft/sandbox/internal/home"
)

func newDown(g *global) *cobra.Command {
	var remove bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop the sandbox; its data stays unless --delete is given",
		Args:  checkArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := g.findExisting()
			if err != nil {
				return err
			}
			wasUp, err := stopSandbox(cmd.Context(), h, timeout)
			if err != nil {
				return err
			}
			if err := removeNodes(h); err != nil {
				return err
			}
			result := "was not up"
			if wasUp {
				result = "is down"
			}
			if remove {
				if err := h.Delete(); err != nil {
					return err
				}
				result += "; its data is deleted"
			}
			_, err = fmt.Fprintf(cmd.ErrOrStderr(), "the sandbox in %s %s\n", h.Dir, result)
			return err
		},
	}
	cmd.Flags().BoolVar(&remove, "delete", false, "delete the directory too")
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "how long to wait before the components are killed")
	return cmd
}

// stopSandbox stops a sandbox, and returns when its supervisor and its components have ended.
func stopSandbox(ctx context.Context, h home.Home, timeout time.Duration) (wasUp bool, err error) {
	client, err := control.Dial(h)
	if errors.Is(err, control.ErrDown) {
		return false, nil
	}
	asking, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err == nil {
		err = client.StopSandbox(asking)
	}
	if ctx.Err() != nil {
		return true, ctx.Err()
	}
	if err != nil {
		// The supervisor does not answer. Its components end with it.
		if err := killSupervisor(h); err != nil {
			return true, err
		}
	}
	return true, awaitUnlocked(ctx, h)
}

// removeNodes removes the control groups and the proxy's socket of real nodes whose sandbox was
// killed.
func removeNodes(h home.Home) error {
	config, err := h.ReadConfig()
	if err != nil || config.Nodes == "" {
		return err
	}
	if err := os.Remove(component.NodesSocket(h)); !errors.Is(err, fs.ErrNotExist) && err != nil {
		return err
	}
	return cgroup.Groups(component.NodesCgroup(h)).Remove("")
}

func killSupervisor(h home.Home) error {
	pid, err := h.FindSupervisor()
	if err != nil || pid == 0 {
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("the supervisor does not answer and cannot be killed: end process %d yourself (%w)", pid, err)
	}
	return nil
}

// awaitUnlocked returns when the supervisor's process has ended.
func awaitUnlocked(ctx context.Context, h home.Home) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		pid, err := h.FindSupervisor()
		if err != nil || pid == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the supervisor has not ended; see %s", h.Log("supervisor"))
		case <-tick.C:
		}
	}
}
