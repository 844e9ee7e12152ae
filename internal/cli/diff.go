package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/consequence"
	"croft.dev/croft/internal/declare/wording"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/walls/wall"
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
former pool, people who lose access, protected tenants that croft apply refuses to
delete, and fields that it refuses to overwrite without --force.
docs/reference/changes.md lists the effects of each field.

Exit status 0 means no difference, 1 differences, and 2 a failure or bad input.

With -o json or yaml, standard output gets one object:

  changes:
  - kind: NetworkPolicy
    namespace: shop     # omitted if there is none
    name: croft-dns
    action: update      # or create, delete
    diff: |             # unified, of the object's YAML
      --- NetworkPolicy shop/croft-dns (live)
      ...
  consequences:
  - kind: Nodes         # or Pods, Access, Namespaces, Protection
    object: Pool/apps
    message: replaces 4 nodes of pool apps ...
  conflicts:
  - object: Tenant/shop
    manager: kubectl-edit
    fields: [spec.quota]`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			files.whole = prune.prune
			report, err := a.buildDiffPlan(cmd.Context(), &files, prune.prune)
			if report != nil {
				if printErr := a.printDiff(report, output); printErr != nil {
					return printErr
				}
			}
			if err != nil {
				return withStatus(exitBadInput, err)
			}
			if len(report.differences) > 0 {
				return errReported()
			}
			return nil
		},
	}
	files.addFlags(c)
	output.addFlags(c, formatText, formatJSON, formatYAML)
	prune.addFlags(c, "also show the deletion of")
	return c
}

// diffPlan lists the effects of applying a file, before it is applied.
type diffPlan struct {
	differences  apply.Differences
	consequences []consequence.Consequence
	conflicts    []apply.Conflict
}

// buildDiffPlan returns the differences found so far even if it returns an error.
func (a *app) buildDiffPlan(ctx context.Context, files *fileFlags, prune bool) (*diffPlan, error) {
	p, err := a.propose(ctx, files)
	if err != nil {
		return nil, err
	}
	applier, err := p.newApplier()
	if err != nil {
		return nil, toFailure(err)
	}
	namespaces, namespacesErr := p.listNamespaces(ctx)
	owned := groupByTenant(namespaces)
	differences, err := p.diffObjects(ctx, applier, owned)
	rest := findExtraObjects(p.live, p.file)
	var pruned []client.Object
	if prune {
		pruned = rest.listObjects()
		deleted, deletedErr := rest.diffDeletions(ctx, applier, owned)
		differences = append(differences, deleted...)
		err = errors.Join(err, deletedErr)
	} else {
		rest.printLeftAlone(a)
	}
	consequences, consequencesErr := p.findConsequences(ctx, namespaces)
	consequences = append(consequences, p.describeProtection(prune)...)
	conflicts, conflictsErr := p.findConflicts(p.file.Objects(), pruned)
	return &diffPlan{differences, consequences, conflicts}, toFailure(explainUnreachable(errors.Join(err, namespacesErr, consequencesErr, conflictsErr)))
}

// printDiff prints nothing if there is no difference, so that scripts may test for it.
func (a *app) printDiff(p *diffPlan, output format) error {
	if output != formatText {
		return output.print(a.out, newDiffReport(p))
	}
	printSafely(a.out, "%s", p.differences)
	if len(p.differences) > 0 {
		printSafely(a.out, "\n%s\n", summarizeDiff(p.differences))
	}
	for _, c := range p.consequences {
		printSafely(a.out, "  - %s\n", escapeLine(c.Message))
	}
	for _, c := range p.conflicts {
		printSafely(a.out, "  - croft apply needs --force for %s\n", escapeLine(c.String()))
	}
	return nil
}

func summarizeDiff(differences apply.Differences) string {
	n := map[apply.Action]int{}
	for _, d := range differences {
		n[d.Action]++
	}
	return wording.FormatCount(len(differences), "change") + ": " + wording.FormatCount(n[apply.Created], "object") + " to create, " +
		wording.FormatCount(n[apply.Configured], "object") + " to update, " + wording.FormatCount(n[apply.Deleted], "object") + " to delete"
}

// manyTenants is the number of tenants from which diff lists the walls' kinds once, in the whole cluster,
// instead of sending requests for each tenant's objects. For a small file, such lists would be the greater
// cost: a cluster can have many objects that are not croft's.
const manyTenants = 20

// newApplier returns an Applier that compares with the walls in the cluster.
func (p *proposal) newApplier() (*apply.Applier, error) {
	if len(p.file.Tenants) < manyTenants {
		return apply.New(p.client), nil
	}
	return apply.NewSnapshot(p.client, p.lists...)
}

// diffObjects returns the planned writes. It includes the planned deletions of cluster-wide
// objects and of the walls' objects of the tenants and pools in the file. owned has the namespaces of each tenant.
func (p *proposal) diffObjects(ctx context.Context, applier *apply.Applier, owned map[string][]corev1.Namespace) (apply.Differences, error) {
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
		tenant := e.FindTenant(p.file.Tenants[i].Name)
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
		add(diffWithdrawals(ctx, applier, tenant.Name, tenant.Deletion, owned[tenant.Name], tenant.Namespaces))
	}
	for i := range p.file.Pools {
		pool := e.FindPool(p.file.Pools[i].Name)
		if pool == nil {
			continue // refused; the problems are reported elsewhere
		}
		add(applier.DiffPrune(ctx, apply.OfPool(pool.Name), "", wall.PoolObjects(&e.Platform, pool), apply.PoolKinds...))
	}
	return all, errors.Join(errs...)
}

// listNamespaces returns the namespaces of all tenants.
func (p *proposal) listNamespaces(ctx context.Context) ([]corev1.Namespace, error) {
	var all corev1.NamespaceList
	if err := p.client.List(ctx, &all, client.HasLabels{v1alpha1.TenantLabel}); err != nil {
		return nil, fmt.Errorf("list namespaces of tenants: %w", err)
	}
	return all.Items, nil
}

// groupByTenant returns the namespaces of each tenant.
func groupByTenant(namespaces []corev1.Namespace) map[string][]corev1.Namespace {
	owned := map[string][]corev1.Namespace{}
	for i := range namespaces {
		tenant := namespaces[i].Labels[v1alpha1.TenantLabel]
		owned[tenant] = append(owned[tenant], namespaces[i])
	}
	return owned
}
