package catalog

// schedulingRows are causes why the scheduler finds no node, and Karpenter creates none.
var schedulingRows = []Row{
	{
		ID: "taint-not-tolerated", Symptom: "event FailedScheduling of the pod, by karpenter or the scheduler",
		Signature: compileAny(`did not tolerate taint`, `had untolerated taint`),
		Texts: []string{
			`Failed to schedule pod, did not tolerate taint (taint=croft.node-restriction.kubernetes.io/pool=pool-a:NoSchedule)`,
			`0/1 nodes are available: 1 node(s) had untolerated taint(s). no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.`,
		},
		Cause: "the pod does not tolerate the taint of the pool: its namespace does not belong to a tenant, or the pod is older than the placement policy",
		Fix:   "re-create the pod in a tenant's namespace; the platform's own pods need a pool without that taint, or a toleration",
		Who:   Team, Link: karpenterDocs + "#provisioning",
	},
	{
		ID: "label-unknown", Symptom: "event FailedScheduling of the pod, by karpenter",
		Signature: compileAny(`label "[^"]+" does not have known values`),
		Texts:     []string{`Failed to schedule pod, incompatible requirements, label "example.org/gpu" does not have known values`},
		Cause:     "the pod requires a label that nodes of its pool do not have",
		Fix:       "remove the label from the pod's nodeSelector or nodeAffinity, or ask a platform admin to add it to the pool (`instances.requirements`)",
		Who:       Team, Link: kubeDocs + "scheduling-eviction/assign-pod-node/",
	},
	{
		ID: "requirement-unmet", Symptom: "event FailedScheduling of the pod, by karpenter",
		Signature: compileAny(`incompatible requirements, key `, `key \S+, \S+ (In|NotIn) \[.*\] not in `),
		Exclude:   compileAny(`incompatible volume requirements`),
		Texts:     []string{`Failed to schedule pod, incompatible requirements, key node.kubernetes.io/instance-type, node.kubernetes.io/instance-type In [p4d.24xlarge] not in node.kubernetes.io/instance-type In [m5.large t3a.large t3a.medium]`},
		Cause:     "the pod requires a kind of node that its pool does not create",
		Fix:       "request one of the values that the message names last, or ask a platform admin to add yours to the pool's `instances`",
		Who:       Team, Link: kubeDocs + "scheduling-eviction/assign-pod-node/",
	},
	{
		ID: "limits-exceeded", Symptom: "event FailedScheduling of the pod, by karpenter",
		Signature: compileAny(`all available instance types exceed limits for nodepool`, `node limits have been exhausted for nodepool`),
		Texts: []string{
			`Failed to schedule pod, all available instance types exceed limits for nodepool (NodePool=pool-a)`,
			`Failed to schedule pod, node limits have been exhausted for nodepool (NodePool=pool-a)`,
		},
		Cause: "the pool has reached its limits: none of its instance types fits into the remaining capacity",
		Fix:   "raise `limits` of the Pool, allow smaller instance types, or delete pods that run there",
		Who:   Platform, Link: "https://karpenter.sh/docs/concepts/nodepools/#speclimits",
	},
	{
		ID: "no-instance-type", Symptom: "event FailedScheduling of the pod, by karpenter; event NoCompatibleInstanceTypes of the NodePool",
		Signature: compileAny(`no instance type (met|had|has|which) `, `no instance type satisfies both`, `requirements filtered out all (compatible )?available instance types`, `minValues requirement is not met`),
		Texts: []string{
			`Failed to schedule pod, no instance type met the scheduling requirements or had a required offering, requirements=karpenter.sh/capacity-type In [spot], resources={"cpu":"100m","pods":"1"}`,
			`Failed to schedule pod, no instance type has enough resources, requirements=kubernetes.io/arch In [amd64], resources={"cpu":"500","pods":"1"}`,
			`Failed to schedule pod, nodepool requirements filtered out all available instance types`,
			`NodePool requirements filtered out all compatible available instance types`,
		},
		Cause: "no instance type of the pool fits the pod: the instances are too small after the DaemonSets' requests, not offered in that zone or capacity type, or not in the zone of the pod's volume",
		Fix:   "request less, or another zone or capacity type; a platform admin can allow other instance types in the pool's `instances`",
		Who:   Team, Link: karpenterDocs + "#provisioning",
	},
	{
		ID: "volume-zone", Symptom: "event FailedScheduling of the pod, by karpenter or the scheduler",
		Signature: compileAny(`incompatible volume requirements`, `had volume node affinity conflict`, `didn't match PersistentVolume's node affinity`),
		Texts: []string{
			`Failed to schedule pod, incompatible volume requirements, key topology.kubernetes.io/zone, topology.kubernetes.io/zone In [eu-central-1c] not in topology.kubernetes.io/zone In [eu-central-1a eu-central-1b]`,
			`0/2 nodes are available: 2 node(s) didn't match PersistentVolume's node affinity. preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.`,
		},
		Cause: "the pod's volume is in a zone in which its pool creates no nodes",
		Fix:   "add that zone to the pool, or re-create the volume with a StorageClass whose volumeBindingMode is WaitForFirstConsumer",
		Who:   Team, Link: kubeDocs + "storage/storage-classes/#volume-binding-mode",
	},
	{
		ID: "claim-unbound", Symptom: "event FailedScheduling of the pod, by the scheduler or karpenter",
		Signature: compileAny(`(?i:persistentvolumeclaim) "[^"]+" not found`, `unbound immediate PersistentVolumeClaims`, `unbound pvc must define a storage class`),
		Texts: []string{
			`0/1 nodes are available: persistentvolumeclaim "data" not found. not found`,
			`0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found`,
			`getting persistent volume claim, PersistentVolumeClaim "data" not found (PersistentVolumeClaim=data)`,
		},
		Cause: "the pod waits for a volume claim that does not exist, or that is not bound",
		Fix:   "create the claim, or check its events (`kubectl describe pvc`)",
		Who:   Team, Link: kubeDocs + "storage/persistent-volumes/",
	},
	{
		ID: "anti-affinity-of-others", Symptom: "event FailedScheduling of the pod, by the scheduler or karpenter",
		Signature: compileAny(`didn't satisfy existing pods anti-affinity rules`),
		Texts: []string{
			`0/2 nodes are available: 2 node(s) didn't satisfy existing pods anti-affinity rules. no new claims to deallocate, preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod.`,
		},
		Cause: "a running pod has required anti-affinity to this one, and anti-affinity applies in both directions: the scheduler places no pod that it selects near it",
		Fix:   "delete the pod that keeps this one away, or exclude this one's labels or namespace from its podAntiAffinity; the same command shows its name to a platform admin",
		Who:   Team, Link: kubeDocs + "scheduling-eviction/assign-pod-node/#inter-pod-affinity-and-anti-affinity",
	},
	{
		ID: "affinity-unmet", Symptom: "event FailedScheduling of the pod, by karpenter or the scheduler",
		Signature: compileAny(`unsatisfiable topology constraint for `, `didn't match pod (anti-)?affinity rules`, `didn't match pod topology spread constraints`),
		Texts: []string{
			`Failed to schedule pod, unsatisfiable topology constraint for pod affinity, key=kubernetes.io/os (counts = map[linux:1], podDomains = kubernetes.io/os Exists, nodeDomains = kubernetes.io/os In [linux]`,
			`0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules. no new claims to deallocate, preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.`,
		},
		Cause: "no node satisfies the pod's own affinity, anti-affinity or spread constraints",
		Fix:   "relax the pod's podAffinity, podAntiAffinity or topologySpreadConstraints (preferred instead of required, ScheduleAnyway instead of DoNotSchedule), or run fewer replicas",
		Who:   Team, Link: kubeDocs + "scheduling-eviction/assign-pod-node/#inter-pod-affinity-and-anti-affinity",
	},
	{
		ID: "provisioning-held", Symptom: "a NodeClaim without an instance, of any pool; Karpenter's log",
		Signature: compileAny(`waiting on cluster sync`),
		Texts:     []string{`cluster is waiting on sync for extended duration, duration: 30s, error: waiting on cluster sync`},
		Cause:     "Karpenter creates no node for any pod while a NodeClaim of any pool has no instance yet. It retries the launch for five minutes, then deletes the NodeClaim, and usually starts again. croft's operator ends this within seconds for the NodeClaims of Pools; it does not run, or the NodePool is not croft's",
		Fix:       "start the operator, or fix that NodeClaim's launch (`croft why nodeclaim/NAME`), or delete it and the pods that it is for",
		Who:       Platform, Link: "https://karpenter.sh/docs/concepts/disruption/",
	},
	{
		ID: "no-pool", Symptom: "event FailedScheduling of the pod, by karpenter; or no message by karpenter",
		Signature: compileAny(`no nodepools found`),
		Texts:     []string{`Failed to schedule pod, no nodepools found`},
		Cause:     "Karpenter does not consider the pod's pool: its NodePool does not exist, is not Ready or is being deleted",
		Fix:       "`croft why nodepool/NAME` and `croft status` show why the pool is not ready",
		Who:       Platform, Link: "https://karpenter.sh/docs/concepts/nodepools/",
	},
}
