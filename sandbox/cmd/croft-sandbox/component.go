package main

import (
	"github.com/spf13/cobra"

	"croft.dev/croft/sandbox/internal/run"
)

// newComponent returns the hidden command with which this binary runs itself as a component.
func newComponent() *cobra.Command {
	return &cobra.Command{
		Use:    "component NAME -- ARGUMENTS",
		Hidden: true,
		Args:   checkArgs(cobra.MinimumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			return exitCode(run.ExecuteComponent(args[0], args[1:]))
		},
	}
}
