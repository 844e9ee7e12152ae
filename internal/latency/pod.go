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

// neededBy returns the pod for which a NodeClaim was created: the oldest pod that Karpenter
// nominated for it, preferably one that runs there. Without an event it is the oldest pod on
// the node that existed before the claim and was scheduled after it.
func (x *index) neededBy(claim *karpenterv1.NodeClaim, node *corev1.Node) need {
	var candidates, gone []need
	for _, e := range x.nominations[claim.Name] {
		pod := x.podOf(e)
		switch {
		case pod == nil:
			gone = append(gone, need{event: e})
		case !pod.CreationTimestamp.After(claim.CreationTimestamp.Time):
			candidates = append(candidates, need{pod, e}) // later pods are not the reason for the node
		}
	}
	if len(candidates) == 0 && node != nil {
		for _, pod := range x.podsByNode[node.Name] {
			if waited(pod, claim) {
				candidates = append(candidates, need{pod: pod})
			}
		}
	}
	switch {
	case len(candidates) > 0:
		return slices.MinFunc(candidates, func(a, b need) int {
			return cmp.Or(
				rank(runsOn(b.pod, node))-rank(runsOn(a.pod, node)),
				a.pod.CreationTimestamp.Compare(b.pod.CreationTimestamp.Time),
				strings.Compare(name(a.pod), name(b.pod)),
			)
		})
	case len(gone) > 0:
		return slices.MinFunc(gone, func(a, b need) int { return seen(a.event).Compare(seen(b.event)) })
	default:
		return need{}
	}
}

func rank(is bool) int {
	if is {
		return 1
	}
	return 0
}

func name(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

func runsOn(pod *corev1.Pod, node *corev1.Node) bool {
	return node != nil && pod.Spec.NodeName == node.Name
}

// waited reports whether a pod of a node was waiting when the node's claim was created. Pods of
// DaemonSets and static pods run on existing nodes, and do not cause new ones.
func waited(pod *corev1.Pod, claim *karpenterv1.NodeClaim) bool {
	if owner := metav1.GetControllerOf(pod); owner != nil && (owner.Kind == "DaemonSet" || owner.Kind == "Node") {
		return false
	}
	scheduled := turned(pod, corev1.PodScheduled)
	return !pod.CreationTimestamp.After(claim.CreationTimestamp.Time) &&
		!scheduled.Before(claim.CreationTimestamp.Time)
}

// turned returns the time at which a condition of a pod became true, or the zero time if it is
// not true.
func turned(pod *corev1.Pod, kind corev1.PodConditionType) time.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == kind && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// seen returns the time at which an event was first observed, which the newer API has in
// another field.
func seen(e *corev1.Event) time.Time {
	for _, t := range []time.Time{e.EventTime.Time, e.FirstTimestamp.Time, e.CreationTimestamp.Time} {
		if !t.IsZero() {
			return t
		}
	}
	return time.Time{}
}

// addPod adds the times of the pod for which a node was created.
func (t *Timeline) addPod(n need, node *corev1.Node) {
	if n.event != nil {
		t.Pod = n.event.InvolvedObject.Namespace + "/" + n.event.InvolvedObject.Name
		t.add(PodNominated, seen(n.event), t.Pod)
	}
	if n.pod == nil {
		if n.event != nil {
			t.note("pod %s, which the node was made for, is gone: its times are not known", t.Pod)
		}
		return
	}
	t.Pod = name(n.pod)
	t.add(PodCreated, n.pod.CreationTimestamp.Time, t.Pod)
	if !runsOn(n.pod, node) {
		if n.pod.Spec.NodeName != "" {
			t.note("pod %s, which the node was made for, runs on node %s", t.Pod, n.pod.Spec.NodeName)
		}
		return
	}
	t.add(PodScheduled, turned(n.pod, corev1.PodScheduled), "")
	if started := n.pod.Status.StartTime; started != nil {
		t.add(PodStarted, started.Time, "kubelet took the pod")
	}
	if restarted(n.pod) {
		t.note("containers of pod %s have restarted: when it was ready first is not known", t.Pod)
		return
	}
	t.add(PodSandboxReady, turned(n.pod, corev1.PodReadyToStartContainers), "network attached")
	t.add(PodReady, turned(n.pod, corev1.PodReady), "")
}

func restarted(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses,
		func(c corev1.ContainerStatus) bool { return c.RestartCount > 0 })
}
