package doctor

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/internal/disruption"
)

// budgets reports PodDisruptionBudgets that allow no eviction until they are changed. They
// block the removal of nodes, on a shared pool also of other tenants' nodes.
func budgets(s *Snapshot) []Finding {
	if s.Estate == nil {
		return nil
	}
	var all []Finding
	for _, block := range disruption.New(s.Budgets).Find(s.Guarded) {
		if !block.Lasts() {
			continue
		}
		tenant, nodes := s.tenantNamed(block.Namespace), s.nodesOf(&block)
		message := fmt.Sprintf("%s; of namespace %s, pods %s", block.Text, block.Namespace, some(block.Pods))
		if len(nodes) > 0 {
			message += " on " + some(nodes)
		}
		if others := s.neighbours(tenant, nodes); len(others) > 0 {
			message += ", of a pool that it shares with " + some(others)
		}
		all = append(all, of(string(block.Cause), Warning, "Tenant/"+tenant, message))
	}
	if more := len(all) - mostOwners; more > 0 {
		all = append(all[:mostOwners], Finding{Severity: Warning, Message: fmt.Sprintf("and %d more budgets", more), Cure: all[0].Cure})
	}
	return all
}

// tenantNamed returns the tenant of a namespace.
func (s *Snapshot) tenantNamed(namespace string) string {
	for _, t := range s.Estate.Tenants {
		if slices.Contains(t.Namespaces, namespace) {
			return t.Name
		}
	}
	return ""
}

// nodesOf returns the nodes of a block's pods.
func (s *Snapshot) nodesOf(block *disruption.Block) []string {
	var all []string
	for i := range s.Guarded {
		pod := &s.Guarded[i]
		if pod.Namespace == block.Namespace && pod.Spec.NodeName != "" && slices.Contains(block.Pods, pod.Name) {
			all = append(all, pod.Spec.NodeName)
		}
	}
	return sortUnique(all)
}

// neighbours returns the other tenants that share the pools of nodes.
func (s *Snapshot) neighbours(tenant string, nodes []string) []string {
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
