package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"croft.dev/croft/internal/attack"
	"croft.dev/croft/internal/estate"
	"croft.dev/croft/internal/scheme"
	"croft.dev/croft/internal/verify"
	"croft.dev/croft/internal/wall"
)

type verifyOptions struct {
	walls   []string
	attacks []string
	all     bool
	list    bool
	explain string
	tenant  string
	timeout time.Duration
	record  bool
	output  format
	files   subjectFlags
}

func newVerify(a *app) *cobra.Command {
	var o verifyOptions
	c := &cobra.Command{
		Use:   "verify",
		Short: "Try to break the walls, and report which held",
		Long: `Try to break the walls, and report which held: creates two scratch tenants, acts as
their strongest role, tries every attack and every request that must succeed, and
deletes the scratch tenants again. Requests are dry runs. Then it compares the objects
of the walls with the cluster, and reports missing and changed ones. You need to be a cluster
administrator, and a member of the Platform's admins or of system:masters.

With --tenant it acts as the people of an existing tenant, and changes nothing;
attacks that cannot be tried that way are listed as not tried.

With -f, the Platform and its tenants are those of a file, for a cluster without
croft's operator, as with croft render | kubectl apply.

With --record the result is written into the Platform's status, where the operator has
its metrics from: for a run by the clock, whose age and failures raise alerts.

In a cluster without croft's policies, such as before an operator runs, nothing is tried;
--record counts that as a breach.

Exit status 0 means that every wall held.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.verify(cmd.Context(), o) },
	}
	o.files.add(c)
	c.Flags().StringSliceVar(&o.walls, "wall", nil, "only these walls: network, nodes, identity, policy")
	c.Flags().StringSliceVar(&o.attacks, "attack", nil, "only these attacks, by name")
	c.Flags().BoolVar(&o.all, "all", false, "show a line for each attack, not for each wall; --attack does, too")
	c.Flags().BoolVar(&o.list, "list", false, "list the attacks and try none")
	c.Flags().StringVar(&o.explain, "explain", "", "explain this attack and what stops it, and try none")
	c.Flags().StringVar(&o.tenant, "tenant", "", "try from inside this tenant, by dry-run requests only")
	c.Flags().DurationVar(&o.timeout, "timeout", 2*time.Minute, "time limit of the whole command")
	c.Flags().BoolVar(&o.record, "record", false,
		"write the result into the Platform's status, where the operator's metrics have it from; of whole runs only")
	c.MarkFlagsMutuallyExclusive("list", "explain", "tenant")
	for _, narrower := range []string{"wall", "attack"} {
		c.MarkFlagsMutuallyExclusive("explain", narrower)
	}
	for _, partial := range []string{"list", "explain", "tenant", "wall", "attack", "filename"} {
		c.MarkFlagsMutuallyExclusive("record", partial)
	}
	for _, quick := range []string{"list", "explain"} {
		c.MarkFlagsMutuallyExclusive(quick, "timeout")
	}
	o.output.add(c, formatTable, formatJSON, formatYAML, formatJUnit)
	return c
}

func (a *app) verify(ctx context.Context, o verifyOptions) error {
	if err := knownWalls(o.walls); err != nil {
		return err
	}
	if o.list || o.explain != "" {
		platform := undeclared()
		if o.files.rendered() {
			file, err := a.subject(ctx, nil, &o.files)
			if err != nil {
				return err
			}
			platform = file.Platforms[0]
		}
		scratch, err := verify.NewScratch(platform)
		if err != nil {
			return failed(err)
		}
		return a.describe(scratch, o)
	}
	stage, e, err := a.stage(ctx, o)
	if err != nil {
		return err
	}
	attacks := stage.Attacks()
	if err := knownAttacks(o.attacks, attacks); err != nil {
		return err
	}
	if !slices.ContainsFunc(attacks, o.wants) {
		return fmt.Errorf("--attack %s: the wall %s has none of these: leave out --wall", strings.Join(o.attacks, ","), strings.Join(o.walls, ","))
	}
	config, err := a.config()
	if err != nil {
		return failed(err)
	}
	err = a.try(ctx, stage, e, config, o)
	if o.tenant == "" || ctx.Err() != nil {
		return err
	}
	strays := a.warnOfStrays(ctx, e, o.tenant)
	if err != nil && strays != nil {
		say(a.err, "%v\n", strays)
		return err
	}
	return cmp.Or(err, strays)
}

func (a *app) try(ctx context.Context, stage stage, e *estate.Estate, config *rest.Config, o verifyOptions) error {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	started := time.Now()
	progress := newProgress(a.err)
	if o.tenant == "" {
		progress.update("making two scratch tenants")
	}
	tried := 0
	results, err := stage.Run(ctx, config, scheme.New(), o.wants, func(r verify.Result) {
		tried++
		progress.update("%d tried, last %s/%s", tried, r.Wall, r.Name)
	})
	if err == nil && e != nil && len(o.attacks) == 0 {
		progress.update("comparing the walls' objects")
		var objects []verify.Result
		objects, err = a.compareObjects(ctx, e, o)
		results = append(results, objects...)
	}
	progress.done()
	if err := a.report(results, time.Since(started), o); err != nil {
		return err
	}
	if o.record && err == nil && ctx.Err() == nil {
		c, err := a.client()
		if err != nil {
			return failed(err)
		}
		if err := record(ctx, c, results); err != nil {
			return err
		}
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return failedf("not all attacks were tried within %s: give it more with --timeout", o.timeout)
	case errors.Is(ctx.Err(), context.Canceled):
		return interrupted(": not all attacks were tried")
	case err != nil:
		return failed(unreachable(err))
	case slices.ContainsFunc(results, func(r verify.Result) bool { return !r.Good() }):
		return errTold()
	default:
		return nil
	}
}

// compareObjects compares the objects of the selected walls with the desired ones.
func (a *app) compareObjects(ctx context.Context, e *estate.Estate, o verifyOptions) ([]verify.Result, error) {
	c, err := a.client()
	if err != nil {
		return nil, err
	}
	results, err := verify.CompareObjects(ctx, c, e, o.tenant, o.files.rendered())
	return slices.DeleteFunc(results, func(r verify.Result) bool {
		return len(o.walls) > 0 && !slices.Contains(o.walls, r.Wall)
	}), err
}

func (a *app) report(results []verify.Result, took time.Duration, o verifyOptions) error {
	switch o.output {
	case formatTable:
		a.printResults(results, o.all || len(o.attacks) > 0, took)
		return nil
	case formatJUnit:
		return printJUnit(a.out, "croft verify", suitesOf(results), took)
	default:
		return o.output.print(a.out, map[string]any{"results": slices.Concat([]verify.Result{}, results)})
	}
}

func (o verifyOptions) wants(at attack.Attack) bool {
	return (len(o.walls) == 0 || slices.Contains(o.walls, at.Wall)) &&
		(len(o.attacks) == 0 || slices.Contains(o.attacks, at.Name))
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
