package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/internal/latency"
)

const (
	formatMarkdown   format = "markdown"
	formatSVG        format = "svg"
	formatPrometheus format = "prometheus"
)

type latencyOptions struct {
	pool   string
	since  time.Duration
	output format
}

func newLatency(a *app) *cobra.Command {
	var o latencyOptions
	c := &cobra.Command{
		Use:   "latency",
		Short: "Show how long nodes took to become ready, and where the time went",
		Long: `Show how long nodes took to become ready, and where the time went: from the pod that
needed the node over Karpenter's decision, the NodeClaim and the Node until that pod
was ready, with percentiles by pool, instance type, zone and image.

It reads NodeClaims, Nodes, Pods and Karpenter's events with your own rights, and needs
the right to list them in all namespaces. Kubernetes keeps events for an hour by
default; deleted nodes are not shown. Unknown times are left out.

-o markdown prints the events of each node, svg a picture of them, and prometheus
histograms of the phases in Prometheus' text format.`,
		Example: `  croft latency
  croft latency --pool apps --since 10m
  croft latency -o svg > nodes.svg`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.latency(cmd.Context(), o) },
	}
	c.Flags().StringVar(&o.pool, "pool", "", "only nodes of this pool")
	c.Flags().DurationVar(&o.since, "since", time.Hour, "only nodes that were requested within this time; all if 0")
	o.output.add(c, formatTable, formatMarkdown, formatJSON, formatSVG, formatPrometheus)
	return c
}

func (a *app) latency(ctx context.Context, o latencyOptions) error {
	if o.since < 0 {
		return fmt.Errorf("--since %s: write how far to look back, such as 1h, or 0 for all nodes", o.since)
	}
	c, err := a.client()
	if err != nil {
		return failed(err)
	}
	objects, err := latencyObjects(ctx, c)
	if err != nil {
		return failed(unreachable(err))
	}
	opts := latency.Options{Pool: o.pool}
	if o.since > 0 {
		opts.Since = time.Now().Add(-o.since)
	}
	nodes := latency.Build(objects, opts)
	if len(nodes) == 0 {
		say(a.err, "%s\n", noNodes(o))
	}
	return a.printLatency(nodes, o.output)
}

func noNodes(o latencyOptions) string {
	text := "no node"
	if o.pool != "" {
		text += " of pool " + o.pool
	}
	if o.since == 0 {
		return text + " is there"
	}
	return fmt.Sprintf("%s was asked for in the last %s; --since looks further back", text,
		latency.Seconds(o.since.Seconds()))
}

// latencyObjects reads the objects that contain times. A cluster without Karpenter has
// no NodeClaims.
func latencyObjects(ctx context.Context, c client.Reader) (latency.Objects, error) {
	var (
		claims  karpenterv1.NodeClaimList
		nodes   corev1.NodeList
		pods    corev1.PodList
		events  corev1.EventList
		missing []string
	)
	for _, kind := range []struct {
		name string
		list client.ObjectList
		opts []client.ListOption
	}{
		{"nodes", &nodes, nil},
		{"nodeclaims.karpenter.sh", &claims, nil},
		{"pods", &pods, nil},
		{"events", &events, []client.ListOption{client.MatchingFields{"reason": latency.Nominated}}},
	} {
		err := c.List(ctx, kind.list, kind.opts...)
		switch {
		case apierrors.IsForbidden(err):
			missing = append(missing, kind.name)
		case err != nil && !meta.IsNoMatchError(err):
			return latency.Objects{}, fmt.Errorf("read %s: %w", kind.name, unreachable(err))
		}
	}
	if len(missing) > 0 {
		return latency.Objects{},
			fmt.Errorf("you may not read %s: ask a platform admin for the right to list them in all namespaces",
				strings.Join(missing, ", "))
	}
	return latency.Objects{Claims: claims.Items, Nodes: nodes.Items, Pods: pods.Items, Events: events.Items}, nil
}

func (a *app) printLatency(nodes []latency.Timeline, output format) error {
	groups := latency.Summarize(nodes)
	switch output {
	case formatJSON:
		return output.print(a.out, map[string]any{"nodes": nodes, "summary": groups})
	case formatSVG:
		_, err := io.WriteString(a.out, latency.SVG(nodes))
		return failed(err)
	case formatPrometheus:
		return failed(latency.WriteMetrics(a.out, nodes))
	case formatMarkdown:
		a.latencyMarkdown(nodes, groups)
	default:
		a.latencyTables(nodes, groups)
	}
	return nil
}

// latencyColumns are the phases of the table of nodes.
func latencyColumns() []latency.Definition {
	return slices.DeleteFunc(latency.Definitions(),
		func(d latency.Definition) bool { return d.Phase == latency.ClaimToNodeReady })
}

func phaseTitle(p latency.Phase) string {
	return strings.ReplaceAll(string(p), "_", " ")
}

func (a *app) latencyTables(nodes []latency.Timeline, groups []latency.Group) {
	if len(nodes) == 0 {
		return
	}
	header := []string{"NODE", "POOL", "TYPE", "POD"}
	for _, d := range latencyColumns() {
		header = append(header, strings.ToUpper(phaseTitle(d.Phase)))
	}
	var rows [][]string
	for i := range nodes {
		t := &nodes[i]
		row := []string{t.Title(), orDash(t.Pool), orDash(t.InstanceType), orDash(t.Pod)}
		for _, d := range latencyColumns() {
			cell := "-"
			if seconds, known := t.Phases[d.Phase]; known {
				cell = latency.Seconds(seconds)
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	table(a.out, header, rows)
	for i := range nodes {
		for _, note := range nodes[i].Notes {
			say(a.out, "%s: %s\n", nodes[i].Title(), note)
		}
	}
	say(a.out, "\np50/p90/p99 in seconds:\n")
	header, rows = latencySummary(groups)
	table(a.out, header, rows)
}

// latencySummary is the table of percentiles.
func latencySummary(groups []latency.Group) (header []string, rows [][]string) {
	header = []string{"BY", "VALUE", "NODES"}
	for _, d := range latency.Definitions() {
		header = append(header, strings.ToUpper(phaseTitle(d.Phase)))
	}
	words := map[string]string{"instanceType": "instance type"}
	for _, g := range groups {
		by := g.By
		if words[by] != "" {
			by = words[by]
		}
		row := []string{by, orDash(g.Value), strconv.Itoa(g.Nodes)}
		for _, d := range latency.Definitions() {
			cell := "-"
			if p, known := g.Phases[d.Phase]; known {
				cell = decimal(p.P50) + "/" + decimal(p.P90) + "/" + decimal(p.P99)
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	return header, rows
}

func decimal(seconds float64) string { return strconv.FormatFloat(seconds, 'f', -1, 64) }

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// latencyMarkdown has the columns of node-latency-for-k8s.
func (a *app) latencyMarkdown(nodes []latency.Timeline, groups []latency.Group) {
	if len(nodes) == 0 {
		return
	}
	for i := range nodes {
		t := &nodes[i]
		title := t.Title()
		if t.InstanceID != "" && t.InstanceID != title {
			title += " | " + t.InstanceID
		}
		if t.Address != "" {
			title += " (" + t.Address + ")"
		}
		for _, part := range []string{t.InstanceType, t.Architecture, t.Zone, t.Image} {
			if part != "" {
				title += " | " + part
			}
		}
		say(a.out, "### %s\n\n", markdownText(title))
		var rows [][]string
		for _, e := range t.Events {
			rows = append(rows, []string{e.Name, e.Time.Format(time.RFC3339), latency.Seconds(e.Seconds), e.Comment})
		}
		a.markdownTable([]string{"EVENT", "TIMESTAMP", "T", "COMMENT"}, rows)
		for _, note := range t.Notes {
			say(a.out, "\n%s\n", markdownText(note))
		}
		say(a.out, "\n")
	}
	say(a.out, "### p50/p90/p99 in seconds\n\n")
	a.markdownTable(latencySummary(groups))
}

func (a *app) markdownTable(header []string, rows [][]string) {
	widths := make([]int, len(header))
	all := append([][]string{header}, rows...)
	for _, row := range all {
		for i := range row {
			row[i] = strings.ReplaceAll(markdownText(row[i]), "|", `\|`)
			widths[i] = max(widths[i], len([]rune(row[i])))
		}
	}
	for n, row := range all {
		for i, cell := range row {
			say(a.out, "| %s%s ", cell, strings.Repeat(" ", widths[i]-len([]rune(cell))))
		}
		say(a.out, "|\n")
		if n > 0 {
			continue
		}
		for _, width := range widths {
			say(a.out, "|%s", strings.Repeat("-", width+2))
		}
		say(a.out, "|\n")
	}
}

// markdownText is one line that Markdown takes as text: objects name themselves.
func markdownText(text string) string {
	return strings.NewReplacer("<", "&lt;", "`", "\\`", "[", `\[`).Replace(inline(text))
}
