package catalog

const podDocs = kubeDocs + "workloads/pods/"

// containerRows are causes why a pod that has a node does not run, or has ended.
var containerRows = []Row{
	{
		ID: "image-pull", Symptom: "the pod's containers",
		Signature: compileAny(`ImagePullBackOff`, `ErrImagePull`, `InvalidImageName`, `ErrImageNeverPull`, `ImageInspectError`, `RegistryUnavailable`, `SignatureValidationFailed`),
		Texts:     []string{`ImagePullBackOff: Back-off pulling image "nginx:alpne"`, `ErrImageNeverPull: Container image "web:1" is not present with pull policy of Never`},
		Cause:     "the node cannot pull the container's image; placement is not the cause",
		Fix:       "check the image's name and tag, and the credentials for its registry (imagePullSecrets)",
		Who:       Team, Link: kubeDocs + "containers/images/",
	},
	{
		ID: "container-config", Symptom: "the pod's containers",
		Signature: compileAny(`CreateContainerConfigError`, `CreateContainerError`),
		Texts: []string{
			`CreateContainerConfigError: configmap "settings" not found`,
			`CreateContainerConfigError: container has runAsNonRoot and image will run as root (pod: "web-1_shop(8c2d)", container: web)`,
		},
		Cause: "kubelet cannot create the container: usually the container names a ConfigMap, a Secret or a key that does not exist, or its image runs as root although the pod does not allow that",
		Fix:   "create the object that the message names, or set runAsUser in the container's securityContext",
		Who:   Team, Link: "https://kubernetes.io/docs/tasks/configure-pod-container/configure-pod-configmap/",
	},
	{
		ID: "command-not-run", Symptom: "the pod's containers",
		Signature: compileAny(`RunContainerError`, `ContainerCannotRun`, `OCI runtime create failed`, `exec format error`, `executable file not found`),
		Texts: []string{
			`RunContainerError: failed to create containerd task: failed to create shim task: runc create failed: unable to start container process: error during container init: exec: "serve": executable file not found in $PATH`,
			`exec /app/server: exec format error`,
		},
		Cause: "the container's command cannot be started: the image does not contain it, the file is not executable, or it was built for another processor",
		Fix:   "check `command` and the image's entry point; for `exec format error`, use an image for the node's architecture, or set the nodeSelector kubernetes.io/arch",
		Who:   Team, Link: "https://kubernetes.io/docs/tasks/inject-data-application/define-command-argument-container/",
	},
	{
		ID: "out-of-memory", Symptom: "the pod's containers: state and lastState",
		Signature: compileAny(`OOMKilled`),
		Texts:     []string{`web   0/1   OOMKilled   3 (41s ago)   2m10s`},
		Cause:     "a container used more memory than its limit, or than its node has, and the kernel killed it",
		Fix:       "raise the container's memory limit and request, or reduce the program's memory use, which `kubectl top pod --containers` shows",
		Run:       "kubectl top pod --containers",
		Who:       Team, Link: "https://kubernetes.io/docs/tasks/configure-pod-container/assign-memory-resource/",
	},
	{
		ID: "container-killed", Symptom: "the pod's containers: exit code 137 or 143",
		Cause: "a signal ended the container. kubelet sends SIGTERM, and SIGKILL after the grace period, when a liveness probe fails or the pod is deleted. The kernel may also have killed a process in the container that ran out of memory",
		Fix:   "check the pod's events for failed liveness probes (`kubectl describe pod`), and let the program exit on SIGTERM within terminationGracePeriodSeconds",
		Who:   Team, Link: podDocs + "pod-lifecycle/#pod-termination",
	},
	{
		ID: "crash-loop", Symptom: "the pod's containers: state and lastState",
		Signature: compileAny(`CrashLoopBackOff`, `Back-off restarting failed container`),
		Texts: []string{
			`CrashLoopBackOff: back-off 5m0s restarting failed container=web pod=web-1_shop(8c2d)`,
			`Back-off restarting failed container web in pod web-1_shop(8c2d)`,
		},
		Cause: "the container starts, and its program exits again and again; placement is not the cause",
		Fix:   "read the program's last output: `kubectl logs`, with `--previous` after a restart",
		Who:   Team, Link: "https://kubernetes.io/docs/tasks/debug/debug-application/debug-pods/",
	},
	{
		ID: "probe-fails", Symptom: "event Unhealthy of the pod, by kubelet",
		Signature: compileAny(`(Readiness|Liveness|Startup) probe (failed|errored)`),
		Texts: []string{
			`Readiness probe failed: HTTP probe failed with statuscode: 503`,
			`Liveness probe failed: Get "http://10.0.4.7:8080/healthz": context deadline exceeded (Client.Timeout exceeded while awaiting headers)`,
		},
		Cause: "a probe of the container fails. While the readiness probe fails, the container gets no traffic; if the liveness or startup probe fails, kubelet restarts it",
		Fix:   "check the probe's port, path and timeoutSeconds, and whether the program listens on all addresses; add a startupProbe for a program that starts slowly",
		Who:   Team, Link: "https://kubernetes.io/docs/tasks/configure-pod-container/configure-liveness-readiness-startup-probes/",
	},
	{
		ID: "pod-evicted", Symptom: "the pod's status: reason Evicted",
		Signature: compileAny(`The node was low on resource`, `[Ee]phemeral(-| local )storage (usage )?(exceeds|limit)`, `Usage of EmptyDir volume "[^"]*" exceeds the limit`, `exceeded its local ephemeral storage limit`),
		Texts: []string{
			`Evicted: The node was low on resource: memory. Threshold quantity: 100Mi, available: 80Mi. Container web was using 900Mi, request is 100Mi, has larger consumption of memory.`,
			`Pod ephemeral local storage usage exceeds the total limit of containers 1Gi.`,
			`Usage of EmptyDir volume "cache" exceeds the limit "1Gi".`,
		},
		Cause: "kubelet evicted the pod, since its node ran short of memory, disk or processes, or the pod exceeded its storage limit. Pods that use more than they request are evicted first",
		Fix:   "request as much memory and ephemeral-storage as the pod uses, and raise the limit that the message names",
		Who:   Team, Link: kubeDocs + "scheduling-eviction/node-pressure-eviction/",
	},
	{
		ID: "pod-disrupted", Symptom: "the pod's condition DisruptionTarget, or its reason: Preempting, NodeShutdown, Terminated",
		Cause: "the pod had to leave its node: the node was drained or shut down, or a pod with a higher priority preempted it",
		Fix:   "if a controller re-creates the pod, no action is necessary; for a Job, let podFailurePolicy ignore pods with the condition DisruptionTarget, and raise the pod's priorityClassName if that is allowed",
		Who:   Team, Link: podDocs + "disruptions/#pod-disruption-conditions",
	},
	{
		ID: "pod-not-taken", Symptom: "the pod's status: reason UnexpectedAdmissionError, NodeAffinity, OutOfcpu, OutOfmemory, OutOfpods and others",
		Cause: "kubelet refused the pod after the scheduler had assigned it: in the meantime the node had no room left, got other labels, or lost a device",
		Fix:   "delete the pod: its controller creates a new one, and the scheduler places it again; if the problem recurs, compare the message with the node (`kubectl describe node`)",
		Who:   Team, Link: podDocs + "pod-lifecycle/",
	},
	{
		ID: "node-unreachable", Symptom: "condition Ready of the node; the pod's status: reason NodeLost, or a container with ContainerStatusUnknown",
		Signature: compileAny(`Kubelet stopped posting node status`, `ContainerStatusUnknown`),
		Texts:     []string{FormatCondition("Ready", "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")},
		Cause:     "the node no longer reports: its instance was terminated or hangs, or cannot reach the API server. Its pods count as not ready; a StatefulSet's pods are re-created elsewhere only when the node is deleted",
		Fix:       "check whether the instance still runs (`croft why node/NAME`); delete the NodeClaim of an instance that does not recover: Karpenter then terminates it, and releases its pods and volumes",
		Who:       Platform, Link: kubeDocs + "architecture/nodes/#condition",
	},
	{
		ID: "rollout-stuck", Symptom: "condition Progressing of the Deployment",
		Signature: compileAny(`ProgressDeadlineExceeded`),
		Texts:     []string{FormatCondition("Progressing", "False", "ProgressDeadlineExceeded", `ReplicaSet "web-6d4cf56db6" has timed out progressing.`)},
		Cause:     "the rollout made no progress for progressDeadlineSeconds (10 minutes by default): pods of the new template are not created or do not become ready, while pods of the earlier one still serve",
		Fix:       "fix the cause for the new pods, or return to the earlier template: `kubectl rollout undo`",
		Who:       Team, Link: kubeDocs + "workloads/controllers/deployment/#failed-deployment",
	},
	{
		ID: "job-deadline", Symptom: "condition Failed of the Job, or the pod's status: reason DeadlineExceeded",
		Signature: compileAny(`\bDeadlineExceeded: `, `was active longer than specified deadline`, `was active on the node longer than the specified deadline`),
		Texts:     []string{FormatCondition("Failed", "True", "DeadlineExceeded", "Job was active longer than specified deadline"), `Pod was active on the node longer than the specified deadline`},
		Cause:     "the Job or pod took longer than its activeDeadlineSeconds, which also count the time without a node; its pods were deleted",
		Fix:       "raise activeDeadlineSeconds, or find out why its pods wait: create the Job again, and run `croft why job/NAME` before the deadline",
		Who:       Team, Link: kubeDocs + "workloads/controllers/job/#job-termination-and-cleanup",
	},
	{
		ID: "job-failed", Symptom: "condition Failed of the Job",
		Signature: compileAny(`BackoffLimitExceeded`, `PodFailurePolicy`, `MaxFailedIndexesExceeded`, `FailedIndexes`),
		Texts: []string{
			FormatCondition("Failed", "True", "BackoffLimitExceeded", "Job has reached the specified backoff limit"),
			FormatCondition("Failed", "True", "PodFailurePolicy", "Container main for pod shop/report-x2x9p failed with exit code 42 matching FailJob rule at index 0"),
			FormatCondition("Failed", "True", "FailedIndexes", "Job has failed indexes"),
		},
		Cause: "the Job's failed pods reached its limit (backoffLimit, maxFailedIndexes), or its podFailurePolicy ended it after a failure; it creates no more pods",
		Fix:   "fix the cause of the failures, and create the Job again: `kubectl logs job/NAME` shows the last output of a pod",
		Who:   Team, Link: kubeDocs + "workloads/controllers/job/#pod-backoff-failure-policy",
	},
	{
		ID: "schedule-missed", Symptom: "event MissSchedule of the CronJob, by cronjob-controller",
		Signature: compileAny(`Missed scheduled time to start a job`),
		Texts:     []string{`Missed scheduled time to start a job: Thu, 26 Nov 2026 06:00:00 UTC`},
		Cause:     "the controller checked the schedule more than startingDeadlineSeconds late, and started no Job: the controller did not run, or the value is below the interval of its checks, 10 seconds",
		Fix:       "raise startingDeadlineSeconds, or remove it; `kubectl create job --from=cronjob/NAME` starts a Job now",
		Who:       Team, Link: kubeDocs + "workloads/controllers/cron-jobs/#starting-deadline",
	},
}
