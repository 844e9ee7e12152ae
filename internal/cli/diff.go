package cli

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/apply"
	"croft.dev/croft/internal/consequence"
	"croft.dev/croft/internal/wall"
)

func newDiff(a *app) *cobra.Command {
	var (
		files  fileFlags
		prune  pruneFlags
		output format
	)
	c := &cobra.Command{
		Use:   "diff -f FILE",
		Short: "Show the changes that applying a file would make, and their consequences",
		Long: `Show the changes that applying a file would make: to the declared objects, and to
the objects that croft renders from them, with deletions. Below them are the number of
changes and their consequences: nodes that Karpenter replaces, pods that stay on a
former pool, people who lose access, and fields that croft apply refuses to overwrite
without --force. docs/changes.md lists the effects of each field.

Exit status 0 means no difference, 1 differences, and 2 a failure or bad input.

With -o json or yaml standard output has one object:

  changes:
  - kind: NetworkPolicy
    namespace: shop     # left out where there is none
    name: croft-dns
    action: update      # or create, delete
    diff: |             # unified, of the object's YAML
      --- NetworkPolicy shop/croft-dns (live)
      ...
  consequences:
  - kind: Nodes         # or Pods, Access, Namespaces
    object: Pool/apps
    message: replaces 4 nodes of pool apps ...
  conflicts:
  - object: Tenant/shop
    manager: kubectl-edit
    fields: [spec.quota]`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			files.whole = prune.prune
			report, err := a.diff(cmd.Context(), &files, prune.prune)
			if report != nil {
				if told := a.printDiff(report, output); told != nil {
					return told
				}
			}
			if err != nil {
				return withStatus(exitBadInput, err)
			}
			if len(report.differences) > 0 {
				return errTold()
			}
			return nil
		},
	}
	files.add(c)
	output.add(c, formatText, formatJSON, formatYAML)
	prune.add(c, "show, too, the deletion of")
	return c
}

// planned lists the effects of applying a file, before it is applied.
type planned struct {
	differences  apply.Differences
	consequences []consequence.Consequence
	conflicts    []apply.Conflict
}

// diff returns the differences found so far even if it returns an error.
func (a *app) diff(ctx context.Context, files *fileFlags, prune bool) (*planned, error) {
	p, err := a.propose(ctx, files)
	if err != nil {
		return nil, err
	}
	applier := apply.New(p.client)
	differences, err := p.difference(ctx, applier)
	rest := beyondFile(p.live, p.file)
	var pruned []client.Object
	if prune {
		pruned = rest.objects()
		deleted, deletedErr := rest.difference(ctx, p.client, applier)
		differences = append(differences, deleted...)
		err = errors.Join(err, deletedErr)
	} else {
		rest.mention(a)
	}
	consequences, consequencesErr := p.consequences(ctx)
	conflicts, conflictsErr := p.conflicts(p.file.Objects(), pruned)
	return &planned{differences, consequences, conflicts}, failed(unreachable(errors.Join(err, consequencesErr, conflictsErr)))
}

// printDiff prints nothing if there is no difference, so that scripts may test for it.
func (a *app) printDiff(p *planned, output format) error {
	if output != formatText {
		return output.print(a.out, diffReportOf(p))
	}
	say(a.out, "%s", p.differences)
	if len(p.differences) > 0 {
		say(a.out, "\n%s\n", summaryOf(p.differences))
	}
	for _, c := range p.consequences {
		say(a.out, "  - %s\n", inline(c.Message))
	}
	for _, c := range p.conflicts {
		say(a.out, "  - croft apply needs --force for %s\n", inline(c.String()))
	}
	return nil
}

func summaryOf(differences apply.Differences) string {
	n := map[apply.Action]int{}
	for _, d := range differences {
		n[d.Action]++
	}
	return count(len(differences), "change") + ": " + count(n[apply.Created], "object") + " to create, " +
		count(n[apply.Configured], "object") + " to update, " + count(n[apply.Deleted], "object") + " to delete"
}

// difference returns the planned writes. It includes the planned deletions of cluster-wide
// objects and of the walls' objects of the tenants and pools in the file.
func (p *proposal) difference(ctx context.Context, applier *apply.Applier) (apply.Differences, error) {
	e := p.after
	all, err := applier.Diff(ctx, append(p.file.Objects(), wall.Objects(e)...)...)
	errs := []error{err}
	add := func(differences apply.Differences, err error) {
		all = append(all, differences...)
		errs = append(errs, err)
	}
	add(applier.DiffPrune(ctx, apply.OfPlatform(), "", wall.PlatformObjects(&e.Platform),
		slices.Concat(apply.PlatformKinds, apply.NativePlatformKinds, apply.GatekeeperPlatformKinds)...))
	for i := range p.file.Tenants {
		tenant := e.Tenant(p.file.Tenants[i].Name)
		if tenant == nil {
			continue // refused; the problems are reported elsewhere
		}
		keep := wall.TenantObjects(&e.Platform, tenant)
		prune := func(namespace string, kinds ...schema.GroupVersionKind) {
			add(applier.DiffPrune(ctx, apply.OfTenant(tenant.Name), namespace, keep, kinds...))
		}
		for _, namespace := range tenant.Namespaces {
			prune(namespace, slices.Concat(apply.TenantKinds, apply.DialectKinds, apply.OptionalKinds)...)
		}
		prune("", slices.Concat(apply.ClusterDialectKinds, apply.GatekeeperTenantKinds)...)
		add(withdrawals(ctx, p.client, applier, tenant.Name, tenant.Deletion, tenant.Namespaces))
	}
	for i := range p.file.Pools {
		pool := e.Pool(p.file.Pools[i].Name)
		if pool == nil {
			continue // refused; the problems are reported elsewhere
		}
		add(applier.DiffPrune(ctx, apply.OfPool(pool.Name), "", wall.PoolObjects(&e.Platform, pool), apply.PoolKinds...))
	}
	return all, errors.Join(errs...)
}
