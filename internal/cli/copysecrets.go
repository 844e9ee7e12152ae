package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"croft.dev/croft/internal/declare/logging"
	"croft.dev/croft/internal/operate/secretcopy"
)

func newCopySecrets(a *app) *cobra.Command {
	var o secretcopy.Options
	var logs logging.Options
	c := &cobra.Command{
		Use:   "copy-secrets",
		Short: "Copy Secrets of the platform into tenants' namespaces until stopped",
		Long: `Copy Secrets of the namespace croft-secrets into the namespaces of the tenants that
declare them in secrets, until stopped. It is a process of its own, with a service account
of its own, because croft's operator may not read Secrets. croft install --copy-secrets
deploys it. See docs/how-to/objects.md.

A changed Secret is in all namespaces within seconds. Copies stay while the command does not
run. Each copy is written again after 30 minutes, in case an admin has changed it: the
command may not read the copies.`,
		Example: `  croft copy-secrets --source registry-credentials --source company-ca`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range o.Sources {
				if len(validation.IsDNS1123Subdomain(name)) > 0 {
					return fmt.Errorf("--source %s: write the name of a Secret, such as --source=registry-credentials", escapeLine(name))
				}
			}
			config, err := a.loadConfig()
			if err != nil {
				return toFailure(err)
			}
			o.Log = logging.Install(a.newLogHandler(cmd, &logs))
			return toFailure(explainUnreachable(secretcopy.Run(cmd.Context(), config, o)))
		},
	}
	logs.AddFlags(c.Flags())
	c.Flags().StringSliceVar(&o.Sources, "source", nil, "names of the Secrets in the namespace croft-secrets that may be copied")
	c.Flags().StringVar(&o.MetricsAddr, "metrics-addr", ":8080", "address of /metrics; 0 for none")
	c.Flags().StringVar(&o.HealthAddr, "health-addr", ":8081", "address of /healthz and /readyz; 0 for none")
	return c
}
