package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"croft.dev/croft/sandbox/internal/component"
	"croft.dev/croft/sandbox/internal/control"
	"croft.dev/croft/sandbox/internal/home"
	"croft.dev/croft/sandbox/internal/lifeline"
	"croft.dev/croft/sandbox/internal/supervisor"
)

// newSupervise returns the hidden command of the process that `up` starts in the background.
func newSupervise(g *global) *cobra.Command {
	return &cobra.Command{
		Use:    "supervise",
		Hidden: true,
		Args:   checkArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := g.findExisting()
			if err != nil {
				return err
			}
			return runSupervisor(cmd.Context(), h)
		},
	}
}

func runSupervisor(ctx context.Context, h home.Home) error {
	syscall.Umask(0o077) // only the owner may read the components' files
	unlock, err := h.Lock()
	if err != nil {
		return fmt.Errorf("%s: %w", h.Dir, err)
	}
	defer unlock()

	sandbox, err := component.Open(h)
	if err != nil {
		return err
	}
	specs, err := sandbox.BuildSpecs()
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	sup, err := supervisor.New(log, supervisor.DefaultTiming, specs)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	// If a test ends without cleaning up, its sandbox ends, too.
	lifeline.Watch(end)
	server, err := control.Listen(h, sup, end)
	if err != nil {
		return fmt.Errorf("open the control socket: %w", err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve() }()

	log.Info("up", "dir", h.Dir, "pid", os.Getpid())
	sup.Run(ctx)
	log.Info("down")
	server.Close()
	return <-served
}
