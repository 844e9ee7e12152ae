package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/discovery"

	"croft.dev/croft/internal/cloud/iam"
	"croft.dev/croft/internal/declare/wording"
	"croft.dev/croft/internal/diagnose/doctor"
)

func newDoctor(a *app) *cobra.Command {
	var (
		output format
		files  subjectFlags
	)
	c := &cobra.Command{
		Use:   "doctor [CHECK...]",
		Short: "Check the whole platform, and list problems with their remedies",
		Long: `Check the whole platform, and list problems with their remedies: versions, kinds,
the operator, the walls (each object compared with the declared one, and a few attacks
tried by dry run as people of up to three tenants), what kubelets write, the placement
engine, node classes, pools and their limits, nodes that do not start or do not end,
PodDisruptionBudgets that block evictions, the platform's DaemonSets, classes, quotas, DNS,
the cluster's size, the tenant that causes most of the waiting work, and other components
that change tenants' pods. It changes nothing, and names the data that you may not read;
the dry runs need the right to impersonate.

With names of checks, as the output lists them, the command runs only these and reads only
their data: "croft doctor load" names within seconds the tenant that floods a busy cluster.

With -f, the command compares the walls of a file, for a cluster without croft's
operator, as with croft render | kubectl apply.

Exit status 0 means that all checks ran and found no problems; there may be warnings.`,
		Args: requireCheckNames,
		RunE: func(cmd *cobra.Command, names []string) error {
			return a.runDoctor(cmd.Context(), names, &files, output)
		},
	}
	files.addFlags(c)
	output.addFlags(c, formatTable, formatJSON, formatYAML)
	return c
}

// listCheckNames returns the names of doctor's checks.
func listCheckNames() []string {
	var names []string
	for _, c := range doctor.Checks() {
		names = append(names, c.Name)
	}
	return names
}

// requireCheckNames refuses an argument that is not the name of a check.
func requireCheckNames(_ *cobra.Command, names []string) error {
	for _, name := range names {
		if known := listCheckNames(); !slices.Contains(known, name) {
			return fmt.Errorf("unknown check %q: write one of %s", name, strings.Join(known, ", "))
		}
	}
	return nil
}

func (a *app) runDoctor(ctx context.Context, checks []string, files *subjectFlags, output format) error {
	options := doctor.Options{Checks: checks}
	if files.isRendered() {
		var err error
		if options.File, err = a.readSubject(ctx, nil, files); err != nil {
			return err
		}
	}
	config, err := a.loadConfig()
	if err != nil {
		return toFailure(err)
	}
	version, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return toFailure(err)
	}
	c, err := a.newClient()
	if err != nil {
		return toFailure(err)
	}
	seen, err := doctor.Gather(ctx, c, version, options)
	if err != nil {
		return toFailure(explainUnreachable(err))
	}
	if err := doctor.Try(ctx, config, c, seen); err != nil {
		return toFailure(explainUnreachable(err))
	}
	doctor.GatherRequests(ctx, config, c, seen)
	results := doctor.Check(seen)
	doctor.Decode(ctx, results, iam.Decode)
	if output != formatTable {
		err = output.print(a.out, map[string]any{"checks": results})
	} else {
		a.printCheckup(results)
	}
	if err == nil && (doctor.CountProblems(results) > 0 || doctor.CountUnread(results) > 0) {
		return errReported()
	}
	return err
}

func (a *app) printCheckup(results []doctor.Result) {
	wide := 0
	for _, r := range results {
		wide = max(wide, len(r.Check))
	}
	problems, warnings := doctor.CountProblems(results), 0
	for _, r := range results {
		printSafely(a.out, "%s %-*s   %s\n", formatResultMark(r), wide, r.Check, r.Summary)
		for _, what := range r.Unreadable {
			printSafely(a.out, "    %s not checked: %s\n", yellow("?"), what)
		}
		printed := map[string]bool{}
		for _, f := range r.Findings {
			mark := red("✗")
			if f.Severity == doctor.Warning {
				mark = yellow("!")
				warnings++
			}
			line := f.Message
			if f.Object != "" {
				line = f.Object + ": " + line
			}
			printSafely(a.out, "    %s %s\n", mark, strings.TrimLeft(foldText(line, "  ", "      "), " "))
			if f.Contact != "" {
				printSafely(a.out, "      team:  %s\n", escapeLine(f.Contact))
			}
			if printed[f.Fix] {
				continue // many objects may have one fix
			}
			printed[f.Fix] = true
			if f.Cause != "" {
				printSafely(a.out, "%s\n", foldText(f.Cause, "      cause: ", "             "))
			}
			printSafely(a.out, "%s\n", foldText(f.Fix, "      fix:   ", "             "))
			if f.Run != "" {
				printSafely(a.out, "      run:   %s\n", f.Run)
			}
			if f.Link != "" {
				printSafely(a.out, "      more:  %s\n", f.Link)
			}
		}
	}
	printSafely(a.out, "\n%s, %s", wording.FormatCount(problems, "problem"), wording.FormatCount(warnings, "warning"))
	if n := doctor.CountUnread(results); n > 0 {
		printSafely(a.out, "; %s could not read all data: ask a platform admin, or for the checks attacks and kubelets a cluster admin, to run this command", wording.FormatCount(n, "check"))
	}
	printSafely(a.out, "\n")
}

func formatResultMark(r doctor.Result) paintedText {
	switch {
	case len(r.Findings) > 0 && r.Findings[0].Severity == doctor.Problem:
		return red("✗")
	case len(r.Findings) > 0:
		return yellow("!")
	case len(r.Unreadable) > 0:
		return yellow("?")
	default:
		return green("✓")
	}
}
