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
	"croft.dev/croft/internal/admissionpolicy"
	"croft.dev/croft/internal/manifest"
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
first. If tenants use the pool, or if it has nodes and namespaces of deleted tenants are left,
the command names them and deletes nothing.`,
		Args: oneName("pool"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return failed(err)
			}
			return a.deletePool(cmd.Context(), c, args[0], yes, timeout)
		},
	}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	c.Flags().DurationVar(&timeout, "wait-timeout", 5*time.Minute, "how long to wait until the pool is gone")
	return c
}

func (a *app) deletePool(ctx context.Context, c client.Client, name string, yes bool, timeout time.Duration) error {
	live, err := declared(ctx, c)
	if err != nil {
		return failed(err)
	}
	i := slices.IndexFunc(live.Pools, func(p v1alpha1.Pool) bool { return p.Name == name })
	if i < 0 {
		return fmt.Errorf("there is no pool %s: `croft status` lists those that there are", name)
	}
	if users := usersOf(name, live.Tenants); len(users) > 0 {
		return failedf("pool %s is used by %s %s: give another pool to each, or delete it, first", name, nounOf(len(users), "tenant"), strings.Join(users, ", "))
	}
	nodes, err := nodesOf(ctx, c, live, name)
	if err != nil {
		return failed(unreachable(err))
	}
	if left, err := retainedOn(ctx, c, live.Tenants, name); err != nil {
		return failed(unreachable(err))
	} else if len(left) > 0 && nodes != 0 {
		return failedf("pool %s has nodes, and deleted tenants have left %s whose pods belong on them: %s: declare these tenants again, or delete what they left, first",
			name, nounOf(len(left), "namespace"), strings.Join(left, ", "))
	}
	say(a.err, "Deleting pool %s:\n  - no tenant uses it\n  - its %s drained, and deleted\n", name, going(nodes))
	if !yes && !a.confirmedName("pool", name) {
		return failedf("nothing was deleted")
	}
	pool := &live.Pools[i]
	// A pool of the same name that was created in the meantime has another UID.
	if err := client.IgnoreNotFound(c.Delete(ctx, pool, client.Preconditions{UID: ptr.To(pool.UID)})); err != nil {
		return failed(unreachable(err))
	}
	return a.awaitDeleted(ctx, c, pool, "pool", timeout)
}

// usersOf returns the tenants that name a pool.
func usersOf(pool string, tenants []v1alpha1.Tenant) []string {
	var users []string
	for _, t := range tenants {
		if t.Spec.Pool == pool || slices.Contains(t.Spec.Pools, pool) {
			users = append(users, t.Name)
		}
	}
	return users
}

// retainedOn returns the namespaces of deleted tenants whose pods belong on a pool.
func retainedOn(ctx context.Context, c client.Reader, tenants []v1alpha1.Tenant, pool string) ([]string, error) {
	var namespaces corev1.NamespaceList
	if err := c.List(ctx, &namespaces, client.HasLabels{v1alpha1.TenantLabel}); err != nil {
		return nil, err
	}
	var names []string
	for _, n := range admissionpolicy.OnPool(pool, namespaces.Items) {
		// A tenant may have just left the pool; its namespaces still have the pool until
		// the operator reconciles.
		if !slices.ContainsFunc(tenants, func(t v1alpha1.Tenant) bool { return t.Name == n.Labels[v1alpha1.TenantLabel] }) {
			names = append(names, n.Name+" (of tenant "+n.Labels[v1alpha1.TenantLabel]+")")
		}
	}
	return names, nil
}

// nodesOf returns the number of nodes with a pool's label, or -1 if the caller may not list
// nodes.
func nodesOf(ctx context.Context, c client.Reader, live *manifest.Declaration, pool string) (int, error) {
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

func going(nodes int) string {
	switch nodes {
	case -1:
		return "nodes (you may not list them) are"
	case 1:
		return "1 node is"
	default:
		return count(nodes, "node") + " are"
	}
}

func nounOf(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}
