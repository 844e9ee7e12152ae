package v1alpha1

// Conditions, one set for every kind. Ready sums up the others: it is True only
// when none of them is False.
const (
	// ConditionReady says that what the object asks for stands in the cluster.
	ConditionReady = "Ready"
	// ConditionAccepted says that the object fits the estate it is part of.
	ConditionAccepted = "Accepted"
	// ConditionApplied says that every object of every wall was written as wanted.
	ConditionApplied = "Applied"
	// ConditionEnforced says that the API server was seen to place a pod as the
	// policies ask: they take effect about a second after they are written.
	ConditionEnforced = "Enforced"
	// ConditionPlacementReady says that the Platform's placement engine places pods,
	// that of Gatekeeper nothing lets pods through unseen, and that no other engine
	// is still needed.
	ConditionPlacementReady = "PlacementReady"
	// ConditionNodesReady says that the node class and the NodePool of a Pool are
	// accepted by Karpenter.
	ConditionNodesReady = "NodesReady"
	// ConditionInterfacesReady says that nothing keeps nodes from their network
	// interfaces in a SecondaryNetwork. Only networks that a pool on AWS uses have it.
	ConditionInterfacesReady = "InterfacesReady"
	// ConditionAddressesAvailable says that a pod can have an address of a SecondaryNetwork
	// in each of its zones. Only clusters with whereabouts have it.
	ConditionAddressesAvailable = "AddressesAvailable"
	// ConditionNetworksReady says that a Node's interfaces in secondary networks are set
	// up. croft's agent writes it on its own Node.
	ConditionNetworksReady = "croft.dev/NetworksReady"
	// ConditionPodNetworksReady says that pods with secondary networks can start on a Node:
	// its NodeClaim is registered, all interfaces are attached and set up, and Multus and
	// whereabouts are Ready there. The operator writes it on the Nodes of pools with
	// waitForNetworks, and does not look again once it is True.
	ConditionPodNetworksReady = "croft.dev/PodNetworksReady"
)

// Reasons of conditions.
const (
	// ReasonReady: everything that was asked for stands.
	ReasonReady = "Ready"
	// ReasonAccepted: the object and what it refers to are valid.
	ReasonAccepted = "Accepted"
	// ReasonInvalid: the object does not fit the estate; the message says why and
	// what to write instead. What stood before stays as it was.
	ReasonInvalid = "Invalid"
	// ReasonNoPlatform: the cluster has no Platform named default yet.
	ReasonNoPlatform = "NoPlatform"
	// ReasonApplied: every object was written or already stood.
	ReasonApplied = "Applied"
	// ReasonApplyFailed: the API server refused an object; the message names it.
	ReasonApplyFailed = "ApplyFailed"
	// ReasonRejected: the API server rejects an object as invalid, or an admission
	// policy does; the message names it. A person must correct the declaration, or the
	// policy that rejects it.
	ReasonRejected = "Rejected"
	// ReasonNamespaceNotOwned: a namespace of that name exists, croft did not
	// create it, and no platform admin has permitted its adoption.
	ReasonNamespaceNotOwned = "NamespaceNotOwned"
	// ReasonNotAllowed: the Tenant's selfService allows no namespaces, or the
	// TenantNamespace is in a namespace that the Tenant does not declare.
	ReasonNotAllowed = "NotAllowed"
	// ReasonNameNotAllowed: the name of a TenantNamespace does not begin with the
	// tenant's name and a hyphen, or belongs to the system, to the platform or to
	// another tenant.
	ReasonNameNotAllowed = "NameNotAllowed"
	// ReasonNameTaken: a namespace of the name that a TenantNamespace asks for exists
	// already. croft never adopts one by a TenantNamespace.
	ReasonNameTaken = "NameTaken"
	// ReasonLimitReached: the tenant has as many namespaces beside the declared ones as
	// its selfService allows; the message names them.
	ReasonLimitReached = "LimitReached"
	// ReasonEnforced: a dry-run pod came back placed on the tenant's pool.
	ReasonEnforced = "Enforced"
	// ReasonNotEnforcedYet: a dry-run pod was not placed; the policies have not
	// taken effect yet, or somebody removed them.
	ReasonNotEnforcedYet = "NotEnforcedYet"
	// ReasonPlacementReady: the engine is there, and set up as croft needs it.
	ReasonPlacementReady = "PlacementReady"
	// ReasonEngineMissing: the cluster does not have what the engine is made of; the
	// message says what to install, or which engine to choose.
	ReasonEngineMissing = "EngineMissing"
	// ReasonEngineUnsafe: the engine is there, but lets pods through when it fails,
	// or does not see all of them; the message says what to change.
	ReasonEngineUnsafe = "EngineUnsafe"
	// ReasonSwitchingEngine: the engine was changed, and some tenants' pods are still
	// placed by the one before, which stays until they are not.
	ReasonSwitchingEngine = "SwitchingEngine"
	// ReasonNodePoolReady: Karpenter accepts the NodePool and its node class.
	ReasonNodePoolReady = "NodePoolReady"
	// ReasonNodePoolNotReady: Karpenter has not accepted the NodePool; the message
	// is Karpenter's own.
	ReasonNodePoolNotReady = "NodePoolNotReady"
	// ReasonInterfacesKept: interfaces are made and attached as nodes come.
	ReasonInterfacesKept = "InterfacesKept"
	// ReasonInterfacesMissing: nodes do not get their interfaces; the message says which
	// and why, in EC2's words where it refused.
	ReasonInterfacesMissing = "InterfacesMissing"
	// ReasonAccountUnreachable: EC2 did not answer, or refused to show the interfaces.
	ReasonAccountUnreachable = "AccountUnreachable"
	// ReasonAddressesAvailable: fewer than 90 % of the addresses are used, in every zone.
	ReasonAddressesAvailable = "AddressesAvailable"
	// ReasonRangeNearlyFull: 90 % of a zone's addresses are used. Pods still get one; the
	// message names the zone and what to do.
	ReasonRangeNearlyFull = "RangeNearlyFull"
	// ReasonRangeFull: all addresses of a zone are used. Pods that ask for the network wait
	// there until another pod gives its address back.
	ReasonRangeFull = "RangeFull"
	// ReasonLinksReady: every interface of the node has its name and its settings.
	ReasonLinksReady = "LinksReady"
	// ReasonInterfacesUnknown: the operator has not listed the node's interfaces yet, since
	// not all of them are attached.
	ReasonInterfacesUnknown = "InterfacesUnknown"
	// ReasonLinkMissing: the node does not show an interface that is attached to it; the
	// message names it.
	ReasonLinkMissing = "LinkMissing"
	// ReasonLinkFailed: the node refused a name or a setting of an interface, or the file
	// of a network; the message says why.
	ReasonLinkFailed = "LinkFailed"
	// ReasonPodNetworksReady: pods with secondary networks can start on the node; the message
	// names the DaemonSets that were waited for.
	ReasonPodNetworksReady = "PodNetworksReady"
	// ReasonNotRegistered: the node's NodeClaim is not registered. Karpenter would put the
	// startup taint back.
	ReasonNotRegistered = "NotRegistered"
	// ReasonInterfacesPending: not all of the node's interfaces are attached; the condition
	// InterfacesReady of the SecondaryNetworks says why.
	ReasonInterfacesPending = "InterfacesPending"
	// ReasonLinksPending: croft's agent has not set up the interfaces; the message is that of
	// the condition croft.dev/NetworksReady.
	ReasonLinksPending = "LinksPending"
	// ReasonPluginsPending: Multus or whereabouts is not Ready on the node; the message names
	// the DaemonSet, and the taint that keeps its pod away if there is one.
	ReasonPluginsPending = "PluginsPending"
	// ReasonNotAwaited: the node's pool waits for its networks no more.
	ReasonNotAwaited = "NotAwaited"
	// ReasonPending: a condition that Ready sums up is not known yet.
	ReasonPending = "Pending"
	// ReasonDeleting: the object is being deleted.
	ReasonDeleting = "Deleting"
	// ReasonInUse: a Pool is being deleted while tenants still use it.
	ReasonInUse = "InUse"
)
