package why

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/internal/diagnose/catalog"
	"croft.dev/croft/internal/observe/disruption"
)

// evaluateNode evaluates a node.
func evaluateNode(s *Snapshot, node *corev1.Node) []Step {
	object := "node/" + node.Name
	var steps []Step
	for _, c := range node.Status.Conditions {
		text := catalog.FormatCondition(string(c.Type), string(c.Status), c.Reason, c.Message)
		switch {
		case c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue:
			steps = append(steps, newBadStep(LinkNode, object, text))
		case c.Type != corev1.NodeReady && c.Status == corev1.ConditionTrue && strings.HasSuffix(string(c.Type), "Pressure"):
			steps = append(steps, newBadStep(LinkNode, object, text))
		}
	}
	steps = append(steps, explainAwaitedNetworks(node)...)
	claim := s.findClaim(node.Name)
	if claim != nil {
		if stray := FindUndeclaredTaint(node, claim); stray != nil {
			steps = append(steps, newCatalogStep(LinkNode, object, "it has the taint "+stray.ToString()+", which its NodeClaim does not declare", "undeclared-taint"))
		}
		if back := FindReturnedStartupTaint(node, claim); back != nil {
			steps = append(steps, newCatalogStep(LinkNode, object, "it has the startup taint "+back.ToString()+" again, after it was initialized: no new pod can start there", "startup-taint"))
		}
	}
	steps = append(steps, explainHolders(s, node, claim)...)
	if len(steps) == 0 {
		steps = []Step{newGoodStep(LinkNode, object, "it is ready")}
	}
	return steps
}

// ours are prefixes of taints that Kubernetes, Karpenter and the cloud provider add and
// remove themselves.
var ours = []string{"node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "karpenter.sh/", "ebs.csi.aws.com/", "efs.csi.aws.com/"}

// FindUndeclaredTaint returns a taint of a node that is not in its NodeClaim. Karpenter does not
// know it, and assumes that pods fit on such nodes.
func FindUndeclaredTaint(node *corev1.Node, claim *karpenterv1.NodeClaim) *corev1.Taint {
	declared := slices.Concat(claim.Spec.Taints, claim.Spec.StartupTaints)
	return findFirst(node.Spec.Taints, func(t *corev1.Taint) bool {
		if t.Effect == corev1.TaintEffectPreferNoSchedule || slices.ContainsFunc(ours, func(prefix string) bool { return strings.HasPrefix(t.Key, prefix) }) {
			return false
		}
		return !slices.ContainsFunc(declared, func(d corev1.Taint) bool { return d.MatchTaint(t) })
	})
}

// FindReturnedStartupTaint returns a startup taint that an initialized node has again: agents add
// their taint again when they are not ready. Before initialization, the condition of the
// claim names the taint.
func FindReturnedStartupTaint(node *corev1.Node, claim *karpenterv1.NodeClaim) *corev1.Taint {
	if !isInitialized(claim) {
		return nil
	}
	return findFirst(node.Spec.Taints, func(t *corev1.Taint) bool {
		return slices.ContainsFunc(claim.Spec.StartupTaints, func(d corev1.Taint) bool { return d.MatchTaint(t) })
	})
}

// explainHolders names the obstacles to a node's removal.
func explainHolders(s *Snapshot, node *corev1.Node, claim *karpenterv1.NodeClaim) []Step {
	now := time.Now()
	going, _ := FindRemovalReason(now, node, claim)
	if going == "" {
		return nil
	}
	object := "node/" + node.Name
	var steps []Step
	for _, h := range FindHolders(now, node, s.Pods, s.Budgets) {
		steps = append(steps, newCatalogStep(LinkNode, object, "it is "+going+", and kept by: "+h.Text, h.Row))
	}
	if len(steps) == 0 {
		steps = append(steps, newWaitingStep(LinkNode, object, "it is "+going+", and nothing prevents its removal"))
	}
	return steps
}

// FindRemovalReason returns the reason why a node is to be removed, and since when, or "" if it is
// not. The claim may be nil.
func FindRemovalReason(now time.Time, node *corev1.Node, claim *karpenterv1.NodeClaim) (how string, since time.Time) {
	if node.DeletionTimestamp != nil {
		return "being deleted", node.DeletionTimestamp.Time
	}
	if claim == nil {
		return "", time.Time{}
	}
	var drifted metav1.Condition
	for _, c := range claim.Status.Conditions {
		if c.Type == karpenterv1.ConditionTypeDrifted {
			drifted = metav1.Condition(c)
		}
	}
	expires := claim.Spec.ExpireAfter.Duration
	switch {
	case claim.DeletionTimestamp != nil:
		return "being deleted", claim.DeletionTimestamp.Time
	case drifted.Status == metav1.ConditionTrue:
		return fmt.Sprintf("drifted from its pool (%s)", drifted.Reason), drifted.LastTransitionTime.Time
	case expires != nil && now.Sub(claim.CreationTimestamp.Time) > *expires:
		return "older than its pool allows", claim.CreationTimestamp.Add(*expires)
	default:
		return "", time.Time{}
	}
}

// Holder is an obstacle to a node's removal.
type Holder struct {
	// Row is a row of the catalogue.
	Row string
	// Text names the obstacle.
	Text string
}

// FindHolders returns the obstacles to a node's removal by Karpenter: annotations, and pods
// that Karpenter drains and the API server does not evict.
func FindHolders(now time.Time, node *corev1.Node, pods []corev1.Pod, budgets []policyv1.PodDisruptionBudget) []Holder {
	const row = string(disruption.NotNow)
	var all []Holder
	// The annotation of a node prevents its deletion by Karpenter, but not its drain.
	if node.Annotations[karpenterv1.DoNotDisruptAnnotationKey] == "true" && node.DeletionTimestamp == nil {
		all = append(all, Holder{row, "it is annotated " + karpenterv1.DoNotDisruptAnnotationKey})
	}
	index := disruption.New(budgets)
	for i := range pods {
		pod := &pods[i]
		if pod.Spec.NodeName != node.Name || !needsDrain(pod) {
			continue
		}
		name := fmt.Sprintf("pod %s/%s: ", pod.Namespace, pod.Name)
		if isProtected(now, pod) {
			all = append(all, Holder{row, name + "it is annotated " + karpenterv1.DoNotDisruptAnnotationKey})
		} else if block := index.FindBlock(pod); block != nil {
			all = append(all, Holder{string(block.Cause), name + block.Text})
		}
	}
	return all
}

// describeUndrainable describes PodDisruptionBudgets that never allow an eviction, although nothing
// is wrong now: their nodes, which may have pods of other tenants, cannot be drained.
func describeUndrainable(s *Snapshot, pods []corev1.Pod) string {
	var texts []string
	for _, b := range disruption.New(s.Budgets).FindBlocks(pods) {
		if b.IsPersistent() {
			texts = append(texts, b.Text)
		}
	}
	if len(texts) == 0 {
		return ""
	}
	return "; but its nodes cannot be drained: " + strings.Join(texts, "; ")
}

// needsDrain reports whether Karpenter waits for a pod to leave a node that it removes.
func needsDrain(pod *corev1.Pod) bool {
	static := metav1.GetControllerOf(pod) != nil && metav1.GetControllerOf(pod).Kind == "Node"
	stays := slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
		return t.ToleratesTaint(klog.Background(), &karpenterv1.DisruptedNoScheduleTaint, false)
	})
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	return !static && !stays && !ended && pod.DeletionTimestamp == nil
}

// isProtected reports whether karpenter.sh/do-not-disrupt is in force: "true", or a duration
// since the pod's start that has not elapsed.
func isProtected(now time.Time, pod *corev1.Pod) bool {
	value := pod.Annotations[karpenterv1.DoNotDisruptAnnotationKey]
	if value == "true" {
		return true
	}
	lasts, err := time.ParseDuration(value)
	return err == nil && lasts > 0 && (pod.Status.StartTime == nil || now.Sub(pod.Status.StartTime.Time) < lasts)
}
