package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/hack/internal/samples"
	"croft.dev/croft/hack/internal/tenants"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/test/sandbox"
)

const (
	// scalePrefix is the prefix of the tenants' names.
	scalePrefix = "scale"
	// scaleRuns is the number of runs of each step that can be repeated.
	scaleRuns = 3
	// mostDeleted is the maximum number of tenants that are deleted.
	mostDeleted = 1000
)

// The names of the lines that have a target.
const (
	firstApply      = "first croft apply"
	unchangedApply  = "croft apply without changes"
	changedApply    = "croft apply with one changed tenant"
	operatorRestart = "restart of the operator until a deleted policy is restored"
	operatorMemory  = "memory of the operator"
	// commandPrefix precedes the name of a command.
	commandPrefix = "croft "
)

// scaleTargets are the targets by line and by number of tenants, in the unit of the line, for an idle machine with two
// cores. Other numbers of tenants have no targets.
var scaleTargets = map[string]map[int]float64{
	firstApply:               {1000: 25, 5000: 125},
	unchangedApply:           {1000: 1, 5000: 3},
	changedApply:             {5000: 3},
	commandPrefix + "diff":   {1000: 3},
	commandPrefix + "render": {5000: 4},
	commandPrefix + "status": {5000: 2},
	commandPrefix + "doctor": {5000: 2},
	operatorRestart:          {5000: 8},
	operatorMemory:           {1000: 100 << 20, 5000: 256 << 20},
}

// compareWithTarget returns a line of the table whose alternative is the target, if there is one.
func compareWithTarget(name string, u unit, value float64, tenants int, notes ...string) comparison {
	target, ok := scaleTargets[name][tenants]
	note := "compared with the target"
	if !ok {
		note = fmt.Sprintf("no target for %d tenants", tenants)
	}
	return comparison{Name: name, Unit: u, Croft: value, Alternative: target, Note: strings.Join(append([]string{note}, notes...), "; ")}
}

// scaleFile is a file of a Platform, pools and tenants.
type scaleFile struct {
	tenants, pools int
	// changed gives the first tenant another domain.
	changed bool
}

// render returns the file. The tenants are distributed among the pools. Their namespaces are deleted with them.
func (f scaleFile) render() string {
	var b strings.Builder
	b.WriteString(tenants.Platform + tenants.RenderPools(f.pools) + "tenants:\n")
	for i := range f.tenants {
		var domains []string
		if i == 0 && f.changed {
			domains = append(domains, "changed.example.net")
		}
		b.WriteString(tenants.RenderTenant(tenants.Name(scalePrefix, i), tenants.PoolName(i%f.pools), domains...))
		b.WriteString("    deletion: Delete\n")
	}
	return b.String()
}

// scaleBench is a cluster with many tenants and pools.
type scaleBench struct {
	*bench
	cluster *settledCluster
	admin   client.Client
	// bare is the result of the bare client, in a cluster of its own.
	bare side
	// file and changed are the paths of the applied file, and of the same file with one changed tenant.
	file, changed string
	// idle is each process's usage before the first apply, and ended the usage of killed operators.
	idle  map[string]usage
	ended usage
}

// measureScale measures the operator and every command with many tenants and pools, one step after the other in one
// cluster. The bare client has a cluster of its own: its tenants would remain, and make every step slower.
func measureScale(ctx context.Context, b *bench) (found []comparison, err error) {
	printProgress("scale: %d tenants by a bare client", b.tenants)
	var bare side
	err = withSandbox(ctx, sandbox.Options{Croft: b.croft}, func(c *sandbox.Cluster) error {
		if err := b.declarePlatform(ctx, c); err != nil {
			return err
		}
		bare, err = convergeBare(ctx, c, tenants.RenderText(scalePrefix, b.tenants))
		return err
	})
	if err != nil {
		return nil, err
	}
	err = withSandbox(ctx, sandbox.Options{Croft: b.croft}, func(c *sandbox.Cluster) error {
		s := &scaleBench{bench: b, bare: bare, cluster: &settledCluster{Cluster: c}}
		if err := s.prepare(ctx); err != nil {
			return err
		}
		unchanged := scaleFile{tenants: b.tenants, pools: b.pools}
		changed := unchanged
		changed.changed = true
		return withFiles(func(paths []string) (err error) {
			s.file, s.changed = paths[0], paths[1]
			found, err = s.runSteps(ctx)
			return err
		}, unchanged.render(), changed.render())
	})
	return found, err
}

func (s *scaleBench) prepare(ctx context.Context) (err error) {
	if s.admin, err = client.New(removeRateLimit(s.cluster.Config), client.Options{Scheme: scheme.New()}); err != nil {
		return err
	}
	if s.cluster.operator, err = findOperator(ctx, s.cluster.Cluster); err != nil {
		return err
	}
	if _, err := s.waitIdle(ctx); err != nil {
		return err
	}
	s.idle, err = readUsages(s.cluster.Cluster)
	return err
}

// waitIdle waits until the operator is at rest. With many tenants that takes longer than usual.
func (s *scaleBench) waitIdle(ctx context.Context) (requests, error) {
	return s.cluster.operator.waitIdleFor(ctx, limitTime(s.tenants))
}

// runSteps runs all steps. If one fails, the others follow nevertheless, since the run may take an hour; only without
// tenants they are meaningless.
func (s *scaleBench) runSteps(ctx context.Context) ([]comparison, error) {
	printProgress("scale: first apply")
	found, err := s.measureFirstApply(ctx)
	if err != nil {
		return found, err
	}
	var errs []error
	for _, step := range []struct {
		name    string
		measure func(context.Context) ([]comparison, error)
	}{
		{"apply without changes", s.measureUnchangedApply},
		{"commands", s.measureCommands},
		{"apply with one changed tenant", s.measureChangedApply},
		{"steady state", s.measureSteadyState},
		{"restarts of the operator", s.measureRestart},
		{"a change of the Platform", s.measurePlatformChange},
		{"a tenant's life", s.measureLife},
		{"processes", s.measureProcesses},
		{"deletion of tenants", s.measureDeletion},
	} {
		printProgress("scale: %s", step.name)
		var more []comparison
		_, err := s.waitIdle(ctx)
		if err == nil {
			more, err = step.measure(ctx)
		}
		found = append(found, more...)
		if ctx.Err() != nil {
			return found, ctx.Err()
		}
		if err != nil {
			printProgress("scale: %s: %v", step.name, err)
			errs = append(errs, fmt.Errorf("%s: %w", step.name, err))
		}
	}
	return found, errors.Join(errs...)
}

// measureFirstApply applies a file of everything to a cluster without a Platform. The command waits until all are
// Ready; a watch measures the time of each tenant.
func (s *scaleBench) measureFirstApply(ctx context.Context) ([]comparison, error) {
	before, err := s.cluster.operator.countRequests(ctx)
	if err != nil {
		return nil, err
	}
	ready, err := watchTenants(ctx, s.cluster.Config, scalePrefix, s.tenants)
	if err != nil {
		return nil, err
	}
	defer ready.stop()
	var (
		took  []float64
		whole float64
	)
	group, applying := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		took, err = ready.waitAll(applying, time.Time{})
		return err
	})
	group.Go(func() (err error) {
		whole, err = s.timeApply(applying, s.file)
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	after, err := s.waitIdle(ctx)
	if err != nil {
		return nil, err
	}
	return s.compareFirstApply(whole, side{Took: took, Requests: after.subtract(before)}), nil
}

func (s *scaleBench) compareFirstApply(whole float64, croft side) []comparison {
	first := compareWithTarget(firstApply, inSeconds, whole, s.tenants,
		fmt.Sprintf("one file of the Platform, %d pools and %d tenants, until the command ends", s.pools, s.tenants),
		fmt.Sprintf("%.2f× of the bare client's %s", whole/slices.Max(s.bare.Took), inSeconds.formatValue(slices.Max(s.bare.Took))))
	first.Raw = round{Croft: croft, Bare: s.bare}
	perTenant := 1 / float64(s.tenants)
	return []comparison{first, {
		Name: "  until all tenants are Ready", Unit: inSeconds, Croft: slices.Max(croft.Took), Alternative: slices.Max(s.bare.Took),
		Note: fmt.Sprintf("from the first tenant, compared with %d workers that write the same objects without waiting", bareWorkers),
	}, {
		Name: "  until half are Ready", Unit: inSeconds, Croft: samples.Median(croft.Took), Alternative: samples.Median(s.bare.Took),
		Note: "median of all tenants, from the first",
	}, {
		Name: "  until 99% are Ready", Unit: inSeconds, Croft: samples.Percentile(99, croft.Took), Alternative: samples.Percentile(99, s.bare.Took),
		Note: "p99 of all tenants, from the first",
	}, {
		Name: "  requests for a tenant", Unit: inRequests, Croft: croft.Requests.countAll() * perTenant, Alternative: s.bare.Requests.countAll() * perTenant,
		Note: "by the operator, including its requests for the Platform and the pools, compared with one for each object",
	}}
}

// timeApply applies a file and returns how long the command took until all are Ready.
func (s *scaleBench) timeApply(ctx context.Context, file string) (float64, error) {
	return timeSeconds(func() error {
		return s.runCroft(ctx, "apply", "--kubeconfig", s.cluster.Kubeconfig, "--wait-timeout", limitTime(s.tenants).String(), "-f", file)
	})
}

func (s *scaleBench) measureUnchangedApply(ctx context.Context) ([]comparison, error) {
	return s.measureApplies(ctx, unchangedApply, s.file)
}

// measureChangedApply applies two files in turn, which differ in one tenant.
func (s *scaleBench) measureChangedApply(ctx context.Context) ([]comparison, error) {
	return s.measureApplies(ctx, changedApply, s.changed, s.file)
}

// measureApplies applies files in turn.
func (s *scaleBench) measureApplies(ctx context.Context, name string, files ...string) ([]comparison, error) {
	var took []float64
	for i := range scaleRuns {
		seconds, err := s.timeApply(ctx, files[i%len(files)])
		if err != nil {
			return nil, err
		}
		took = append(took, seconds)
	}
	return []comparison{s.compareRuns(name, took, "until the command ends")}, nil
}

// compareRuns returns the line of a step that was repeated.
func (s *scaleBench) compareRuns(name string, took []float64, notes ...string) comparison {
	row := compareWithTarget(name, inSeconds, samples.Median(took), s.tenants, append(notes, fmt.Sprintf("median of %d", len(took)))...)
	row.Raw = map[string][]float64{"seconds": took}
	return row
}

// measureCommands runs each command as a process from start to end, in turns.
func (s *scaleBench) measureCommands(ctx context.Context) ([]comparison, error) {
	cluster := []string{"--kubeconfig", s.cluster.Kubeconfig}
	commands := [][]string{
		append([]string{"diff", "-f", s.file}, cluster...),
		{"render", "-f", s.file},
		append([]string{"status"}, cluster...),
		append([]string{"doctor"}, cluster...),
		{"check", "-f", s.file},
	}
	took, failures := make([][]float64, len(commands)), make([]error, len(commands))
	for range scaleRuns {
		for i, args := range commands {
			seconds, err := timeSeconds(func() error { return s.runCroft(ctx, args...) })
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			took[i] = append(took[i], seconds)
			failures[i] = errors.Join(failures[i], err)
		}
	}
	var found []comparison
	for i, args := range commands {
		notes := []string{"as a process, from start to end"}
		if failures[i] != nil {
			notes = append(notes, "it failed")
		}
		found = append(found, s.compareRuns(commandPrefix+args[0], took[i], notes...))
	}
	return found, errors.Join(failures...)
}

// measureSteadyState counts requests while nothing changes.
func (s *scaleBench) measureSteadyState(ctx context.Context) ([]comparison, error) {
	return s.observeSteady(ctx, s.cluster)
}
