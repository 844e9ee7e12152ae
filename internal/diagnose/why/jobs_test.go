package why_test

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"croft.dev/croft/internal/diagnose/why"
)

func newJob(edits ...func(*batchv1.Job)) *batchv1.Job {
	j := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "report"}, Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](1), Completions: ptr.To[int32](1)},
		Status: batchv1.JobStatus{StartTime: ptr.To(metav1.Now()), Active: 1, Ready: ptr.To[int32](1)},
	}
	for _, edit := range edits {
		edit(j)
	}
	return j
}

func endJob(kind batchv1.JobConditionType, reason, message string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Status.Active, j.Status.Ready = 0, ptr.To[int32](0)
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message})
	}
}

func setJobCounts(active, ready, succeeded, failed int32) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Status.Active, j.Status.Ready, j.Status.Succeeded, j.Status.Failed = active, ptr.To(ready), succeeded, failed
	}
}

// exitWith makes a pod fail with an exit code.
func exitWith(code int32, reason string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodFailed
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "web", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason}}}}
	}
}

// TestJobs fails if the end of a Job is not reported with its reason and its pods' exit
// codes.
func TestJobs(t *testing.T) {
	pod := func(edits ...func(*corev1.Pod)) corev1.Pod { return newPod("report-x2x9p", "Job", "report", edits...) }
	for name, c := range map[string]struct {
		job      *batchv1.Job
		pods     []corev1.Pod
		events   []corev1.Event
		verdict  why.Verdict
		first    string
		wantText string
	}{
		"that has completed":            {job: newJob(endJob(batchv1.JobComplete, "CompletionsReached", "")), verdict: why.Good, wantText: "has completed, and nothing is wrong"},
		"that completed at a retry":     {job: newJob(setJobCounts(0, 0, 1, 2), endJob(batchv1.JobComplete, "", "")), verdict: why.Good, wantText: "has completed; 2 of its pods failed, and nothing is wrong"},
		"that completed by its policy":  {job: newJob(endJob(batchv1.JobSuccessCriteriaMet, "SuccessPolicy", ""), endJob(batchv1.JobComplete, "SuccessPolicy", "")), verdict: why.Good},
		"that runs":                     {job: newJob(), verdict: why.Good, wantText: "0 of 1 pods have completed, and nothing is wrong"},
		"beyond its deadline":           {job: newJob(endJob(batchv1.JobFailed, "DeadlineExceeded", "Job was active longer than specified deadline")), verdict: why.Bad, first: "job-deadline", wantText: "has failed\nbad job job/report: DeadlineExceeded: Job was active"},
		"about to fail by its deadline": {job: newJob(endJob(batchv1.JobFailureTarget, "DeadlineExceeded", "Job was active longer than specified deadline")), verdict: why.Bad, first: "job-deadline"},
		"whose pod exits with 1":        {job: newJob(setJobCounts(0, 0, 0, 1)), pods: []corev1.Pod{pod(exitWith(1, "Error"))}, verdict: why.Bad, first: "crash-loop", wantText: "bad pod pod/report-x2x9p: container web ended with exit code 1"},
		"whose pods all exit with 1":    {job: newJob(setJobCounts(0, 0, 0, 7), endJob(batchv1.JobFailed, "BackoffLimitExceeded", "Job has reached the specified backoff limit")), pods: []corev1.Pod{pod(exitWith(1, "Error"))}, verdict: why.Bad, first: "crash-loop", wantText: "bad job job/report: BackoffLimitExceeded"},
		"whose pods are deleted":        {job: newJob(setJobCounts(0, 0, 0, 7), endJob(batchv1.JobFailed, "BackoffLimitExceeded", "Job has reached the specified backoff limit")), verdict: why.Bad, first: "job-failed"},
		"that ran out of memory":        {job: newJob(setJobCounts(0, 0, 0, 1), endJob(batchv1.JobFailed, "BackoffLimitExceeded", "")), pods: []corev1.Pod{pod(exitWith(137, "OOMKilled"))}, verdict: why.Bad, first: "out-of-memory"},
		"that its policy ended":         {job: newJob(endJob(batchv1.JobFailed, "PodFailurePolicy", "exit code 42 matching FailJob rule at index 0")), verdict: why.Bad, first: "job-failed", wantText: "FailJob rule"},
		"of which an index failed":      {job: newJob(endJob(batchv1.JobFailed, "FailedIndexes", "Job has failed indexes")), verdict: why.Bad, first: "job-failed"},
		"that is suspended":             {job: newJob(func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) }), verdict: why.Waiting, wantText: "is suspended"},
		"of another controller":         {job: newJob(setJobCounts(0, 0, 0, 0), func(j *batchv1.Job) { j.Spec.ManagedBy, j.Status.StartTime = ptr.To("kueue.x-k8s.io/multikueue"), nil }), verdict: why.Waiting, wantText: "kueue.x-k8s.io/multikueue"},
		"that has not been started":     {job: newJob(setJobCounts(0, 0, 0, 0), func(j *batchv1.Job) { j.Status.StartTime = nil }), verdict: why.Waiting, wantText: "has not started it yet"},
		"whose pod is refused": {job: newJob(setJobCounts(0, 0, 0, 0)), events: []corev1.Event{newEvent("Job", "report", "FailedCreate", "job-controller", `Error creating: pods "report-x2x9p" is forbidden: exceeded quota: croft, requested: pods=1, used: pods=3, limited: pods=3`)},
			verdict: why.Bad, first: "quota-exceeded"},
		"whose pod waits for a node": {job: newJob(setJobCounts(1, 0, 0, 0)), pods: []corev1.Pod{pod(makeUnplaced("0/1 nodes are available: 1 Insufficient cpu."))}, verdict: why.Waiting, wantText: "Insufficient cpu"},
		"whose pod restarts": {job: newJob(setJobCounts(1, 0, 0, 0)), pods: []corev1.Pod{pod(makeWaiting("CrashLoopBackOff", "back-off"), func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}
		})}, verdict: why.Bad, first: "out-of-memory"},
		"some pods are done":   {job: newJob(func(j *batchv1.Job) { j.Spec.Completions = ptr.To[int32](3) }, setJobCounts(1, 1, 2, 0)), pods: []corev1.Pod{pod(setReady)}, verdict: why.Good, wantText: "2 of 3 pods have completed"},
		"between two attempts": {job: newJob(setJobCounts(0, 0, 0, 2)), verdict: why.Waiting, wantText: "until 7 have failed (backoffLimit)"},
	} {
		t.Run(name, func(t *testing.T) {
			story := why.ExplainSnapshot(&why.Snapshot{
				Target: why.Target{Kind: "job", Namespace: "shop", Name: "report"}, Object: c.job, Makers: []why.Maker{{Kind: "Job", Name: "report"}}, Pods: c.pods, Events: c.events, Key: key, Hidden: []string{"node"},
			})
			compareStory(t, story, c.verdict, c.first, c.wantText)
		})
	}
}

func compareStory(t *testing.T, story why.Story, verdict why.Verdict, first, wantText string) {
	t.Helper()
	got := ""
	if story.First != nil {
		got = story.First.ID
	}
	if story.Verdict != verdict || got != first || !strings.Contains(formatStory(story), wantText) {
		t.Errorf("%s and %q, want %s, %q and %q:\n%s", story.Verdict, got, verdict, first, wantText, formatStory(story))
	}
	for _, step := range story.Steps {
		if step.Observation == "" {
			t.Errorf("an empty line: %+v", story.Steps)
		}
	}
}

// TestCronJobs fails if the report lacks the reason why a CronJob starts no Job, or the end
// of its last Job.
func TestCronJobs(t *testing.T) {
	cron := func(edits ...func(*batchv1.CronJob)) *batchv1.CronJob {
		c := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nightly"}, Spec: batchv1.CronJobSpec{Schedule: "0 8 * * *"}}
		for _, edit := range edits {
			edit(c)
		}
		return c
	}
	of := func(kind, reason, message string) []corev1.Event {
		e := newEvent("CronJob", "nightly", reason, "cronjob-controller", message)
		e.Type = kind
		return []corev1.Event{e}
	}
	failed := newJob(endJob(batchv1.JobFailed, "BackoffLimitExceeded", ""))
	for name, c := range map[string]struct {
		cron     *batchv1.CronJob
		last     *batchv1.Job
		pods     []corev1.Pod
		events   []corev1.Event
		verdict  why.Verdict
		first    string
		wantText string
	}{
		"that is suspended":          {cron: cron(func(c *batchv1.CronJob) { c.Spec.Suspend = ptr.To(true) }), verdict: why.Waiting, wantText: "spec.suspend is true"},
		"that has started nothing":   {cron: cron(), verdict: why.Waiting, wantText: "0 8 * * *"},
		"whose time zone is unknown": {cron: cron(), events: of("Warning", "UnknownTimeZone", `invalid timeZone: "Mars"`), verdict: why.Bad, wantText: "Mars"},
		"that missed its schedule":   {cron: cron(), events: of("Warning", "MissSchedule", "Missed scheduled time to start a job: Thu, 26 Nov 2026 06:00:00 UTC"), verdict: why.Bad, first: "schedule-missed"},
		"that missed an earlier schedule": {cron: cron(func(c *batchv1.CronJob) {
			c.Status.LastScheduleTime = ptr.To(metav1.NewTime(time.Now().Add(time.Hour)))
		}), last: newJob(), events: of("Warning", "MissSchedule", "Missed scheduled time"), verdict: why.Good},
		"whose last Job still runs":   {cron: cron(func(c *batchv1.CronJob) { c.Status.Active = []corev1.ObjectReference{{Name: "report"}} }), last: newJob(), events: of("Normal", "JobAlreadyActive", "Not starting job because prior execution is running and concurrency policy is Forbid"), verdict: why.Waiting, wantText: "it starts no Job while job/report runs"},
		"whose Job is refused":        {cron: cron(), events: of("Warning", "FailedCreate", `Error creating job: jobs.batch "x" is forbidden: exceeded quota: croft, requested: count/jobs.batch=1`), verdict: why.Bad, first: "quota-exceeded"},
		"whose last Job has failed":   {cron: cron(), last: failed, pods: []corev1.Pod{newPod("report-x", "Job", "report", exitWith(3, "Error"))}, verdict: why.Bad, first: "crash-loop", wantText: "its last Job report has failed; none has completed yet"},
		"whose Jobs completed before": {cron: cron(func(c *batchv1.CronJob) { c.Status.LastSuccessfulTime = ptr.To(metav1.Unix(0, 0)) }), last: failed, verdict: why.Bad, first: "job-failed", wantText: "one last completed at 1970-01-01"},
		"whose last Job has done it":  {cron: cron(), last: newJob(endJob(batchv1.JobComplete, "", "")), verdict: why.Good, wantText: "its last Job report has completed, and nothing is wrong"},
	} {
		t.Run(name, func(t *testing.T) {
			story := why.ExplainSnapshot(&why.Snapshot{
				Target: why.Target{Kind: "cronjob", Namespace: "shop", Name: "nightly"}, Object: c.cron, Around: why.Around{LastJob: c.last}, Pods: c.pods, Events: c.events, Key: key,
			})
			compareStory(t, story, c.verdict, c.first, c.wantText)
		})
	}
}
