package doctor

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/adoption/move"
)

// page is the number of pods in one list request: a cluster may have many, and few are
// kept.
const page = 500

// gatherMisplacedPods reads the pods of tenants that run on nodes of a pool that their tenant may not
// use, and the pods in tenants' namespaces with PodDisruptionBudgets. It also counts all pods.
func (g *gatherer) gatherMisplacedPods(ctx context.Context) {
	if g.Estate == nil {
		return
	}
	pools := map[string][]string{}
	for _, tenant := range g.listTenants() {
		for _, namespace := range tenant.Namespaces {
			if g.RefusedNamespaces[namespace] == nil {
				pools[namespace] = tenant.Pools
			}
		}
	}
	guarded := map[string]bool{}
	for i := range g.Budgets {
		guarded[g.Budgets[i].Namespace] = true
	}
	nodes, err := move.ReadNodes(ctx, g.Client, g.key())
	g.Record(readNodes, err)
	for next := ""; ; {
		var pods corev1.PodList
		g.ReadList(ctx, readPods, &pods, client.Limit(page), client.Continue(next))
		for i := range pods.Items {
			namespace := pods.Items[i].Namespace
			if g.PodCounts[namespace]++; isWaiting(&pods.Items[i]) {
				g.WaitingPods[namespace]++
			}
			allowed, ok := pools[namespace]
			if !ok {
				continue
			}
			g.MisplacedPods = append(g.MisplacedPods, move.FindMisplaced(g.key(), allowed, pods.Items[i:i+1], nodes)...)
			if guarded[namespace] {
				g.BudgetedPods = append(g.BudgetedPods, pods.Items[i])
			}
		}
		if next = pods.Continue; next == "" {
			return
		}
	}
}

// checkMisplacedPods reports misplaced pods, by tenant.
func checkMisplacedPods(s *Snapshot) []Finding {
	if s.Estate == nil {
		return nil
	}
	var all []Finding
	for i := range s.Estate.Tenants {
		tenant := s.Estate.Tenants[i]
		count, first := 0, move.MisplacedPod{}
		for _, namespace := range tenant.Namespaces {
			for _, stray := range s.MisplacedPods {
				if stray.Namespace != namespace {
					continue
				}
				if count++; count == 1 {
					first = stray
				}
			}
		}
		if count == 0 {
			continue
		}
		summary := "1 pod runs on a pool that the tenant may not use"
		if count > 1 {
			summary = fmt.Sprintf("%d pods run on pools that the tenant may not use", count)
		}
		f := newFinding("wrong-pool", Problem, "Tenant/"+tenant.Name, fmt.Sprintf("%s: restart them; such as %s/%s on %s", summary, first.Namespace, first.Pod, first.DescribeNode()))
		f.Run = "croft move tenant " + tenant.Name + " --dry-run"
		all = append(all, f)
	}
	return all
}
