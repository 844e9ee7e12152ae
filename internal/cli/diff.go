package cli

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/apply"
	"croft.dev/croft/internal/estate"
	"croft.dev/croft/internal/manifest"
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
		Short: "Show the changes that applying a file would make",
		Long: `Show the changes that applying a file would make: to the declared objects, and to
the objects that croft renders from them. Exit status 0 means no difference, 1
differences, or a failure with a message on standard error.

With -o json or yaml standard output has one object:

  changes:
  - kind: NetworkPolicy
    namespace: shop     # left out where there is none
    name: croft-dns
    action: update      # or create, delete
    diff: |             # unified, of the object's YAML
      --- NetworkPolicy shop/croft-dns (live)
      ...`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			files.whole = prune.prune
			c, file, e, err := a.propose(cmd.Context(), &files)
			if err != nil {
				return err
			}
			applier := apply.New(c)
			differences, err := difference(cmd.Context(), c, applier, file, e)
			rest, restErr := beyondFile(cmd.Context(), c, file)
			switch {
			case restErr != nil:
				err = errors.Join(err, restErr)
			case prune.prune:
				deleted, deletedErr := rest.difference(cmd.Context(), c, applier)
				differences = append(differences, deleted...)
				err = errors.Join(err, deletedErr)
			default:
				rest.mention(a)
			}
			if output != formatText {
				if told := output.print(a.out, diffReportOf(differences)); told != nil {
					return told
				}
			} else {
				say(a.out, "%s", differences)
			}
			if err != nil {
				return failed(unreachable(err))
			}
			if len(differences) > 0 {
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

// difference returns the planned writes and, for the tenants and pools in the file, the
// planned deletions.
func difference(ctx context.Context, c client.Reader, applier *apply.Applier, file *manifest.Declaration, e *estate.Estate) (apply.Differences, error) {
	all, err := applier.Diff(ctx, append(file.Objects(), wall.Objects(e)...)...)
	errs := []error{err}
	for i := range file.Tenants {
		tenant := e.Tenant(file.Tenants[i].Name)
		if tenant == nil {
			continue // refused, and said to be
		}
		keep := wall.TenantObjects(&e.Platform, tenant)
		prune := func(namespace string, kinds ...schema.GroupVersionKind) {
			pruned, err := applier.DiffPrune(ctx, apply.OfTenant(tenant.Name), namespace, keep, kinds...)
			all = append(all, pruned...)
			errs = append(errs, err)
		}
		for _, namespace := range tenant.Namespaces {
			prune(namespace, slices.Concat(apply.TenantKinds, apply.DialectKinds, apply.OptionalKinds)...)
		}
		prune("", slices.Concat(apply.ClusterDialectKinds, apply.GatekeeperTenantKinds)...)
		withdrawn, err := withdrawals(ctx, c, applier, tenant.Name, tenant.Deletion, tenant.Namespaces)
		all = append(all, withdrawn...)
		errs = append(errs, err)
	}
	for i := range file.Pools {
		pool := e.Pool(file.Pools[i].Name)
		if pool == nil {
			continue // refused, and said to be
		}
		pruned, err := applier.DiffPrune(ctx, apply.OfPool(pool.Name), "", wall.PoolObjects(&e.Platform, pool), apply.PoolKinds...)
		all = append(all, pruned...)
		errs = append(errs, err)
	}
	return all, errors.Join(errs...)
}
