package main

import (
	"github.com/spf13/cobra"

	"croft.dev/croft/sandbox/internal/component"
	"croft.dev/croft/sandbox/internal/run"
)

func newKubectl(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl ...",
		Short: "Run kubectl against the sandbox, as its administrator",
		Long: `Run kubectl against the sandbox, as its administrator. Everything after the word
kubectl is for kubectl; --dir goes before it.`,
		Example:            "  croft-sandbox kubectl get nodes -o wide\n  croft-sandbox --dir /tmp/other kubectl apply -f croft.yaml",
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			h, err := g.findExisting()
			if err != nil {
				return err
			}
			return run.ExecuteKubectl(h.Kubeconfig(component.Admin), args)
		},
	}
}
