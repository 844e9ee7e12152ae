package why

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/internal/catalog"
)

// nodeSteps judge a node.
func nodeSteps(s *Snapshot, node *corev1.Node) []Step {
	object := "node/" + node.Name
	var steps []Step
	for _, c := range node.Status.Conditions {
		text := catalog.Condition(string(c.Type), string(c.Status), c.Reason, c.Message)
		switch {
		case c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue:
			steps = append(steps, bad(LinkNode, object, text))
		case c.Type != corev1.NodeReady && c.Status == corev1.ConditionTrue && strings.HasSuffix(string(c.Type), "Pressure"):
			steps = append(steps, bad(LinkNode, object, text))
		}
	}
	steps = append(steps, networksAwaited(node)...)
	claim := s.claimOf(node.Name)
	if claim != nil {
		if stray := Undeclared(node, claim); stray != nil {
			steps = append(steps, judged(LinkNode, object, "it has the taint "+stray.ToString()+", which its NodeClaim does not declare", "undeclared-taint"))
		}
	}
	steps = append(steps, held(s, node, claim)...)
	if len(steps) == 0 {
		steps = []Step{good(LinkNode, object, "it is ready")}
	}
	return steps
}

// ours are prefixes of taints that Kubernetes, Karpenter and the cloud set and
// take away by themselves.
var ours = []string{"node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "karpenter.sh/", "ebs.csi.aws.com/", "efs.csi.aws.com/"}

// Undeclared is a taint of a node that Karpenter was not told of: it thinks that
// pods will fit there.
func Undeclared(node *corev1.Node, claim *karpenterv1.NodeClaim) *corev1.Taint {
	declared := slices.Concat(claim.Spec.Taints, claim.Spec.StartupTaints)
	return find(node.Spec.Taints, func(t *corev1.Taint) bool {
		if t.Effect == corev1.TaintEffectPreferNoSchedule || slices.ContainsFunc(ours, func(prefix string) bool { return strings.HasPrefix(t.Key, prefix) }) {
			return false
		}
		return !slices.ContainsFunc(declared, func(d corev1.Taint) bool { return d.MatchTaint(t) })
	})
}

// held names the obstacles to a node's removal.
func held(s *Snapshot, node *corev1.Node, claim *karpenterv1.NodeClaim) []Step {
	going, _ := Leaving(time.Now(), node, claim)
	if going == "" {
		return nil
	}
	object := "node/" + node.Name
	var steps []Step
	for _, holder := range Holders(node, s.Pods, s.Budgets) {
		steps = append(steps, judged(LinkNode, object, "it is "+going+", and held: "+holder, "node-held"))
	}
	if len(steps) == 0 {
		steps = append(steps, waiting(LinkNode, object, "it is "+going+", and nothing holds it"))
	}
	return steps
}

// Leaving says why a node is to go, and since when; "" if it is not. The claim may be
// nil.
func Leaving(now time.Time, node *corev1.Node, claim *karpenterv1.NodeClaim) (how string, since time.Time) {
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
		return fmt.Sprintf("drifted from what its pool asks for (%s)", drifted.Reason), drifted.LastTransitionTime.Time
	case expires != nil && now.Sub(claim.CreationTimestamp.Time) > *expires:
		return "older than its pool lets it be", claim.CreationTimestamp.Add(*expires)
	default:
		return "", time.Time{}
	}
}

// Holders are the obstacles to a node's removal.
func Holders(node *corev1.Node, pods []corev1.Pod, budgets []policyv1.PodDisruptionBudget) []string {
	var all []string
	if node.Annotations[karpenterv1.DoNotDisruptAnnotationKey] == "true" {
		all = append(all, "it is annotated "+karpenterv1.DoNotDisruptAnnotationKey)
	}
	for i := range pods {
		pod := &pods[i]
		if pod.Spec.NodeName != node.Name {
			continue
		}
		if by := holds(pod, budgets); by != "" {
			all = append(all, fmt.Sprintf("pod %s/%s: %s", pod.Namespace, pod.Name, by))
		}
	}
	return all
}

// holds is the reason why a pod stays on a node that is to be removed; "" if there is
// none.
func holds(pod *corev1.Pod, budgets []policyv1.PodDisruptionBudget) string {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed || metav1.GetControllerOf(pod) != nil && metav1.GetControllerOf(pod).Kind == "DaemonSet" {
		return ""
	}
	if pod.Annotations[karpenterv1.DoNotDisruptAnnotationKey] == "true" {
		return "it is annotated " + karpenterv1.DoNotDisruptAnnotationKey
	}
	for _, b := range budgets {
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err == nil && b.Namespace == pod.Namespace && selector.Matches(labels.Set(pod.Labels)) && b.Status.DisruptionsAllowed == 0 {
			return "PodDisruptionBudget " + b.Name + " lets no pod go"
		}
	}
	return ""
}
