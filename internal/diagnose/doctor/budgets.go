package doctor

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/internal/observe/disruption"
)

// checkBudgets reports PodDisruptionBudgets that allow no eviction until they are changed. They
// block the removal of nodes, on a shared pool also of other tenants' nodes.
func checkBudgets(s *Snapshot) []Finding {
	if s.Estate == nil {
		return nil
	}
	var all []Finding
	for _, block := range disruption.New(s.Budgets).FindBlocks(s.BudgetedPods) {
		if !block.IsPersistent() {
			continue
		}
		tenant, nodes := s.findTenant(block.Namespace), s.listNodes(&block)
		message := fmt.Sprintf("%s; of namespace %s, pods %s", block.Text, block.Namespace, formatSome(block.Pods))
		if len(nodes) > 0 {
			message += " on " + formatSome(nodes)
		}
		if others := s.listNeighbours(tenant, nodes); len(others) > 0 {
			message += ", of a pool that it shares with " + formatSome(others)
		}
		all = append(all, newFinding(string(block.Cause), Warning, "Tenant/"+tenant, message))
	}
	if more := len(all) - mostOwners; more > 0 {
		all = append(all[:mostOwners], Finding{Severity: Warning, Message: fmt.Sprintf("and %d more budgets", more), Fix: all[0].Fix})
	}
	return all
}

// findTenant returns the tenant of a namespace.
func (s *Snapshot) findTenant(namespace string) string {
	for _, t := range s.Estate.Tenants {
		if slices.Contains(t.Namespaces, namespace) {
			return t.Name
		}
	}
	return ""
}

// listNodes returns the nodes of a block's pods.
func (s *Snapshot) listNodes(block *disruption.Block) []string {
	var all []string
	for i := range s.BudgetedPods {
		pod := &s.BudgetedPods[i]
		if pod.Namespace == block.Namespace && pod.Spec.NodeName != "" && slices.Contains(block.Pods, pod.Name) {
			all = append(all, pod.Spec.NodeName)
		}
	}
	return sortUnique(all)
}

// listNeighbours returns the other tenants that share the pools of nodes.
func (s *Snapshot) listNeighbours(tenant string, nodes []string) []string {
	var all []string
	for _, node := range nodes {
		i := slices.IndexFunc(s.Nodes, func(n corev1.Node) bool { return n.Name == node })
		if i < 0 {
			continue
		}
		for _, t := range s.Estate.Tenants {
			if t.Name != tenant && slices.Contains(t.Pools, s.Nodes[i].Labels[karpenterv1.NodePoolLabelKey]) {
				all = append(all, t.Name)
			}
		}
	}
	return sortUnique(all)
}
