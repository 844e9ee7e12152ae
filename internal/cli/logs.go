package cli

import (
	"log/slog"

	"github.com/spf13/cobra"

	"croft.dev/croft/internal/logging"
)

// newLogHandler returns the handler for the logs of a long-running process.
func (a *app) newLogHandler(cmd *cobra.Command, o *logging.Options) slog.Handler {
	return o.NewHandler(cmd.ErrOrStderr())
}
