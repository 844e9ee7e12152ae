package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/attack"
	"croft.dev/croft/internal/netpol"
)

type reachOptions struct {
	from, to string
	port     int
	protocol string
	output   format
}

// widest is the maximum number of namespaces in a matrix. For more, only a summary and the
// findings are shown.
const widest = 40

func newReach(a *app) *cobra.Command {
	var o reachOptions
	c := &cobra.Command{
		Use:   "reach",
		Short: "Show who can connect to whom",
		Long: `Show who can connect to whom: evaluates all network policies in the cluster,
of any author: Kubernetes' NetworkPolicies, Calico's policies and
ClusterNetworkPolicies, together and in their order. It does not check whether the
network plugin enforces them.

With --from and --to it names the policies that decide.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.reach(cmd.Context(), o) },
	}
	c.Flags().StringVar(&o.from, "from", "", "namespace of the source")
	c.Flags().StringVar(&o.to, "to", "", "namespace, or IP address, of the destination")
	c.Flags().IntVar(&o.port, "port", 0, "port of the destination; any port that the policies name if 0")
	c.Flags().StringVar(&o.protocol, "protocol", "TCP", "TCP, UDP or SCTP")
	c.MarkFlagsRequiredTogether("from", "to")
	o.output.add(c, formatTable, formatJSON, formatYAML)
	return c
}

func (a *app) reach(ctx context.Context, o reachOptions) error {
	if !slices.Contains([]string{"TCP", "UDP", "SCTP"}, o.protocol) {
		return fmt.Errorf("--protocol %s: write TCP, UDP or SCTP", o.protocol)
	}
	if o.port < 0 || o.port > 65535 {
		return fmt.Errorf("--port %d: write a port from 1 to 65535, or 0 for any", o.port)
	}
	c, err := a.client()
	if err != nil {
		return failed(err)
	}
	policies, err := netpol.Read(ctx, c)
	if err != nil {
		return failed(unreachable(err))
	}
	if o.from != "" {
		return a.reachOne(policies, o)
	}
	var platform v1alpha1.Platform
	err = c.Get(ctx, client.ObjectKey{Name: v1alpha1.PlatformName}, &platform)
	if client.IgnoreNotFound(err) != nil && !meta.IsNoMatchError(err) {
		return failed(unreachable(err))
	}
	tenants := policies.Tenants()
	var names []string
	for _, tenant := range slices.Sorted(maps.Keys(tenants)) {
		names = append(names, tenants[tenant]...)
	}
	if len(names) == 0 {
		return failedf("no namespace of this cluster belongs to a tenant")
	}
	for _, service := range platform.Spec.Network.PlatformNamespaces {
		if policies.Has(service) {
			names = append(names, service)
		}
	}
	if len(names) > widest && o.output == formatTable {
		return a.reachSummary(policies, o)
	}
	rows, err := policies.Matrix(names, o.port, o.protocol)
	if err != nil {
		return failed(err)
	}
	if o.output != formatTable {
		return o.output.print(a.out, map[string]any{"namespaces": rows})
	}
	a.printMatrix(rows)
	return nil
}

// reachOne explains which policies allow or deny one connection.
func (a *app) reachOne(policies *netpol.Map, o reachOptions) error {
	for _, n := range []string{o.from, o.to} {
		if _, err := netip.ParseAddr(n); !policies.Has(n) && (err != nil || n == o.from) {
			return fmt.Errorf("there is no namespace %s: `croft reach` lists those of tenants", n)
		}
	}
	var verdict netpol.Verdict
	var err error
	if policies.Has(o.to) {
		verdict, err = policies.Connects(o.from, o.to, o.port, o.protocol)
	} else {
		if o.port == 0 {
			return errors.New("--port: say which port of the address is connected to")
		}
		verdict, err = policies.Judge(attack.Flow{FromNamespace: o.from, ToIP: o.to, Port: o.port, Protocol: o.protocol})
	}
	if err != nil {
		return failed(err)
	}
	if o.output != formatTable {
		return o.output.print(a.out, verdict)
	}
	word := map[bool]string{true: "can connect", false: "cannot connect"}[verdict.Allowed]
	say(a.out, "%s: %s\n", verdict.Connection, word)
	say(a.out, "  out of %s: %s\n", o.from, decided(verdict.Egress))
	if policies.Has(o.to) {
		say(a.out, "  into %s: %s\n", o.to, decided(verdict.Ingress))
	}
	return nil
}

func decided(d netpol.Direction) string {
	switch {
	case d.DecidedBy != "" && d.Allowed:
		return "allowed by " + d.DecidedBy
	case d.DecidedBy != "":
		return "denied by " + d.DecidedBy
	case len(d.Selecting) == 0:
		return "allowed, since no policy selects the pod"
	case d.Allowed && len(d.Allowing) == 0:
		return "allowed, since none decides of " + strings.Join(d.Selecting, ", ")
	case d.Allowed:
		return "allowed by " + strings.Join(d.Allowing, ", ")
	default:
		return "denied: let through by none of " + strings.Join(d.Selecting, ", ")
	}
}

// printMatrix numbers the columns like the rows: names would not fit.
func (a *app) printMatrix(rows []netpol.Row) {
	width := len("FROM")
	for _, r := range rows {
		width = max(width, len(rowName(r)))
	}
	say(a.out, "    %-*s", width, "FROM")
	for i := range rows {
		say(a.out, " %3d", i+1)
	}
	say(a.out, "   DNS  INTERNET  METADATA\n")
	for i, r := range rows {
		say(a.out, "%3d %-*s", i+1, width, rowName(r))
		for _, to := range rows {
			say(a.out, "   %s", mark(slices.Contains(r.Reaches, to.Namespace), r.Tenant != to.Tenant && r.Tenant != "" && to.Tenant != ""))
		}
		say(a.out, "     %s         %s         %s\n", mark(r.DNS, false), mark(r.Internet, false), mark(r.Metadata, r.Tenant != ""))
	}
}

func rowName(r netpol.Row) string {
	switch r.Tenant {
	case "":
		return r.Namespace + " (platform)"
	case r.Namespace:
		return r.Namespace
	default:
		return r.Namespace + " (" + r.Tenant + ")"
	}
}

// mark returns a cell of the matrix. A connection that should be denied is red.
func mark(reached, wrong bool) painted {
	switch {
	case !reached:
		return "·"
	case wrong:
		return red("✓")
	default:
		return green("✓")
	}
}

// reachSummary shows the findings of a cluster that is too large for a matrix.
func (a *app) reachSummary(policies *netpol.Map, o reachOptions) error {
	var strange []string
	judged, total := policies.EachPair(netpol.MaxPairs, func(from, to string) bool {
		if verdict, err := policies.Connects(from, to, o.port, o.protocol); err == nil && verdict.Allowed {
			strange = append(strange, verdict.Connection)
		}
		return true
	})
	tenants := policies.Tenants()
	namespaces := 0
	var nameless, metadata []string
	for _, tenant := range slices.Sorted(maps.Keys(tenants)) {
		for _, n := range tenants[tenant] {
			namespaces++
			row, err := policies.Outside(n)
			if err != nil {
				return failed(err)
			}
			if !row.DNS {
				nameless = append(nameless, n)
			}
			if row.Metadata {
				metadata = append(metadata, n)
			}
		}
	}
	say(a.out, "%s, %s: too many for a matrix; -o json has it, and --from and --to ask about two\n", count(len(tenants), "tenant"), count(namespaces, "namespace"))
	sample := ""
	if judged < total {
		sample = fmt.Sprintf(", a sample of %d", total)
	}
	say(a.out, "%d of %d pairs of different tenants' namespaces can connect%s\n", len(strange), judged, sample)
	for _, connection := range strange {
		say(a.out, "  %s\n", connection)
	}
	say(a.out, "%d reach instance metadata %s\n%d do not reach DNS %s\n", len(metadata), strings.Join(metadata, " "), len(nameless), strings.Join(nameless, " "))
	return nil
}
