package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"croft.dev/croft/sandbox/internal/component"
)

func newKubeconfig(g *global) *cobra.Command {
	var raw bool
	var user, server string
	var groups []string
	cmd := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the path of the administrator's kubeconfig, or issue a kubeconfig for another user",
		Example: `  export KUBECONFIG=$(croft-sandbox kubeconfig)
  croft-sandbox kubeconfig --user jane --group team.devs.platform-access > jane.kubeconfig`,
		Args: checkArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(groups) > 0 && user == "" {
				return usageError{errors.New("--group needs a user: add --user NAME")}
			}
			h, err := g.findExisting()
			if err != nil {
				return err
			}
			path := h.Kubeconfig(component.Admin)
			if _, err := os.Stat(path); err != nil {
				return fmt.Errorf("the sandbox has not been up yet: start it with `croft-sandbox up` (%w)", err)
			}
			var out []byte
			switch {
			case user != "":
				out, err = component.IssueKubeconfig(h, user, groups)
			case server != "":
				out, err = component.BuildAdminKubeconfig(h, server)
			case raw:
				out, err = os.ReadFile(path)
			default:
				out = []byte(path + "\n")
			}
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(out)
			return err
		},
	}
	cmd.Flags().StringVar(&server, "server", "", "print the administrator's kubeconfig for this API server, such as kube-apiserver-2")
	cmd.Flags().BoolVar(&raw, "raw", false, "print the content instead of the path")
	cmd.Flags().StringVar(&user, "user", "", "issue and print a kubeconfig for this user, valid for a year")
	cmd.Flags().StringArrayVar(&groups, "group", nil, "a group of that user; may be repeated")
	return cmd
}
