package cli

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/operate/apply"
)

func newApply(a *app) *cobra.Command {
	o := &applyOptions{}
	c := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Apply a file's objects to the cluster, and wait until they are Ready",
		Long: `Apply a file's objects to the cluster, and wait until they are Ready.

The file is checked together with the cluster's objects, and by a dry run: if
anything is wrong, nothing is written. Objects that the file does not name do not
change. With --prune, tenants, pools and secondary networks that the file does not
name are deleted, after a confirmation that lists the consequences of each deletion.
If one of these tenants has protect: true in the cluster, nothing is written.

Fields that another program or person has set, by kubectl edit or Helm for example, are
not overwritten: the command names them and their field managers, writes nothing and ends
with exit status 1. --force overwrites them. Two people who both use croft apply are one
field manager: croft diff shows what the second would change.

If the operator is of a newer minor version, its objects have fields that this croft
does not know and would remove. The command then writes nothing, except with
--allow-downgrade.

Only a running operator acts on the objects. If none runs, the command warns at once
and ends after 15 s with exit status 1, unless the operator's Deployment exists and is
starting.

With -o json or yaml, standard output gets one object, at the end:

  changes:
  - kind: Tenant
    name: shop
    action: created     # or configured, unchanged, deleted, skipped, failed
    error: ""           # omitted if there is none
  ready: 1              # number of objects that are Ready
  objects:
  - kind: Tenant
    name: shop
    ready: true
    reason: Ready
    message: ""

Refusals before the first write appear only on standard error.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runApply(cmd.Context(), o) },
	}
	o.files.addFlags(c)
	o.output.addFlags(c, formatText, formatJSON, formatYAML)
	o.prune.addFlags(c, "delete, after a confirmation,")
	c.Flags().BoolVarP(&o.prune.yes, "yes", "y", false, "with --prune: do not ask for confirmation")
	c.Flags().BoolVar(&o.wait, "wait", true, "wait until everything in the file is Ready")
	c.Flags().DurationVar(&o.timeout, "wait-timeout", 5*time.Minute, "how long to wait")
	c.Flags().BoolVar(&o.force, "force", false, "overwrite fields that other field managers have set")
	addDowngradeFlag(c, &o.downgrade, "apply although the operator is of a newer minor version than this croft")
	refusePointlessFlags(c, "with --wait=false the command does not wait", func() bool { return !o.wait }, "wait-timeout")
	refusePointlessFlags(c, "only --prune asks for confirmation", func() bool { return !o.prune.prune }, "yes")
	return c
}

type applyOptions struct {
	files   fileFlags
	prune   pruneFlags
	wait    bool
	timeout time.Duration
	output  format
	// force overwrites fields of other field managers.
	force bool
	// downgrade permits an operator of a newer minor version.
	downgrade bool
}

func (a *app) runApply(ctx context.Context, o *applyOptions) error {
	o.files.whole = o.prune.prune
	p, err := a.propose(ctx, &o.files)
	if err != nil {
		return err
	}
	if err := p.findProtected(o.prune.prune).Err(); err != nil {
		return err
	}
	c := p.client
	if err := checkApplyDowngrade(ctx, c, o.downgrade); err != nil {
		return toFailure(err)
	}
	rest := findExtraObjects(p.live, p.file)
	objects := p.file.Objects()
	applier, err := apply.NewSnapshot(c, p.lists...)
	if err != nil {
		return toFailure(err)
	}
	if _, err := applier.Diff(ctx, objects...); err != nil {
		return failuref("nothing was written: %w", explainUnreachable(err))
	}
	var pruned []client.Object
	if o.prune.prune {
		pruned = rest.listObjects()
	}
	conflicts, err := p.findConflicts(objects, pruned)
	if err != nil {
		return toFailure(explainUnreachable(err))
	}
	if err := a.checkConflicts(conflicts, o.force); err != nil {
		return err
	}
	if o.prune.prune && !rest.isEmpty() {
		if err := rest.confirmPruning(ctx, a, c, o.prune.yes); err != nil {
			return err
		}
	}
	mine, helms := objects, []apply.Change(nil)
	if !o.force {
		mine, helms = p.splitHelmManaged(objects)
	}
	changes, err := a.writeObjects(ctx, c, applier, mine, rest, o)
	if o.output == formatText {
		a.printChanges(helms)
	}
	changes = append(changes, helms...)
	if err == nil && !o.prune.prune {
		rest.printLeftAlone(a)
	}
	if err == nil {
		err = a.warnIfNoOperator(ctx, c)
	}
	if err == nil && o.wait {
		err = a.awaitReady(ctx, c, objects, p.getUnchangedObjects(changes), o.timeout)
	}
	return errors.Join(a.printApplyReport(ctx, c, o.output, changes, objects), toFailure(explainUnreachable(err)))
}

// getUnchangedObjects returns the cluster's declared objects if the command did not change one, and nil otherwise.
func (p *proposal) getUnchangedObjects(changes []apply.Change) *manifest.Declaration {
	if slices.ContainsFunc(changes, func(c apply.Change) bool { return c.Action != apply.Unchanged }) {
		return nil
	}
	return p.live
}

// writeObjects deletes the objects to prune and applies the others, in an order in which no
// dependency is missing in between, and prints the outcome of each.
func (a *app) writeObjects(ctx context.Context, c client.Client, applier *apply.Applier, objects []client.Object, rest *extraObjects, o *applyOptions) ([]apply.Change, error) {
	var all []apply.Change
	tell := func(changes ...apply.Change) {
		all = append(all, changes...)
		if o.output == formatText {
			a.printChanges(changes)
		}
	}
	if o.prune.prune {
		if err := rest.deleteTenants(ctx, a, c, o, tell); err != nil {
			return all, err
		}
	}
	var errs []error
	for len(objects) > 0 && ctx.Err() == nil {
		// Objects of one kind do not depend on each other.
		kind := objects[0].GetObjectKind().GroupVersionKind()
		n := slices.IndexFunc(objects, func(o client.Object) bool { return o.GetObjectKind().GroupVersionKind() != kind })
		if n < 0 {
			n = len(objects)
		}
		changes, err := applier.ApplyEach(ctx, objects[:n]...)
		tell(changes...)
		errs = append(errs, err)
		objects = objects[n:]
	}
	err := errors.Join(append(errs, ctx.Err())...)
	if err == nil && o.prune.prune {
		err = rest.deleteRest(ctx, c, tell)
	}
	return all, err
}
