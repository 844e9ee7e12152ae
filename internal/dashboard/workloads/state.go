package workloads

import (
	"cmp"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/internal/diagnose/why"
)

// starting are the reasons of waiting containers that are being started. Other reasons, such as
// ImagePullBackOff, are problems.
var starting = []string{"", "ContainerCreating", "PodInitializing"}

// EvaluatePod returns the state of a pod in some words.
func EvaluatePod(p *corev1.Pod) (string, why.Verdict) {
	statuses := slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses)
	for i := range statuses {
		if w := statuses[i].State.Waiting; w != nil && !slices.Contains(starting, w.Reason) {
			return w.Reason, why.Bad
		}
	}
	switch p.Status.Phase {
	case corev1.PodSucceeded:
		return "Completed", why.Good
	case corev1.PodFailed:
		return cmp.Or(p.Status.Reason, "Failed"), why.Bad
	case corev1.PodRunning:
		if slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue }) {
			return "Running", why.Good
		}
		return "Running, not ready", why.Waiting
	default:
		if p.Spec.NodeName == "" {
			return "Pending, no node", why.Waiting
		}
		return "Pending", why.Waiting
	}
}

func evaluateDeployment(d *appsv1.Deployment) (string, why.Verdict) {
	state, verdict := compareReady(d.Status.ReadyReplicas, d.Spec.Replicas)
	failed := func(c appsv1.DeploymentCondition) bool {
		return c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue ||
			c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse
	}
	if i := slices.IndexFunc(d.Status.Conditions, failed); i >= 0 {
		return state + ", " + d.Status.Conditions[i].Reason, why.Bad
	}
	return state, verdict
}

func evaluateStatefulSet(s *appsv1.StatefulSet) (string, why.Verdict) {
	return compareReady(s.Status.ReadyReplicas, s.Spec.Replicas)
}

func evaluateDaemonSet(d *appsv1.DaemonSet) (string, why.Verdict) {
	return compareReady(d.Status.NumberReady, &d.Status.DesiredNumberScheduled)
}

// compareReady describes the number of ready pods. The default of desired is 1.
func compareReady(ready int32, desired *int32) (string, why.Verdict) {
	number := int32(1)
	if desired != nil {
		number = *desired
	}
	state := fmt.Sprintf("%d of %d ready", ready, number)
	if ready < number {
		return state, why.Waiting
	}
	return state, why.Good
}

func evaluateJob(j *batchv1.Job) (string, why.Verdict) {
	is := func(kind batchv1.JobConditionType) bool {
		return slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool { return c.Type == kind && c.Status == corev1.ConditionTrue })
	}
	switch {
	case is(batchv1.JobFailed):
		return "Failed", why.Bad
	case is(batchv1.JobComplete):
		return "Complete", why.Good
	case is(batchv1.JobSuspended):
		return "Suspended", why.Good
	case j.Status.Active > 0:
		return fmt.Sprintf("%d running", j.Status.Active), why.Good
	default:
		return "no pod yet", why.Waiting
	}
}

func evaluateCronJob(c *batchv1.CronJob) (string, why.Verdict) {
	if c.Spec.Suspend != nil && *c.Spec.Suspend {
		return "Suspended", why.Good
	}
	return fmt.Sprintf("%s, %d running", c.Spec.Schedule, len(c.Status.Active)), why.Good
}
