package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fatih/color"
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/attack"
	"croft.dev/croft/internal/scheme"
	"croft.dev/croft/internal/verify"
	"croft.dev/croft/internal/wall"
)

type verifyOptions struct {
	walls   []string
	attacks []string
	list    bool
	timeout time.Duration
	output  format
}

func newVerify(a *app) *cobra.Command {
	var o verifyOptions
	c := &cobra.Command{
		Use:   "verify",
		Short: "Try to break the walls, and say which held",
		Long: `Try to break the walls, and say which held: makes two scratch tenants, acts as
their strongest role, tries every attack and everything that a tenant must still be
able to do, and removes the scratch tenants again. Requests are dry runs.

Exit status 0 means that every wall held.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.verify(cmd.Context(), o) },
	}
	c.Flags().StringSliceVar(&o.walls, "wall", nil, "only these walls: network, nodes, identity, policy")
	c.Flags().StringSliceVar(&o.attacks, "attack", nil, "only these attacks, by name")
	c.Flags().BoolVar(&o.list, "list", false, "list the attacks and try none")
	c.Flags().DurationVar(&o.timeout, "timeout", 2*time.Minute, "how long the whole may take")
	o.output.add(c, formatTable, formatJSON, formatYAML)
	return c
}

func (a *app) verify(ctx context.Context, o verifyOptions) error {
	if err := knownWalls(o.walls); err != nil {
		return err
	}
	platform := undeclared()
	if o.list {
		scratch, err := verify.NewScratch(platform)
		if err != nil {
			return failed(err)
		}
		return a.listAttacks(scratch, o)
	}
	c, err := a.client()
	if err != nil {
		return failed(err)
	}
	if err := c.Get(ctx, client.ObjectKey{Name: v1alpha1.PlatformName}, &platform); err != nil {
		return failedf("reading the Platform: %w: declare one with `croft apply -f croft.yaml`", unreachable(err))
	}
	scratch, err := verify.NewScratch(platform)
	if err != nil {
		return failed(err)
	}
	if err := knownAttacks(o.attacks, scratch.Attacks()); err != nil {
		return err
	}
	config, err := a.config()
	if err != nil {
		return failed(err)
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	progress := newProgress(a.err)
	progress.update("making two scratch tenants")
	var results []verify.Result
	err = scratch.Run(ctx, config, scheme.New(), o.wants, func(r verify.Result) {
		results = append(results, r)
		progress.update("%d tried, last %s/%s", len(results), r.Wall, r.Name)
	})
	progress.done()
	if o.output == formatTable {
		a.printResults(results)
	} else if err := o.output.print(a.out, map[string]any{"results": results}); err != nil {
		return err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return failedf("not all attacks were tried within %s: give it more with --timeout", o.timeout)
	}
	if err != nil {
		return failed(unreachable(err))
	}
	if slices.ContainsFunc(results, func(r verify.Result) bool { return !r.Good() }) {
		return errTold()
	}
	return nil
}

func (o verifyOptions) wants(at attack.Attack) bool {
	return (len(o.walls) == 0 || slices.Contains(o.walls, at.Wall)) &&
		(len(o.attacks) == 0 || slices.Contains(o.attacks, at.Name))
}

func (a *app) listAttacks(scratch *verify.Scratch, o verifyOptions) error {
	attacks := scratch.Attacks()
	if err := knownAttacks(o.attacks, attacks); err != nil {
		return err
	}
	var rows [][]string
	for _, at := range attacks {
		if o.wants(at) {
			rows = append(rows, []string{at.Wall, string(at.Kind), at.Name, dash(at.StoppedBy.Name), at.Summary})
		}
	}
	table(a.out, []string{"WALL", "KIND", "NAME", "STOPPED BY", "WHAT IS TRIED"}, rows)
	return nil
}

// printResults says the few that matter in full, and the rest in a line each.
func (a *app) printResults(results []verify.Result) {
	var rows [][]string
	counts := map[verify.Outcome]int{}
	for _, r := range results {
		counts[r.Result]++
		rows = append(rows, []string{r.Wall, string(r.Kind), r.Name, dash(r.StoppedBy), paint(r.Result)})
	}
	table(a.out, []string{"WALL", "KIND", "NAME", "STOPPED BY", "RESULT"}, rows)
	for _, r := range results {
		if r.Result != verify.Held {
			say(a.out, "\n%s/%s: %s\n  tried: %s\n  %s\n", r.Wall, r.Name, paint(r.Result), r.Summary, r.Message)
		}
	}
	say(a.out, "\n%d of %d held", counts[verify.Held], len(results))
	for _, other := range []verify.Outcome{verify.Breached, verify.BlockedElsewhere, verify.NotTried} {
		if counts[other] > 0 {
			say(a.out, ", %d %s", counts[other], other)
		}
	}
	say(a.out, "\n")
}

// paint colours a result on a terminal, and only there.
func paint(o verify.Outcome) string {
	switch o {
	case verify.Held:
		return color.GreenString(string(o))
	case verify.Breached:
		return color.RedString(string(o))
	default:
		return color.YellowString(string(o))
	}
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func knownWalls(names []string) error {
	var known []string
	for _, w := range wall.All() {
		known = append(known, w.Name())
	}
	for _, n := range names {
		if !slices.Contains(known, n) {
			return fmt.Errorf("--wall %s: there is no such wall: write one of %s", n, strings.Join(known, ", "))
		}
	}
	return nil
}

func knownAttacks(names []string, attacks []attack.Attack) error {
	for _, n := range names {
		if !slices.ContainsFunc(attacks, func(a attack.Attack) bool { return a.Name == n }) {
			return fmt.Errorf("--attack %s: there is no such attack: `croft verify --list` lists them", n)
		}
	}
	return nil
}
