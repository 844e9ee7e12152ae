package why_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"croft.dev/croft/internal/diagnose/why"
)

// makeTerminated returns the terminated state of a container.
func makeTerminated(code int32, reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message}}
}

// makeCrashLooping returns a container in CrashLoopBackOff after the given termination.
func makeCrashLooping(last corev1.ContainerState) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: "web", RestartCount: 4, LastTerminationState: last, State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 1m20s restarting failed container=web"},
	}}
}

func makeRunning(ago time.Duration, started *bool) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: "web", Started: started, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(time.Now().Add(-ago))}}}
}

func makeProbeEvents(message string) []corev1.Event {
	e := newEvent("Pod", "web", "Unhealthy", "kubelet", message)
	e.InvolvedObject.FieldPath = "spec.containers{web}"
	return []corev1.Event{e}
}

// makeKillingEvents returns the kubelet's event before it restarts a container because of a probe.
func makeKillingEvents(probe string) []corev1.Event {
	return []corev1.Event{newEvent("Pod", "web", "Killing", "kubelet", "Container web failed "+probe+" probe, will be restarted")}
}

// TestContainers fails if the report lacks the reason why a container does not run: the
// state before CrashLoopBackOff, the meaning of an exit code, or kubelet's event about a
// probe.
func TestContainers(t *testing.T) {
	state := func(reason, message string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: "web", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
	}
	ended := func(code int32, reason string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: "web", State: makeTerminated(code, reason, "")}
	}
	otherContainers := makeProbeEvents("Readiness probe failed: statuscode: 503")
	otherContainers[0].InvolvedObject.FieldPath = "spec.containers{proxy}"
	for name, c := range map[string]struct {
		init, status, ephemeral *corev1.ContainerStatus
		spec                    func(*corev1.PodSpec)
		events                  []corev1.Event
		verdict                 why.Verdict
		first, wantText         string
	}{
		"is being created":              {status: ptr.To(state("ContainerCreating", "")), verdict: why.Waiting, wantText: "its containers are being started"},
		"has no image":                  {status: ptr.To(state("ErrImagePull", "not found")), verdict: why.Bad, first: "image-pull", wantText: "container web has no image: ErrImagePull: not found"},
		"has a wrong image name":        {status: ptr.To(state("InvalidImageName", "x y")), verdict: why.Bad, first: "image-pull"},
		"may not pull":                  {status: ptr.To(state("ErrImageNeverPull", "not present")), verdict: why.Bad, first: "image-pull"},
		"lacks a ConfigMap":             {status: ptr.To(state("CreateContainerConfigError", `configmap "x" not found`)), verdict: why.Bad, first: "container-config", wantText: `configmap "x" not found`},
		"cannot be started":             {status: ptr.To(state("RunContainerError", "exec: no such file")), verdict: why.Bad, first: "command-not-run"},
		"waits for a reason of its own": {status: ptr.To(state("SomethingElse", "odd")), verdict: why.Bad, first: "container-config", wantText: "waits: SomethingElse: odd"},
		"was killed by the kernel":      {status: ptr.To(makeCrashLooping(makeTerminated(137, "OOMKilled", ""))), verdict: why.Bad, first: "out-of-memory", wantText: "used more memory than there was (OOMKilled); restarted 4 times"},
		"was killed at its limit": {status: ptr.To(makeCrashLooping(makeTerminated(137, "OOMKilled", ""))), spec: func(s *corev1.PodSpec) {
			s.Containers[0].Resources.Limits = corev1.ResourceList{"memory": resource.MustParse("64Mi")}
		}, verdict: why.Bad, first: "out-of-memory", wantText: "than its limit of 64Mi"},
		"exits with 1":   {status: ptr.To(makeCrashLooping(makeTerminated(1, "Error", "no database\n"))), verdict: why.Bad, first: "crash-loop", wantText: "ended with exit code 1: no database; restarted 4 times"},
		"exits with 0":   {status: ptr.To(makeCrashLooping(makeTerminated(0, "Completed", ""))), verdict: why.Bad, first: "crash-loop", wantText: "exit code 0 (the program exited, and should keep running)"},
		"exits with 126": {status: ptr.To(makeCrashLooping(makeTerminated(126, "Error", ""))), verdict: why.Bad, first: "command-not-run", wantText: "is not executable"},
		"exits with 127": {status: ptr.To(makeCrashLooping(makeTerminated(127, "Error", ""))), verdict: why.Bad, first: "command-not-run", wantText: "was not found in the image"},
		"exits with 139": {status: ptr.To(makeCrashLooping(makeTerminated(139, "Error", ""))), verdict: why.Bad, first: "crash-loop", wantText: "SIGSEGV"},
		"exits with 137": {status: ptr.To(makeCrashLooping(makeTerminated(137, "Error", ""))), verdict: why.Bad, first: "container-killed", wantText: "SIGKILL"},
		"exits with 143": {status: ptr.To(makeCrashLooping(makeTerminated(143, "Error", ""))), verdict: why.Bad, first: "container-killed", wantText: "SIGTERM"},
		"ends properly after its liveness probe failed": {status: ptr.To(makeCrashLooping(makeTerminated(0, "Completed", ""))), events: append(makeProbeEvents("Liveness probe failed: refused"), makeKillingEvents("liveness")...), verdict: why.Bad, first: "probe-fails", wantText: "ended with exit code 0: its liveness probe failed (Liveness probe failed: refused); restarted 4 times"},
		"ends with 1 after its startup probe failed":    {status: ptr.To(makeCrashLooping(makeTerminated(1, "Error", ""))), events: makeKillingEvents("startup"), verdict: why.Bad, first: "probe-fails", wantText: "ended with exit code 1: its startup probe failed; restarted 4 times"},
		"exits with 1 after a run that a probe ended": {status: ptr.To(makeCrashLooping(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: 1, Reason: "Error", StartedAt: metav1.NewTime(time.Now().Add(time.Hour)),
		}})), events: makeKillingEvents("liveness"), verdict: why.Bad, first: "crash-loop", wantText: "ended with exit code 1"},
		"is killed by its liveness probe":   {status: ptr.To(makeCrashLooping(makeTerminated(137, "Error", ""))), events: makeProbeEvents("Liveness probe failed: timeout"), verdict: why.Bad, first: "probe-fails", wantText: "its liveness probe failed (Liveness probe failed: timeout)"},
		"cannot be run":                     {status: ptr.To(makeCrashLooping(makeTerminated(128, "ContainerCannotRun", "exec format error"))), verdict: why.Bad, first: "command-not-run", wantText: "exec format error"},
		"was on a node that was lost":       {status: ptr.To(ended(137, "ContainerStatusUnknown")), verdict: why.Bad, first: "node-unreachable"},
		"ended just now":                    {status: ptr.To(ended(2, "Error")), verdict: why.Bad, first: "crash-loop", wantText: "exit code 2"},
		"loops, and nothing is known":       {status: ptr.To(makeCrashLooping(corev1.ContainerState{})), verdict: why.Bad, first: "crash-loop", wantText: "back-off 1m20s"},
		"is started again":                  {status: ptr.To(corev1.ContainerStatus{Name: "web", State: state("ContainerCreating", "").State, LastTerminationState: makeTerminated(137, "OOMKilled", "")}), verdict: why.Bad, first: "out-of-memory"},
		"is not ready yet":                  {status: ptr.To(makeRunning(time.Second, ptr.To(true))), verdict: why.Waiting, wantText: "its readiness probe has not succeeded"},
		"is not ready, and young":           {status: ptr.To(makeRunning(time.Second, ptr.To(true))), events: makeProbeEvents("Readiness probe failed: statuscode: 503"), verdict: why.Waiting, wantText: "statuscode: 503"},
		"is not ready for long":             {status: ptr.To(makeRunning(time.Hour, ptr.To(true))), events: makeProbeEvents("Readiness probe failed: statuscode: 503"), verdict: why.Bad, first: "probe-fails", wantText: "statuscode: 503"},
		"whose neighbour is not ready":      {status: ptr.To(makeRunning(time.Hour, ptr.To(true))), events: otherContainers, verdict: why.Waiting},
		"has not started for long":          {status: ptr.To(makeRunning(time.Hour, ptr.To(false))), events: makeProbeEvents("Startup probe failed: connection refused"), verdict: why.Bad, first: "probe-fails", wantText: "its startup probe has not succeeded (Startup probe failed"},
		"whose init container fails":        {init: ptr.To(makeCrashLooping(makeTerminated(1, "Error", ""))), status: ptr.To(state("PodInitializing", "")), verdict: why.Bad, first: "crash-loop", wantText: "init container web ended with exit code 1"},
		"whose init container is too big":   {init: ptr.To(ended(137, "OOMKilled")), status: ptr.To(state("PodInitializing", "")), verdict: why.Bad, first: "out-of-memory", wantText: "init container web was killed"},
		"whose init container has no image": {init: ptr.To(state("ImagePullBackOff", "")), status: ptr.To(state("PodInitializing", "")), verdict: why.Bad, first: "image-pull"},
		"whose init container runs":         {init: ptr.To(makeRunning(time.Hour, nil)), status: ptr.To(state("PodInitializing", "")), verdict: why.Waiting, wantText: "the containers after it start when it has completed"},
		"whose sidecar is not ready": {init: ptr.To(makeRunning(time.Hour, ptr.To(false))), status: ptr.To(state("PodInitializing", "")), spec: func(s *corev1.PodSpec) {
			s.InitContainers = []corev1.Container{{Name: "web", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}}
		}, events: makeProbeEvents("Startup probe failed: connection refused"), verdict: why.Bad, first: "probe-fails", wantText: "sidecar web runs, and is not ready"},
		"whose ephemeral container has no image": {status: ptr.To(makeRunning(time.Second, ptr.To(true))), ephemeral: ptr.To(state("ErrImagePull", "")), verdict: why.Bad, first: "image-pull", wantText: "ephemeral container web"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := newPod("web", "ReplicaSet", "web")
			pod.Spec.Containers = []corev1.Container{{Name: "web"}}
			if c.spec != nil {
				c.spec(&pod.Spec)
			}
			for _, list := range []struct {
				status *corev1.ContainerStatus
				into   *[]corev1.ContainerStatus
			}{{c.init, &pod.Status.InitContainerStatuses}, {c.status, &pod.Status.ContainerStatuses}, {c.ephemeral, &pod.Status.EphemeralContainerStatuses}} {
				if list.status != nil {
					*list.into = []corev1.ContainerStatus{*list.status}
				}
			}
			story := why.ExplainSnapshot(&why.Snapshot{Target: why.Target{Kind: "pod", Namespace: "shop", Name: "web"}, Object: &pod, Pods: []corev1.Pod{pod}, Events: c.events, Nodes: []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}}})
			compareStory(t, story, c.verdict, c.first, c.wantText)
		})
	}
}

// TestFailedPods fails if the reason of a failed pod is not reported, or is reported as a
// fault of placement.
func TestFailedPods(t *testing.T) {
	for name, c := range map[string]struct {
		reason, message string
		condition       string
		first           string
	}{
		"evicted":                 {"Evicted", "The node was low on resource: memory.", "", "pod-evicted"},
		"evicted by a limit":      {"Evicted", `Usage of EmptyDir volume "x" exceeds the limit "1Gi". `, "", "pod-evicted"},
		"preempted by kubelet":    {"Preempting", "Preempted in order to admit critical pod", "", "pod-disrupted"},
		"preempted":               {"", "", "PreemptionByScheduler", "pod-disrupted"},
		"drained":                 {"", "", "EvictionByEvictionAPI", "pod-disrupted"},
		"shut down with its node": {"Terminated", "Pod was terminated in response to imminent node shutdown.", "", "pod-disrupted"},
		"a taint":                 {"", "", "DeletionByTaintManager", "pod-disrupted"},
		"a node that was lost":    {"NodeLost", "", "", "node-unreachable"},
		"a node that was deleted": {"", "", "DeletionByPodGC", "node-unreachable"},
		"its own deadline":        {"DeadlineExceeded", "Pod was active on the node longer than the specified deadline", "", "job-deadline"},
		"no room on the node":     {"OutOfcpu", "Pod was rejected: Node didn't have enough resource: cpu", "", "pod-not-taken"},
		"no device on the node":   {"UnexpectedAdmissionError", "Allocate failed", "", "pod-not-taken"},
		"no reason, and exit 1":   {"", "", "", "crash-loop"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := newPod("web", "ReplicaSet", "web", exitWith(1, "Error"))
			pod.Status.Reason, pod.Status.Message = c.reason, c.message
			if c.condition != "" {
				pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: c.condition, Message: "because"})
			}
			story := why.ExplainSnapshot(&why.Snapshot{Target: why.Target{Kind: "pod", Namespace: "shop", Name: "web"}, Object: &pod, Pods: []corev1.Pod{pod}})
			compareStory(t, story, why.Bad, c.first, c.reason+c.condition)
		})
	}
}

// TestRestarts expects a running pod to be healthy, and its last restart to be reported.
func TestRestarts(t *testing.T) {
	pod := newPod("web", "ReplicaSet", "web", setReady)
	status := makeRunning(time.Minute, ptr.To(true))
	status.RestartCount, status.LastTerminationState = 1, makeTerminated(137, "OOMKilled", "")
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
	for text, events := range map[string][]corev1.Event{
		"restarted 1 time, the last time after exit code 137 (OOMKilled)":                  nil,
		"the last time after exit code 137 (OOMKilled), because its liveness probe failed": makeKillingEvents("liveness"),
	} {
		story := why.ExplainSnapshot(&why.Snapshot{Target: why.Target{Kind: "pod", Namespace: "shop", Name: "web"}, Object: &pod, Pods: []corev1.Pod{pod}, Events: events})
		if story.Verdict != why.Good || !strings.Contains(story.Summary, text) {
			t.Errorf("the story is %+v, want %q", story, text)
		}
	}
}
