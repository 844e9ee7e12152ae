package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/internal/declare/wording"
	"croft.dev/croft/internal/observe/events"
)

// evaluateContainers explains the containers of a pod that do not run or are not ready.
func evaluateContainers(s *Snapshot, pod *corev1.Pod) []Step {
	object := "pod/" + pod.Name
	var steps []Step
	for _, c := range listContainers(pod) {
		name := c.kind + " " + c.Name
		switch {
		case c.State.Waiting != nil:
			if id, text := explainWaiting(s, pod, c); text != "" {
				steps = append(steps, newCatalogStep(LinkPod, object, name+" "+text, id))
			}
		case c.State.Terminated != nil:
			if c.State.Terminated.ExitCode != 0 {
				id, text := explainEnd(s, pod, c, c.State.Terminated)
				steps = append(steps, newCatalogStep(LinkPod, object, name+" "+text, id))
			}
		case c.State.Running != nil && c.kind == "init container":
			steps = append(steps, newWaitingStep(LinkPod, object, name+" runs: the containers after it start when it has completed"))
		case c.State.Running != nil && !c.Ready && c.kind != "ephemeral container":
			steps = append(steps, explainNotReady(s, pod, c))
		}
	}
	return steps
}

// container is the status of a container, with a word for its kind.
type container struct {
	corev1.ContainerStatus
	kind string
}

func listContainers(pod *corev1.Pod) []container {
	var all []container
	add := func(kind string, list []corev1.ContainerStatus) {
		for _, c := range list {
			all = append(all, container{c, kind})
		}
	}
	add("init container", pod.Status.InitContainerStatuses)
	for i := range all {
		spec := findFirst(pod.Spec.InitContainers, func(c *corev1.Container) bool { return c.Name == all[i].Name })
		if spec != nil && spec.RestartPolicy != nil && *spec.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			all[i].kind = "sidecar"
		}
	}
	add("container", pod.Status.ContainerStatuses)
	add("ephemeral container", pod.Status.EphemeralContainerStatuses)
	return all
}

// These are the catalogue's rows about containers.
const (
	rowImage       = "image-pull"
	rowConfig      = "container-config"
	rowCommand     = "command-not-run"
	rowMemory      = "out-of-memory"
	rowKilled      = "container-killed"
	rowEnds        = "crash-loop"
	rowProbe       = "probe-fails"
	rowEvicted     = "pod-evicted"
	rowNotTaken    = "pod-not-taken"
	rowDisrupted   = "pod-disrupted"
	rowNodeLost    = "node-unreachable"
	rowJobDeadline = "job-deadline"
	rowJobFailed   = "job-failed"
)

// explainWaiting returns the reason why a container waits, as a row of the catalogue and a
// text. Both are "" while the container is being created.
func explainWaiting(s *Snapshot, pod *corev1.Pod, c container) (id, text string) {
	w := c.State.Waiting
	message := strings.TrimSuffix(w.Reason+": "+w.Message, ": ")
	switch w.Reason {
	case "", "ContainerCreating", "PodInitializing":
		if last := c.LastTerminationState.Terminated; last != nil {
			return explainEnd(s, pod, c, last)
		}
		return "", ""
	case "CrashLoopBackOff":
		last := c.LastTerminationState.Terminated
		if last == nil {
			return rowEnds, "does not stay up: " + message
		}
		id, text := explainEnd(s, pod, c, last)
		return id, fmt.Sprintf("%s; restarted %s, and the next restart waits (%s)", text, wording.FormatCount(int(c.RestartCount), "time"), w.Reason)
	case "CreateContainerConfigError", "CreateContainerError":
		return rowConfig, "cannot be created: " + message
	case "RunContainerError", "StartError", "PostStartHookError":
		return rowCommand, "cannot be started: " + message
	}
	if strings.Contains(w.Reason, "Image") || w.Reason == "RegistryUnavailable" || w.Reason == "SignatureValidationFailed" {
		return rowImage, "has no image: " + message
	}
	return rowConfig, "waits: " + message
}

// explainEnd explains the end of a container by its reason and exit code.
func explainEnd(s *Snapshot, pod *corev1.Pod, c container, t *corev1.ContainerStateTerminated) (id, text string) {
	switch t.Reason {
	case "OOMKilled":
		return rowMemory, "was killed because it used more memory than " + describeMemoryLimit(pod, c.Name) + " (OOMKilled)"
	case "ContainerStatusUnknown":
		return rowNodeLost, "has an unknown state: its node was lost, or lost its record of the container (ContainerStatusUnknown)"
	}
	if probe := findKillingProbe(s, pod, c, t); probe != "" {
		text = fmt.Sprintf("was restarted, and ended with exit code %d: its %s probe failed", t.ExitCode, strings.ToLower(probe))
		if failure := findProbeFailure(s, pod, c, probe); failure != "" {
			text += " (" + failure + ")"
		}
		return rowProbe, text
	}
	text = fmt.Sprintf("ended with exit code %d%s%s", t.ExitCode, explainExitCode(t), formatTerminationMessage(t))
	switch {
	case t.Reason == "ContainerCannotRun" || t.Reason == "StartError" || t.ExitCode == 126 || t.ExitCode == 127:
		return rowCommand, text
	case t.ExitCode == 137 || t.ExitCode == 143:
		if probe := findProbeFailure(s, pod, c, "Liveness"); probe != "" {
			return rowProbe, text + ": its liveness probe failed (" + probe + ")"
		}
		return rowKilled, text
	default:
		return rowEnds, text
	}
}

// eventLag is the maximum age of the kubelet's last event about a cause that persists: after 25
// events on a pod it writes only one in five minutes (client-go's EventSourceObjectSpamFilter).
const eventLag = 10 * time.Minute

// findKillingProbe returns the kind of the probe for which the kubelet ended this run of a
// container, or "". A program that ends properly at SIGTERM may exit with any code, also 0.
func findKillingProbe(s *Snapshot, pod *corev1.Pod, c container, t *corev1.ContainerStateTerminated) string {
	for _, e := range s.findEvents("Pod", pod.Name, kubelet) {
		if e.Reason != "Killing" || events.LastObserved(&e).Add(eventLag).Before(t.StartedAt.Time) {
			continue
		}
		for _, probe := range []string{"Liveness", "Startup"} {
			if strings.HasPrefix(e.Message, "Container "+c.Name+" failed "+strings.ToLower(probe)+" probe") {
				return probe
			}
		}
	}
	return ""
}

// exits maps exit codes that are not specific to a program to their meanings.
var exits = map[int32]string{
	0:   "the program exited, and should keep running",
	126: "its command is not a program, or is not executable",
	127: "its command was not found in the image",
	128: "the container runtime could not start it",
	129: "SIGHUP",
	130: "SIGINT",
	132: "SIGILL: an instruction that this processor does not have",
	134: "SIGABRT: the program aborted",
	135: "SIGBUS",
	136: "SIGFPE",
	137: "SIGKILL: it was killed",
	139: "SIGSEGV: the program crashed",
	141: "SIGPIPE",
	143: "SIGTERM: it was asked to exit",
	255: "out of range, or the exit was not observed",
}

func explainExitCode(t *corev1.ContainerStateTerminated) string {
	if text, ok := exits[t.ExitCode]; ok {
		return " (" + text + ")"
	}
	if t.Signal != 0 {
		return fmt.Sprintf(" (signal %d)", t.Signal)
	}
	return ""
}

// longMessage is the maximum length of a termination message. The end of a longer one is
// shown.
const longMessage = 200

// formatTerminationMessage returns the termination message of the container.
func formatTerminationMessage(t *corev1.ContainerStateTerminated) string {
	message := []rune(strings.Join(strings.Fields(t.Message), " "))
	if len(message) == 0 {
		return ""
	}
	if len(message) > longMessage {
		message = append([]rune("…"), message[len(message)-longMessage:]...)
	}
	return ": " + string(message)
}

func describeMemoryLimit(pod *corev1.Pod, name string) string {
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if limit, set := c.Resources.Limits[corev1.ResourceMemory]; set && c.Name == name {
			return "its limit of " + limit.String()
		}
	}
	return "there was"
}

// explainNotReady explains a container that runs and is not ready. It is Bad only if a probe has
// failed and the container has run for longer than Usual.
func explainNotReady(s *Snapshot, pod *corev1.Pod, c container) Step {
	object, probe := "pod/"+pod.Name, "Readiness"
	if c.Started != nil && !*c.Started {
		probe = "Startup"
	}
	text := fmt.Sprintf("%s %s runs, and is not ready: its %s probe has not succeeded", c.kind, c.Name, strings.ToLower(probe))
	failure := findProbeFailure(s, pod, c, probe)
	if failure == "" {
		return newWaitingStep(LinkPod, object, text)
	}
	step := newCatalogStep(LinkPod, object, text+" ("+failure+")", rowProbe)
	if time.Since(c.State.Running.StartedAt.Time) < Usual {
		step.Verdict = Waiting
	}
	return step
}

// findProbeFailure returns kubelet's last event about a failed probe of a container, or "".
func findProbeFailure(s *Snapshot, pod *corev1.Pod, c container, probe string) string {
	for _, e := range s.findEvents("Pod", pod.Name, kubelet) {
		fieldPath := e.InvolvedObject.FieldPath
		if e.Reason == "Unhealthy" && strings.HasPrefix(e.Message, probe+" probe") && (fieldPath == "" || strings.HasSuffix(fieldPath, "{"+c.Name+"}")) {
			return strings.TrimSpace(e.Message)
		}
	}
	return ""
}

// describeRestarts describes the last termination of a container that runs again, or returns "" if
// no container has restarted.
func describeRestarts(s *Snapshot, pod *corev1.Pod) string {
	for _, c := range listContainers(pod) {
		if t := c.LastTerminationState.Terminated; t != nil && c.RestartCount > 0 && c.State.Running != nil {
			because := ""
			if probe := findKillingProbe(s, pod, c, t); probe != "" {
				because = ", because its " + strings.ToLower(probe) + " probe failed"
			}
			return fmt.Sprintf("; %s %s was restarted %s, the last time after exit code %d (%s)%s", c.kind, c.Name, wording.FormatCount(int(c.RestartCount), "time"), t.ExitCode, t.Reason, because)
		}
	}
	return ""
}

// explainFailedPod explains a failed pod by its own reason, or by its containers.
func explainFailedPod(s *Snapshot, pod *corev1.Pod) []Step {
	object := "pod/" + pod.Name
	if reason, message := findFailure(pod); reason != "" {
		return []Step{newCatalogStep(LinkPod, object, strings.TrimSuffix(reason+": "+message, ": "), cmp.Or(failures[reason], rowNotTaken))}
	}
	if steps := evaluateContainers(s, pod); len(steps) > 0 {
		return steps
	}
	return []Step{newCatalogStep(LinkPod, object, "neither its containers nor its node report why it failed", rowNodeLost)}
}

// findFailure returns the reason why kubelet or a controller ended the whole pod, or "" if
// its containers failed.
func findFailure(pod *corev1.Pod) (reason, message string) {
	if pod.Status.Reason != "" {
		return pod.Status.Reason, pod.Status.Message
	}
	c := findFirst(pod.Status.Conditions, func(c *corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue
	})
	if c == nil {
		return "", ""
	}
	return c.Reason, c.Message
}

// failures maps reasons of whole pods to rows. Other reasons belong to pods that kubelet
// did not admit, such as OutOfcpu.
var failures = func() map[string]string {
	rows := map[string]string{"Evicted": rowEvicted, "DeadlineExceeded": rowJobDeadline, "NodeLost": rowNodeLost, "DeletionByPodGC": rowNodeLost}
	for _, reason := range []string{
		"Terminated", "NodeShutdown", "Shutdown", "Preempting", corev1.PodReasonTerminationByKubelet, corev1.PodReasonPreemptionByScheduler,
		"EvictionByEvictionAPI", "DeletionByTaintManager",
	} {
		rows[reason] = rowDisrupted
	}
	return rows
}()
