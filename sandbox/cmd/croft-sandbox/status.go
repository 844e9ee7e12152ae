package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"croft.dev/croft/sandbox/internal/supervisor"
)

func newStatus(g *global) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the state of the components",
		Args:  checkArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "table" && output != "json" {
				return usageError{fmt.Errorf("unknown output %q: choose table or json", output)}
			}
			_, client, err := g.dialSupervisor()
			if err != nil {
				return err
			}
			statuses, err := client.GetStatuses(cmd.Context())
			if err != nil {
				return err
			}
			if output == "json" {
				encoder := json.NewEncoder(cmd.OutOrStdout())
				encoder.SetIndent("", "  ")
				return encoder.Encode(statuses)
			}
			return printTable(cmd.OutOrStdout(), statuses)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	return cmd
}

func printTable(out io.Writer, statuses []supervisor.Status) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(w, "COMPONENT\tSTATE\tPID\tRESTARTS\tREADY FOR\tADDRESS\tMESSAGE")
	for _, s := range statuses {
		pid, since := "-", "-"
		if s.PID != 0 {
			pid = strconv.Itoa(s.PID)
		}
		if !s.ReadySince.IsZero() {
			since = time.Since(s.ReadySince).Round(time.Second).String()
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%s\n", s.Name, s.State, pid, s.Restarts, since, s.Address, describeStatus(s))
	}
	return w.Flush() // reports the errors of the writes before
}

func describeStatus(s supervisor.Status) string {
	if s.Message != "" || s.LastDeath == nil {
		return s.Message
	}
	return fmt.Sprintf("died %s ago: %s", time.Since(s.LastDeath.At).Round(time.Second), s.LastDeath.Cause)
}
