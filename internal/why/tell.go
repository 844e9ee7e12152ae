package why

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Tell evaluates the Snapshot.
func Tell(s *Snapshot) Story {
	switch {
	case s.Target.Kind == "pod":
		return ofPod(s, &s.Pods[0])
	case s.Object != nil && s.Object.GetDeletionTimestamp() != nil:
		return ofDeletion(s)
	}
	switch s.Target.Kind {
	case "node":
		return ofNode(s)
	case "nodeclaim":
		return ofClaim(s)
	case "nodepool":
		return ofNodePool(s)
	case "pool":
		return ofPool(s)
	case "job":
		return ofJob(s)
	case "cronjob":
		return ofCronJob(s)
	case "persistentvolumeclaim":
		return ofVolumeClaim(s)
	case "ingress":
		return ofIngress(s)
	case "persistentvolume":
		return ofVolume(s)
	case "namespace":
		return ofNamespace(s)
	case "tenant":
		return ofTenant(s)
	case "kustomization":
		return ofKustomization(s)
	case "gitrepository", "ocirepository":
		return ofSource(s)
	case "certificate":
		return ofCertificate(s)
	case "deployment", "replicaset", "replicationcontroller", "statefulset", "daemonset":
		return ofWorkload(s)
	default:
		return ofAny(s)
	}
}

// ofPod explains one pod.
func ofPod(s *Snapshot, pod *corev1.Pod) Story {
	story := Story{Target: Target{Kind: "pod", Namespace: pod.Namespace, Name: pod.Name}}
	switch {
	case pod.DeletionTimestamp != nil:
		story.Summary = "is being deleted"
		story.Steps = deletingPod(s, pod)
	case pod.Status.Phase == corev1.PodSucceeded:
		story.Summary = "has completed, and nothing is wrong"
	case ready(pod) && len(strays(s, pod)) > 0:
		story.Summary = "runs where it may not: restart it"
		story.Steps = strays(s, pod)
	case ready(pod):
		story.Summary = fmt.Sprintf("runs on node %s, and nothing is wrong%s", pod.Spec.NodeName, restarts(pod)+undrainable(s, []corev1.Pod{*pod}))
	case pod.Status.Phase == corev1.PodFailed:
		story.Summary, story.Steps = "has failed", failedSteps(s, pod)
	case pod.Spec.NodeName != "":
		story.Summary = fmt.Sprintf("is placed on node %s, and has not started there", pod.Spec.NodeName)
		story.Steps = started(s, pod)
	default:
		story.Summary = "waits for a node"
		story.Steps = unscheduled(s, pod)
	}
	return conclude(story)
}

func ready(pod *corev1.Pod) bool {
	return podCondition(pod, corev1.PodReady) == corev1.ConditionTrue
}

func podCondition(pod *corev1.Pod, kind corev1.PodConditionType) corev1.ConditionStatus {
	c := find(pod.Status.Conditions, func(c *corev1.PodCondition) bool { return c.Type == kind })
	if c == nil {
		return corev1.ConditionUnknown
	}
	return c.Status
}

// started explains why a pod with a node does not run. The cause is not placement.
func started(s *Snapshot, pod *corev1.Pod) []Step {
	object := "pod/" + pod.Name
	steps := []Step{good(LinkScheduler, object, "it has a node: what follows is not placement")}
	steps = append(steps, containerSteps(s, pod)...)
	for _, e := range s.about("Pod", pod.Name, kubelet, "attachdetach-controller") {
		if e.Type == corev1.EventTypeWarning && (e.Reason == "FailedCreatePodSandBox" || e.Reason == "FailedMount" || e.Reason == "FailedAttachVolume") {
			steps = append(steps, bad(LinkPod, object, e.Message))
			steps = append(steps, networkSteps(s, &e)...)
			break
		}
	}
	steps = append(steps, nodeOf(s, pod)...)
	if len(steps) == 1 {
		steps = append(steps, waiting(LinkPod, object, "its containers are being started"))
	}
	return steps
}

// kubelet is the component name in kubelets' events.
const kubelet = "kubelet"

func nodeOf(s *Snapshot, pod *corev1.Pod) []Step {
	node := s.node(pod.Spec.NodeName)
	switch {
	case node != nil:
		return onlyWrong(nodeSteps(s, node))
	case s.hidden("node"):
		return []Step{askAdmin(LinkNode, "node/"+pod.Spec.NodeName, "croft why node/"+pod.Spec.NodeName)}
	default:
		return []Step{bad(LinkNode, "node/"+pod.Spec.NodeName, "the node is not there any more")}
	}
}

func onlyWrong(steps []Step) []Step {
	return slices.DeleteFunc(steps, func(step Step) bool { return step.Verdict == Good })
}
