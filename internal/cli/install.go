package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/install"
	"croft.dev/croft/internal/walls/wall"
	"croft.dev/croft/internal/walls/wall/identity"
)

func newInstall(a *app) *cobra.Command {
	var o installOptions
	c := &cobra.Command{
		Use:   "install",
		Short: "Install or upgrade croft's kinds, rights and cluster-wide policies",
		Long: `Install croft's kinds, rights and cluster-wide policies in the cluster, and, with
--image, the operator. Without --image no operator is deployed: run croft operator
elsewhere, since only an operator acts on declared objects. Run the command again to
upgrade: it does not write objects that are up to date. With --dry-run it shows what it
would change, by dry runs of the API server, and writes nothing. With --check it reports whether
croft can be installed and will work: the version of Kubernetes, the kinds that it serves,
Karpenter, your rights, foreign objects with the same names, another croft, and dry runs
of every object. Exit status 0 means yes, 1 a problem, and 2 that the check failed.

Objects of older versions of croft that this version does not have are deleted.

A croft that is older than the cluster's operator writes nothing, except with
--allow-downgrade. Even then it does not change croft's kinds, since older definitions
would drop stored fields of newer ones.

With --authentication-config it also deploys croft proxy, for users that the API server
cannot authenticate. The proxy gets its rights from platform.proxy, and its certificate
from the Secret croft-proxy-tls in the namespace croft-system, which you create. See
docs/how-to/identity.md.

With --dashboard it also deploys croft dashboard, without any rights. You create the Secrets
croft-dashboard and croft-dashboard-tls in the namespace croft-system. --dashboard-arg sets flags of
croft dashboard, such as --dashboard-arg=--oidc-issuer-url=https://login.example.org. See
docs/how-to/dashboard.md.

With --ledger it also deploys croft ledger, which records costs on a volume. You create the
Secret croft-ledger-tls in the namespace croft-system. The keys of an optional ConfigMap
croft-ledger are files in /etc/croft/ledger: with prices.yaml, for example, add
--ledger-arg=--prices=/etc/croft/ledger/prices.yaml. See docs/how-to/cost.md.

With --agent it also deploys croft agent, which sets up secondary networks on the nodes
of pools with waitForNetworks. See docs/how-to/networks.md. With --agent-journal, the agent also
reads these nodes' journals once, for croft latency: see docs/how-to/latency.md. These nodes take
pods when Multus and whereabouts are Ready there; --network-plugins selects their pods by
labels.

With --copy-secrets it also deploys croft copy-secrets, which may read only the Secrets of the namespace
croft-secrets that the Platform and the Tenants in the cluster name in secrets. Run the command again
after you declare another name. See docs/how-to/objects.md.

With --verify-schedule it also deploys a CronJob that runs croft verify --record. Its
service account may impersonate every user, as an administrator may: see
docs/how-to/observability.md.`,
		Example: `  croft install --image registry.example.org/croft:v0.1.0
  croft install --check
  croft install --image registry.example.org/croft:v0.2.0 --dry-run
  croft install --export --image registry.example.org/croft:v0.1.0 > croft-install.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.complete(a); err != nil {
				return err
			}
			return o.run(cmd.Context(), a)
		},
	}
	o.addFlags(c)
	return c
}

// installKinds installs only the kinds. A job of the chart runs it. The job may not read
// the heartbeat, so the check for a downgrade does not apply to it: Helm decides about
// downgrades.
func (a *app) installKinds(ctx context.Context, dryRun, downgrade bool) error {
	c, err := a.newClient()
	if err != nil {
		return toFailure(err)
	}
	older, err := checkInstallDowngrade(ctx, c, downgrade)
	switch {
	case err != nil:
		return toFailure(err)
	case older:
		printSafely(a.err, "croft's kinds do not change, since they are of a newer croft\n")
		return nil
	case dryRun:
		objects, err := install.KindObjects()
		if err != nil {
			return toFailure(err)
		}
		return a.printInstallDiff(ctx, c, objects)
	}
	changes, err := install.ApplyKinds(ctx, c)
	a.printChanges(changes)
	return toFailure(explainUnreachable(err))
}

func (a *app) runInstall(ctx context.Context, options install.Options, dryRun, downgrade bool) error {
	c, err := a.newClient()
	if err != nil {
		return toFailure(err)
	}
	if err := checkNotHelm(ctx, c, "use helm upgrade, or first helm uninstall (release %s in namespace %s), "+
		"which keeps tenants and walls; croft install --kinds upgrades only the kinds"); err != nil {
		return toFailure(explainUnreachable(err))
	}
	if options.KeepKinds, err = checkInstallDowngrade(ctx, c, downgrade); err != nil {
		return toFailure(err)
	}
	if options.Roles, err = addOwnRoles(ctx, c, options.Roles); err != nil {
		return toFailure(explainUnreachable(err))
	}
	if options.Secrets, err = addDeclaredSecrets(ctx, c, options); err != nil {
		return toFailure(explainUnreachable(err))
	}
	if dryRun {
		return a.runInstallDryRun(ctx, c, options)
	}
	changes, err := install.Install(ctx, c, options)
	a.printChanges(changes)
	if err != nil {
		return toFailure(explainUnreachable(err))
	}
	live, err := readDeclaration(ctx, c)
	if err != nil {
		return toFailure(err)
	}
	objects, err := buildPlatformObjects(live)
	if err != nil {
		return toFailure(err)
	}
	if len(live.Platforms) == 0 {
		// The placement engine is not declared yet.
		objects = a.dropUnserved(c, objects)
	}
	applier := apply.New(c)
	if err := applier.CopyRules(ctx); err != nil {
		return toFailure(explainUnreachable(err))
	}
	changes, err = applier.Apply(ctx, objects...)
	a.printChanges(changes)
	if err != nil {
		return toFailure(explainUnreachable(err))
	}
	return a.warnIfOperatorMissing(ctx, c, options)
}

// checkNotHelm refuses to change objects of a Helm release. Helm could then neither upgrade nor
// uninstall it, since it recognises its objects by their labels. instead is a format of the
// release's name and namespace.
func checkNotHelm(ctx context.Context, c client.Client, instead string) error {
	role := &rbacv1.ClusterRole{}
	if err := c.Get(ctx, client.ObjectKey{Name: v1alpha1.ManagedBy}, role); err != nil {
		return client.IgnoreNotFound(err)
	}
	if role.Labels[v1alpha1.ManagedByLabel] != "Helm" {
		return nil
	}
	return fmt.Errorf("croft is installed by Helm: "+instead, role.Annotations["meta.helm.sh/release-name"], role.Annotations["meta.helm.sh/release-namespace"])
}

// warnIfOperatorMissing warns that the installed objects do nothing without an operator.
func (a *app) warnIfOperatorMissing(ctx context.Context, c client.Client, options install.Options) error {
	listener, err := newListener(ctx, c)
	if err != nil {
		return toFailure(err)
	}
	if options.Image == "" && !listener.isOperatorRunning(ctx) && listener.describeDeployment(ctx) == "" {
		printSafely(a.err, "no operator was deployed and none runs, so declared objects have no effect: %s\n", fixOperator)
	}
	return nil
}

// addOwnRoles adds the Platform's own roles to names. It includes removed roles: the operator
// has to delete them.
func addOwnRoles(ctx context.Context, c client.Reader, names []string) ([]string, error) {
	all := sets.New(names...)
	var platforms v1alpha1.PlatformList
	if err := c.List(ctx, &platforms); err != nil && !meta.IsNoMatchError(err) {
		return nil, err
	}
	for i := range platforms.Items {
		for name := range platforms.Items[i].Spec.Roles {
			all.Insert(name)
		}
	}
	var roles rbacv1.ClusterRoleList
	if err := c.List(ctx, &roles, client.MatchingLabels{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy}); err != nil {
		return nil, err
	}
	for _, role := range roles.Items {
		if name, ok := identity.FindOwnRole(role.Name); ok {
			all.Insert(name)
		}
	}
	return sets.List(all), nil
}

// addDeclaredSecrets adds the copies of Secrets that the cluster's Platform and Tenants declare to the
// options' copies.
func addDeclaredSecrets(ctx context.Context, c client.Reader, o install.Options) ([]estate.SecretCopy, error) {
	if !o.CopySecrets {
		return o.Secrets, nil
	}
	var platforms v1alpha1.PlatformList
	var tenants v1alpha1.TenantList
	for _, list := range []client.ObjectList{&platforms, &tenants} {
		if err := c.List(ctx, list); err != nil && !meta.IsNoMatchError(err) {
			return nil, err
		}
	}
	return append(o.Secrets, estate.ListSecrets(&manifest.Declaration{Platforms: platforms.Items, Tenants: tenants.Items})...), nil
}

// dropUnserved leaves out kinds that an API server older than Kubernetes 1.36 may not
// serve, and prints the consequences.
func (a *app) dropUnserved(c client.Client, objects []client.Object) []client.Object {
	if native, err := apply.ServesNative(c.RESTMapper()); native || err != nil {
		return objects
	}
	printSafely(a.err, "%s\n", apply.NoEngine)
	return slices.DeleteFunc(slices.Clone(objects), func(o client.Object) bool {
		return slices.Contains(apply.NativePlatformKinds, o.GetObjectKind().GroupVersionKind())
	})
}

func (a *app) printChanges(changes []apply.Change) {
	for _, change := range changes {
		printSafely(a.out, "%s\n", change)
	}
}

// buildPlatformObjects returns the cluster-wide objects of the declared Platform. They depend on
// the groups of its tenants; an invalid tenant is left out. Without a declared Platform it
// uses a Platform with every default: the objects affect only tenants' namespaces, and none
// exists yet.
func buildPlatformObjects(d *manifest.Declaration) ([]client.Object, error) {
	if len(d.Platforms) == 0 {
		d = &manifest.Declaration{Platforms: []v1alpha1.Platform{newDefaultPlatform()}}
	}
	e, problems := estate.Build(d)
	if e == nil {
		return nil, problems
	}
	return wall.PlatformObjects(&e.Platform), nil
}

// newDefaultPlatform returns a Platform with only the required fields.
func newDefaultPlatform() v1alpha1.Platform {
	var p v1alpha1.Platform
	p.Name = v1alpha1.PlatformName
	p.Spec.ClusterName = "undeclared"
	p.Spec.NodeClass.Kwok = &v1alpha1.KwokNodeClass{}
	return p
}
