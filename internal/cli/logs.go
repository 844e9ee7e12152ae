package cli

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"croft.dev/croft/internal/declare/logging"
)

// logRequests makes client-go log requests to standard error, with the verbosity -v. It does
// so for all clients of the process that are built afterwards.
func (a *app) logRequests() error {
	if a.cluster.verbosity == 0 {
		return nil
	}
	verbosity := strconv.FormatUint(uint64(a.cluster.verbosity), 10)
	var flags flag.FlagSet
	klog.InitFlags(&flags)
	lines := textlogger.NewConfig(textlogger.Output(a.err))
	// klog and its logger each have a verbosity.
	if err := errors.Join(flags.Set("v", verbosity), lines.Verbosity().Set(verbosity)); err != nil {
		return fmt.Errorf("-v: %w", err)
	}
	klog.SetLogger(textlogger.NewLogger(lines))
	return nil
}

// newLogHandler returns the handler for the logs of a long-running process.
func (a *app) newLogHandler(cmd *cobra.Command, o *logging.Options) slog.Handler {
	o.Verbosity = a.cluster.verbosity
	return o.NewHandler(cmd.ErrOrStderr())
}
