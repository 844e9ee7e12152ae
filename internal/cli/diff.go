package cli

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"croft.dev/croft/internal/apply"
	"croft.dev/croft/internal/estate"
	"croft.dev/croft/internal/wall"
)

func newDiff(a *app) *cobra.Command {
	var files fileFlags
	c := &cobra.Command{
		Use:   "diff -f FILE",
		Short: "Show what applying a file would change in the cluster",
		Long: `Show what applying a file would change in the cluster: the declared objects and
everything that croft would make of them. Exit status 0 means no difference, 1 that
there are some (or that something failed), as with kubectl diff.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, file, e, err := a.propose(cmd.Context(), &files)
			if err != nil {
				return err
			}
			differences, err := difference(cmd.Context(), apply.New(c), file, e)
			say(a.out, "%s", differences)
			if err != nil {
				return failed(unreachable(err))
			}
			if differences != "" {
				return errTold()
			}
			return nil
		},
	}
	files.add(c)
	return c
}

// difference is what would be written and, of the tenants in the file, what
// would be taken away.
func difference(ctx context.Context, applier *apply.Applier, file *estate.Declaration, e *estate.Estate) (string, error) {
	all, err := applier.Diff(ctx, append(file.Objects(), wall.Objects(e)...)...)
	errs := []error{err}
	for i := range file.Tenants {
		tenant := e.Tenant(file.Tenants[i].Name)
		keep := wall.TenantObjects(&e.Platform, tenant)
		prune := func(namespace string, kinds ...schema.GroupVersionKind) {
			text, err := applier.DiffPrune(ctx, apply.OfTenant(tenant.Name), namespace, keep, kinds...)
			all += text
			errs = append(errs, err)
		}
		for _, namespace := range tenant.Namespaces {
			prune(namespace, slices.Concat(apply.TenantKinds, apply.DialectKinds)...)
		}
		prune("", slices.Concat(apply.ClusterDialectKinds, apply.GatekeeperTenantKinds)...)
	}
	return all, errors.Join(errs...)
}
