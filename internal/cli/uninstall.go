package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/declare/wording"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/install"
)

type uninstallOptions struct {
	all, yes bool
	timeout  time.Duration
}

func newUninstall(a *app) *cobra.Command {
	var o uninstallOptions
	c := &cobra.Command{
		Use:   "uninstall",
		Short: "Remove croft, after showing what is removed and what stays",
		Long: `Remove the operator, croft proxy, croft agent and their rights, after a confirmation that
lists what is removed and what stays. Tenants, pools, namespaces, workloads, nodes, walls
and croft's kinds stay: the API server still enforces the walls, and after the next croft
install an operator manages all of them again. Without an operator, changes of walls are
not reverted, temporary access does not expire, and Tenants and Pools cannot be deleted.
Elevations end.

With --all the command removes everything, in the order of dependencies: tenants, by
their field deletion; namespaces that stay lose their walls and keep their workloads;
pools, whose nodes Karpenter drains; then the operator, the cluster-wide policies,
croft's kinds and its namespaces. The operator has to run for --all, since it removes
the finalizers. After an interruption, run the same command again to continue.

A release of the chart is removed with helm uninstall.`,
		Example: `  croft uninstall
  croft uninstall --all`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runUninstall(cmd.Context(), &o) },
	}
	c.Flags().BoolVar(&o.all, "all", false, "also remove tenants, pools, walls and croft's kinds")
	c.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask for confirmation")
	c.Flags().DurationVar(&o.timeout, "wait-timeout", 10*time.Minute, "with --all: how long to wait for each tenant and pool")
	refusePointlessFlags(c, "only --all waits", func() bool { return !o.all }, "wait-timeout")
	return c
}

func (a *app) runUninstall(ctx context.Context, o *uninstallOptions) error {
	c, err := a.newClient()
	if err != nil {
		return toFailure(err)
	}
	if err := checkNotHelm(ctx, c, "helm uninstall %s -n %s removes it"); err != nil {
		return toFailure(explainUnreachable(err))
	}
	live, err := readDeclarationIfServed(ctx, c)
	if err != nil {
		return toFailure(err)
	}
	if o.all {
		if err := errProtected(live.Tenants...); err != nil {
			return err
		}
	}
	plan, err := describeUninstall(ctx, c, live, o.all)
	if err != nil {
		return toFailure(explainUnreachable(err))
	}
	printSafely(a.err, "%s", plan)
	if o.all && len(live.Tenants)+len(live.Pools) > 0 {
		if err := checkOperatorWorks(ctx, c); err != nil {
			return toFailure(err)
		}
	}
	if !o.yes {
		printSafely(a.err, "Type yes to continue: ")
		if a.readAnswer() != "yes" {
			return failuref("nothing was removed")
		}
	}
	return toFailure(explainUnreachable(a.removeCroft(ctx, c, live, o)))
}

// checkOperatorWorks returns an error if no operator runs, or if an earlier uninstall deleted
// its rights: the deletion of tenants and pools would wait for it for ever.
func checkOperatorWorks(ctx context.Context, c client.Client) error {
	operator, err := newListener(ctx, c)
	if err != nil {
		return err
	}
	var why string
	err = c.Get(ctx, client.ObjectKey{Name: v1alpha1.ManagedBy}, &rbacv1.ClusterRoleBinding{})
	switch {
	case apierrors.IsNotFound(err):
		why = "the operator has no rights"
	case err != nil:
		return explainUnreachable(err)
	case !operator.isOperatorRunning(ctx):
		why = operator.last.Describe(time.Now())
	default:
		return nil
	}
	return fmt.Errorf("nothing was removed: %s, and the deletion of tenants and pools needs an operator: run `croft install --image IMAGE` first, or omit --all", why)
}

// readDeclarationIfServed is like declared, and returns no objects if croft's kinds are not
// installed.
func readDeclarationIfServed(ctx context.Context, c client.Client) (*manifest.Declaration, error) {
	if err := c.List(ctx, &v1alpha1.PlatformList{}); meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return &manifest.Declaration{}, nil
	}
	return readDeclaration(ctx, c)
}

// describeUninstall lists the objects to delete, and the objects that stay.
func describeUninstall(ctx context.Context, c client.Reader, live *manifest.Declaration, all bool) (string, error) {
	var b strings.Builder
	b.WriteString("Removing:\n  - croft's operator, proxy and agent, and their rights\n  - running elevations end\n")
	if !all {
		fmt.Fprintf(&b, "Staying:\n  - %s, %s and their walls, which the API server enforces\n  - namespaces, workloads, nodes, and croft's kinds\n",
			wording.FormatCount(len(live.Tenants), "tenant"), wording.FormatCount(len(live.Pools), "pool"))
		b.WriteString("Without an operator, changes of walls are not reverted, temporary access does not expire, and tenants and pools cannot be deleted; after the next croft install, an operator manages all of them again\n")
		return b.String(), nil
	}
	for i := range live.Tenants {
		consequences, err := describeDeletion(ctx, c, &live.Tenants[i])
		if err != nil {
			return "", err
		}
		// The walls of namespaces that stay are deleted afterwards.
		consequences = strings.ReplaceAll(consequences, " and its walls", ", and loses its walls")
		fmt.Fprintf(&b, "  - tenant %s (deletion: %s):\n%s", live.Tenants[i].Name, live.Tenants[i].Spec.Deletion, strings.ReplaceAll(consequences, "  - ", "      - "))
	}
	for i := range live.Pools {
		nodes, err := countNodes(ctx, c, live, live.Pools[i].Name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "  - pool %s: its %s drained and deleted; pods that stay need other nodes\n", live.Pools[i].Name, describeNodes(nodes))
	}
	b.WriteString("  - all policies, roles and kinds of croft, and the namespaces " + strings.Join(install.Namespaces(), ", ") + "\n")
	b.WriteString("Staying:\n  - namespaces with deletion: Retain, and those that were adopted, with their workloads and without walls\n  - Karpenter\n")
	return b.String(), nil
}

// removeCroft uninstalls croft. With --all, it first deletes the objects whose deletion needs
// the operator.
func (a *app) removeCroft(ctx context.Context, c client.Client, live *manifest.Declaration, o *uninstallOptions) error {
	applier := apply.New(c)
	if o.all {
		if err := a.takeDown(ctx, c, applier, live, o.timeout); err != nil {
			return err
		}
	}
	changes, err := install.Remove(ctx, applier)
	a.printChanges(changes)
	if err != nil {
		return err
	}
	if err := endElevations(ctx, c, applier); err != nil || !o.all {
		return err
	}
	changes, err = applier.Prune(ctx, apply.OfPlatform(), "", nil, slices.Concat(apply.PlatformKinds, apply.NativePlatformKinds, apply.GatekeeperPlatformKinds)...)
	a.printChanges(changes)
	if err != nil {
		return err
	}
	return a.removeKinds(ctx, c, applier, o.timeout)
}

// removeKinds deletes croft's kinds and namespaces, and waits until the kinds are deleted.
func (a *app) removeKinds(ctx context.Context, c client.Client, applier *apply.Applier, timeout time.Duration) error {
	kinds, err := install.KindObjects()
	if err != nil {
		return err
	}
	var served []client.Object
	for _, kind := range kinds {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		err := c.Get(ctx, client.ObjectKeyFromObject(kind), definition)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil {
			definition.SetGroupVersionKind(kind.GetObjectKind().GroupVersionKind())
			served = append(served, definition)
		}
	}
	last := slices.Clone(served)
	for _, name := range install.Namespaces() {
		last = append(last, &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	if err := applier.Delete(ctx, last...); err != nil {
		return err
	}
	for _, definition := range served {
		if err := a.awaitDeleted(ctx, c, definition, "kind", timeout); err != nil {
			return err
		}
	}
	return nil
}

// takeDown deletes the declared objects while the operator runs: tenants before the pools
// that they use, and between them the walls of namespaces that stay, which would keep the
// pools.
func (a *app) takeDown(ctx context.Context, c client.Client, applier *apply.Applier, live *manifest.Declaration, timeout time.Duration) error {
	rest := findExtraObjects(live, &manifest.Declaration{})
	tell := func(changes ...apply.Change) { a.printChanges(changes) }
	for i := range rest.tenants {
		if err := deleteDeclared(ctx, c, &rest.tenants[i], tell); err != nil {
			return err
		}
	}
	for i := range rest.tenants {
		if err := a.awaitTenantDeleted(ctx, c, &rest.tenants[i], timeout); err != nil {
			return err
		}
	}
	var namespaces corev1.NamespaceList
	if err := c.List(ctx, &namespaces, client.HasLabels{v1alpha1.TenantLabel}); err != nil {
		return err
	}
	for i := range namespaces.Items {
		if namespaces.Items[i].DeletionTimestamp != nil {
			continue
		}
		changes, err := applier.Release(ctx, &namespaces.Items[i])
		a.printChanges(changes)
		if err != nil {
			return err
		}
	}
	if err := rest.deleteRest(ctx, c, tell); err != nil {
		return err
	}
	for i := range rest.pools {
		if err := a.awaitDeleted(ctx, c, &rest.pools[i], "pool", timeout); err != nil {
			return err
		}
	}
	for i := range live.Platforms {
		live.Platforms[i].SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Platform"))
		if err := deleteDeclared(ctx, c, &live.Platforms[i], tell); err != nil {
			return err
		}
	}
	return nil
}

// endElevations deletes the service accounts with which elevated users act: without an
// operator their access would not end.
func endElevations(ctx context.Context, c client.Client, applier *apply.Applier) error {
	var accounts corev1.ServiceAccountList
	if err := c.List(ctx, &accounts, client.InNamespace(v1alpha1.ElevationsNamespace), client.HasLabels{v1alpha1.ElevationLabel}); err != nil {
		return err
	}
	var errs []error
	for i := range accounts.Items {
		accounts.Items[i].SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))
		errs = append(errs, applier.Remove(ctx, &accounts.Items[i]))
	}
	return errors.Join(errs...)
}
