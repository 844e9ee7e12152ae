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
	"croft.dev/croft/internal/declare/wording"
	"croft.dev/croft/internal/observe/netpol"
	"croft.dev/croft/internal/rules/attack"
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
		Short: "Show which namespaces can connect to each other",
		Long: `Show which namespaces can connect to each other. The command evaluates all network
policies in the cluster, croft's and others, together and in their order: Kubernetes'
NetworkPolicies, Calico's policies and ClusterNetworkPolicies. It does not check whether
the network plugin enforces them.

With --from and --to it names the policies that decide. For two tenants it shows the
consents of both to the connection: callers and calls of their network, and TenantCallers.
Connections to which both agreed are not reported as wrong.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runReach(cmd.Context(), o) },
	}
	c.Flags().StringVar(&o.from, "from", "", "namespace of the source")
	c.Flags().StringVar(&o.to, "to", "", "namespace, or IP address, of the destination")
	c.Flags().IntVar(&o.port, "port", 0, "port of the destination; any port that the policies name if 0")
	c.Flags().StringVar(&o.protocol, "protocol", "TCP", "TCP, UDP or SCTP")
	c.MarkFlagsRequiredTogether("from", "to")
	o.output.addFlags(c, formatTable, formatJSON, formatYAML)
	return c
}

func (a *app) runReach(ctx context.Context, o reachOptions) error {
	if !slices.Contains([]string{"TCP", "UDP", "SCTP"}, o.protocol) {
		return fmt.Errorf("--protocol %s: write TCP, UDP or SCTP", o.protocol)
	}
	if o.port < 0 || o.port > 65535 {
		return fmt.Errorf("--port %d: write a port from 1 to 65535, or 0 for any", o.port)
	}
	c, err := a.newClient()
	if err != nil {
		return toFailure(err)
	}
	policies, err := netpol.ReadMap(ctx, c)
	if err != nil {
		return toFailure(explainUnreachable(err))
	}
	consented := readConsents(ctx, c)
	if o.from != "" {
		return a.printConnection(policies, &consented, o)
	}
	var platform v1alpha1.Platform
	err = c.Get(ctx, client.ObjectKey{Name: v1alpha1.PlatformName}, &platform)
	if client.IgnoreNotFound(err) != nil && !meta.IsNoMatchError(err) {
		return toFailure(explainUnreachable(err))
	}
	tenants := policies.Tenants()
	var names []string
	for _, tenant := range slices.Sorted(maps.Keys(tenants)) {
		names = append(names, tenants[tenant]...)
	}
	if len(names) == 0 {
		return failuref("no namespace of this cluster belongs to a tenant")
	}
	for _, service := range platform.Spec.Network.PlatformNamespaces {
		if policies.Has(service) {
			names = append(names, service)
		}
	}
	if len(names) > widest && o.output == formatTable {
		return a.printReachSummary(policies, &consented, o)
	}
	rows, err := policies.Matrix(names, o.port, o.protocol)
	if err != nil {
		return toFailure(err)
	}
	if o.output != formatTable {
		return o.output.print(a.out, map[string]any{"namespaces": rows})
	}
	a.printMatrix(rows, func(from, to netpol.Row) bool {
		beyond, err := policies.Connects(from.Namespace, to.Namespace, o.port, o.protocol, consented.listAgreed(from.Tenant, to.Tenant)...)
		return err != nil || beyond.Allowed
	})
	a.printAgreements(&consented)
	return nil
}

// printConnection explains which policies allow or deny one connection.
func (a *app) printConnection(policies *netpol.Map, consented *consents, o reachOptions) error {
	for _, n := range []string{o.from, o.to} {
		if _, err := netip.ParseAddr(n); !policies.Has(n) && (err != nil || n == o.from) {
			return fmt.Errorf("there is no namespace %s: `croft reach` lists the tenants' namespaces", n)
		}
	}
	var verdict netpol.Verdict
	var err error
	if policies.Has(o.to) {
		verdict, err = policies.Connects(o.from, o.to, o.port, o.protocol)
	} else {
		if o.port == 0 {
			return errors.New("--port is missing: set the destination port at the address")
		}
		verdict, err = policies.Evaluate(attack.Flow{FromNamespace: o.from, ToIP: o.to, Port: o.port, Protocol: o.protocol})
	}
	if err != nil {
		return toFailure(err)
	}
	if o.output != formatTable {
		return o.output.print(a.out, struct {
			netpol.Verdict
			Consents []consentSide `json:"consents,omitempty"`
		}{verdict, consented.listSides(policies.Tenant(o.from), policies.Tenant(o.to))})
	}
	printSafely(a.out, "%s: %s\n", verdict.Connection, verdict.Describe())
	printSafely(a.out, "  egress of %s: %s\n", o.from, verdict.Egress.Describe())
	if policies.Has(o.to) {
		printSafely(a.out, "  ingress of %s: %s\n", o.to, verdict.Ingress.Describe())
		a.printSides(consented.listSides(policies.Tenant(o.from), policies.Tenant(o.to)))
	}
	return nil
}

// printMatrix numbers the columns like the rows: names would not fit. A connection between two
// tenants is wrong if isBeyond reports that they have not both agreed to it.
func (a *app) printMatrix(rows []netpol.Row, isBeyond func(from, to netpol.Row) bool) {
	width := len("FROM")
	for _, r := range rows {
		width = max(width, len(formatRowName(r)))
	}
	printSafely(a.out, "    %-*s", width, "FROM")
	for i := range rows {
		printSafely(a.out, " %3d", i+1)
	}
	printSafely(a.out, "   DNS  INTERNET  METADATA\n")
	for i, r := range rows {
		printSafely(a.out, "%3d %-*s", i+1, width, formatRowName(r))
		for _, to := range rows {
			printSafely(a.out, "   %s", formatMark(slices.Contains(r.Reaches, to.Namespace), r.Tenant != to.Tenant && r.Tenant != "" && to.Tenant != "" && isBeyond(r, to)))
		}
		printSafely(a.out, "     %s         %s         %s\n", formatMark(r.DNS, false), formatMark(r.Internet, false), formatMark(r.Metadata, r.Tenant != ""))
	}
}

func formatRowName(r netpol.Row) string {
	switch r.Tenant {
	case "":
		return r.Namespace + " (platform)"
	case r.Namespace:
		return r.Namespace
	default:
		return r.Namespace + " (" + r.Tenant + ")"
	}
}

// formatMark returns a cell of the matrix. A connection that should be denied is red.
func formatMark(reached, wrong bool) paintedText {
	switch {
	case !reached:
		return "·"
	case wrong:
		return red("✓")
	default:
		return green("✓")
	}
}

// printReachSummary shows the findings of a cluster that is too large for a matrix.
func (a *app) printReachSummary(policies *netpol.Map, consented *consents, o reachOptions) error {
	var strange []string
	judged, total := policies.EachPair(netpol.MaxPairs, func(from, to string) bool {
		if verdict, err := policies.Connects(from, to, o.port, o.protocol,
			consented.listAgreed(policies.Tenant(from), policies.Tenant(to))...); err == nil && verdict.Allowed {
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
			row, err := policies.EvaluateOutside(n)
			if err != nil {
				return toFailure(err)
			}
			if !row.DNS {
				nameless = append(nameless, n)
			}
			if row.Metadata {
				metadata = append(metadata, n)
			}
		}
	}
	printSafely(a.out, "%s, %s: too many for a matrix; -o json prints all, and --from and --to explain one connection\n", wording.FormatCount(len(tenants), "tenant"), wording.FormatCount(namespaces, "namespace"))
	sample := ""
	if judged < total {
		sample = fmt.Sprintf(", a sample of %d", total)
	}
	beyond := ""
	if len(consented.agreed) > 0 {
		beyond = " beyond the connections to which both agreed"
	}
	printSafely(a.out, "%d of %d pairs of different tenants' namespaces can connect%s%s\n", len(strange), judged, beyond, sample)
	for _, connection := range strange {
		printSafely(a.out, "  %s\n", connection)
	}
	printSafely(a.out, "%d reach instance metadata %s\n%d do not reach DNS %s\n", len(metadata), strings.Join(metadata, " "), len(nameless), strings.Join(nameless, " "))
	a.printAgreements(consented)
	return nil
}
