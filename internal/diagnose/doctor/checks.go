package doctor

// check is one check of `croft doctor`.
type check struct {
	name string
	// summary is the statement if there are no findings. detail is more text for the
	// documentation.
	summary, detail string
	// needs lists the parts of the Snapshot without which the check would find nothing or
	// report false problems: without one, it does not run. reads lists the other parts:
	// without one, the check may miss something.
	needs, reads []string
	find         func(*Snapshot) []Finding
}

var checks = []check{
	{
		name: "kubernetes", summary: "the API server is recent enough for the placement engine",
		needs: []string{readDeclared}, find: checkVersion,
	},
	{
		name: "kinds", summary: "croft's and Karpenter's kinds exist, and have every field that croft writes",
		detail: "Helm does not upgrade CustomResourceDefinitions",
		needs:  []string{readDefinitions}, reads: []string{readDeclared}, find: checkDefinitions,
	},
	{
		name: "operator", summary: "the operator runs",
		detail: "It renewed the Lease `croft-operator` in `croft-system` within 40 s. Without an operator, drift is not repaired",
		reads:  []string{readHeartbeat}, find: checkOperator,
	},
	{
		name: "platform", summary: "the Platform, its Pools and its Tenants are Ready",
		detail: "A warning for `platformNamespaces` that do not exist, and for conditions that no running operator keeps current",
		needs:  []string{readDeclared}, reads: []string{readNamespaces, readHeartbeat}, find: checkPlatform,
	},
	{
		name: "deletions", summary: "deletions of declared objects and of tenants' namespaces complete",
		detail: "After 15 minutes the check names the cause of the delay",
		needs:  []string{readDeclared, readNamespaces}, find: checkDeletions,
	},
	{
		name: "walls", summary: "every object of the walls exists as declared",
		detail: "No object is missing or changed, for example by a rule that was added to a NetworkPolicy. The check names tenants' namespaces that do not belong to croft",
		needs:  []string{readPlatform, readNamespaces}, reads: []string{readWalls}, find: checkWalls,
	},
	{
		name: "connections", summary: "no connection between tenants is open after its end",
		detail: "The check also names connections that are open although the two tenants do not both agree, as after a downtime of the operator",
		needs:  []string{readPlatform, readAgreements}, find: checkConnections,
	},
	{
		name: "callers", summary: "no TenantCaller of a team is ignored",
		detail: "`callersFrom` does not list its tenant, a port is not valid, there are too many for one tenant, or it was created for an earlier tenant of the same name",
		needs:  []string{readPlatform}, find: checkCallers,
	},
	{
		name: "ends", summary: "no namespace that a tenant requested exists after its end",
		detail: "The operator deletes such namespaces, and may have been down at their end",
		needs:  []string{readDeclared}, find: checkEnds,
	},
	{
		name: "attacks", summary: "the walls stop a sample of attacks",
		detail: "Six attacks of `croft verify`, sent as dry runs in the name of members of up to three tenants, beginning with tenants whose walls are broken",
		needs:  []string{readPlatform, readNamespaces}, reads: []string{readAttacks}, find: checkAttacks,
	},
	{
		name: "kubelets", summary: "admission allows the writes of kubelets and of volume controllers",
		detail: "A Node, CSINode, Lease, mirror pod, ResourceSlice and VolumeAttachment, sent as dry runs in the name of those components. If an admission policy or webhook refuses them, new nodes do not become Ready",
		reads:  []string{readWrites}, find: checkKubelets,
	},
	{
		name: "engine", summary: "the placement engine is installed, and places every pod",
		detail: "The API server serves MutatingAdmissionPolicy, or Gatekeeper is configured as croft requires",
		needs:  []string{readDeclared, readGatekeeper}, find: checkEngine,
	},
	{
		name: "node-classes", summary: "node classes are ready",
		needs: []string{readNodePools}, reads: []string{readClasses}, find: checkNodeClasses,
	},
	{
		name: "node-pools", summary: "NodePools are ready, and only croft's have the label of tenants' pools",
		detail: "The check names other NodePools with this label",
		needs:  []string{readNodePools, readDeclared}, find: checkNodePools,
	},
	{
		name: "limits", summary: "no pool is near its limits",
		detail: "A warning at 90 %, a problem at 100 %",
		needs:  []string{readNodePools}, find: checkLimits,
	},
	{
		name: "addresses", summary: "no secondary network runs out of addresses",
		detail: "A warning at 90 %, a problem at 100 %",
		needs:  []string{readDeclared}, reads: []string{readIPPools}, find: checkAddresses,
	},
	{
		name: "dns", summary: "nodes point pods to a DNS Service of the cluster",
		detail: "`platform.clusterDNS` and the kubelets' `clusterDNS` of pools on AWS, compared with the cluster's Services",
		needs:  []string{readPlatform, readServices}, find: checkDNS,
	},
	{
		name: "launches", summary: "nodes launch, register and initialize",
		detail: "The check names startup taints that are not removed, and refused launches",
		needs:  []string{readClaims}, reads: []string{readEvents}, find: checkLaunches,
	},
	{
		name: "taints", summary: "nodes have no taints that Karpenter does not know, and initialized nodes no startup taints",
		needs: []string{readClaims, readNodes}, find: checkTaints,
	},
	{
		name: "departures", summary: "nodes are removed when they should be",
		detail: "The check names PodDisruptionBudgets and annotations `karpenter.sh/do-not-disrupt` that keep a deleted, drifted or expired node",
		needs:  []string{readClaims, readNodes, readPods, readBudgets}, find: checkRemovals,
	},
	{
		name: "budgets", summary: "no PodDisruptionBudget of a tenant blocks the removal of a node permanently",
		detail: "Several budgets for one pod, budgets that require all pods, and budgets whose pods cannot be counted; with the node, and the tenants that share its pool",
		needs:  []string{readPlatform, readPods, readBudgets}, reads: []string{readNodes}, find: checkBudgets,
	},
	{
		name: "misplaced-pods", summary: "tenants' pods run on their own pools",
		needs: []string{readPlatform, readNodes, readPods}, find: checkMisplacedPods,
	},
	{
		name: "daemonsets", summary: "the platform's DaemonSets tolerate tenants' pools",
		needs: []string{readDaemonSets, readNodePools, readDeclared, readNamespaces}, find: checkDaemonSets,
	},
	{
		name: "classes", summary: "tenants' policy lists contain only existing classes, and the cluster's defaults",
		detail: "Priority, runtime, storage, ingress, gateway, device and volume attributes classes, and CSI drivers. Objects that name no class get the cluster's default, and are refused if the list does not contain it",
		needs:  []string{readPlatform}, reads: []string{readPolicyClasses}, find: checkPolicyClasses,
	},
	{
		name: "quotas", summary: "quotas and limits of a namespace do not contradict one another",
		detail: "LimitRanges and ResourceQuotas in addition to croft's, and quotas on resources for which no LimitRange has a default",
		needs:  []string{readPlatform, readNamespaces, readQuotas}, find: checkQuotas,
	},
	{
		name: "thresholds", summary: "the cluster is smaller than the largest that Kubernetes is tested with",
		detail: "A warning above 80 % of 10,000 namespaces, 5,000 nodes, 150,000 pods, 10,000 Services, and 3,000 pods in one namespace; and above 500 pools, with which Karpenter was measured",
		reads:  []string{readCounts, readPlatform, readPods, readNodePools}, find: checkThresholds,
	},
	{
		name: "load", summary: "no tenant has most of the pods that wait for a node, or of the requests in progress",
		detail: "A warning names the tenant of more than half of the pods that wait for a node, at least 100, or of the requests that the API server executes or queues, at least 20. The requests need rights that no role of croft has: to get `/debug/api_priority_and_fairness/dump_requests`, and to list FlowSchemas",
		needs:  []string{readPlatform, readPods}, find: checkLoad,
	},
	{
		name: "api-services", summary: "every API group responds",
		detail: "No namespace can be deleted while an APIService is unavailable",
		reads:  []string{readAPIServices}, find: checkAPIServices,
	},
	{
		name: "scratch", summary: "no objects of a killed `croft verify` remain",
		needs: []string{readDeclared, readNamespaces}, find: checkLeftovers,
	},
	{
		name: "add-ons", summary: "the catalogue contains the cluster's add-ons",
		needs: []string{readDeclared}, reads: []string{readDefinitions, readIngressClasses}, find: checkAddons,
	},
	{
		name: "solvers", summary: "cert-manager's solvers create only Services of types that tenants may use",
		detail: "An HTTP-01 solver creates a NodePort by default; tenants that may use the ClusterIssuer must be allowed the type",
		needs:  []string{readDeclared, readClusterIssuers}, find: checkSolvers,
	},
	{
		name: "secrets", summary: "the declared copies of Secrets exist, and `croft copy-secrets` keeps them current",
		detail: "The check names Secrets that do not exist in `croft-secrets`, and copies that the API server refuses. It reads no Secrets",
		needs:  []string{readDeclared}, reads: []string{readCopier}, find: checkCopies,
	},
	{
		name: "flux", summary: "Flux' controllers isolate tenants from each other",
		detail: "The check reads their flags, and reports keys of the platform",
		needs:  []string{readFlux, readNamespaces}, find: checkFlux,
	},
	{
		name: "others", summary: "no other component changes tenants' pods",
		detail: "The check names webhooks, policies and Kyverno rules on pods, and annotations of namespaces for PodNodeSelector or PodTolerationRestriction",
		needs:  []string{readDeclared, readNamespaces}, reads: []string{readWebhooks}, find: checkOtherMutators,
	},
}

// Description is a check's text for the documentation.
type Description struct{ Name, Summary, Detail string }

// Checks returns the checks, in order.
func Checks() []Description {
	all := make([]Description, len(checks))
	for i, c := range checks {
		all[i] = Description{c.name, c.summary, c.detail}
	}
	return all
}
