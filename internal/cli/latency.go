package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/internal/diagnose/latency"
)

const (
	formatWide       format = "wide"
	formatMarkdown   format = "markdown"
	formatSVG        format = "svg"
	formatPrometheus format = "prometheus"
)

type latencyOptions struct {
	pool     string
	since    time.Duration
	journals []string
	// against is a file of nodes to compare with; againstPool is the pool of these nodes.
	against, againstPool string
	output               format
}

// needsComparison reports whether the nodes are compared with others.
func (o *latencyOptions) needsComparison() bool { return o.against != "" || o.againstPool != "" }

func newLatency(a *app) *cobra.Command {
	var o latencyOptions
	c := &cobra.Command{
		Use:   "latency",
		Short: "Show how long nodes took to become ready, and where the time went",
		Long: `Show how long nodes took to become ready, by phases: from the creation of the pod that
needed the node, over Karpenter's decision, the NodeClaim and the Node, until that pod
was ready. The percentiles are by pool, instance type, zone and image.

It reads NodeClaims, Nodes, Pods and events with your own rights, and needs the right to
list them in all namespaces. Kubernetes keeps events for an hour by default; deleted
nodes are not shown. Unknown times are left out.

The time until a node registers also has phases: cloud-init, user data, containerd, the
kubelet. They come from the node's logs, which croft's agent reads with --agent-journal,
or which you pass by --journal: output of journalctl -o short-iso-precise, a journal
file, /var/log/messages or cloud-init's logs. Several files of one node are combined.

--against compares with the nodes in an earlier output of -o json, and --against-pool
with the nodes of another pool.

-o wide also shows the phases of the boot and of secondary networks. -o markdown prints
the events of each node, -o svg a chart of them, and -o prometheus histograms of the
phases in Prometheus' text format.`,
		Example: `  croft latency
  croft latency --pool apps --since 10m
  croft latency -o svg > nodes.svg

  # with the phases of a node's boot
  croft latency -o wide --journal ip-10-0-2-110.ec2.internal=journal.txt

  # compare two days, or two pools
  croft latency -o json > monday.json
  croft latency --against monday.json
  croft latency --pool telco --against-pool apps`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runLatency(cmd.Context(), o) },
	}
	c.Flags().StringVar(&o.pool, "pool", "", "only nodes of this pool")
	c.Flags().DurationVar(&o.since, "since", time.Hour, "only nodes that were requested within this time; 0 for all nodes")
	c.Flags().StringArrayVar(&o.journals, "journal", nil,
		"a node's name and a file of its logs, as NODE=FILE; may be repeated")
	c.Flags().StringVar(&o.against, "against", "",
		"compare with the nodes in this file, an output of -o json; - is standard input")
	c.Flags().StringVar(&o.againstPool, "against-pool", "",
		"compare with nodes of this pool, from the file of --against if set")
	o.output.addFlags(c, formatTable, formatWide, formatMarkdown, formatJSON, formatSVG, formatPrometheus)
	return c
}

func (a *app) runLatency(ctx context.Context, o latencyOptions) error {
	if o.since < 0 {
		return fmt.Errorf("--since %s: write a positive duration, such as 1h, or 0 for all nodes", o.since)
	}
	saved, err := a.readSavedNodes(o)
	if err != nil {
		return err
	}
	journals, err := openJournals(o.journals)
	if err != nil {
		return err
	}
	defer journals.close()
	c, err := a.newClient()
	if err != nil {
		return toFailure(err)
	}
	objects, err := readLatencyObjects(ctx, c)
	if err != nil {
		return toFailure(err)
	}
	if objects.Boots, err = journals.readBootTimes(objects.Nodes); err != nil {
		return err
	}
	opts := latency.Options{}
	if o.since > 0 {
		opts.Since = time.Now().Add(-o.since)
	}
	all := latency.Build(objects, opts)
	nodes := latency.FilterByPool(all, o.pool)
	if o.needsComparison() {
		if o.against == "" {
			saved = all
		}
		return a.compareLatency(saved, nodes, o)
	}
	if len(nodes) == 0 {
		printSafely(a.err, "%s\n", explainNoNodes(o))
	}
	return a.printLatency(nodes, o.output)
}

func explainNoNodes(o latencyOptions) string {
	text := "there is no node"
	if o.pool != "" {
		text += " of pool " + o.pool
	}
	if o.since == 0 {
		return text
	}
	return fmt.Sprintf("%s that was requested in the last %s; set a longer --since", text,
		latency.FormatSeconds(o.since.Seconds()))
}

// readLatencyObjects reads the objects that contain times. A cluster without Karpenter has
// no NodeClaims.
func readLatencyObjects(ctx context.Context, c client.Reader) (latency.Objects, error) {
	var (
		claims karpenterv1.NodeClaimList
		nodes  corev1.NodeList
		pods   corev1.PodList
		events corev1.EventList
	)
	err := readLists(ctx, latencyReader{c}, []namedList{
		{"nodes", &nodes}, {"nodeclaims.karpenter.sh", &claims}, {"pods", &pods}, {"events", &events},
	})
	return latency.Objects{Claims: claims.Items, Nodes: nodes.Items, Pods: pods.Items, Events: events.Items}, err
}

// latencyReader reads only the relevant events, since a cluster has many others.
type latencyReader struct{ client.Reader }

// List implements client.Reader.
func (r latencyReader) List(ctx context.Context, to client.ObjectList, opts ...client.ListOption) error {
	events, ok := to.(*corev1.EventList)
	if !ok {
		return r.Reader.List(ctx, to, opts...)
	}
	for _, reason := range latency.EventReasons() {
		var some corev1.EventList
		if err := r.Reader.List(ctx, &some, client.MatchingFields{"reason": reason}); err != nil {
			return err
		}
		events.Items = append(events.Items, some.Items...)
	}
	return nil
}

func (a *app) printLatency(nodes []latency.Timeline, output format) error {
	groups := latency.Summarize(nodes)
	switch output {
	case formatJSON:
		return output.print(a.out, map[string]any{"nodes": nodes, "summary": groups})
	case formatSVG:
		_, err := io.WriteString(a.out, latency.RenderSVG(nodes))
		return toFailure(err)
	case formatPrometheus:
		return toFailure(latency.WriteMetrics(a.out, nodes))
	case formatMarkdown:
		a.printLatencyMarkdown(nodes, groups)
	default:
		a.printLatencyTables(nodes, groups, output == formatWide)
	}
	return nil
}
