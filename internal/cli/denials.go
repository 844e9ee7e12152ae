package cli

import (
	"cmp"
	"context"
	"errors"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"croft.dev/croft/internal/declare/wording"
	"croft.dev/croft/internal/observe/denials"
)

// mostUsers and mostRunes are the maximum number of users, and the length of a message, in a row of the table.
const mostUsers, mostRunes = 2, 100

type denialOptions struct {
	namespace string
	since     time.Duration
	trial     bool
	output    format
}

func newDenials(a *app) *cobra.Command {
	var o denialOptions
	c := &cobra.Command{
		Use:   "denials FILE...",
		Short: "Show the requests that were refused, by namespace and rule, from audit logs",
		Long: `Show the requests that croft's policies, Gatekeeper, Pod Security, quotas and limits have
refused, by namespace and rule, from files of the API server's audit log: lines of audit.k8s.io/v1,
at the level Metadata or above. Dry runs do not count.

With --trial, the command shows the requests that would have been refused without policy.trial.

The command reads only the files, no cluster. Without an audit log, nothing stores refusals: events
name refused pods of controllers only, and metrics name no namespace.`,
		Example: `  croft denials /var/log/kubernetes/audit.log
  croft denials audit.log --trial --since 24h
  kubectl logs -n logging audit-forwarder | croft denials - -n shop`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("name a file of the API server's audit log, or - for standard input")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.runDenials(cmd.Context(), args, o) },
	}
	c.Flags().StringVarP(&o.namespace, "namespace", "n", "", "show only this namespace")
	c.Flags().DurationVar(&o.since, "since", 0, "show only requests of this time before now, such as 24h; 0 for all")
	c.Flags().BoolVar(&o.trial, "trial", false, "show violations of rules on trial, which were not refused")
	o.output.addFlags(c, formatTable, formatJSON, formatYAML)
	return c
}

func (a *app) runDenials(ctx context.Context, files []string, o denialOptions) error {
	selected := denials.Options{Trial: o.trial, Namespace: o.namespace}
	if o.since > 0 {
		selected.Since = time.Now().Add(-o.since)
	}
	log := denials.NewLog(selected)
	for _, file := range files {
		if err := a.readDenials(ctx, log, file); err != nil {
			return err
		}
	}
	if log.Events == 0 && log.Invalid > 0 {
		return errors.New("no line is an event of audit.k8s.io/v1 in JSON: name a file that the API server writes to --audit-log-path with --audit-log-format=json")
	}
	if o.output != formatTable {
		return o.output.print(a.out, log.Denials())
	}
	a.printDenials(log)
	return nil
}

func (a *app) readDenials(ctx context.Context, log *denials.Log, file string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if file == "-" {
		return log.Read(a.in)
	}
	f, err := os.Open(file)
	if err != nil {
		return explainFileError(file, err)
	}
	defer f.Close()
	if err := log.Read(f); err != nil {
		return explainFileError(file, err)
	}
	return nil
}

func (a *app) printDenials(log *denials.Log) {
	var rows [][]string
	for _, d := range log.Denials() {
		rows = append(rows, []string{
			cmp.Or(d.Namespace, "-"), d.Rule, strconv.Itoa(d.Requests), wording.FormatTime(d.Last), wording.FormatFirst(d.Users, mostUsers), truncateText(d.Message, mostRunes),
		})
	}
	if len(rows) == 0 {
		printSafely(a.out, "No request was refused in %s.\n", wording.FormatCount(log.Events, "event"))
	} else {
		printTable(a.out, []string{"NAMESPACE", "RULE", "REQUESTS", "LAST", "USERS", "MESSAGE"}, rows)
	}
	if log.Invalid > 0 {
		printSafely(a.err, "%s: no audit event, left out\n", wording.FormatCount(log.Invalid, "line"))
	}
}
