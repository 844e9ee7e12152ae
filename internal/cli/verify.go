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

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/prove/verify"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/walls/wall"
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
	packets bool
	floods  floodOptions
	// pool and image are for the pods of packets and floods.
	pool, image string
	output      format
	files       subjectFlags
}

func newVerify(a *app) *cobra.Command {
	var o verifyOptions
	c := &cobra.Command{
		Use:   "verify",
		Short: "Try to break the walls, and report which held",
		Long: `Try to break the walls, and report which held. The command creates two scratch tenants,
acts as their strongest role, tries every attack and every request that must succeed,
and deletes the scratch tenants again. Requests are dry runs. Then it compares the objects
of the walls with the cluster, and reports missing and changed ones. You need to be a cluster
administrator, and a member of the Platform's admins or of system:masters.

With --tenant it acts as the people of an existing tenant, and changes nothing;
attacks that cannot be tried that way are listed as not tried.

With -f, the command uses the Platform and the tenants of a file, for a cluster without
croft's operator, as with croft render | kubectl apply.

With --packets, pods of two more scratch tenants also connect to each other, to metadata
addresses, to nodes and to the API server: policies alone do not show that a network plugin
enforces them. The pods run croft's image on a pool of the cluster, and may wait for a new
node. The result is part of the wall network.

With --floods, it measures instead how much the load of one scratch tenant slows another
one down. One tenant does a team's usual work alone, during each flood by the other, and
alone again. A flood is load that a team can cause within the default limits. The command
asks for a confirmation, and stops as soon as a request of the first tenant fails or the
API server becomes slow. Exit status 1 means that a flood slowed requests down to more
than 1.5 times their time alone, or the start of pods to more than twice their time.
See docs/how-to/noisy-neighbours.md.

With --record the command writes the result into the Platform's status. The operator
derives metrics from it, for scheduled runs whose age and failures raise alerts.

In a cluster without croft's policies, such as before an operator runs, the command tries
nothing; --record counts that as a breach.

Exit status 0 means that every wall held.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch changed := cmd.Flags().Changed("timeout"); {
			case changed:
			case o.packets:
				o.timeout = 10 * time.Minute // the pods may wait for a new node
			case len(o.floods.names) > 0:
				o.timeout = 30 * time.Minute
			}
			return a.runVerify(cmd.Context(), o)
		},
	}
	o.files.addFlags(c)
	c.Flags().StringSliceVar(&o.walls, "wall", nil, "only these walls: network, nodes, identity, policy")
	c.Flags().StringSliceVar(&o.attacks, "attack", nil, "only these attacks, by name")
	c.Flags().BoolVar(&o.all, "all", false, "show a line for each attack, not for each wall; --attack does, too")
	c.Flags().BoolVar(&o.list, "list", false, "list the attacks, and try none")
	c.Flags().StringVar(&o.explain, "explain", "", "explain this attack and what stops it, and try none")
	c.Flags().StringVar(&o.tenant, "tenant", "", "try from inside this tenant, by dry-run requests only")
	c.Flags().DurationVar(&o.timeout, "timeout", 2*time.Minute, "time limit of the whole command; 10m with --packets, 30m with --floods")
	c.Flags().BoolVar(&o.packets, "packets", false, "also test by real connections between pods whether the network plugin enforces the wall")
	c.Flags().StringVar(&o.pool, "pool", "", "with --packets or --floods: the pool on whose nodes the pods run; by default the only one")
	c.Flags().StringVar(&o.image, "image", "", "with --packets or --floods: croft's image; by default the image of the operator's Deployment")
	c.Flags().BoolVar(&o.record, "record", false,
		"write the result of a complete run into the Platform's status, for the operator's metrics")
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
	for _, other := range []string{"list", "explain", "tenant", "attack"} {
		c.MarkFlagsMutuallyExclusive("packets", other)
	}
	o.output.addFlags(c, formatTable, formatJSON, formatYAML, formatJUnit)
	o.floods.addFlags(c)
	return c
}

func (a *app) runVerify(ctx context.Context, o verifyOptions) error {
	flooded := len(o.floods.names) > 0
	if !o.packets && !flooded && (o.pool != "" || o.image != "") {
		return errors.New("--pool and --image have an effect with --packets or --floods alone: add one, or leave them out")
	}
	if flooded {
		return a.runFloods(ctx, o)
	}
	if err := checkWallNames(o.walls); err != nil {
		return err
	}
	if o.list || o.explain != "" {
		return a.describeUntried(ctx, o)
	}
	stage, e, err := a.newStage(ctx, o)
	if err != nil {
		return err
	}
	attacks := stage.Attacks()
	if err := checkAttackNames(o.attacks, attacks); err != nil {
		return err
	}
	if !slices.ContainsFunc(attacks, o.matchesAttack) {
		return fmt.Errorf("--attack %s: the wall %s has no such attack: omit --wall", strings.Join(o.attacks, ","), strings.Join(o.walls, ","))
	}
	packets, err := a.newPackets(ctx, o)
	if err != nil {
		return err
	}
	config, err := a.loadConfig()
	if err != nil {
		return toFailure(err)
	}
	err = a.tryAttacks(ctx, stage, packets, e, config, o)
	if o.tenant == "" || ctx.Err() != nil {
		return err
	}
	warning := a.warnOfMisplacedPods(ctx, e, o.tenant)
	if err != nil && warning != nil {
		printSafely(a.err, "%v\n", warning)
		return err
	}
	return cmp.Or(err, warning)
}

// describeUntried describes attacks of the default platform, or of a file.
func (a *app) describeUntried(ctx context.Context, o verifyOptions) error {
	platform := newDefaultPlatform()
	if o.files.isRendered() {
		file, err := a.readSubject(ctx, nil, &o.files)
		if err != nil {
			return err
		}
		platform = file.Platforms[0]
	}
	scratch, err := verify.NewScratch(platform)
	if err != nil {
		return toFailure(err)
	}
	return a.describeAttacks(scratch, o)
}

func (a *app) tryAttacks(ctx context.Context, stage stage, packets *verify.Packets, e *estate.Estate, config *rest.Config, o verifyOptions) error {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	started := time.Now()
	progress := newProgress(a.err)
	if o.tenant == "" {
		progress.update("creating two scratch tenants")
	}
	tried := 0
	results, err := stage.Run(ctx, config, scheme.New(), o.matchesAttack, func(r verify.Result) {
		tried++
		progress.update("%d tried, last %s/%s", tried, r.Wall, r.Name)
	})
	if err == nil && e != nil && len(o.attacks) == 0 {
		progress.update("comparing the walls' objects")
		var objects []verify.Result
		objects, err = a.compareObjects(ctx, e, o)
		results = append(results, objects...)
	}
	if err == nil && packets != nil {
		var made []verify.Result
		made, err = a.runPackets(ctx, packets, progress)
		results = append(results, made...)
	}
	progress.finish()
	took := time.Since(started)
	if err := a.printVerifyReport(results, took, o); err != nil {
		return err
	}
	if o.record && err == nil && ctx.Err() == nil {
		c, err := a.newClient()
		if err != nil {
			return toFailure(err)
		}
		if err := recordResults(ctx, c, results, took); err != nil {
			return err
		}
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return failuref("not all attacks were tried within %s: set a longer --timeout", o.timeout)
	case errors.Is(ctx.Err(), context.Canceled):
		return newInterruption(": not all attacks were tried")
	case err != nil:
		return toFailure(explainUnreachable(err))
	case slices.ContainsFunc(results, func(r verify.Result) bool { return !r.IsGood() }):
		return errReported()
	default:
		return nil
	}
}

// compareObjects compares the objects of the selected walls with the desired ones.
func (a *app) compareObjects(ctx context.Context, e *estate.Estate, o verifyOptions) ([]verify.Result, error) {
	c, err := a.newClient()
	if err != nil {
		return nil, err
	}
	results, err := verify.CompareObjects(ctx, c, e, o.tenant, o.files.isRendered())
	return slices.DeleteFunc(results, func(r verify.Result) bool {
		return len(o.walls) > 0 && !slices.Contains(o.walls, r.Wall)
	}), err
}

func (a *app) printVerifyReport(results []verify.Result, took time.Duration, o verifyOptions) error {
	switch o.output {
	case formatTable:
		a.printResults(results, o.all || len(o.attacks) > 0, took)
		return nil
	case formatJUnit:
		return printJUnit(a.out, "croft verify", buildVerifySuites(results), took)
	default:
		return o.output.print(a.out, map[string]any{"results": slices.Concat([]verify.Result{}, results)})
	}
}

func (o verifyOptions) matchesAttack(at attack.Attack) bool {
	return (len(o.walls) == 0 || slices.Contains(o.walls, at.Wall)) &&
		(len(o.attacks) == 0 || slices.Contains(o.attacks, at.Name))
}

func checkWallNames(names []string) error {
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

func checkAttackNames(names []string, attacks []attack.Attack) error {
	for _, n := range names {
		if !slices.ContainsFunc(attacks, func(a attack.Attack) bool { return a.Name == n }) {
			return fmt.Errorf("--attack %s: there is no such attack: `croft verify --list` lists them", n)
		}
	}
	return nil
}
