package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"croft.dev/croft/sandbox/internal/component"
	"croft.dev/croft/sandbox/internal/gitserver"
)

func newGit(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "git NAME",
		Short: "Print the URL of a Git repository of the sandbox, and create it if it is not there",
		Long: `Print the URL of a Git repository of a sandbox that has Flux, and create the
repository, empty, if it is not there. Everybody on this machine can push to it.

A GitRepository with this URL gets what was pushed at once.`,
		Example: "  git clone $(croft-sandbox git deploy)",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, _, err := g.dial()
			if err != nil {
				return err
			}
			config, err := h.Config()
			if err != nil {
				return err
			}
			if config.Flux == "" {
				return usageError{errors.New("this sandbox has no Git server: it comes with `croft-sandbox up --with flux`")}
			}
			ports, err := h.Ports()
			if err != nil {
				return err
			}
			if err := gitserver.Create(h.Git(), args[0]); err != nil {
				return usageError{err}
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "http://%s%s\n", ports.Address(component.Git), gitserver.Path(args[0]))
			return err
		},
	}
}
