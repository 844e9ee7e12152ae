package why

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// ExplainSnapshot evaluates the Snapshot.
func ExplainSnapshot(s *Snapshot) Story {
	switch {
	case s.Target.Kind == "pod":
		return explainPod(s, &s.Pods[0])
	case s.Object != nil && s.Object.GetDeletionTimestamp() != nil:
		return explainDeletion(s)
	}
	switch s.Target.Kind {
	case "node":
		return explainNode(s)
	case "nodeclaim":
		return explainClaim(s)
	case "nodepool":
		return explainNodePool(s)
	case "pool":
		return explainPool(s)
	case "job":
		return explainJob(s)
	case "cronjob":
		return explainCronJob(s)
	case "persistentvolumeclaim":
		return explainVolumeClaim(s)
	case "ingress":
		return explainIngress(s)
	case "persistentvolume":
		return explainVolume(s)
	case "namespace":
		return explainNamespace(s)
	case "tenant":
		return explainTenant(s)
	case "kustomization":
		return explainKustomization(s)
	case "gitrepository", "ocirepository":
		return explainSource(s)
	case "certificate":
		return explainCertificate(s)
	case "deployment", "replicaset", "replicationcontroller", "statefulset", "daemonset":
		return explainWorkload(s)
	default:
		return explainOther(s)
	}
}

// explainPod explains one pod.
func explainPod(s *Snapshot, pod *corev1.Pod) Story {
	story := Story{Target: Target{Kind: "pod", Namespace: pod.Namespace, Name: pod.Name}}
	switch {
	case pod.DeletionTimestamp != nil:
		story.Summary = "is being deleted"
		story.Steps = explainDeletingPod(s, pod)
	case pod.Status.Phase == corev1.PodSucceeded:
		story.Summary = "has completed, and nothing is wrong"
	case isPodReady(pod) && len(findMisplaced(s, pod)) > 0:
		story.Summary = "runs on a pool that its tenant may not use: restart it"
		story.Steps = findMisplaced(s, pod)
	case isPodReady(pod):
		story.Summary = fmt.Sprintf("runs on node %s, and nothing is wrong%s", pod.Spec.NodeName, describeRestarts(s, pod)+describeUndrainable(s, []corev1.Pod{*pod}))
	case pod.Status.Phase == corev1.PodFailed:
		story.Summary, story.Steps = "has failed", explainFailedPod(s, pod)
	case pod.Spec.NodeName != "":
		story.Summary = fmt.Sprintf("is placed on node %s, and has not started there", pod.Spec.NodeName)
		story.Steps = explainStarting(s, pod)
	default:
		story.Summary = "waits for a node"
		story.Steps = explainUnscheduled(s, pod)
	}
	return conclude(story)
}

func isPodReady(pod *corev1.Pod) bool {
	return findPodCondition(pod, corev1.PodReady) == corev1.ConditionTrue
}

func findPodCondition(pod *corev1.Pod, kind corev1.PodConditionType) corev1.ConditionStatus {
	c := findFirst(pod.Status.Conditions, func(c *corev1.PodCondition) bool { return c.Type == kind })
	if c == nil {
		return corev1.ConditionUnknown
	}
	return c.Status
}

// explainStarting explains why a pod with a node does not run. The cause is not placement.
func explainStarting(s *Snapshot, pod *corev1.Pod) []Step {
	object := "pod/" + pod.Name
	steps := []Step{newGoodStep(LinkScheduler, object, "it has a node: placement is not the cause")}
	steps = append(steps, evaluateContainers(s, pod)...)
	for _, e := range s.findEvents("Pod", pod.Name, kubelet, "attachdetach-controller") {
		if e.Type == corev1.EventTypeWarning && (e.Reason == "FailedCreatePodSandBox" || e.Reason == "FailedMount" || e.Reason == "FailedAttachVolume") {
			steps = append(steps, newBadStep(LinkPod, object, e.Message))
			steps = append(steps, evaluateNetwork(s, &e)...)
			break
		}
	}
	steps = append(steps, evaluatePodNode(s, pod)...)
	if len(steps) == 1 {
		steps = append(steps, newWaitingStep(LinkPod, object, "its containers are being started"))
	}
	return steps
}

// kubelet is the component name in kubelets' events.
const kubelet = "kubelet"

func evaluatePodNode(s *Snapshot, pod *corev1.Pod) []Step {
	node := s.findNode(pod.Spec.NodeName)
	switch {
	case node != nil:
		return dropGood(evaluateNode(s, node))
	case s.isHidden("node"):
		return []Step{newHiddenStep(LinkNode, "node/"+pod.Spec.NodeName, "croft why node/"+pod.Spec.NodeName)}
	default:
		return []Step{newBadStep(LinkNode, "node/"+pod.Spec.NodeName, "the node no longer exists")}
	}
}

func dropGood(steps []Step) []Step {
	return slices.DeleteFunc(steps, func(step Step) bool { return step.Verdict == Good })
}
