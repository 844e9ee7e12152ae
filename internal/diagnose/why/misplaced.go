package why

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/internal/adoption/move"
)

// findMisplaced reports pods that run on nodes of a pool that their tenant may not use.
func findMisplaced(s *Snapshot, pods ...*corev1.Pod) []Step {
	if s.Rules == nil {
		return nil
	}
	var all []Step
	for _, pod := range pods {
		for _, stray := range move.FindMisplaced(s.Key, s.Rules.Spec.Pools, []corev1.Pod{*pod}, move.MapNodes(s.Key, s.Nodes)) {
			seen := fmt.Sprintf("it runs on %s, and tenant %s may use %s", stray.DescribeNode(), s.Rules.Spec.Tenant, strings.Join(s.Rules.Spec.Pools, ", "))
			all = append(all, newCatalogStep(LinkPlacement, "pod/"+pod.Name, seen, "wrong-pool"))
		}
	}
	return all
}

// findAllMisplaced reports the misplaced pods of a workload.
func findAllMisplaced(s *Snapshot) []Step {
	var all []Step
	for i := range s.Pods {
		all = append(all, findMisplaced(s, &s.Pods[i])...)
	}
	return all
}
