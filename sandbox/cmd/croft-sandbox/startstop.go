package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"croft.dev/croft/sandbox/internal/supervisor"
)

func newStop(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "stop COMPONENT",
		Short: "Stop a component and leave it stopped; the others keep running",
		Args:  checkArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, client, err := g.dialSupervisor()
			if err != nil {
				return err
			}
			return client.Stop(cmd.Context(), args[0])
		},
	}
}

func newStart(g *global) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "start COMPONENT",
		Short: "Start a component that was stopped, and wait until it is ready",
		Args:  checkArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, client, err := g.dialSupervisor()
			if err != nil {
				return err
			}
			if err := client.Start(cmd.Context(), args[0]); err != nil {
				return err
			}
			return awaitReady(cmd.Context(), client, h, timeout, func(s []supervisor.Status) []supervisor.Status {
				for _, status := range s {
					if status.Name == args[0] {
						return []supervisor.Status{status}
					}
				}
				return nil
			}, func(s supervisor.Status) {
				_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%s is ready after %s\n", s.Name, s.Took.Round(100*time.Millisecond))
			})
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 2*time.Minute, "how long to wait")
	return cmd
}
