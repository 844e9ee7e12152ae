package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"croft.dev/croft/internal/declare/wording"
	"croft.dev/croft/internal/observe/events"
)

func explainJob(s *Snapshot) Story {
	job, ok := s.Object.(*batchv1.Job)
	if !ok {
		return conclude(Story{Target: s.Target})
	}
	story := Story{Target: s.Target}
	story.Summary, story.Steps = evaluateJob(s, job)
	return conclude(story)
}

// evaluateJob explains a Job: its end, or why its pods wait.
func evaluateJob(s *Snapshot, job *batchv1.Job) (summary string, steps []Step) {
	object := "job/" + job.Name
	failed := findJobCondition(job, batchv1.JobFailed)
	if failed == nil {
		failed = findJobCondition(job, batchv1.JobFailureTarget)
	}
	switch {
	case findJobCondition(job, batchv1.JobComplete) != nil:
		return "has completed" + describeRetries(job) + ", and nothing is wrong", nil
	case failed != nil:
		steps = append(explainPods(s, listFailedPods(s)), explainFailedJob(object, failed))
		return "has failed", steps
	case ptr.Deref(job.Spec.Suspend, false) || findJobCondition(job, batchv1.JobSuspended) != nil:
		return "is suspended", []Step{newWaitingStep(LinkJob, object, "spec.suspend is true: it creates no pods until it is false; a queue such as Kueue may do that")}
	case job.Spec.ManagedBy != nil && *job.Spec.ManagedBy != batchv1.JobControllerName:
		steps = append(steps, newWaitingStep(LinkJob, object, "its spec.managedBy names another controller, which creates its pods: "+*job.Spec.ManagedBy))
	case job.Status.StartTime == nil && len(s.Pods) == 0:
		steps = append(steps, newWaitingStep(LinkJob, object, "the job controller has not started it yet: does kube-controller-manager run?"))
	}
	return evaluateRunningJob(s, job, steps)
}

// evaluateRunningJob explains a Job that has not ended.
func evaluateRunningJob(s *Snapshot, job *batchv1.Job, steps []Step) (string, []Step) {
	left := ptr.Deref(job.Spec.Parallelism, 1)
	summary := fmt.Sprintf("has %d active pods, of which %d are ready", job.Status.Active, ptr.Deref(job.Status.Ready, 0))
	if job.Spec.Completions != nil {
		summary = fmt.Sprintf("%d of %d pods have completed", job.Status.Succeeded, *job.Spec.Completions)
		left = min(left, *job.Spec.Completions-job.Status.Succeeded)
	}
	summary += describeRetries(job)
	if left <= 0 || job.Status.Active >= left && ptr.Deref(job.Status.Ready, 0) >= left {
		return summary + ", and nothing is wrong", steps
	}
	all := rollout{desired: job.Status.Succeeded + job.Status.Failed + left, isCurrent: func(*corev1.Pod) bool { return true }}
	steps = append(steps, explainRefused(s, &all)...)
	steps = append(steps, explainPods(s, listUnfinished(s, &all))...)
	object := "job/" + job.Name
	switch {
	case job.Status.Failed > 0 && job.Status.Active < left:
		steps = append(steps, newWaitingStep(LinkJob, object, fmt.Sprintf("it creates another pod after a delay that doubles with each failure, until %d have failed (backoffLimit)", ptr.Deref(job.Spec.BackoffLimit, 6)+1)))
	case len(steps) == 0:
		steps = append(steps, newWaitingStep(LinkPod, object, "its pods are being created, or are starting"))
	}
	return summary, steps
}

func explainFailedJob(object string, c *batchv1.JobCondition) Step {
	text := strings.TrimSuffix(c.Reason+": "+c.Message, ": ")
	row := rowJobFailed
	if c.Reason == batchv1.JobReasonDeadlineExceeded {
		row = rowJobDeadline
	}
	return newCatalogStep(LinkJob, object, text, row)
}

func findJobCondition(job *batchv1.Job, kind batchv1.JobConditionType) *batchv1.JobCondition {
	return findFirst(job.Status.Conditions, func(c *batchv1.JobCondition) bool { return c.Type == kind && c.Status == corev1.ConditionTrue })
}

// describeRetries describes the number of failed pods, or returns "" if there are none.
func describeRetries(job *batchv1.Job) string {
	if job.Status.Failed == 0 {
		return ""
	}
	return fmt.Sprintf("; %d of its pods failed", job.Status.Failed)
}

// listFailedPods returns the failed pods of a Job, the newest first.
func listFailedPods(s *Snapshot) []*corev1.Pod {
	var failed []*corev1.Pod
	for i := range s.Pods {
		if s.Pods[i].Status.Phase == corev1.PodFailed {
			failed = append(failed, &s.Pods[i])
		}
	}
	slices.SortFunc(failed, func(a, b *corev1.Pod) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	return failed
}

// explainCronJob explains whether a CronJob starts Jobs, and the state of its last Job.
func explainCronJob(s *Snapshot) Story {
	story := Story{Target: s.Target}
	cron, ok := s.Object.(*batchv1.CronJob)
	if !ok {
		return conclude(story)
	}
	object, job := s.Target.String(), s.Around.LastJob
	if ptr.Deref(cron.Spec.Suspend, false) {
		story.Steps = append(story.Steps, newWaitingStep(LinkSchedule, object, "spec.suspend is true: it starts no Job until it is removed"))
	}
	story.Steps = append(story.Steps, explainNotStarted(s, cron)...)
	if job == nil {
		if len(story.Steps) == 0 {
			story.Steps = []Step{newWaitingStep(LinkSchedule, object, "it has started no Job that still exists: its schedule is "+cron.Spec.Schedule)}
		}
		story.Summary = "has no Job"
		return conclude(story)
	}
	inner := *s
	inner.Target, inner.Makers = Target{Kind: "job", Namespace: job.Namespace, Name: job.Name}, []Maker{{"Job", job.Name}}
	how, steps := evaluateJob(&inner, job)
	story.Summary, story.Steps = "its last Job "+job.Name+" "+how, append(story.Steps, steps...)
	if findJobCondition(job, batchv1.JobFailed) != nil {
		story.Summary += describeLastSuccess(cron)
	}
	return conclude(story)
}

// describeLastSuccess describes when a Job of a CronJob last completed.
func describeLastSuccess(cron *batchv1.CronJob) string {
	if cron.Status.LastSuccessfulTime == nil {
		return "; none has completed yet"
	}
	return "; one last completed at " + wording.FormatTime(cron.Status.LastSuccessfulTime.Time)
}

// explainNotStarted returns the last event in which the controller reports that it started no Job.
// An event before the last start is obsolete.
func explainNotStarted(s *Snapshot, cron *batchv1.CronJob) []Step {
	for _, e := range s.findEvents("CronJob", cron.Name, controllers["CronJob"]) {
		over := cron.Status.LastScheduleTime != nil && events.LastObserved(&e).Before(cron.Status.LastScheduleTime.Time)
		switch {
		case over:
		case e.Reason == "JobAlreadyActive":
			return []Step{newWaitingStep(LinkSchedule, s.Target.String(), "concurrencyPolicy is Forbid: it starts no Job while "+formatActiveJobs(cron)+" runs")}
		case e.Reason == "MissSchedule":
			return []Step{newCatalogStep(LinkSchedule, s.Target.String(), e.Message, "schedule-missed")}
		case e.Type == corev1.EventTypeWarning:
			return []Step{newBadStep(LinkSchedule, s.Target.String(), e.Message)}
		}
	}
	return nil
}

func formatActiveJobs(cron *batchv1.CronJob) string {
	var names []string
	for _, ref := range cron.Status.Active {
		names = append(names, "job/"+ref.Name)
	}
	if len(names) == 0 {
		return "the last one"
	}
	return formatFirst(names)
}
