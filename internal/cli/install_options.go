package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/declare/secondary"
	"croft.dev/croft/internal/operate/install"
)

// installOptions are the flags of croft install.
type installOptions struct {
	install.Options
	// authenticationFile is the path of an AuthenticationConfiguration.
	authenticationFile string
	// storage is the size of the ledger's volume.
	storage string
	// copies are Secrets to copy, as NAME or NAME=SOURCE.
	copies []string
	// export prints the objects, kinds installs only croft's kinds, and check writes nothing.
	export, kinds, check bool
	dryRun, downgrade    bool
}

func (o *installOptions) addFlags(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&o.Image, "image", "", "container image of the operator; without it the operator is not deployed")
	flags.StringSliceVar(&o.Roles, "role", nil, "names of platform.roles that the operator may write, in addition to the declared ones")
	flags.StringVar(&o.authenticationFile, "authentication-config", "", "path of an AuthenticationConfiguration (apiserver.config.k8s.io): also deploy croft proxy, which authenticates users by it")
	o.requireImage(c, "authentication-config", "croft proxy is deployed only with an image; add --image")
	o.addDashboardFlags(c)
	o.addLedgerFlags(c)
	o.addProxyLedgerFlag(c)
	o.addAgentFlags(c)
	o.addSecretsFlags(c)
	flags.StringVar(&o.VerifySchedule, "verify-schedule", "", "schedule of a CronJob that runs croft verify --record, such as \"17 3 * * *\"; without it no CronJob is deployed")
	o.requireImage(c, "verify-schedule", "the CronJob needs an image; add --image")
	o.addModeFlags(c)
}

// requireImage refuses a flag without --image.
func (o *installOptions) requireImage(c *cobra.Command, flag, why string) {
	refusePointlessFlags(c, why, func() bool { return o.Image == "" }, flag)
}

func (o *installOptions) addDashboardFlags(c *cobra.Command) {
	flags := c.Flags()
	flags.BoolVar(&o.Dashboard, "dashboard", false, "also deploy croft dashboard, web pages without rights of their own")
	o.requireImage(c, "dashboard", "croft dashboard is deployed only with an image; add --image")
	flags.StringArrayVar(&o.DashboardArgs, "dashboard-arg", nil, "a flag of croft dashboard, with its value; may be repeated")
	flags.Int32SliceVar(&o.DashboardEgress, "dashboard-egress-port", install.DefaultDashboardEgress(),
		"TCP ports to which the dashboard connects, on the API server's machines and at the identity provider")
	refusePointlessFlags(c, "it is for croft dashboard; add --dashboard", func() bool { return !o.Dashboard }, "dashboard-arg", "dashboard-egress-port")
}

func (o *installOptions) addLedgerFlags(c *cobra.Command) {
	flags := c.Flags()
	flags.BoolVar(&o.Ledger, "ledger", false, "also deploy croft ledger, which records costs")
	o.requireImage(c, "ledger", "croft ledger is deployed only with an image; add --image")
	flags.StringArrayVar(&o.LedgerArgs, "ledger-arg", nil, "a flag of croft ledger, with its value; may be repeated")
	flags.StringVar(&o.storage, "ledger-storage", install.DefaultLedgerStorage, "size of the volume of croft ledger")
	flags.StringVar(&o.LedgerStorageClass, "ledger-storage-class", "", "StorageClass of this volume; the cluster's default one if empty")
	refusePointlessFlags(c, "it is for croft ledger; add --ledger", func() bool { return !o.Ledger }, "ledger-arg", "ledger-storage", "ledger-storage-class")
}

func (o *installOptions) addProxyLedgerFlag(c *cobra.Command) {
	c.Flags().BoolVar(&o.ProxyLedger, "proxy-ledger", false,
		"croft proxy forwards requests for costs to croft ledger, which accepts the tokens that the proxy accepts")
	refusePointlessFlags(c, "it connects croft proxy and croft ledger; add --authentication-config and --ledger",
		func() bool { return o.authenticationFile == "" || !o.Ledger }, "proxy-ledger")
}

func (o *installOptions) addAgentFlags(c *cobra.Command) {
	flags := c.Flags()
	flags.BoolVar(&o.Agent, "agent", false, "also deploy croft agent, which sets up secondary networks on nodes")
	o.requireImage(c, "agent", "croft agent is deployed only with an image; add --image")
	flags.BoolVar(&o.AgentJournal, "agent-journal", false, "croft agent reads the journal of its node once, for croft latency")
	refusePointlessFlags(c, "croft agent reads the journal; add --agent", func() bool { return !o.Agent }, "agent-journal")
	flags.StringVar(&o.PluginsNamespace, "network-plugins-namespace", secondary.PluginsNamespace, "namespace of the DaemonSets of Multus and whereabouts, which nodes wait for")
	flags.StringVar(&o.PluginsLabels, "network-plugins", secondary.PluginsLabels, "labels of these DaemonSets' pods; if empty, nodes do not wait for them")
	refusePointlessFlags(c, "nodes wait for these plugins only with croft agent; add --agent", func() bool { return !o.Agent },
		"network-plugins-namespace", "network-plugins")
}

func (o *installOptions) addSecretsFlags(c *cobra.Command) {
	flags := c.Flags()
	flags.BoolVar(&o.CopySecrets, "copy-secrets", false, "also deploy croft copy-secrets, which copies the declared Secrets into tenants' namespaces")
	o.requireImage(c, "copy-secrets", "croft copy-secrets is deployed only with an image; add --image")
	flags.StringSliceVar(&o.copies, "secret", nil, "names of copies of Secrets that it may write, in addition to the declared ones, as NAME or NAME=SOURCE")
	refusePointlessFlags(c, "it is for croft copy-secrets; add --copy-secrets", func() bool { return !o.CopySecrets }, "secret")
}

// parseCopies reads the values of --secret.
func parseCopies(values []string) ([]estate.SecretCopy, error) {
	var all []estate.SecretCopy
	for _, value := range values {
		name, source, found := strings.Cut(value, "=")
		if !found {
			source = name
		}
		if len(validation.IsDNS1123Label(name)) > 0 || strings.HasPrefix(name, "croft") || len(validation.IsDNS1123Subdomain(source)) > 0 {
			return nil, fmt.Errorf("--secret %s: write the name of a copy, or NAME=SOURCE, such as registry=registry-credentials; "+
				"names of copies do not begin with croft", escapeLine(value))
		}
		all = append(all, estate.SecretCopy{Name: name, Source: source})
	}
	return all, nil
}

// addModeFlags adds the flags that replace the installation by another action. It is called last, since with
// --kinds the flags before them have no effect.
func (o *installOptions) addModeFlags(c *cobra.Command) {
	flags := c.Flags()
	var before []string
	flags.VisitAll(func(f *pflag.Flag) { before = append(before, f.Name) })
	flags.BoolVar(&o.export, "export", false, "print the objects instead of writing them")
	flags.BoolVar(&o.kinds, "kinds", false, "install only croft's kinds, as the chart's upgrade does")
	flags.BoolVar(&o.dryRun, "dry-run", false, "show the changes, and write nothing")
	flags.BoolVar(&o.check, "check", false, "report whether croft can be installed and will work, and write nothing")
	for _, other := range []string{"dry-run", "export", "kinds"} {
		c.MarkFlagsMutuallyExclusive("check", other)
	}
	addDowngradeFlag(c, &o.downgrade, "install although the operator is of a newer version than this croft; croft's kinds do not change")
	refusePointlessFlags(c, "--export does not use a cluster", func() bool { return o.export }, slices.Concat(clusterFlagNames, []string{"dry-run", "allow-downgrade"})...)
	refusePointlessFlags(c, "--kinds installs only the kinds", func() bool { return o.kinds }, append(before, "export")...)
}

// complete checks the flags, and reads the files that they name.
func (o *installOptions) complete(a *app) (err error) {
	if _, err := secondary.ParsePlugins(o.PluginsNamespace, o.PluginsLabels); err != nil {
		return fmt.Errorf("--network-plugins: %w", err)
	}
	if o.authenticationFile != "" {
		if o.Authentication, err = readAuthentication(o.authenticationFile); err != nil {
			return err
		}
	}
	if err := checkArgs("dashboard-arg", newDashboard(a), o.DashboardArgs); err != nil {
		return err
	}
	if err := checkArgs("ledger-arg", newLedger(a), o.LedgerArgs); err != nil {
		return err
	}
	if o.Secrets, err = parseCopies(o.copies); err != nil {
		return err
	}
	if o.LedgerStorage, err = resource.ParseQuantity(o.storage); err != nil || o.LedgerStorage.Sign() <= 0 {
		return fmt.Errorf("--ledger-storage %s: write a size, such as %s", escapeLine(o.storage), install.DefaultLedgerStorage)
	}
	return nil
}

// checkArgs refuses values of a flag that are no flags of a command that is deployed.
func checkArgs(flag string, command *cobra.Command, args []string) error {
	if err := command.ParseFlags(args); err != nil {
		// A wrapped error would be explained as one about a flag of this command.
		return errors.New("--" + flag + ": " + err.Error())
	}
	if rest := command.Flags().Args(); len(rest) > 0 {
		return fmt.Errorf("--%s %s: write a flag with its value, such as --%s=--log-level=debug", flag, escapeLine(rest[0]), flag)
	}
	return nil
}

func (o *installOptions) run(ctx context.Context, a *app) error {
	switch {
	case o.kinds:
		return a.installKinds(ctx, o.dryRun, o.downgrade)
	case o.export:
		return a.exportInstall(o.Options)
	case o.check:
		return a.runInstallCheck(ctx, o.Options)
	default:
		return a.runInstall(ctx, o.Options, o.dryRun, o.downgrade)
	}
}

// exportInstall prints the objects of an installation without a declared Platform.
func (a *app) exportInstall(options install.Options) error {
	objects, err := install.Objects(options)
	if err != nil {
		return toFailure(err)
	}
	platform, err := buildPlatformObjects(&manifest.Declaration{})
	if err != nil {
		return toFailure(err)
	}
	return printObjects(a.out, append(objects, platform...), formatYAML)
}
