package cli

import (
	"context"
	"fmt"
	"io"
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

// compares reports whether the nodes are compared with others.
func (o *latencyOptions) compares() bool { return o.against != "" || o.againstPool != "" }

func newLatency(a *app) *cobra.Command {
	var o latencyOptions
	c := &cobra.Command{
		Use:   "latency",
		Short: "Show how long nodes took to become ready, and where the time went",
		Long: `Show how long nodes took to become ready, and where the time went: from the pod that
needed the node over Karpenter's decision, the NodeClaim and the Node until that pod
was ready, with percentiles by pool, instance type, zone and image.

It reads NodeClaims, Nodes, Pods and events with your own rights, and needs the right to
list them in all namespaces. Kubernetes keeps events for an hour by default; deleted
nodes are not shown. Unknown times are left out.

The time until a node registers also has parts: cloud-init, user data, containerd, the
kubelet. They are in the node's logs, which croft's agent reads if it may, or which you
give by --journal: what journalctl -o short-iso-precise prints, a journal file,
/var/log/messages or cloud-init's logs. Several files of a node are read together.

--against compares with nodes that -o json has written before, --against-pool with those
of another pool.

-o wide has the parts of the boot, too, and the phases of secondary networks; markdown
prints the events of each node, svg a picture of them, and prometheus histograms of the
phases in Prometheus' text format.`,
		Example: `  croft latency
  croft latency --pool apps --since 10m
  croft latency -o svg > nodes.svg

  # what happened on a node
  croft latency -o wide --journal ip-10-0-2-110.ec2.internal=journal.txt

  # two days, two pools
  croft latency -o json > monday.json
  croft latency --against monday.json
  croft latency --pool telco --against-pool apps`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.latency(cmd.Context(), o) },
	}
	c.Flags().StringVar(&o.pool, "pool", "", "only nodes of this pool")
	c.Flags().DurationVar(&o.since, "since", time.Hour, "only nodes that were requested within this time; all if 0")
	c.Flags().StringArrayVar(&o.journals, "journal", nil,
		"a node's name and a file of its logs, as NODE=FILE; may be repeated")
	c.Flags().StringVar(&o.against, "against", "",
		"compare with the nodes in this file, which -o json has written; - is standard input")
	c.Flags().StringVar(&o.againstPool, "against-pool", "",
		"compare with nodes of this pool, of the file if there is one")
	o.output.add(c, formatTable, formatWide, formatMarkdown, formatJSON, formatSVG, formatPrometheus)
	return c
}

func (a *app) latency(ctx context.Context, o latencyOptions) error {
	if o.since < 0 {
		return fmt.Errorf("--since %s: write how far to look back, such as 1h, or 0 for all nodes", o.since)
	}
	saved, err := a.savedNodes(o)
	if err != nil {
		return err
	}
	journals, err := openJournals(o.journals)
	if err != nil {
		return err
	}
	defer journals.close()
	c, err := a.client()
	if err != nil {
		return failed(err)
	}
	objects, err := latencyObjects(ctx, c)
	if err != nil {
		return failed(unreachable(err))
	}
	if objects.Boots, err = journals.read(objects.Nodes); err != nil {
		return err
	}
	opts := latency.Options{}
	if o.since > 0 {
		opts.Since = time.Now().Add(-o.since)
	}
	all := latency.Build(objects, opts)
	nodes := latency.OfPool(all, o.pool)
	if o.compares() {
		if o.against == "" {
			saved = all
		}
		return a.compareLatency(saved, nodes, o)
	}
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
	}{
		{"nodes", &nodes}, {"nodeclaims.karpenter.sh", &claims}, {"pods", &pods}, {"events", &events},
	} {
		var err error
		if kind.name == "events" {
			err = latencyEvents(ctx, c, &events)
		} else {
			err = c.List(ctx, kind.list)
		}
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

// latencyEvents reads only the relevant events, since a cluster has many others.
func latencyEvents(ctx context.Context, c client.Reader, to *corev1.EventList) error {
	for _, reason := range latency.EventReasons() {
		var some corev1.EventList
		if err := c.List(ctx, &some, client.MatchingFields{"reason": reason}); err != nil {
			return err
		}
		to.Items = append(to.Items, some.Items...)
	}
	return nil
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
		a.latencyTables(nodes, groups, output == formatWide)
	}
	return nil
}
