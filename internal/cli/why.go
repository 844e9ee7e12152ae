package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"croft.dev/croft/internal/cloud/iam"
	"croft.dev/croft/internal/diagnose/catalog"
	"croft.dev/croft/internal/diagnose/why"
)

type whyOptions struct {
	namespace string
	file      string
	output    format
}

// longest is the maximum length of text that `croft why -f` reads.
const longest = 10 << 20

func newWhy(a *app) *cobra.Command {
	var o whyOptions
	c := &cobra.Command{
		Use:   "why KIND/NAME",
		Short: "Explain why a pod, a workload or a node fails, and what to fix first",
		Long: `Explain why an object fails, and what to fix first: walks from a pod, a Deployment (or
another workload), a node, a nodeclaim or a pool along the chain of causes:
admission, quota, scheduler, Karpenter, the pool and its node class, the NodeClaim, the
node, the containers. For a job or cronjob it checks how it ended; for a
persistentvolumeclaim its class and its pods; for an ingress its class, Services and
endpoints; for a tenant, a pool and a namespace the operator's conditions. For a
kustomization of Flux it checks the source, and names the rule that refused an object in
Git; for a certificate of cert-manager its issuer, its order and the challenges. For an object of any kind that is being deleted, it names the
finalizers and objects that delay the deletion.

It reads with your own rights. For objects that you may not read, it names the command
that a platform admin can run. It decodes AWS's messages with your AWS credentials.

With -f it explains lines of a log, or any text, instead:

  kubectl logs -n kube-system deployment/karpenter | croft why -f -

Exit status 0 means that nothing has to be fixed.`,
		Example: "  croft why pod/web-1 -n shop\n  croft why deployment web -n shop\n  croft why node/ip-10-0-0-1\n  croft why kustomization/croft-app -n shop",
		Args:    cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.file != "" {
				if len(args) > 0 {
					return errors.New("-f explains a text, and KIND/NAME an object: use only one of them")
				}
				return a.explainText(cmd.Context(), o)
			}
			return a.runWhy(cmd.Context(), args, o)
		},
	}
	c.Flags().StringVarP(&o.namespace, "namespace", "n", "", "namespace of the object; that of the kubeconfig's context if none is given")
	c.Flags().StringVarP(&o.file, "filename", "f", "", "explain this text instead of an object; - for standard input")
	c.MarkFlagsMutuallyExclusive("filename", "namespace")
	o.output.addFlags(c, formatTable, formatJSON, formatYAML)
	return c
}

func (a *app) runWhy(ctx context.Context, args []string, o whyOptions) error {
	if len(args) == 0 {
		return fmt.Errorf("name the object as KIND/NAME, such as pod/web-1; KIND is one of %s", strings.Join(why.Kinds(), ", "))
	}
	namespace := o.namespace
	if namespace == "" {
		namespace = a.currentNamespace()
	}
	target, err := why.ParseTarget(args, namespace)
	var unknown *why.UnknownKindError
	if err != nil && !errors.As(err, &unknown) {
		return err
	}
	c, clientErr := a.newClient()
	switch {
	case clientErr != nil && unknown != nil:
		return err
	case clientErr != nil:
		return toFailure(clientErr)
	case unknown != nil:
		if target, err = why.Resolve(c.RESTMapper(), args, namespace); err != nil {
			return err
		}
	}
	seen, err := why.Gather(ctx, c, target)
	if err != nil {
		return toFailure(explainUnreachable(err))
	}
	story := why.ExplainSnapshot(seen)
	story.AddContact(ctx, c, seen)
	story.Decode(ctx, iam.Decode)
	if o.output != formatTable {
		err = o.output.print(a.out, story)
	} else {
		printStory(a.out, story)
	}
	if err == nil && story.Verdict == why.Bad {
		return errReported()
	}
	return err
}

func (a *app) explainText(ctx context.Context, o whyOptions) error {
	from := a.in
	if o.file != "-" {
		file, err := os.Open(o.file)
		if err != nil {
			return fmt.Errorf("-f %s: %w", o.file, errors.Unwrap(err))
		}
		defer file.Close()
		from = file
	}
	text, err := io.ReadAll(io.LimitReader(from, longest))
	if err != nil {
		return toFailure(err)
	}
	found := why.Explain(string(text))
	for i := range found {
		found[i] = catalog.DecodeFinding(ctx, found[i], iam.Decode)
	}
	switch {
	case o.output != formatTable:
		err = o.output.print(a.out, map[string]any{"findings": append([]catalog.Finding{}, found...)})
	case len(found) == 0:
		printSafely(a.out, "the catalogue of causes (docs/reference/troubleshooting.md) has no entry for this text\n")
	}
	if o.output == formatTable {
		for i := range found {
			if i > 0 {
				printSafely(a.out, "\n")
			}
			printSafely(a.out, "%s\n", foldText(found[i].Symptom, "", ""))
			printFinding(a.out, found[i])
		}
	}
	if err == nil && len(found) > 0 {
		return errReported()
	}
	return err
}

// printStory prints a diagnosis, with the cause to fix first on top.
func printStory(w io.Writer, s why.Story) {
	printSafely(w, "%s\n", s.Headline())
	if s.First != nil {
		printSafely(w, "\n")
		printFinding(w, *s.First)
	}
	if s.Contact != "" {
		printSafely(w, "  team:  %s\n", escapeLine(s.Contact))
	}
	if len(s.Steps) > 0 {
		printSafely(w, "\n")
	}
	findings := s.ListNewFindings()
	wide := 0
	for _, step := range s.Steps {
		wide = max(wide, len(step.Link))
	}
	for i, step := range s.Steps {
		indent := strings.Repeat(" ", wide+4)
		printSafely(w, "%s %-*s  %s\n", formatVerdictMark(step.Verdict), wide, step.Link, strings.TrimLeft(foldText(step.Object+": "+step.Observation, indent, indent), " "))
		if f := findings[i]; f != nil {
			if step.Verdict == why.Waiting {
				printSafely(w, "%s%s\n", indent, why.IfItLasts)
			}
			printSafely(w, "%s\n", foldText(f.Cause, indent+"cause: ", indent+"       "))
			printSafely(w, "%s\n", foldText(f.Fix, indent+"fix:   ", indent+"       "))
			if f.Run != "" {
				printSafely(w, "%srun:   %s\n", indent, f.Run)
			}
		}
	}
	if s.Latency != "" {
		printSafely(w, "\n%s\n", s.Latency)
	}
}

// printFixes prints the fixes of a failure that is in the catalogue.
func printFixes(w io.Writer, err error) {
	for _, f := range catalog.FindMatches(err.Error()) {
		printFinding(w, f)
	}
}

func printFinding(w io.Writer, f catalog.Finding) {
	printSafely(w, "%s\n", foldText(f.Cause, "  cause: ", "         "))
	printSafely(w, "%s\n", foldText(f.Fix, "  fix:   ", "         "))
	if f.Run != "" {
		printSafely(w, "  run:   %s\n", f.Run)
	}
	if f.Who == catalog.Platform {
		printSafely(w, "  who:   a platform admin\n")
	}
	if f.Link != "" {
		printSafely(w, "  more:  %s\n", f.Link)
	}
}

func formatVerdictMark(v why.Verdict) paintedText {
	switch v {
	case why.Good:
		return green(v.Mark())
	case why.Bad:
		return red(v.Mark())
	default:
		return yellow(v.Mark())
	}
}

// foldAt is the maximum width of a line of prose.
const foldAt = 116

// foldText breaks a text into lines between words.
func foldText(text, first, rest string) string {
	var lines []string
	line, empty := first, true
	for _, word := range strings.Fields(text) {
		if !empty && len([]rune(line))+1+len([]rune(word)) > foldAt {
			lines = append(lines, line)
			line, empty = rest, true
		}
		if !empty {
			line += " "
		}
		line += word
		empty = false
	}
	return strings.Join(append(lines, line), "\n")
}
