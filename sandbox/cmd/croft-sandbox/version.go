package main

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// parts are the modules whose versions are printed.
var parts = []struct{ name, module string }{
	{"kubernetes", "k8s.io/kubernetes"},
	{"etcd", "go.etcd.io/etcd/server/v3"},
	{"karpenter", "sigs.k8s.io/karpenter"},
	{"kwok", "sigs.k8s.io/kwok"},
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of the components",
		Args:  checkArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			versions := map[string]string{}
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, dep := range info.Deps {
					versions[dep.Path] = dep.Version
				}
			}
			for _, part := range parts {
				version, ok := versions[part.module]
				if !ok {
					version = "unknown"
				}
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%-10s  %s\n", part.name, version); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
