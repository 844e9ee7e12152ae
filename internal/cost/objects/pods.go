package objects

import (
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podresources "k8s.io/component-helpers/resource"

	"croft.dev/croft/internal/cost/ledger"
)

// buildPods returns the pods that a node has or had. A pod reserves its requests from its
// scheduling until its last container ends.
func buildPods(pods []corev1.Pod, nodes []ledger.Node) []ledger.Pod {
	starts := map[string]time.Time{}
	for i := range nodes {
		starts[nodes[i].Name] = nodes[i].From
	}
	var all []ledger.Pod
	for i := range pods {
		entry, scheduled := ReadPod(&pods[i])
		if !scheduled {
			continue
		}
		// The kubelet's clock may be behind: no pod is older than its node.
		if start := starts[entry.Node]; entry.From.Before(start) {
			entry.From = start
		}
		all = append(all, entry)
	}
	return all
}

// ReadPod returns a pod that a node has or had.
func ReadPod(pod *corev1.Pod) (p ledger.Pod, scheduled bool) {
	if pod.Spec.NodeName == "" {
		return p, false
	}
	requests := podresources.PodRequests(pod, podresources.PodResourcesOptions{})
	return ledger.Pod{
		Namespace: pod.Namespace, Workload: findWorkload(pod), Node: pod.Spec.NodeName,
		CPU: max(requests.Cpu().MilliValue(), 0), Memory: roundUp(requests.Memory().Value()),
		Span: ledger.Span{From: findScheduling(pod), Until: findEnd(pod)},
	}, true
}

func findScheduling(pod *corev1.Pod) time.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue && !c.LastTransitionTime.IsZero() {
			return c.LastTransitionTime.Time
		}
	}
	return pod.CreationTimestamp.Time
}

// findEnd returns the time at which a finished pod released its requests, or the zero time. A pod that
// was evicted may have no terminated container; its conditions changed at that time.
func findEnd(pod *corev1.Pod) time.Time {
	if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
		return time.Time{}
	}
	end := findScheduling(pod)
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, status := range list {
			if ended := status.State.Terminated; ended != nil && ended.FinishedAt.After(end) {
				end = ended.FinishedAt.Time
			}
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.LastTransitionTime.After(end) {
			end = c.LastTransitionTime.Time
		}
	}
	return end
}

// cronJobRun matches the end of the name of a CronJob's Job: its time, in minutes.
var cronJobRun = regexp.MustCompile(`-\d{8}$`)

// findWorkload returns the kind and the name of the object that created a pod. Deployments and CronJobs
// replace the direct owners by the rules with which they name these.
func findWorkload(pod *corev1.Pod) string {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind == "Node" {
		return "Pod/" + pod.Name
	}
	hash := pod.Labels["pod-template-hash"]
	if name, is := strings.CutSuffix(owner.Name, "-"+hash); is && hash != "" && owner.Kind == "ReplicaSet" {
		return "Deployment/" + name
	}
	if run := cronJobRun.FindString(owner.Name); run != "" && owner.Kind == "Job" {
		return "CronJob/" + strings.TrimSuffix(owner.Name, run)
	}
	return owner.Kind + "/" + owner.Name
}
