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
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/internal/cost/bill"
	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/objects"
	"croft.dev/croft/internal/cost/price"
	"croft.dev/croft/internal/cost/report"
)

const formatCSV format = "csv"

type costOptions struct {
	since   time.Duration
	by      string
	prices  string
	metrics string
	explain bool
	// forecast asks for the expected cost of the month.
	forecast bool
	// budgets asks for the budgets in the status of Tenants.
	budgets bool
	// recommendations asks for changes of croft.yaml that save money.
	recommendations bool
	// ledger is the URL of a ledger, and authority the file with its certificate authority. proxied means that the
	// kubeconfig's server has this URL.
	ledger, authority, namespace string
	proxied                      bool
	output                       format
	// account identifies the cluster in the form of FOCUS.
	account string
	// bill is the file of a bill, and tags are the names of croft's tags in it.
	bill string
	tags bill.Options
}

// sinceValue is a duration that may be in days, such as 30d.
type sinceValue time.Duration

// Set implements pflag.Value.
func (v *sinceValue) Set(text string) error {
	since, err := report.ParseSince(text)
	*v = sinceValue(since)
	return err
}

// String implements pflag.Value.
func (v *sinceValue) String() string { return time.Duration(*v).String() }

// Type implements pflag.Value.
func (v *sinceValue) Type() string { return "duration" }

func newCost(a *app) *cobra.Command {
	var o costOptions
	c := &cobra.Command{
		Use:   "cost",
		Short: "Show the cost of tenants, of idle capacity and of pools",
		Long: `Show the cost of tenants, of the platform and of idle capacity, from a ledger or computed
from the objects in the cluster. docs/explanation/cost.md describes how, with an example by
hand.

With --ledger, the command asks croft ledger, with the token of your kubeconfig, for the
stored hours. Members of a tenant get its cost: -n names one of its namespaces, which is
the context's by default. Platform admins and auditors get everything. Without a ledger,
the command reads the objects, and needs the right to list them in all namespaces.

--ledger proxy asks the ledger behind croft proxy, if that is the server of your kubeconfig.
Without --ledger, the command asks it if you may not list the objects.

The cost of a node is divided by requests; capacity without requests is idle. COST is the
cost of a tenant's own requests, volumes and load balancers. IDLE is its share of the idle
cost of its pools, in proportion to its requests. NOW/HOUR is the cost of the next hour if
nothing changes. ~ marks a figure with an estimated part, and ? a cost that is unknown: it
is in no sum. -o wide adds requests and, from a ledger in a cluster with metrics-server, the
usage of pods, with the part of their time in which it was measured.

Without a ledger, deleted objects are unknown: figures of the past are bounds, and the
command names them. NOW/HOUR has no such limit.

Prices come from the file of --prices, then from Karpenter's estimates in the file of
--karpenter-metrics, then from a table of AWS's on-demand prices in us-east-1. The file
of --prices may have any of these fields:

  currency: EUR
  exchangeRate: {perUSD: 0.92, date: 2026-11-01}
  instances: {m5.large: {on-demand: 0.0883, spot: 0.031}}
  pools: {apps: {on-demand: 0.72}}    # factor on the pool's prices
  volumes: {gp3: 0.0736}              # per GiB and month, by StorageClass
  loadBalancerHour: 0.0207

--explain prints the arithmetic of the last complete hour, so that you can repeat it. -o svg
draws a chart of the lines.

-o focus writes a row for each workload and hour, or day, in the form of the FinOps Open
Cost and Usage Specification (FOCUS) 1.2. -o opencost writes the cost of each workload in the
period as JSON, in the form in which OpenCost answers requests for /allocation. --reconcile
compares a cloud's bill with croft's figures by cost code, in the bill's complete days, and
names the causes of differences.

--forecast prints the expected cost of the calendar month: the cost so far, and for the rest
the mean cost of the last seven complete days.

--budgets prints the budgets of tenants for the calendar month, with the cost that croft's
operator last read from the ledger. It needs the right to list Tenants, as croft proxy gives
it to members of a tenant for their own.

--recommendations prints changes of croft.yaml that save money each month: idle nodes, pods
that fit on fewer nodes, nodes that can be spot, cheaper instance types, and requests that are
more than twice the present usage. A simulation places the pods that run now on the nodes
after each change; docs/explanation/cost.md describes it.`,
		Example: `  croft cost
  croft cost --ledger https://ledger.example.org --since 30d
  croft cost --ledger proxy --since 30d -n shop-prod
  croft cost --by workload --since 1h --prices prices.yaml
  croft cost --by costCode -o csv > costs.csv
  croft cost --by pool -o svg > pools.svg
  croft cost --ledger https://ledger.example.org --since 30d -o focus > focus.csv
  croft cost --ledger https://ledger.example.org --since 7d -o opencost > allocation.json
  croft cost --ledger https://ledger.example.org --reconcile cur.csv.gz
  croft cost --ledger https://ledger.example.org --forecast
  croft cost --budgets
  croft cost --recommendations --karpenter-metrics metrics.txt

  # Karpenter's prices, also of spot instances
  kubectl get --raw /api/v1/namespaces/kube-system/services/karpenter:8080/proxy/metrics > metrics.txt
  croft cost --karpenter-metrics metrics.txt`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd.Flags().Changed); err != nil {
				return err
			}
			return o.run(cmd.Context(), a)
		},
	}
	o.addFlags(c)
	o.refusePointlessFlags(c)
	return c
}

func (o *costOptions) addFlags(c *cobra.Command) {
	flags := c.Flags()
	o.since = 24 * time.Hour
	flags.Var((*sinceValue)(&o.since), "since", "length of the period until now, such as 24h or 30d")
	flags.StringVar(&o.by, "by", report.ByTenant, "group by "+strings.Join(report.Groupings(), "|"))
	registerCompletion(c, "by", cobra.FixedCompletions(report.Groupings(), cobra.ShellCompDirectiveNoFileComp))
	flags.StringVar(&o.prices, "prices", "", "file of the platform's prices; - is standard input")
	flags.StringVar(&o.metrics, "karpenter-metrics", "", "file of Karpenter's metrics; - is standard input")
	flags.BoolVar(&o.explain, "explain", false, "print the arithmetic of the last complete hour")
	flags.StringVar(&o.ledger, "ledger", "", "URL of croft ledger, or "+proxyLedger+" for the ledger behind croft proxy; without it, costs are computed from the objects in the cluster")
	flags.StringVar(&o.authority, "certificate-authority", "", "path of the CA bundle for --ledger; the system's by default")
	flags.StringVarP(&o.namespace, "namespace", "n", "", "with --ledger: a namespace of the tenant whose cost is shown")
	flags.StringVar(&o.account, "billing-account", "", "BillingAccountId of -o focus; by default the host of the kubeconfig's cluster")
	flags.StringVar(&o.bill, "reconcile", "", "compare the bill in this file, as AWS CUR 2.0 or FOCUS 1.2, with croft's figures; - is standard input")
	flags.StringVar(&o.tags.CostCodeTag, "cost-code-tag", "CostCode", "with --reconcile: tag of cost codes in the bill")
	flags.StringVar(&o.tags.PoolTag, "pool-tag", "NodePool", "with --reconcile: tag of pools in the bill")
	flags.BoolVar(&o.forecast, "forecast", false, "print the expected cost of the month, from the mean of the last seven complete days")
	flags.BoolVar(&o.budgets, "budgets", false, "print the budgets of tenants for this month")
	flags.BoolVar(&o.recommendations, "recommendations", false, "print changes of croft.yaml that save money, checked by a simulation")
	o.output.addFlags(c, formatTable, formatWide, formatCSV, formatFocus, formatOpenCost, formatSVG, formatJSON, formatYAML)
}

// refusePointlessFlags refuses flags that the requested form of the command does not use.
func (o *costOptions) refusePointlessFlags(c *cobra.Command) {
	refusePointlessFlags(c, "--budgets reads the status of Tenants", func() bool { return o.budgets },
		"since", "by", "prices", "karpenter-metrics", "explain", "ledger", "certificate-authority", "namespace", "reconcile", "forecast", "recommendations")
	refusePointlessFlags(c, "--recommendations simulates the objects in the cluster", func() bool { return o.recommendations },
		"since", "by", "explain", "ledger", "certificate-authority", "namespace", "reconcile", "forecast")
	refusePointlessFlags(c, "it is for -o focus", func() bool { return o.output != formatFocus }, "billing-account")
	refusePointlessFlags(c, "it is for --reconcile", func() bool { return o.bill == "" }, "cost-code-tag", "pool-tag")
	refusePointlessFlags(c, "a forecast is for the calendar month", func() bool { return o.forecast }, "since", "explain")
	refusePointlessFlags(c, "a bill is compared by cost code, in its own period, with the whole cluster", func() bool { return o.bill != "" },
		"since", "by", "explain", "namespace", "forecast")
	hasLedger := func() bool { return o.ledger != "" }
	refusePointlessFlags(c, "it is for --ledger", func() bool { return o.ledger == "" }, "certificate-authority", "namespace")
	refusePointlessFlags(c, "croft proxy is the kubeconfig's server, with its certificate authority", func() bool { return o.ledger == proxyLedger },
		"certificate-authority")
	refusePointlessFlags(c, "the ledger has its own prices", hasLedger, "prices", "karpenter-metrics")
	refusePointlessFlags(c, "the ledger stores results only", hasLedger, "explain")
	refusePointlessFlags(c, "the ledger knows only the user of the token", hasLedger, "as", "as-group")
}

// run asks the ledger behind croft proxy if the user asks for it or may not read the objects in the cluster. Members of
// a tenant may not.
func (o *costOptions) run(ctx context.Context, a *app) error {
	if o.ledger == proxyLedger {
		if err := o.useProxy(a); err != nil {
			return err
		}
	}
	err := o.runOnce(ctx, a)
	var hidden hiddenLists
	if !errors.As(err, &hidden) || !o.suitsMembers() {
		return err
	}
	proxied := *o
	if proxied.useProxy(a) != nil {
		return err
	}
	if answer := proxied.runOnce(ctx, a); !errors.Is(answer, errNoLedger) {
		return answer
	}
	return err // the server is not croft proxy, or it has no ledger
}

// suitsMembers reports whether a ledger has the figures that the flags ask for, for members of a tenant.
func (o *costOptions) suitsMembers() bool {
	return !o.explain && !o.recommendations && !o.budgets && o.bill == "" && o.prices == "" && o.metrics == ""
}

func (o *costOptions) runOnce(ctx context.Context, a *app) error {
	switch {
	case o.budgets:
		return a.runBudgets(ctx, *o)
	case o.recommendations:
		return a.recommendSavings(ctx, *o)
	case o.bill != "":
		return a.reconcileCost(ctx, *o)
	case o.forecast:
		return a.forecastCost(ctx, *o)
	case o.output == formatFocus:
		return a.writeFocus(ctx, *o)
	case o.output == formatOpenCost:
		return a.writeOpenCost(ctx, *o)
	case o.ledger != "":
		return a.runLedgerCost(ctx, *o)
	default:
		return a.runCost(ctx, *o)
	}
}

func (o *costOptions) check(isSet func(flag string) bool) error {
	if o.explain && (isSet("by") || isSet("output")) {
		return errors.New("--explain prints one hour as text: leave out --by and --output")
	}
	if o.since < time.Second {
		return fmt.Errorf("--since %s: write a positive duration, such as 24h", o.since)
	}
	if !slices.Contains(report.Groupings(), o.by) {
		return fmt.Errorf("--by %s: unknown grouping: write one of %s", o.by, strings.Join(report.Groupings(), "|"))
	}
	if o.budgets && !slices.Contains([]format{formatTable, formatJSON, formatYAML}, o.output) {
		return fmt.Errorf("-o %s: --budgets prints table, json or yaml: write one of them", o.output)
	}
	if o.recommendations && !slices.Contains([]format{formatTable, formatJSON, formatYAML}, o.output) {
		return fmt.Errorf("-o %s: --recommendations prints table, json or yaml: write one of them", o.output)
	}
	if (o.bill != "" || o.forecast) && !slices.Contains([]format{formatTable, formatJSON, formatYAML}, o.output) {
		return fmt.Errorf("-o %s: --reconcile and --forecast print table, json or yaml: write one of them", o.output)
	}
	if (o.output == formatFocus || o.output == formatOpenCost) && isSet("by") {
		return fmt.Errorf("--by has no effect here: -o %s has an entry for each workload", o.output)
	}
	return nil
}

// runCost computes the cost from the objects in the cluster.
func (a *app) runCost(ctx context.Context, o costOptions) error {
	in, period, currency, err := a.readCostInput(ctx, o)
	if err != nil {
		return err
	}
	if o.explain {
		return a.explainCost(in, period, currency)
	}
	r, err := report.Build(in, report.Options{Period: period, By: o.by, Currency: currency})
	if err != nil {
		return toFailure(err)
	}
	return a.printCost(r, o.output)
}

// readCostInput reads prices and the objects that cost money. The period ends now.
func (a *app) readCostInput(ctx context.Context, o costOptions) (in ledger.Input, period ledger.Span, currency string, err error) {
	prices, err := a.readPrices(o)
	if err != nil {
		return in, period, "", err
	}
	c, err := a.newClient()
	if err != nil {
		return in, period, "", toFailure(err)
	}
	found, err := readCostObjects(ctx, c)
	if err != nil {
		return in, period, "", toFailure(err)
	}
	now := time.Now().UTC().Truncate(time.Second)
	return objects.Build(found, prices, now), ledger.Span{From: now.Add(-o.since), Until: now}, prices.Currency, nil
}

func (a *app) readPrices(o costOptions) (*price.List, error) {
	prices := price.New()
	if o.prices == "-" && o.metrics == "-" {
		return nil, errors.New("--prices and --karpenter-metrics cannot both be standard input: name a file for one")
	}
	if o.prices != "" {
		data, err := readFile(o.prices, a.in)
		if err != nil {
			return nil, fmt.Errorf("--prices %w", err)
		}
		if prices, err = price.Parse(nameInput(o.prices), data); err != nil {
			return nil, err
		}
	}
	if o.metrics != "" {
		data, err := readFile(o.metrics, a.in)
		if err != nil {
			return nil, fmt.Errorf("--karpenter-metrics %w", err)
		}
		if err := prices.AddEstimates(nameInput(o.metrics), data); err != nil {
			return nil, fmt.Errorf("--karpenter-metrics %w", err)
		}
	}
	return prices, nil
}

// nameInput returns the name of a file in messages.
func nameInput(file string) string {
	if file == "-" {
		return "standard input"
	}
	return file
}

// readCostObjects reads the objects that cost money, and further lists. A cluster without Karpenter has no
// NodeClaims.
func readCostObjects(ctx context.Context, c client.Reader, further ...namedList) (objects.Objects, error) {
	var (
		claims     karpenterv1.NodeClaimList
		nodes      corev1.NodeList
		pods       corev1.PodList
		namespaces corev1.NamespaceList
		volumes    corev1.PersistentVolumeList
		services   corev1.ServiceList
	)
	err := readLists(ctx, c, append([]namedList{
		{"nodes", &nodes}, {"nodeclaims.karpenter.sh", &claims}, {"pods", &pods}, {"namespaces", &namespaces},
		{"persistentvolumes", &volumes}, {"services", &services},
	}, further...))
	return objects.Objects{Claims: claims.Items, Nodes: nodes.Items, Pods: pods.Items, Namespaces: namespaces.Items,
		Volumes: volumes.Items, Services: services.Items}, err
}
