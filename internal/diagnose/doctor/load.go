package doctor

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// These are the smallest numbers of waiting pods, and of requests in progress, that are reported. A rollout has fewer
// pods: the default quota of a tenant allows 500 of them. An API server without much load executes a few requests
// at once, and its queues are empty.
const (
	fewestPods     = 100
	fewestRequests = 20
)

// isWaiting reports whether a pod waits for the scheduler or for a node.
func isWaiting(pod *corev1.Pod) bool {
	return pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && len(pod.Spec.SchedulingGates) == 0 &&
		(pod.Status.Phase == corev1.PodPending || pod.Status.Phase == "")
}

// checkLoad names the tenant that causes most of the work that waits for the control plane.
func checkLoad(s *Snapshot) []Finding {
	if s.Estate == nil {
		return nil
	}
	tenants := map[string]string{}
	for _, t := range s.Estate.Tenants {
		for _, namespace := range t.Namespaces {
			tenants[namespace] = t.Name
		}
	}
	return slices.Concat(findWaitingPods(s.WaitingPods, tenants), findRequests(&s.Requests, tenants))
}

// findWaitingPods names the tenant with most of the pods that wait for a node. tenants maps namespaces to their
// tenants.
func findWaitingPods(waiting map[string]int, tenants map[string]string) []Finding {
	byTenant, total := map[string]int{}, 0
	for namespace, count := range waiting {
		byTenant[tenants[namespace]] += count
		total += count
	}
	tenant := findDominant(byTenant, total, fewestPods)
	if tenant == "" {
		return nil
	}
	return []Finding{newFinding("tenant-load", Warning, "Tenant/"+tenant,
		fmt.Sprintf("%d of the %d pods that wait for a node are its own", byTenant[tenant], total))}
}

// findRequests names the tenant with most of the requests that the API server executes or queues, or otherwise the user
// with most of the queued ones: Kubernetes' controllers may have many that are executed.
func findRequests(requests *Requests, tenants map[string]string) []Finding {
	byTenant, byFlow := map[string]int{}, map[string]int{}
	for _, flow := range slices.Concat(requests.Waiting, requests.Executed) {
		byTenant[tenants[requests.findNamespace(flow)]]++
	}
	for _, flow := range requests.Waiting {
		byFlow[flow]++
	}
	total := len(requests.Waiting) + len(requests.Executed)
	if tenant := findDominant(byTenant, total, fewestRequests); tenant != "" {
		message := fmt.Sprintf("%d of the %d requests in progress in the API server are of its namespaces", byTenant[tenant], total)
		if requests.ByNamespace != "" {
			message += ". Check this by the audit log: FlowSchema " + requests.ByNamespace +
				" distinguishes flows by namespace, so another tenant can send requests that are counted here"
		}
		return []Finding{newFinding("tenant-load", Warning, "Tenant/"+tenant, message)}
	}
	if user := findDominant(byFlow, len(requests.Waiting), fewestRequests); user != "" {
		return []Finding{newFinding("tenant-load", Warning, "User/"+user,
			fmt.Sprintf("%d of the %d requests that wait in the API server are by this user", byFlow[user], len(requests.Waiting)))}
	}
	return nil
}

// findDominant returns the name with more than half of a total, or "" if no name has this and at least fewest.
func findDominant(counts map[string]int, total, fewest int) string {
	for name, count := range counts {
		if name != "" && count >= fewest && 2*count > total {
			return name
		}
	}
	return ""
}

// summarizeLoad returns the statement without findings. Only cluster administrators may read the requests: no role
// of croft has this right.
func summarizeLoad(s *Snapshot) string {
	if s.Requests.Omitted == "" {
		return "no tenant has most of the pods that wait for a node, or of the requests in progress"
	}
	return "no tenant has most of the pods that wait for a node; requests in progress in the API server were not counted: " + s.Requests.Omitted
}
