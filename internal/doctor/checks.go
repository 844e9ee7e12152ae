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
		name: "kinds", summary: "croft's and Karpenter's kinds are there, and know every field that croft writes",
		detail: "Helm does not upgrade CustomResourceDefinitions",
		needs:  []string{readDefinitions}, reads: []string{readDeclared}, find: checkDefinitions,
	},
	{
		name: "operator", summary: "the operator is alive",
		detail: "It renewed the Lease `croft-operator` in `croft-system` within 40 s. Without an operator nothing is repaired",
		reads:  []string{readHeartbeat}, find: checkOperator,
	},
	{
		name: "platform", summary: "the Platform, its Pools and its Tenants are Ready",
		detail: "A warning for `platformNamespaces` that do not exist, and for conditions that no running operator keeps current",
		needs:  []string{readDeclared}, reads: []string{readNamespaces, readHeartbeat}, find: checkPlatform,
	},
	{
		name: "deletions", summary: "deletions of declared objects and of tenants' namespaces complete",
		detail: "After 15 minutes it names what the deletion waits for",
		needs:  []string{readDeclared, readNamespaces}, find: checkDeletions,
	},
	{
		name: "walls", summary: "every object of the walls stands as it is declared",
		detail: "None is missing, and none was changed, as by a rule that was added to a NetworkPolicy. It names tenants' namespaces that are not croft's",
		needs:  []string{readPlatform, readNamespaces}, reads: []string{readWalls}, find: checkWalls,
	},
	{
		name: "holds", summary: "a few attacks bounce",
		detail: "Six attacks of `croft verify`, tried by dry run as the people of up to three tenants: first of those with broken walls",
		needs:  []string{readPlatform, readNamespaces}, reads: []string{readHolds}, find: checkAttacks,
	},
	{
		name: "kubelets", summary: "what kubelets and the controllers of volumes write is admitted",
		detail: "A Node, CSINode, Lease, mirror pod, ResourceSlice and VolumeAttachment, tried by dry run as those components: no admission policy or webhook may refuse them, or no new node becomes Ready",
		reads:  []string{readWrites}, find: checkKubelets,
	},
	{
		name: "engine", summary: "the placement engine is there, and lets nothing past it",
		detail: "MutatingAdmissionPolicy is served, or Gatekeeper is set up as croft needs it",
		needs:  []string{readDeclared, readGatekeeper}, find: checkEngine,
	},
	{
		name: "node-classes", summary: "node classes are ready",
		needs: []string{readNodePools}, reads: []string{readClasses}, find: checkNodeClasses,
	},
	{
		name: "node-pools", summary: "NodePools are ready, and none is croft's in part",
		detail: "No NodePool of others has the label of tenants' pools",
		needs:  []string{readNodePools, readDeclared}, find: checkNodePools,
	},
	{
		name: "limits", summary: "no pool is near its limits",
		detail: "A warning at 90 %, a problem at the end",
		needs:  []string{readNodePools}, find: checkLimits,
	},
	{
		name: "addresses", summary: "no secondary network runs out of addresses",
		detail: "A warning at 90 %, a problem at the end",
		needs:  []string{readDeclared}, reads: []string{readIPPools}, find: checkAddresses,
	},
	{
		name: "dns", summary: "nodes point pods to a DNS Service of the cluster",
		detail: "`platform.clusterDNS` and the kubelets' `clusterDNS` of pools on AWS, compared with the cluster's Services",
		needs:  []string{readPlatform, readServices}, find: checkDNS,
	},
	{
		name: "launches", summary: "nodes launch, register and initialize",
		detail: "No startup taint that nothing removes, no refused launch",
		needs:  []string{readClaims}, reads: []string{readEvents}, find: checkLaunches,
	},
	{
		name: "taints", summary: "nodes have no taints that Karpenter does not know of, and no startup taints once they are initialized",
		needs: []string{readClaims, readNodes}, find: checkTaints,
	},
	{
		name: "departures", summary: "nodes that are to go do go",
		detail: "No PodDisruptionBudget and no `karpenter.sh/do-not-disrupt` holds a node that was deleted, has drifted or expired",
		needs:  []string{readClaims, readNodes, readPods, readBudgets}, find: checkRemovals,
	},
	{
		name: "budgets", summary: "no PodDisruptionBudget of a tenant holds a node for good",
		detail: "Several budgets for one pod, budgets that require all pods, budgets whose pods cannot be counted; with the node, and the tenants that share its pool",
		needs:  []string{readPlatform, readPods, readBudgets}, reads: []string{readNodes}, find: checkBudgets,
	},
	{
		name: "strays", summary: "tenants' pods run on their own pools",
		needs: []string{readPlatform, readNodes, readPods}, find: checkMisplacedPods,
	},
	{
		name: "daemonsets", summary: "the platform's DaemonSets tolerate tenants' pools",
		needs: []string{readDaemonSets, readNodePools, readDeclared, readNamespaces}, find: checkDaemonSets,
	},
	{
		name: "classes", summary: "tenants' policy lists name classes that exist, and have the cluster's defaults",
		detail: "Priority, runtime, storage, ingress, gateway, device and volume attributes classes, and CSI drivers. Objects that name no class get the cluster's default, and are refused if the list does not have it",
		needs:  []string{readPlatform}, reads: []string{readPolicyClasses}, find: checkPolicyClasses,
	},
	{
		name: "quotas", summary: "quotas and limits of a namespace do not contradict one another",
		detail: "LimitRanges and ResourceQuotas of others next to croft's, and quotas that count what no LimitRange gives a default",
		needs:  []string{readPlatform, readNamespaces, readQuotas}, find: checkQuotas,
	},
	{
		name: "api-services", summary: "every API group answers",
		detail: "No namespace can be deleted while an APIService is unavailable",
		reads:  []string{readAPIServices}, find: checkAPIServices,
	},
	{
		name: "scratch", summary: "no killed `croft verify` has left anything behind",
		needs: []string{readDeclared, readNamespaces}, find: checkLeftovers,
	},
	{
		name: "add-ons", summary: "the catalogue knows the add-ons",
		needs: []string{readDeclared}, reads: []string{readDefinitions, readIngressClasses}, find: checkAddons,
	},
	{
		name: "solvers", summary: "cert-manager's solvers make Services that tenants may have",
		detail: "An HTTP-01 solver makes a NodePort by default; tenants that may use the ClusterIssuer must be allowed the type",
		needs:  []string{readDeclared, readClusterIssuers}, find: checkSolvers,
	},
	{
		name: "flux", summary: "Flux' controllers are locked down for several tenants",
		detail: "By their flags, and they have no key of the platform's",
		needs:  []string{readFlux, readNamespaces}, find: checkFlux,
	},
	{
		name: "others", summary: "nobody else changes tenants' pods",
		detail: "No webhook, policy or Kyverno rule of somebody else, and no annotation of a namespace for PodNodeSelector or PodTolerationRestriction",
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
