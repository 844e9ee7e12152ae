package workloads

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/internal/diagnose/why"
	"croft.dev/croft/internal/observe/events"
)

// SelectEvents returns the events about the object of a snapshot, its pods and the objects that
// create them, the newest first.
func SelectEvents(s *why.Snapshot) []corev1.Event {
	about := func(kind, name string) bool {
		isPod := func(p corev1.Pod) bool { return kind == "Pod" && name == p.Name }
		isMaker := func(m why.Maker) bool { return kind == m.Kind && name == m.Name }
		return strings.EqualFold(kind, s.Target.Kind) && name == s.Target.Name ||
			slices.ContainsFunc(s.Pods, isPod) || slices.ContainsFunc(s.Makers, isMaker)
	}
	var all []corev1.Event
	for _, e := range s.Events {
		if e.Namespace == s.Target.Namespace && about(e.InvolvedObject.Kind, e.InvolvedObject.Name) {
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(a, b corev1.Event) int { return events.LastObserved(&b).Compare(events.LastObserved(&a)) })
	return all
}

// ListContainers returns the names of a pod's containers, in the order of their start.
func ListContainers(p *corev1.Pod) []string {
	var names []string
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			names = append(names, list[i].Name)
		}
	}
	for i := range p.Spec.EphemeralContainers {
		names = append(names, p.Spec.EphemeralContainers[i].Name)
	}
	return names
}

// ListRunning returns the names of a pod's containers that run, the default one first.
func ListRunning(p *corev1.Pod) []string {
	isRunning := map[string]bool{}
	for _, status := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses, p.Status.EphemeralContainerStatuses) {
		isRunning[status.Name] = status.State.Running != nil
	}
	first := p.Annotations[defaultContainer]
	if first == "" && len(p.Spec.Containers) > 0 {
		first = p.Spec.Containers[0].Name
	}
	var names []string
	for _, name := range ListContainers(p) {
		switch {
		case !isRunning[name]:
		case name == first:
			names = slices.Insert(names, 0, name)
		default:
			names = append(names, name)
		}
	}
	return names
}

// defaultContainer is the annotation that names the container of `kubectl logs` and `kubectl exec`.
const defaultContainer = "kubectl.kubernetes.io/default-container"

// ChooseContainer returns the container whose log a user wants first: one that has failed, and
// otherwise the one of `kubectl logs`.
func ChooseContainer(p *corev1.Pod) string {
	for _, status := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if ended := status.State.Terminated; ended != nil && ended.ExitCode != 0 || status.State.Waiting != nil && status.LastTerminationState.Terminated != nil {
			return status.Name
		}
	}
	if name := p.Annotations[defaultContainer]; slices.Contains(ListContainers(p), name) {
		return name
	}
	if len(p.Spec.Containers) > 0 {
		return p.Spec.Containers[0].Name
	}
	return ""
}
