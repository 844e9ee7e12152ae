package why

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/wording"
)

const (
	// neighboursPods is the entry in Hidden if the caller may not list the cluster's waiting pods.
	neighboursPods = "waiting pods of other tenants"
	// fewestNeighbours is the smallest number of pods of other tenants that is reported.
	fewestNeighbours = 100
	// podsPage is the number of pods in one list request.
	podsPage = 500
)

// gatherNeighbours counts the pods of other tenants that wait for the pool of a waiting pod, by namespace. Teams may not
// list the pods of other tenants.
func (g *gatherer) gatherNeighbours(ctx context.Context) {
	pool := ""
	for i := range g.Pods {
		if g.Pods[i].Spec.NodeName == "" {
			pool = cmp.Or(pool, g.selectedPool(&g.Pods[i]))
		}
	}
	if pool == "" || g.Rules == nil {
		return
	}
	g.Neighbours = map[string]int{}
	for next := ""; ; {
		var pods corev1.PodList
		g.listObjects(ctx, neighboursPods, &pods, client.MatchingFields{"spec.nodeName": ""}, client.Limit(podsPage), client.Continue(next))
		for i := range pods.Items {
			pod := &pods.Items[i]
			if g.selectedPool(pod) == pool && pod.DeletionTimestamp == nil && !slices.Contains(g.Rules.Spec.Namespaces, pod.Namespace) {
				g.Neighbours[pod.Namespace]++
			}
		}
		if next = pods.Continue; next == "" {
			break
		}
	}
	if len(g.Neighbours) == 0 || g.isHidden("nodepool") {
		return
	}
	namespaces := metav1.PartialObjectMetadataList{}
	namespaces.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	g.listObjects(ctx, "namespace", &namespaces, client.HasLabels{v1alpha1.TenantLabel})
	g.Tenants = map[string]string{}
	for i := range namespaces.Items {
		g.Tenants[namespaces.Items[i].Name] = namespaces.Items[i].Labels[v1alpha1.TenantLabel]
	}
}

// countNeighbours reports many pods of other tenants that wait for the same pool. Only callers who may read NodePools get
// the tenants' names.
func countNeighbours(s *Snapshot, pod *corev1.Pod) []Step {
	total, byTenant := 0, map[string]int{}
	for namespace, count := range s.Neighbours {
		total += count
		byTenant[cmp.Or(s.Tenants[namespace], "no tenant")] += count
	}
	if total < fewestNeighbours {
		return nil
	}
	text := fmt.Sprintf("%d pods of other tenants wait in the same pool", total)
	if !s.isHidden("nodepool") {
		names := slices.SortedFunc(maps.Keys(byTenant), func(a, b string) int {
			return cmp.Or(cmp.Compare(byTenant[b], byTenant[a]), cmp.Compare(a, b))
		})
		for i, name := range names {
			names[i] = fmt.Sprintf("%s (%d)", name, byTenant[name])
		}
		text += ": " + wording.FormatFirst(names, maxNamed)
	}
	step := newCatalogStep(LinkPool, "nodepool/"+s.selectedPool(pod), text, "tenant-load")
	step.Verdict = Waiting
	return []Step{step}
}
