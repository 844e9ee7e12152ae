package catalog

// disruptionRows are why nodes stay that should go, and what is wrong around
// nodes that run.
var disruptionRows = []Row{
	{
		ID: "node-held", Sees: "events DisruptionBlocked and FailedDraining of the node; the node: deleted, drifted or expired, and still there",
		Signature: anyOf(`[Pp]db prevents pod evictions`, `[Pp]od has "karpenter.sh/do-not-disrupt" annotation`, `blocked through the "karpenter.sh/do-not-disrupt" annotation`,
			`[Ee]viction does not support multiple [Pp][Dd][Bb]s`, `pods are waiting to be evicted`, `violate the pod's disruption budget`),
		Texts: []string{
			`Pdb prevents pod evictions (PodDisruptionBudget=[tenant-a/web])`,
			`Pod has "karpenter.sh/do-not-disrupt" annotation (Pod=tenant-a/web-1)`,
			`Disruption is blocked through the "karpenter.sh/do-not-disrupt" annotation`,
			`Failed to drain node, 1 pods are waiting to be evicted`,
		},
		Cause: "a PodDisruptionBudget that allows no eviction, or karpenter.sh/do-not-disrupt, keeps a node that is to go",
		Cure:  "let the budget allow one pod to go, or take the annotation off; `terminationGracePeriod` of the Pool (24h unless it says otherwise) ends the wait",
		Who:   Team, Link: "https://karpenter.sh/docs/concepts/disruption/#terminationgraceperiod",
		Produced: Produced{BySandbox, "internal/e2e TestWhy/held and TestDoctor/departures"},
	},
	{
		ID: "wrong-pool", Sees: "the pod's node, beside the pools of its tenant (TenantRules)",
		Cause: "the pod runs on nodes of a pool that is not its tenant's: a pod is placed once, when it is created, and the tenant has changed pool since, or was taken over",
		Cure:  "restart it: `kubectl rollout restart` of its workload, or, for a whole tenant, a cluster administrator runs `croft move tenant NAME`",
		Who:   Team, Link: "docs/walls.md",
		Produced: Produced{BySandbox, "internal/e2e TestMove"},
	},
	{
		ID: "daemonset-left-out", Sees: "the DaemonSet: its tolerations, beside the taints of pools",
		Cause: "a DaemonSet of the platform does not tolerate the taint of tenants' pools, and so is on none of their nodes",
		Cure:  "add to its pod template the toleration {operator: Exists}, or one of the platform's `nodePoolKey` with the operator Exists",
		Who:   Platform, Link: kubeDocs + "scheduling-eviction/taint-and-toleration/",
		Produced: Produced{BySandbox, "internal/e2e TestDoctor/daemonset"},
	},
	{
		ID: "pool-overlaps", Sees: "the NodePools: one without a taint, beside tenants' pools",
		Cause: "a NodePool that is not croft's carries the label of tenants' pools, or no taint and their label: pods of tenants could land on nodes that are not theirs",
		Cure:  "take the label off that NodePool's template, or make it a Pool of croft's",
		Who:   Platform, Link: "docs/walls.md",
		Produced: Produced{BySandbox, "internal/e2e TestDoctor/overlap"},
	},
	{
		ID: "pool-full", Sees: "the NodePool: `status.resources` beside `spec.limits`",
		Cause: "the pool is at nine tenths of its limits, or beyond them: the next pod may find no node",
		Cure:  "raise `limits` of the Pool, or free what runs there",
		Who:   Platform, Link: "https://karpenter.sh/docs/concepts/nodepools/#speclimits",
		Produced: Produced{BySandbox, "internal/e2e TestDoctor/limits"},
	},
	{
		ID: "node-outdated", Sees: "condition Drifted of the NodeClaim; its age beside `expireAfter`",
		Cause: "the node is not what its pool asks for any more, or older than it may be, and is still there",
		Cure:  "if it is not on its way, see what holds it: `croft why node/NAME`; budgets of the Pool say how many go at once",
		Who:   Platform, Link: "https://karpenter.sh/docs/concepts/disruption/#drift",
		Produced: Produced{BySandbox, "internal/e2e TestDoctor/departures"},
	},
	{
		ID: "foreign-mutation", Sees: "MutatingWebhookConfigurations, MutatingAdmissionPolicies and Kyverno's policies on pods",
		Cause: "something that is not croft's changes pods of tenants when they are created: what it writes into nodeSelector or tolerations is refused, or undone",
		Cure:  "leave tenants' namespaces out of it (the label croft.dev/tenant), or see that it touches neither nodeSelector, tolerations nor affinity",
		Who:   Platform, Link: "docs/walls.md",
		Produced: Produced{BySandbox, "internal/doctor TestOthers"},
	},
	{
		ID: "unknown-addon", Sees: "the API groups of CustomResourceDefinitions; the controllers of IngressClasses",
		Cause: "an add-on is in the cluster that croft's catalogue does not know: what annotations of tenants' objects make it do, no rule checks",
		Cure:  "see which annotations, labels and kinds of tenants it acts upon, and whether it keeps tenants apart by itself; refuse annotations that nobody knows by `policy.unknownAnnotations: Deny`; where its kinds are safe for tenants, name them in the Platform's `addons`",
		Who:   Platform, Link: "docs/addons.md",
		Produced: Produced{ByNobody, "a sandbox has known add-ons only; the rule is tried on its own"},
	},
	{
		ID: "engine-not-ready", Sees: "condition PlacementReady of the Platform; what the API server serves",
		Cause: "the engine that places pods is not there, or not set up as croft needs it",
		Cure:  "do what the message says",
		Who:   Platform, Link: "docs/gatekeeper.md",
		Produced: Produced{BySandbox, "internal/doctor TestEngine"},
	},
	{
		ID: "version-too-old", Sees: "the API server's version",
		Cause: "the cluster is older than what croft needs",
		Cure:  "upgrade to Kubernetes 1.36 for MutatingAdmissionPolicy, or to 1.30 and use Gatekeeper for placement",
		Who:   Platform, Link: "docs/gatekeeper.md",
		Produced: Produced{ByNobody, "a sandbox has one version of Kubernetes; the rule is tried on its own"},
	},
}
