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
		Short: "Print the URL of a Git repository of the sandbox, and create it if it does not exist",
		Long: `Print the URL of a Git repository of a sandbox that has Flux, and create an empty
repository if it does not exist. Every user of this machine can push to it.

A GitRepository with this URL gets each push immediately.`,
		Example: "  git clone $(croft-sandbox git deploy)",
		Args:    checkArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, _, err := g.dialSupervisor()
			if err != nil {
				return err
			}
			config, err := h.ReadConfig()
			if err != nil {
				return err
			}
			if config.Flux == "" {
				return usageError{errors.New("this sandbox has no Git server: start it with `croft-sandbox up --with flux`")}
			}
			ports, err := h.ReadPorts()
			if err != nil {
				return err
			}
			if err := gitserver.CreateRepository(h.Git(), args[0]); err != nil {
				return usageError{err}
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "http://%s%s\n", ports.Address(component.Git), gitserver.RepositoryPath(args[0]))
			return err
		},
	}
}
