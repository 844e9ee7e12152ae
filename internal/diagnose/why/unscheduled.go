package why

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/internal/diagnose/catalog"
)

// explainUnscheduled explains a pod without a node.
func explainUnscheduled(s *Snapshot, pod *corev1.Pod) []Step {
	if len(pod.Spec.SchedulingGates) > 0 {
		return []Step{newWaitingStep(LinkPod, "pod/"+pod.Name, "it has the scheduling gate "+pod.Spec.SchedulingGates[0].Name+", and waits for the controller that set it")}
	}
	steps := []Step{evaluatePlacement(s, pod)}
	steps = append(steps, evaluateScheduler(s, pod))
	karpenterSteps, nominated := readKarpenterMessage(s, pod)
	steps = nameRepellents(s, pod, append(steps, karpenterSteps...))
	steps = append(steps, evaluatePodPool(s, pod, nominated)...)
	return append(steps, countNeighbours(s, pod)...)
}

// evaluatePlacement reports whether the pod got its tenant's pool when it was created.
func evaluatePlacement(s *Snapshot, pod *corev1.Pod) Step {
	object, pool := "pod/"+pod.Name, s.selectedPool(pod)
	switch {
	case pool != "" && s.toleratesPool(pod, pool):
		return newGoodStep(LinkPlacement, object, "it was placed on pool "+pool+" when it was created")
	case s.Rules != nil:
		return newCatalogStep(LinkPlacement, object, fmt.Sprintf("namespace %s belongs to tenant %s, and the pod has no nodeSelector and toleration of its pool (%s): it is older than the policy",
			pod.Namespace, s.Rules.Spec.Tenant, strings.Join(s.Rules.Spec.Pools, ", ")), "placement-missing")
	case s.isHidden("tenantrules"):
		return newHiddenStep(LinkPlacement, "namespace/"+pod.Namespace, "croft why pod/"+pod.Name+" -n "+pod.Namespace)
	case isRefusedByTaint(s, pod):
		return newCatalogStep(LinkPlacement, object, "namespace "+pod.Namespace+" belongs to no tenant, so the pod was not placed on a pool; pools accept only pods of tenants", "placement-missing")
	default:
		return newGoodStep(LinkPlacement, object, "namespace "+pod.Namespace+" belongs to no tenant: the pod may run on any node without a taint")
	}
}

// karpenter is the component name in Karpenter's events.
const karpenter = "karpenter"

// isRefusedByTaint reports whether Karpenter's message names the taint of a pool.
func isRefusedByTaint(s *Snapshot, pod *corev1.Pod) bool {
	for _, e := range s.findEvents("Pod", pod.Name, karpenter) {
		if e.Reason == "FailedScheduling" {
			return strings.Contains(e.Message, "did not tolerate taint") && strings.Contains(e.Message, s.Key+"=")
		}
	}
	return false
}

// evaluateScheduler reports the scheduler's message. Untolerated taints of other tenants' nodes are
// normal, and are no finding. Callers who may not read NodePools do not get the message then,
// since it contains the number of these nodes.
func evaluateScheduler(s *Snapshot, pod *corev1.Pod) Step {
	object := "pod/" + pod.Name
	c := findFirst(pod.Status.Conditions, func(c *corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })
	if c == nil || c.Status != corev1.ConditionFalse {
		return newWaitingStep(LinkScheduler, object, "the scheduler has not processed it yet")
	}
	for _, f := range catalog.FindMatches(c.Message) {
		if f.ID != "taint-not-tolerated" {
			step := newBadStep(LinkScheduler, object, f.Symptom)
			step.Finding = &f
			return step
		}
	}
	if s.isHidden("nodepool") {
		return newWaitingStep(LinkScheduler, object, "no existing node accepts it")
	}
	return newWaitingStep(LinkScheduler, object, "no existing node accepts it: "+c.Message)
}

// readKarpenterMessage returns Karpenter's last message about a pod, and the NodeClaim that it
// nominated.
func readKarpenterMessage(s *Snapshot, pod *corev1.Pod) (steps []Step, nominated string) {
	object, pool := "pod/"+pod.Name, s.selectedPool(pod)
	for _, e := range s.findEvents("Pod", pod.Name, karpenter) {
		switch e.Reason {
		case "Nominated":
			_, claimName, _ := strings.Cut(e.Message, "nodeclaim/")
			nominated, _, _ = strings.Cut(claimName, ",")
			return []Step{newWaitingStep(LinkKarpenter, object, "Karpenter has chosen a node for it, or creates one")}, nominated
		case "FailedScheduling":
			return explainFailedScheduling(object, pool, hideCounts(s, selectOwnParts(e.Message, s.Key, pool))), ""
		}
	}
	if s.isHidden("event") {
		return []Step{newHiddenStep(LinkKarpenter, "events of "+object, "croft why "+object+" -n "+pod.Namespace)}, ""
	}
	return []Step{newWaitingStep(LinkKarpenter, object, "Karpenter has not reported anything about it")}, ""
}

func explainFailedScheduling(object, pool string, parts []string) []Step {
	if len(parts) == 0 {
		step := newBadStep(LinkKarpenter, object, "Karpenter does not consider pool "+pool+" for it")
		finding := catalog.FindRow("no-pool").ToFinding(step.Observation)
		step.Finding = &finding
		return []Step{step}
	}
	// Karpenter reports the same cause for many pools: each cause is reported once.
	var steps []Step
	more := map[string]int{}
	for _, part := range parts {
		step := newBadStep(LinkKarpenter, object, part)
		if step.Finding != nil {
			if more[step.Finding.ID]++; more[step.Finding.ID] > 1 {
				continue
			}
		}
		steps = append(steps, step)
	}
	for i := range steps {
		if f := steps[i].Finding; f != nil && more[f.ID] > 1 {
			steps[i].Observation += fmt.Sprintf("; and %d more such", more[f.ID]-1)
		}
	}
	return steps
}

// selectOwnParts returns the part of Karpenter's message about the pod's own pool. Karpenter
// reports about all pools at once, without naming them. Refusals by other pools are no
// cause: the pod may not run there, and a tenant may not read about them.
func selectOwnParts(message, key, pool string) []string {
	var reasons []string
	for part := range strings.SplitSeq(strings.TrimPrefix(message, "Failed to schedule pod, "), "; ") {
		if pool == "" || !isOtherPools(part, key, pool) {
			reasons = append(reasons, part)
		}
	}
	return reasons
}

// hideCounts removes Karpenter's counts for callers who may not read NodePools: if the topology
// is the host, the counts contain the names of all tenants' nodes.
func hideCounts(s *Snapshot, parts []string) []string {
	for i := range parts {
		if before, _, counts := strings.Cut(parts[i], " (counts = "); counts && s.isHidden("nodepool") {
			parts[i] = before
		}
	}
	return parts
}

func isOtherPools(part, key, pool string) bool {
	switch {
	case strings.Contains(part, "did not tolerate taint"):
		return !strings.Contains(part, "(taint="+key+"="+pool+":")
	case strings.Contains(part, "limits "), strings.Contains(part, "minValues requirements"):
		_, named, ok := strings.Cut(part, "(NodePool=")
		return ok && named != pool+")"
	default:
		// Other pools do not have the label, or have another value of it.
		return strings.Contains(part, `label "`+key+`" does not have known values`) || strings.Contains(part, "incompatible requirements, key "+key+",")
	}
}

// evaluatePodPool evaluates the pool, its class and its claims.
func evaluatePodPool(s *Snapshot, pod *corev1.Pod, nominated string) []Step {
	name := s.selectedPool(pod)
	if claim := findFirst(s.Claims, func(c *karpenterv1.NodeClaim) bool { return c.Name == nominated }); name == "" && claim != nil {
		name = claim.Labels[nodePoolLabel]
	}
	if name == "" {
		return nil
	}
	if s.isHidden("nodepool") {
		return []Step{newHiddenStep(LinkPool, "nodepool/"+name, "croft why pod/"+pod.Name+" -n "+pod.Namespace)}
	}
	pool := s.findPool(name)
	if pool == nil {
		step := newCatalogStep(LinkPool, "nodepool/"+name, "there is no NodePool "+name, "no-pool")
		return []Step{step}
	}
	steps := append(evaluatePool(s, pool), findBlockingClaim(s, pod)...)
	for i := range s.Claims {
		claim := &s.Claims[i]
		if claim.Labels[nodePoolLabel] == name && !isInitialized(claim) && (nominated == "" || claim.Name == nominated) {
			steps = append(steps, evaluateClaim(s, claim)...)
		}
	}
	if nominated != "" || !hasBad(steps) {
		steps = append(steps, findFailedLaunch(s, name)...)
	}
	return steps
}

// launchTakes is an upper limit for the duration of an instance's launch.
const launchTakes = 15 * time.Second

// findBlockingClaim returns a NodeClaim of another pool that blocks Karpenter's decisions about all
// others.
func findBlockingClaim(s *Snapshot, pod *corev1.Pod) []Step {
	for i := range s.Unlaunched {
		claim := &s.Unlaunched[i]
		pool := claim.Labels[nodePoolLabel]
		if pool != s.selectedPool(pod) && time.Since(claim.CreationTimestamp.Time) > launchTakes {
			return []Step{newCatalogStep(LinkPool, "nodeclaim/"+claim.Name, "NodeClaim "+claim.Name+" of pool "+pool+" has no instance, and Karpenter creates no other node until it has one", "provisioning-held")}
		}
	}
	return nil
}

func hasBad(steps []Step) bool {
	return findFirst(steps, func(step *Step) bool { return step.Verdict == Bad }) != nil
}
