package doctor

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/thresholds"
)

// nearThreshold is the percentage of a threshold from which a warning is reported.
const nearThreshold = 80

// gatherCounts counts the objects of the cluster. The API server returns the number of the others with the first
// one, so this is cheap with any number of them.
func (g *gatherer) gatherCounts(ctx context.Context) {
	for _, t := range thresholds.Cluster {
		var first metav1.PartialObjectMetadataList
		first.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(t.Kind + "List"))
		if g.ReadList(ctx, readCounts, &first, client.Limit(1)) {
			g.Counts[t.Kind] = len(first.Items) + int(ptr.Deref(first.RemainingItemCount, 0))
		}
	}
}

// checkThresholds reports numbers of objects near the numbers that Kubernetes is tested with, and more pools than
// Karpenter was measured with.
func checkThresholds(s *Snapshot) []Finding {
	var all []Finding
	for _, t := range thresholds.Cluster {
		if count := s.Counts[t.Kind]; t.IsAbove(count, nearThreshold) {
			all = append(all, newThresholdFinding("", "the cluster has "+t.Format(count)+" that Kubernetes is tested with in one cluster",
				"declare new tenants in another cluster, or ask the cluster's provider whether its control plane is large enough for more"))
		}
	}
	pods := thresholds.PodsInNamespace
	for _, namespace := range sortKeys(s.PodCounts) {
		if count := s.PodCounts[namespace]; pods.IsAbove(count, nearThreshold) {
			all = append(all, newThresholdFinding("Namespace/"+namespace, "it has "+pods.Format(count)+" that Kubernetes is tested with in one namespace",
				"delete finished pods, or divide the workloads among several namespaces"))
		}
	}
	if count := len(s.NodePools); thresholds.Pools.IsAbove(count, 100) {
		f := newThresholdFinding("", "the cluster has "+thresholds.Pools.Format(count)+" that Karpenter was measured with",
			"let tenants share pools, or declare some of them in another cluster")
		f.Cause = "Karpenter considers every pool for every pod, so all tenants' pods wait longer for nodes"
		all = append(all, f)
	}
	return all
}

func newThresholdFinding(object, message, fix string) Finding {
	return Finding{
		Severity: Warning, Object: object, Message: message, Fix: fix,
		Cause: "with more objects, the API server and the controllers become slower for all tenants",
		Link:  "docs/reference/sizing.md",
	}
}

// summarizeThresholds returns the counted numbers.
func summarizeThresholds(s *Snapshot) string {
	var texts []string
	for _, t := range thresholds.Cluster {
		if count, counted := s.Counts[t.Kind]; counted {
			texts = append(texts, t.Format(count))
		}
	}
	if len(texts) == 0 {
		return "the number of objects is unknown"
	}
	summary := fmt.Sprintf("the cluster has %s that Kubernetes is tested with", strings.Join(texts, ", "))
	if _, unread := s.Unreadable[readNodePools]; unread {
		return summary
	}
	return summary + ", and " + thresholds.Pools.Format(len(s.NodePools)) + " that Karpenter was measured with"
}
