package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/declare/wording"
	"croft.dev/croft/internal/rules/admissionpolicy"
)

func newDeletePool(a *app) *cobra.Command {
	var (
		yes     bool
		timeout time.Duration
	)
	c := &cobra.Command{
		Use:   "pool NAME",
		Short: "Delete a pool that no tenant uses, after listing its nodes",
		Long: `Delete a pool that no tenant uses, after listing its nodes. Karpenter drains them
first. If tenants use the pool, the command names them and deletes nothing; likewise if
the pool has nodes, and retained namespaces of deleted tenants belong on it.`,
		Args: requireOneName("pool"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.newClient()
			if err != nil {
				return toFailure(err)
			}
			return a.deletePool(cmd.Context(), c, args[0], yes, timeout)
		},
	}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask for confirmation")
	c.Flags().DurationVar(&timeout, "wait-timeout", 5*time.Minute, "how long to wait until the pool is deleted")
	return c
}

func (a *app) deletePool(ctx context.Context, c client.Client, name string, yes bool, timeout time.Duration) error {
	live, err := readDeclaration(ctx, c)
	if err != nil {
		return toFailure(err)
	}
	i := slices.IndexFunc(live.Pools, func(p v1alpha1.Pool) bool { return p.Name == name })
	if i < 0 {
		return fmt.Errorf("there is no pool %s: `croft status` lists the pools", name)
	}
	if users := listPoolUsers(name, live.Tenants); len(users) > 0 {
		return failuref("pool %s is used by %s %s: give each tenant another pool, or delete it, first", name, wording.FormatNoun(len(users), "tenant"), strings.Join(users, ", "))
	}
	nodes, err := countNodes(ctx, c, live, name)
	if err != nil {
		return toFailure(explainUnreachable(err))
	}
	if left, err := listRetainedOnPool(ctx, c, live.Tenants, name); err != nil {
		return toFailure(explainUnreachable(err))
	} else if len(left) > 0 && nodes != 0 {
		return failuref("pool %s has nodes, and is the pool of the retained %s %s: first declare these tenants again, or delete the namespaces",
			name, wording.FormatNoun(len(left), "namespace"), strings.Join(left, ", "))
	}
	printSafely(a.err, "Deleting pool %s:\n  - no tenant uses it\n  - its %s drained and deleted\n", name, describeNodes(nodes))
	if !yes && !a.confirmName("pool", name) {
		return failuref("nothing was deleted")
	}
	pool := &live.Pools[i]
	// A pool of the same name that was created in the meantime has another UID.
	if err := client.IgnoreNotFound(c.Delete(ctx, pool, client.Preconditions{UID: ptr.To(pool.UID)})); err != nil {
		return toFailure(explainUnreachable(err))
	}
	return a.awaitDeleted(ctx, c, pool, "pool", timeout)
}

// listPoolUsers returns the tenants that name a pool.
func listPoolUsers(pool string, tenants []v1alpha1.Tenant) []string {
	var users []string
	for _, t := range tenants {
		if t.Spec.Pool == pool || slices.Contains(t.Spec.Pools, pool) {
			users = append(users, t.Name)
		}
	}
	return users
}

// listRetainedOnPool returns the namespaces of deleted tenants whose pods belong on a pool.
func listRetainedOnPool(ctx context.Context, c client.Reader, tenants []v1alpha1.Tenant, pool string) ([]string, error) {
	var namespaces corev1.NamespaceList
	if err := c.List(ctx, &namespaces, client.HasLabels{v1alpha1.TenantLabel}); err != nil {
		return nil, err
	}
	var names []string
	for _, n := range admissionpolicy.FindNamespacesOnPool(pool, namespaces.Items) {
		// A tenant may have just left the pool; its namespaces still have the pool until
		// the operator reconciles.
		if !slices.ContainsFunc(tenants, func(t v1alpha1.Tenant) bool { return t.Name == n.Labels[v1alpha1.TenantLabel] }) {
			names = append(names, n.Name+" (of tenant "+n.Labels[v1alpha1.TenantLabel]+")")
		}
	}
	return names, nil
}

// countNodes returns the number of nodes with a pool's label, or -1 if the caller may not list
// nodes.
func countNodes(ctx context.Context, c client.Reader, live *manifest.Declaration, pool string) (int, error) {
	key := v1alpha1.DefaultNodePoolKey
	if len(live.Platforms) > 0 && live.Platforms[0].Spec.NodePoolKey != "" {
		key = live.Platforms[0].Spec.NodePoolKey
	}
	var nodes corev1.NodeList
	err := c.List(ctx, &nodes, client.MatchingLabels{key: pool})
	if apierrors.IsForbidden(err) {
		return -1, nil // the number is only shown to the user
	}
	return len(nodes.Items), err
}

func describeNodes(nodes int) string {
	switch nodes {
	case -1:
		return "nodes (which you may not list) are"
	case 1:
		return "1 node is"
	default:
		return wording.FormatCount(nodes, "node") + " are"
	}
}
