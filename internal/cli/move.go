package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/move"
	"croft.dev/croft/internal/declare/estate"
)

type moveOptions struct {
	namespace string
	dryRun    bool
	yes       bool
	evict     bool
	undo      bool
	timeout   time.Duration
	output    format
}

func newMove(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "move",
		Short: "Restart pods that run on nodes of another pool than their tenant's",
		Args:  cobra.NoArgs,
	}
	c.AddCommand(newMoveTenant(a))
	return c
}

func newMoveTenant(a *app) *cobra.Command {
	var o moveOptions
	c := &cobra.Command{
		Use:   "tenant NAME",
		Short: "Restart a tenant's pods that run on nodes of another pool than the tenant's",
		Long: `Restart a tenant's pods that run on nodes of another pool than the tenant's. A pod
is placed once, when it is created: after a change of pool, or an adoption, a tenant's
pods stay where they are until they are re-created.

` + "`croft apply`" + ` declares the pool; this command moves the pods there. It restarts one
workload after the other, as ` + "`kubectl rollout restart`" + ` does, and waits for each. If a
restart would stop more pods at once than a PodDisruptionBudget allows, it evicts pods
one by one instead. Jobs run to their end. Pods without a rollout are named, and
are evicted only with --evict.

The previous pool is recorded on the Tenant (croft.dev/moved-from). --undo declares it
again, and moves the pods back. Also change your file: otherwise the next ` + "`croft apply`" + `
declares the new pool again.

Exit status 0 means that no pods are left to move, except for Jobs; with --dry-run, that
the plan is complete.`,
		Example: `  croft move tenant shop --dry-run
  croft move tenant shop
  croft move tenant shop --undo`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.runMove(cmd.Context(), args[0], &o) },
	}
	flags := c.Flags()
	flags.StringVarP(&o.namespace, "namespace", "n", "", "move the pods of this namespace only")
	flags.BoolVar(&o.dryRun, "dry-run", false, "list the workloads to restart, and change nothing")
	flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask for confirmation")
	flags.BoolVar(&o.evict, "evict", false, "also evict pods without a rollout; bare pods are not re-created")
	flags.BoolVar(&o.undo, "undo", false, "declare the pool that the pods were moved from, and move them back")
	flags.DurationVar(&o.timeout, "wait-timeout", 10*time.Minute, "how long to wait for each workload")
	o.output.addFlags(c, formatTable, formatJSON, formatYAML)
	c.MarkFlagsMutuallyExclusive("dry-run", "undo")
	c.MarkFlagsMutuallyExclusive("namespace", "undo")
	return c
}

func (a *app) runMove(ctx context.Context, name string, o *moveOptions) error {
	c, err := a.newClient()
	if err != nil {
		return toFailure(err)
	}
	if o.undo {
		if err := a.undoMove(ctx, c, name, o); err != nil {
			return err
		}
	}
	m, err := a.newMover(ctx, c, name, o)
	if err != nil {
		return err
	}
	plan, err := m.Plan(ctx)
	if err != nil {
		return toFailure(explainUnreachable(err))
	}
	if err := a.printMove(name, plan, o.output); err != nil || o.dryRun {
		return err
	}
	moving := slices.DeleteFunc(slices.Clone(plan), func(w move.Workload) bool { return w.Way != move.Restart && w.Way != move.Evict })
	if len(moving) > 0 && !o.yes && !o.undo && !a.confirmTenant(name) {
		return failuref("nothing was changed")
	}
	if err := m.RecordPool(ctx, plan); err != nil {
		return toFailure(explainUnreachable(err))
	}
	if err := a.moveEach(ctx, m, moving, o); err != nil {
		return err
	}
	return checkAllMoved(name, plan)
}

// checkAllMoved returns an error that names the pods that were not moved and still have to be.
func checkAllMoved(tenant string, plan []move.Workload) error {
	var names []string
	for i := range plan {
		if plan[i].Way == move.Leave {
			names = append(names, plan[i].String())
		}
	}
	if len(names) > 0 {
		return failuref("pods of tenant %s still run on nodes of other pools: %s", tenant, strings.Join(names, ", "))
	}
	return nil
}

func (a *app) moveEach(ctx context.Context, m *move.Mover, moving []move.Workload, o *moveOptions) error {
	for i := range moving {
		p := newProgress(a.err)
		err := m.Move(ctx, &moving[i], o.timeout, func(text string) { p.update("%s", text) })
		p.finish()
		if err != nil {
			return failuref("%w\n%d of %d workloads are moved; run the same command again to continue", explainUnreachable(err), i, len(moving))
		}
		printSafely(a.err, "%d/%d %s runs on its tenant's pool\n", i+1, len(moving), &moving[i])
	}
	return nil
}

// newMover reads the declared objects and returns a mover of the tenant's pods.
func (a *app) newMover(ctx context.Context, c client.Client, name string, o *moveOptions) (*move.Mover, error) {
	live, err := readDeclaration(ctx, c)
	if err != nil {
		return nil, toFailure(err)
	}
	e, problems := estate.Build(live)
	if e == nil {
		return nil, toFailure(problems)
	}
	tenant := e.FindTenant(name)
	if tenant == nil {
		return nil, fmt.Errorf("there is no tenant %s, or it is not valid: `croft status` lists them", name)
	}
	return move.New(c, e, tenant, o.namespace, o.evict)
}

// undoMove declares the tenant's former pool again, and waits until its walls exist.
func (a *app) undoMove(ctx context.Context, c client.Client, name string, o *moveOptions) error {
	var tenant v1alpha1.Tenant
	if err := c.Get(ctx, client.ObjectKey{Name: name}, &tenant); err != nil {
		if apierrors.IsNotFound(err) {
			return errNoTenant(name)
		}
		return toFailure(explainUnreachable(err))
	}
	printSafely(a.err, "Moving tenant %s back to pool %s\n", name, dashIfEmpty(tenant.Annotations[move.FromAnnotation]))
	if tenant.Annotations[move.FromAnnotation] != "" && !o.yes && !a.confirmTenant(name) {
		return failuref("nothing was changed")
	}
	pool, err := move.RestorePool(ctx, c, &tenant)
	if err != nil {
		return toFailure(explainUnreachable(err))
	}
	printSafely(a.err, "tenant %s declares pool %s again; also change your file\n", name, pool)
	tenant.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Tenant"))
	return a.awaitReady(ctx, c, []client.Object{&tenant}, nil, o.timeout)
}

func (a *app) printMove(tenant string, plan []move.Workload, f format) error {
	if f != formatTable {
		return f.print(a.out, map[string]any{"tenant": tenant, "workloads": slices.Concat([]move.Workload{}, plan)})
	}
	if len(plan) == 0 {
		printSafely(a.out, "every pod of tenant %s runs on a pool of the tenant\n", tenant)
		return nil
	}
	thens := map[move.Way]string{move.Restart: "is restarted", move.Evict: "is evicted, one pod after the other", move.Wait: "runs to its end", move.Leave: "STAYS"}
	var rows [][]string
	for i := range plan {
		w := &plan[i]
		then := thens[w.Way]
		if w.Reason != "" {
			then += ": " + w.Reason
		}
		var pools []string
		for _, s := range w.Pods {
			if pool := dashIfEmpty(s.Pool); !slices.Contains(pools, pool) {
				pools = append(pools, pool)
			}
		}
		rows = append(rows, []string{w.Namespace, w.Kind + "/" + w.Name, fmt.Sprint(len(w.Pods)), strings.Join(pools, ","), then})
	}
	a.printSection("Pods on nodes of other pools than the tenant's:", []string{"NAMESPACE", "WORKLOAD", "PODS", "CURRENT POOL", "ACTION"}, rows)
	return nil
}

// warnOfMisplacedPods warns of pods that run outside of their tenant's pools, and so behind
// another tenant's node wall. New pods are placed correctly.
func (a *app) warnOfMisplacedPods(ctx context.Context, e *estate.Estate, tenant string) error {
	c, err := a.newClient()
	if err != nil {
		return toFailure(err)
	}
	m, err := move.New(c, e, e.FindTenant(tenant), "", false)
	if err != nil {
		return toFailure(err)
	}
	misplaced, err := m.ListMisplaced(ctx)
	if err != nil {
		return toFailure(explainUnreachable(err))
	}
	if len(misplaced) == 0 {
		return nil
	}
	summary := "1 pod runs on a node of another pool"
	if len(misplaced) > 1 {
		summary = fmt.Sprintf("%d pods run on nodes of other pools", len(misplaced))
	}
	return failuref("tenant %s: %s, such as %s/%s on %s: restart with `croft move tenant %s`", tenant, summary, misplaced[0].Namespace, misplaced[0].Pod, misplaced[0].DescribeNode(), tenant)
}
