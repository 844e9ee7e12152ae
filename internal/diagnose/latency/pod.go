package latency

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// Nominated is the reason of Karpenter's event on a pod for which it has a node.
const Nominated = "Nominated"

// need is the pod for which a node was created.
type need struct {
	// pod is nil if only its event still exists.
	pod *corev1.Pod
	// event is nil if it has expired; Kubernetes keeps events for an hour by default.
	event *corev1.Event
}

// findNeed returns the pod for which a NodeClaim was created: the oldest pod that Karpenter
// nominated for it, preferably one that runs there. Without an event it is the oldest pod on
// the node that existed before the claim and was scheduled after it.
func (x *index) findNeed(claim *karpenterv1.NodeClaim, node *corev1.Node) need {
	var candidates, deleted []need
	for _, e := range x.nominations[claim.Name] {
		pod := x.findPod(e)
		switch {
		case pod == nil:
			deleted = append(deleted, need{event: e})
		case !pod.CreationTimestamp.After(claim.CreationTimestamp.Time):
			candidates = append(candidates, need{pod, e}) // later pods are not the reason for the node
		}
	}
	if len(candidates) == 0 && node != nil {
		for _, pod := range x.podsByNode[node.Name] {
			if hasWaited(pod, claim) {
				candidates = append(candidates, need{pod: pod})
			}
		}
	}
	switch {
	case len(candidates) > 0:
		return slices.MinFunc(candidates, func(a, b need) int {
			return cmp.Or(
				toRank(runsOn(b.pod, node))-toRank(runsOn(a.pod, node)),
				a.pod.CreationTimestamp.Compare(b.pod.CreationTimestamp.Time),
				strings.Compare(formatName(a.pod), formatName(b.pod)),
			)
		})
	case len(deleted) > 0:
		return slices.MinFunc(deleted, func(a, b need) int { return findObservedTime(a.event).Compare(findObservedTime(b.event)) })
	default:
		return need{}
	}
}

func toRank(condition bool) int {
	if condition {
		return 1
	}
	return 0
}

func formatName(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

func runsOn(pod *corev1.Pod, node *corev1.Node) bool {
	return node != nil && pod.Spec.NodeName == node.Name
}

// hasWaited reports whether a pod of a node was waiting when the node's claim was created. Pods of
// DaemonSets and static pods run on existing nodes, and do not cause new ones.
func hasWaited(pod *corev1.Pod, claim *karpenterv1.NodeClaim) bool {
	if owner := metav1.GetControllerOf(pod); owner != nil && (owner.Kind == "DaemonSet" || owner.Kind == "Node") {
		return false
	}
	scheduled := findTurnTime(pod, corev1.PodScheduled)
	return !pod.CreationTimestamp.After(claim.CreationTimestamp.Time) &&
		!scheduled.Before(claim.CreationTimestamp.Time)
}

// findTurnTime returns the time at which a condition of a pod became true, or the zero time if it is
// not true.
func findTurnTime(pod *corev1.Pod, kind corev1.PodConditionType) time.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == kind && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// findObservedTime returns the time at which an event was first observed, which the newer API has in
// another field.
func findObservedTime(e *corev1.Event) time.Time {
	for _, t := range []time.Time{e.EventTime.Time, e.FirstTimestamp.Time, e.CreationTimestamp.Time} {
		if !t.IsZero() {
			return t
		}
	}
	return time.Time{}
}

// addPod adds the times of the pod for which a node was created.
func (t *Timeline) addPod(n need, node *corev1.Node, opts Options) {
	if n.event != nil {
		t.Pod = n.event.InvolvedObject.Namespace + "/" + n.event.InvolvedObject.Name
		t.addEvent(PodNominated, findObservedTime(n.event), t.Pod)
	}
	if n.pod == nil {
		state := "is deleted"
		if opts.SomePods {
			state = "does not run there, or is deleted"
		}
		if n.event != nil {
			t.addNote("pod %s, for which the node was created, %s: its times are unknown", t.Pod, state)
		}
		return
	}
	t.Pod = formatName(n.pod)
	t.addEvent(PodCreated, n.pod.CreationTimestamp.Time, t.Pod)
	if !runsOn(n.pod, node) {
		if n.pod.Spec.NodeName != "" {
			t.addNote("pod %s, for which the node was created, runs on node %s", t.Pod, n.pod.Spec.NodeName)
		}
		return
	}
	t.addEvent(PodScheduled, findTurnTime(n.pod, corev1.PodScheduled), "")
	if started := n.pod.Status.StartTime; started != nil {
		t.addEvent(PodStarted, started.Time, "kubelet accepted the pod")
	}
	if hasRestarted(n.pod) {
		t.addNote("containers of pod %s have restarted: the first time it was ready is unknown", t.Pod)
		return
	}
	t.addEvent(PodSandboxReady, findTurnTime(n.pod, corev1.PodReadyToStartContainers), "network attached")
	t.addEvent(PodReady, findTurnTime(n.pod, corev1.PodReady), "")
}

func hasRestarted(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses,
		func(c corev1.ContainerStatus) bool { return c.RestartCount > 0 })
}
