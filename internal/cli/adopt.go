package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/adoption/adopt"
	"croft.dev/croft/internal/declare/wording"
	"croft.dev/croft/internal/operate/apply"
)

type adoptOptions struct {
	files     fileFlags
	dryRun    bool
	yes       bool
	removeOld bool
	undo      bool
	// force overwrites fields of other field managers, as in croft apply.
	force   bool
	timeout time.Duration
	output  format
}

func newAdopt(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "adopt",
		Short: "Adopt existing namespaces with their workloads",
		Args:  cobra.NoArgs,
	}
	c.AddCommand(newAdoptTenant(a))
	return c
}

func newAdoptTenant(a *app) *cobra.Command {
	var o adoptOptions
	c := &cobra.Command{
		Use:   "tenant NAME (-f FILE | --undo)",
		Short: "Adopt a tenant's namespaces step by step, after showing the plan",
		Long: `Adopt a tenant's existing namespaces step by step. Running pods
keep running on their nodes.

The command first shows a plan: the pool of each pod when it is re-created, or the
rule that would refuse it; other objects whose re-creation would be refused; objects
that overlap with croft's walls; and connections that end. For the plan it sends dry
runs to a scratch namespace with the tenant's rules, and then deletes that namespace.
--dry-run stops after the plan.

The command declares the Platform, the tenant and its pools from the file; other
tenants follow in their own runs. Objects that the walls replace stay until
--remove-old deletes them, in this run or a later one.

Before any change the command records the present state in the ConfigMap
croft-adopt-NAME in croft-system. After an interruption at any step, run the same
command again to continue. --undo restores the recorded state while pods run.`,
		Example: `  croft adopt tenant shop -f croft.yaml --dry-run
  croft adopt tenant shop -f croft.yaml
  croft adopt tenant shop -f croft.yaml --remove-old
  croft adopt tenant shop --undo`,
		Args: requireOneName("tenant"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.undo {
				return a.undoAdoption(cmd.Context(), args[0], &o)
			}
			return a.runAdopt(cmd.Context(), args[0], &o)
		},
	}
	flags := c.Flags()
	flags.StringSliceVarP(&o.files.names, "filename", "f", nil, "croft.yaml, a stream of croft's objects, a directory of either, or - for standard input")
	flags.BoolVar(&o.dryRun, "dry-run", false, "show the plan, and change nothing")
	flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask for confirmation")
	flags.BoolVar(&o.removeOld, "remove-old", false, "delete the objects that the walls replace, once the walls are in place")
	flags.BoolVar(&o.undo, "undo", false, "restore the namespaces to their previous state")
	flags.BoolVar(&o.force, "force", false, "overwrite fields of declared objects that other field managers have set")
	flags.DurationVar(&o.timeout, "wait-timeout", 5*time.Minute, "how long to wait for each step")
	o.output.addFlags(c, formatTable, formatJSON, formatYAML)
	c.MarkFlagsOneRequired("filename", "undo")
	c.MarkFlagsMutuallyExclusive("filename", "undo")
	c.MarkFlagsMutuallyExclusive("remove-old", "undo")
	c.MarkFlagsMutuallyExclusive("dry-run", "undo")
	c.MarkFlagsMutuallyExclusive("output", "undo")
	c.MarkFlagsMutuallyExclusive("force", "undo")
	return c
}

// adoption is one run of the command.
type adoption struct {
	*app
	*adopt.Adoption
	client client.Client
	tenant string
	plan   *adopt.Plan
	o      *adoptOptions
	// refused lists the workloads whose dry runs were refused, as the plan showed.
	refused []string
}

func (a *app) runAdopt(ctx context.Context, tenant string, o *adoptOptions) error {
	p, err := a.propose(ctx, &o.files)
	if err != nil {
		return err
	}
	ad, err := adopt.New(p.client, p.after, tenant, p.file.Objects())
	if err != nil {
		return err
	}
	conflicts, err := p.findConflicts(ad.Declared(), nil)
	if err != nil {
		return toFailure(err)
	}
	if err := a.checkConflicts(conflicts, o.force || o.dryRun); err != nil {
		return err
	}
	printSafely(a.err, "reading the tenant's objects and trying its pods\n")
	plan, err := ad.Plan(ctx)
	if err != nil {
		return toFailure(explainUnreachable(err))
	}
	if err := a.printPlan(plan, o); err != nil {
		return err
	}
	if len(plan.Blockers) > 0 {
		return failuref("tenant %s was not adopted: fix the problems above first", tenant)
	}
	if o.dryRun {
		return nil
	}
	run := &adoption{app: a, Adoption: ad, client: p.client, tenant: tenant, plan: plan, o: o}
	if !o.yes && (!plan.IsDone() || o.removeOld && len(plan.ListReplaced()) > 0) && !a.confirmTenant(tenant) {
		return failuref("nothing was changed")
	}
	return run.runSteps(ctx)
}

// step is one step of an adoption. Steps are idempotent: the next run continues from a
// step's result.
type step struct {
	description string
	run         func(context.Context) error
}

func (r *adoption) runSteps(ctx context.Context) error {
	steps := []step{
		{"declare the Platform, and wait until it is Ready", func(ctx context.Context) error { return r.applyAndWait(ctx, r.Platform()) }},
		{"try the pods in a scratch namespace", r.tryPods},
		{"record the current state in " + adopt.RecordName(r.tenant), func(ctx context.Context) error { return r.RecordState(ctx, r.plan) }},
		{"annotate the namespaces with croft.dev/adopt", r.Permit},
		{"declare the tenant and its pools, and wait until they are Ready", func(ctx context.Context) error { return r.applyAndWait(ctx, r.Declared()) }},
		{"try the pods in their own namespaces", r.recheckPods},
	}
	if r.o.removeOld && len(r.plan.ListReplaced()) > 0 {
		steps = append(steps,
			step{"delete the objects that the walls replace", func(ctx context.Context) error { return r.Remove(ctx, r.plan) }},
			step{"try the pods again", r.recheckPods})
	}
	for i, s := range steps {
		if err := ctx.Err(); err != nil {
			return newInterruption(fmt.Sprintf(" after step %d of %d: run the same command again to continue, or `croft adopt tenant %s --undo` to undo the adoption", i, len(steps), r.tenant))
		}
		if err := s.run(ctx); err != nil {
			if ctx.Err() != nil {
				return newInterruption(fmt.Sprintf(" in step %d of %d, %s: run the same command again to continue, or `croft adopt tenant %s --undo` to undo the adoption", i+1, len(steps), s.description, r.tenant))
			}
			err = explainUnreachable(err)
			return failuref("step %d of %d, %s: %w\nrun the same command again to continue, or `croft adopt tenant %s --undo` to undo the adoption", i+1, len(steps), s.description, err, r.tenant)
		}
		printSafely(r.err, "%d/%d done: %s\n", i+1, len(steps), s.description)
	}
	printSafely(r.err, "tenant %s is adopted; `croft verify --tenant %s` tries its walls\n", r.tenant, r.tenant)
	if left := len(r.refused); left > 0 {
		printSafely(r.err, "croft's rules would refuse new pods of %s: before these pods restart, change the workloads or the tenant's policy\n", wording.FormatCount(left, "workload"))
	}
	if left := len(r.plan.ListReplaced()); left > 0 && !r.o.removeOld {
		printSafely(r.err, "%s still overlap with the walls that replace them: --remove-old deletes them\n", wording.FormatCount(left, "object"))
	}
	return nil
}

func (r *adoption) applyAndWait(ctx context.Context, objects []client.Object) error {
	if len(objects) == 0 {
		return nil
	}
	if _, err := apply.New(r.client).Apply(ctx, objects...); err != nil {
		return err
	}
	return r.awaitReady(ctx, r.client, objects, nil, r.o.timeout)
}

// tryPods runs the pods' dry runs if they were not possible before the Platform existed. New
// findings are shown before the confirmation.
func (r *adoption) tryPods(ctx context.Context) error {
	if r.plan.Evaluated {
		return nil
	}
	if err := r.Try(ctx, r.plan); err != nil {
		return err
	}
	if len(r.plan.ListUnsettled())+len(r.plan.Refusals) == 0 {
		return nil
	}
	if err := r.printPlan(r.plan, r.o); err != nil {
		return err
	}
	return errors.New("the dry runs, which were not possible before this step, show that some objects could not be re-created unchanged; the tenant's namespaces are unchanged: read the plan above, and run the same command again to continue")
}

// recheckPods runs the pods' dry runs in their namespaces. It fails on a refusal that the plan
// does not show, and prints the others.
func (r *adoption) recheckPods(ctx context.Context) error {
	wrong, err := r.CheckPods(ctx, r.plan)
	if err != nil {
		return err
	}
	r.refused = nil
	for _, w := range wrong {
		if !isRefusalPlanned(r.plan, w.Object) {
			return fmt.Errorf("%s could not be re-created: %s", w.Object, w.Reason)
		}
		r.refused = append(r.refused, w.Object)
		printSafely(r.err, "    %s would be refused, as the plan shows: %s\n", w.Object, w.Reason)
	}
	return nil
}

// isRefusalPlanned reports whether the plan showed the refusal of a workload before the
// confirmation.
func isRefusalPlanned(p *adopt.Plan, workload string) bool {
	for _, w := range p.Pods {
		if w.String() == workload {
			return w.Refusal != ""
		}
	}
	return false
}
