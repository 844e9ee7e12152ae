package why

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Tell judges the Snapshot.
func Tell(s *Snapshot) Story {
	switch s.Target.Kind {
	case "pod":
		return ofPod(s, &s.Pods[0])
	case "node":
		return ofNode(s)
	case "nodeclaim":
		return ofClaim(s)
	case "nodepool":
		return ofPool(s)
	case "cronjob":
		return ofCronJob(s)
	case "persistentvolumeclaim":
		return ofVolumeClaim(s)
	case "ingress":
		return ofIngress(s)
	case "namespace":
		return ofNamespace(s)
	case "tenant":
		return ofTenant(s)
	case "kustomization":
		return ofKustomization(s)
	case "gitrepository", "ocirepository":
		return ofSource(s)
	default:
		return ofWorkload(s)
	}
}

// ofWorkload tells of the pods that were refused, and of the first that does not
// run.
func ofWorkload(s *Snapshot) Story {
	story := Story{Target: s.Target, Summary: fmt.Sprintf("%d of %d pods are ready", s.Workload.Ready, s.Workload.Wanted)}
	astray := straysOf(s)
	if len(astray) > 0 {
		story.Summary += fmt.Sprintf("; %d run where they may not: restart them", len(astray))
		// Pods of one workload lack the same: it is told once.
		story.Steps = astray[:1]
		if more := len(astray) - 1; more > 0 {
			story.Steps[0].Seen += fmt.Sprintf("; and %d more such", more)
		}
	}
	if s.Workload.Ready >= s.Workload.Wanted {
		if len(astray) == 0 {
			story.Summary += ", and nothing is wrong"
		}
		return conclude(story)
	}
	story.Steps = append(story.Steps, refused(s)...)
	pods := slices.Clone(s.Pods)
	slices.SortStableFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	seen := map[string]bool{}
	for i := range pods {
		if ready(&pods[i]) || pods[i].DeletionTimestamp != nil {
			continue
		}
		// Pods of one template mostly lack the same: each cause is told once.
		one := ofPod(s, &pods[i])
		key := one.Summary
		if one.First != nil {
			key = one.First.ID
		}
		if !seen[key] {
			seen[key] = true
			story.Steps = append(story.Steps, one.Steps...)
		}
	}
	if len(story.Steps) == 0 {
		story.Steps = []Step{waiting(LinkPod, s.Target.String(), "its pods are about to be made, or to start")}
	}
	return conclude(story)
}

// refused are pods that were never created: the API server's refusal is in an event of
// their controller.
func refused(s *Snapshot) []Step {
	if int(s.Workload.Wanted) <= len(s.Pods) {
		return nil // all pods exist now; earlier refusals are over
	}
	if s.hidden("event") {
		return []Step{askAdmin(LinkAdmission, "events of "+s.Target.String(), "croft why "+s.Target.String()+flag(s.Target))}
	}
	for _, maker := range s.Workload.Makers {
		for kind, controller := range controllers {
			for _, e := range s.about(kind, maker, controller) {
				if e.Reason == "FailedCreate" {
					return []Step{exceeded(s, &e, bad(LinkAdmission, strings.ToLower(kind)+"/"+maker, e.Message))}
				}
			}
		}
	}
	return nil
}

// ofPod walks the chain of one pod.
func ofPod(s *Snapshot, pod *corev1.Pod) Story {
	story := Story{Target: Target{Kind: "pod", Namespace: pod.Namespace, Name: pod.Name}}
	object := "pod/" + pod.Name
	switch {
	case pod.DeletionTimestamp != nil:
		story.Summary = "is being deleted"
		story.Steps = []Step{waiting(LinkPod, object, deleting(pod))}
	case pod.Status.Phase == corev1.PodSucceeded:
		story.Summary = "has done its work, and nothing is wrong"
	case ready(pod) && len(strays(s, pod)) > 0:
		story.Summary = "runs where it may not: restart it"
		story.Steps = strays(s, pod)
	case ready(pod):
		story.Summary = fmt.Sprintf("runs on node %s, and nothing is wrong", pod.Spec.NodeName)
	case pod.Status.Phase == corev1.PodFailed:
		story.Summary = "has failed: that is not placement"
		story.Steps = []Step{bad(LinkPod, object, strings.TrimSpace(pod.Status.Reason+" "+pod.Status.Message))}
	case pod.Spec.NodeName != "":
		story.Summary = fmt.Sprintf("is placed on node %s, and has not started there", pod.Spec.NodeName)
		story.Steps = started(s, pod)
	default:
		story.Summary = "waits for a node"
		story.Steps = unscheduled(s, pod)
	}
	return conclude(story)
}

func deleting(pod *corev1.Pod) string {
	if len(pod.Finalizers) > 0 {
		return "it goes when somebody takes these finalizers off: " + strings.Join(pod.Finalizers, ", ")
	}
	return fmt.Sprintf("it goes when its containers have ended, or its node says so (asked at %s)", pod.DeletionTimestamp.Format("15:04:05"))
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

// started tells why a pod that has a node does not run: that is not placement.
func started(s *Snapshot, pod *corev1.Pod) []Step {
	object := "pod/" + pod.Name
	steps := []Step{good(LinkScheduler, object, "it has a node: what follows is not placement")}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if w := c.State.Waiting; w != nil && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
			steps = append(steps, bad(LinkPod, object, fmt.Sprintf("container %s: %s", c.Name, strings.TrimSuffix(w.Reason+": "+w.Message, ": "))))
		}
		if c.State.Running != nil && !c.Ready && c.Started != nil && *c.Started {
			steps = append(steps, waiting(LinkPod, object, "container "+c.Name+" runs and is not ready: look at its readiness probe"))
		}
	}
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

// kubelet is the name by which kubelets write events.
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
