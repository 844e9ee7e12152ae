package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/operate/apply"
)

// pruneFlags select the deletion of objects in the cluster that are not in the file.
type pruneFlags struct{ prune, yes bool }

func (f *pruneFlags) addFlags(c *cobra.Command, does string) {
	c.Flags().BoolVar(&f.prune, "prune", false, does+" tenants, pools and secondary networks that the cluster has and the file does not name")
}

// extraObjects contains the declared objects of the cluster that are not in the file, except the
// Platform.
type extraObjects struct {
	tenants  []v1alpha1.Tenant
	pools    []v1alpha1.Pool
	networks []v1alpha1.SecondaryNetwork
}

func findExtraObjects(live, file *manifest.Declaration) *extraObjects {
	b := &extraObjects{
		tenants:  excludeNamed(live.Tenants, file.Tenants, func(t v1alpha1.Tenant) string { return t.Name }),
		pools:    excludeNamed(live.Pools, file.Pools, func(p v1alpha1.Pool) string { return p.Name }),
		networks: excludeNamed(live.Networks, file.Networks, func(n v1alpha1.SecondaryNetwork) string { return n.Name }),
	}
	for i := range b.tenants {
		b.tenants[i].SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Tenant"))
	}
	for i := range b.pools {
		b.pools[i].SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Pool"))
	}
	for i := range b.networks {
		b.networks[i].SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("SecondaryNetwork"))
	}
	return b
}

// listObjects returns all objects, tenants first.
func (b *extraObjects) listObjects() []client.Object {
	var all []client.Object
	for i := range b.tenants {
		all = append(all, &b.tenants[i])
	}
	for i := range b.pools {
		all = append(all, &b.pools[i])
	}
	for i := range b.networks {
		all = append(all, &b.networks[i])
	}
	return all
}

func (b *extraObjects) isEmpty() bool { return len(b.tenants)+len(b.pools)+len(b.networks) == 0 }

// String returns a list such as "tenants a, b and pool c".
func (b *extraObjects) String() string {
	var parts []string
	add := func(noun string, names []string) {
		switch len(names) {
		case 0:
			return
		case 1:
		default:
			noun += "s"
		}
		parts = append(parts, noun+" "+strings.Join(names, ", "))
	}
	add("tenant", listFirstNames(b.tenants, func(t v1alpha1.Tenant) string { return t.Name }))
	add("pool", listFirstNames(b.pools, func(p v1alpha1.Pool) string { return p.Name }))
	add("secondary network", listFirstNames(b.networks, func(n v1alpha1.SecondaryNetwork) string { return n.Name }))
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	last := len(parts) - 1
	return strings.Join(parts[:last], ", ") + " and " + parts[last]
}

// mostNames is the maximum number of names of one kind in a line.
const mostNames = 10

func listFirstNames[T any](all []T, name func(T) string) []string {
	var names []string
	for i, o := range all {
		if i == mostNames {
			return append(names, fmt.Sprintf("%d more", len(all)-i))
		}
		names = append(names, name(o))
	}
	return names
}

// printLeftAlone lists the objects in one line.
func (b *extraObjects) printLeftAlone(a *app) {
	if !b.isEmpty() {
		printSafely(a.err, "the cluster also has %s, which this file does not name: they stay; --prune deletes them\n", b)
	}
}

// diffDeletions shows the objects that pruning would delete. owned has the namespaces of each tenant.
func (b *extraObjects) diffDeletions(ctx context.Context, applier *apply.Applier, owned map[string][]corev1.Namespace) (apply.Differences, error) {
	var all apply.Differences
	var errs []error
	add := func(differences apply.Differences, err error) {
		all = append(all, differences...)
		errs = append(errs, err)
	}
	for i := range b.tenants {
		tenant := &b.tenants[i]
		add(apply.DiffDeleted(tenant))
		add(diffWithdrawals(ctx, applier, tenant.Name, tenant.Spec.Deletion, owned[tenant.Name], nil))
	}
	for i := range b.pools {
		add(apply.DiffDeleted(&b.pools[i]))
		add(applier.DiffPrune(ctx, apply.OfPool(b.pools[i].Name), "", nil, slices.Concat(apply.PoolKinds, apply.ReadinessKinds)...))
	}
	for i := range b.networks {
		add(apply.DiffDeleted(&b.networks[i]))
	}
	return all, errors.Join(errs...)
}

// diffWithdrawals shows the objects that are deleted in the namespaces of a tenant that it does not keep.
func diffWithdrawals(ctx context.Context, applier *apply.Applier, tenant string, policy v1alpha1.DeletionPolicy, owned []corev1.Namespace, keep []string) (apply.Differences, error) {
	var all apply.Differences
	var errs []error
	for i := range owned {
		namespace := &owned[i]
		if slices.Contains(keep, namespace.Name) {
			continue
		}
		withdrawn, err := applier.DiffWithdraw(ctx, namespace, tenant, policy)
		all = append(all, withdrawn...)
		errs = append(errs, err)
	}
	return all, errors.Join(errs...)
}

// confirmPruning shows the effect of pruning on each object and asks for confirmation. Without a
// terminal, nothing is deleted.
func (b *extraObjects) confirmPruning(ctx context.Context, a *app, c client.Reader, yes bool) error {
	printSafely(a.err, "Deleting %s, which this file does not name:\n", b)
	for i := range b.tenants {
		consequences, err := describeDeletion(ctx, c, &b.tenants[i])
		if err != nil {
			return toFailure(explainUnreachable(err))
		}
		printSafely(a.err, "Tenant %s (deletion: %s):\n%s", b.tenants[i].Name, b.tenants[i].Spec.Deletion, consequences)
	}
	for i := range b.pools {
		printSafely(a.err, "Pool %s:\n  - its nodes are drained and removed\n", b.pools[i].Name)
	}
	for i := range b.networks {
		printSafely(a.err, "SecondaryNetwork %s:\n  - no pool of this file uses it\n", b.networks[i].Name)
	}
	if yes {
		return nil
	}
	if file, ok := a.in.(*os.File); !ok || !isatty.IsTerminal(file.Fd()) {
		return failuref("nothing was written: --prune asks for a confirmation, and standard input is not a terminal: use a terminal, or add --yes")
	}
	printSafely(a.err, "Type yes to continue: ")
	if a.readAnswer() != "yes" {
		return failuref("nothing was written")
	}
	return nil
}

// deleteTenants runs before the file's objects are written: a tenant of the file may take
// over a deleted tenant's domain or namespace.
func (b *extraObjects) deleteTenants(ctx context.Context, a *app, c client.Client, o *applyOptions, tell func(...apply.Change)) error {
	for i := range b.tenants {
		if err := deleteDeclared(ctx, c, &b.tenants[i], tell); err != nil {
			return err
		}
	}
	for i := range b.tenants {
		if !o.wait {
			return nil
		}
		if err := a.awaitTenantDeleted(ctx, c, &b.tenants[i], o.timeout); err != nil {
			return err
		}
	}
	return nil
}

// deleteRest runs after the file's objects are written: until then a tenant of the file may
// use a pool that is not in the file.
func (b *extraObjects) deleteRest(ctx context.Context, c client.Client, tell func(...apply.Change)) error {
	for i := range b.pools {
		if err := deleteDeclared(ctx, c, &b.pools[i], tell); err != nil {
			return err
		}
	}
	for i := range b.networks {
		if err := deleteDeclared(ctx, c, &b.networks[i], tell); err != nil {
			return err
		}
	}
	return nil
}

// deleteDeclared deletes an object, unless it was recreated since it was shown.
func deleteDeclared(ctx context.Context, c client.Client, o client.Object, tell func(...apply.Change)) error {
	ref := apply.RefOf(o)
	if err := c.Delete(ctx, o, client.Preconditions{UID: ptr.To(o.GetUID())}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("%s: delete: %w", ref, err)
	}
	tell(apply.Change{Ref: ref, Action: apply.Deleted})
	return nil
}
