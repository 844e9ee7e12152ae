package v1alpha1

// Conditions, one set for every kind. Ready sums up the others: it is True only if none
// of them is False. Reconciling and Stalled follow from Ready.
const (
	// ConditionReady: everything that the object declares exists in the cluster.
	ConditionReady = "Ready"
	// ConditionReconciling: Ready is not True yet, and croft still works on it, or waits for
	// the cluster. It is present only while it is True, as kstatus requires.
	ConditionReconciling = "Reconciling"
	// ConditionStalled: Ready is not True, and a person must act; the message explains how.
	// It is present only while it is True, as kstatus requires.
	ConditionStalled = "Stalled"
	// ConditionAccepted: the object fits the estate that it is part of.
	ConditionAccepted = "Accepted"
	// ConditionApplied: every object of every wall was written as desired.
	ConditionApplied = "Applied"
	// ConditionEnforced: the API server placed a pod as the policies require, and every
	// API server evaluates the tenant's current rules. Policies take effect about a second
	// after they are written.
	ConditionEnforced = "Enforced"
	// ConditionAgreed: every tenant in the Tenant's callers and calls has agreed, so that the
	// connections are open. Ready does not depend on it. Only Tenants with such consents
	// have it, and TenantCallers, for the connection that each opens.
	ConditionAgreed = "Agreed"
	// ConditionEnding: the end of a requested namespace is near. Only TenantNamespaces that end
	// within 24 hours have it.
	ConditionEnding = "Ending"
	// ConditionPlacementReady: the Platform's placement engine places pods, no pod
	// bypasses Gatekeeper if it is the engine, and no other engine is still needed.
	ConditionPlacementReady = "PlacementReady"
	// ConditionNodesReady: Karpenter accepts the node class and the NodePool of a Pool, and
	// the cloud does not refuse to launch its nodes.
	ConditionNodesReady = "NodesReady"
	// ConditionInterfacesReady: nothing prevents nodes from getting their network
	// interfaces in a SecondaryNetwork. Only networks that a pool on AWS uses have it.
	ConditionInterfacesReady = "InterfacesReady"
	// ConditionAddressesAvailable: every zone of a SecondaryNetwork has an address for a
	// pod. Only clusters with whereabouts have it.
	ConditionAddressesAvailable = "AddressesAvailable"
	// ConditionNetworksReady: a Node's interfaces in secondary networks are set up.
	// croft's agent writes it on its own Node.
	ConditionNetworksReady = "croft.dev/NetworksReady"
	// ConditionPodNetworksReady: pods with secondary networks can start on a Node: its
	// NodeClaim is registered, all interfaces are attached and set up, and Multus and
	// whereabouts are Ready there. The operator writes it on the Nodes of pools with
	// waitForNetworks, and does not evaluate it again once it is True.
	ConditionPodNetworksReady = "croft.dev/PodNetworksReady"
)

// Reasons of conditions.
const (
	// ReasonReady: everything that the object declares exists.
	ReasonReady = "Ready"
	// ReasonAccepted: the object and the objects that it refers to are valid.
	ReasonAccepted = "Accepted"
	// ReasonInvalid: the object does not fit the estate; the message explains why and how
	// to correct it. Existing objects stay unchanged.
	ReasonInvalid = "Invalid"
	// ReasonNoPlatform: the cluster has no valid Platform named default yet.
	ReasonNoPlatform = "NoPlatform"
	// ReasonApplied: every object was written or already up to date.
	ReasonApplied = "Applied"
	// ReasonApplyFailed: the API server refused an object; the message names it.
	ReasonApplyFailed = "ApplyFailed"
	// ReasonRejected: the API server or an admission policy rejects an object as invalid;
	// the message names it. Correct the declaration, or the policy that rejects it.
	ReasonRejected = "Rejected"
	// ReasonNamespaceNotOwned: a declared namespace exists already, croft did not create
	// it, and no platform admin has permitted its adoption.
	ReasonNamespaceNotOwned = "NamespaceNotOwned"
	// ReasonNotAllowed: the Tenant's selfService allows no namespaces, or the
	// TenantNamespace is in a namespace that the Tenant does not declare, or callersFrom does
	// not list the tenant that a TenantCaller names.
	ReasonNotAllowed = "NotAllowed"
	// ReasonNameNotAllowed: the name of a TenantNamespace does not begin with the
	// tenant's name and a hyphen, or belongs to the system, to the platform or to
	// another tenant.
	ReasonNameNotAllowed = "NameNotAllowed"
	// ReasonNameTaken: a namespace with the name of a TenantNamespace exists already.
	// croft never adopts a namespace for a TenantNamespace.
	ReasonNameTaken = "NameTaken"
	// ReasonLimitReached: the tenant has as many requested namespaces as its selfService
	// allows; the message names them. Or it has as many older TenantCallers for the same
	// tenant as count.
	ReasonLimitReached = "LimitReached"
	// ReasonEndsWithinDay: a requested namespace ends within 24 hours.
	ReasonEndsWithinDay = "EndsWithinDay"
	// ReasonEndsWithinHour: a requested namespace ends within an hour.
	ReasonEndsWithinHour = "EndsWithinHour"
	// ReasonEnforced: the API server placed a dry-run pod on the tenant's pool, and every
	// API server evaluates the tenant's rules. If the operator can reach only one of
	// several, there is a message.
	ReasonEnforced = "Enforced"
	// ReasonNotEnforcedYet: the API server did not place a dry-run pod; the policies have
	// not taken effect yet, or were removed.
	ReasonNotEnforcedYet = "NotEnforcedYet"
	// ReasonAPIServerBehind: an API server still evaluates the tenant's previous rules, or
	// does not answer; the message names it.
	ReasonAPIServerBehind = "APIServerBehind"
	// ReasonAgreed: every connection in the Tenant's callers and calls is open, or the
	// connection of the TenantCaller.
	ReasonAgreed = "Agreed"
	// ReasonConsentPending: some of the Tenant's callers and calls open no connection, or the
	// TenantCaller opens none. The message names each, with the reason: the other tenant has
	// not agreed, does not exist or names other ports, or a consent has expired.
	ReasonConsentPending = "ConsentPending"
	// ReasonPlacementReady: the engine is installed and set up as croft requires.
	ReasonPlacementReady = "PlacementReady"
	// ReasonEngineMissing: the cluster does not serve the engine's kinds; the message
	// names the software to install, or the engine to choose.
	ReasonEngineMissing = "EngineMissing"
	// ReasonEngineUnsafe: the engine is installed, but lets pods through if it fails, or
	// does not process all of them; the message explains how to fix it.
	ReasonEngineUnsafe = "EngineUnsafe"
	// ReasonSwitchingEngine: the engine was changed, and the previous engine still places
	// some tenants' pods. It stays until it places none.
	ReasonSwitchingEngine = "SwitchingEngine"
	// ReasonNodePoolReady: Karpenter accepts the NodePool and its node class.
	ReasonNodePoolReady = "NodePoolReady"
	// ReasonNodePoolNotReady: Karpenter has not accepted the NodePool; the message comes
	// from Karpenter.
	ReasonNodePoolNotReady = "NodePoolNotReady"
	// ReasonLaunchesRefused: the cloud refuses to launch nodes of the Pool, for another reason
	// than capacity, so croft holds its launches and lets Karpenter try again from time to
	// time. The message has the cloud's reason and the time.
	ReasonLaunchesRefused = "LaunchesRefused"
	// ReasonInterfacesKept: croft creates and attaches interfaces for new nodes.
	ReasonInterfacesKept = "InterfacesKept"
	// ReasonInterfacesMissing: nodes do not get their interfaces; the message names them
	// and the cause, with EC2's error if EC2 refused.
	ReasonInterfacesMissing = "InterfacesMissing"
	// ReasonAccountUnreachable: EC2 did not answer, or refused to list the interfaces.
	ReasonAccountUnreachable = "AccountUnreachable"
	// ReasonAddressesAvailable: fewer than 90 % of the addresses are used, in every zone.
	ReasonAddressesAvailable = "AddressesAvailable"
	// ReasonRangeNearlyFull: at least 90 % of a zone's addresses are used. Pods still get
	// one; the message names the zone and the fix.
	ReasonRangeNearlyFull = "RangeNearlyFull"
	// ReasonRangeFull: all addresses of a zone are used. New pods with the network wait
	// there until another pod releases its address.
	ReasonRangeFull = "RangeFull"
	// ReasonLinksReady: every interface of the node has its name and its settings.
	ReasonLinksReady = "LinksReady"
	// ReasonInterfacesUnknown: the operator has not listed the node's interfaces yet,
	// because not all of them are attached.
	ReasonInterfacesUnknown = "InterfacesUnknown"
	// ReasonLinkMissing: an attached interface does not appear on the node; the message
	// names it.
	ReasonLinkMissing = "LinkMissing"
	// ReasonLinkFailed: the node refused a name or a setting of an interface, or the file
	// of a network; the message gives the cause.
	ReasonLinkFailed = "LinkFailed"
	// ReasonPodNetworksReady: pods with secondary networks can start on the node; the
	// message names the DaemonSets that croft waited for.
	ReasonPodNetworksReady = "PodNetworksReady"
	// ReasonNotRegistered: the node's NodeClaim is not registered. Karpenter would
	// restore the startup taint.
	ReasonNotRegistered = "NotRegistered"
	// ReasonInterfacesPending: not all of the node's interfaces are attached; the
	// condition InterfacesReady of the SecondaryNetworks gives the cause.
	ReasonInterfacesPending = "InterfacesPending"
	// ReasonLinksPending: croft's agent has not set up the interfaces; the message
	// repeats the condition croft.dev/NetworksReady.
	ReasonLinksPending = "LinksPending"
	// ReasonPluginsPending: Multus or whereabouts is not Ready on the node; the message
	// names the DaemonSet, and the taint, if any, that keeps its pod away.
	ReasonPluginsPending = "PluginsPending"
	// ReasonNotAwaited: the node's pool no longer waits for its networks.
	ReasonNotAwaited = "NotAwaited"
	// ReasonPending: a condition that Ready sums up is not known yet.
	ReasonPending = "Pending"
	// ReasonDeleting: the object is being deleted.
	ReasonDeleting = "Deleting"
	// ReasonInUse: a Pool is being deleted while tenants, or retained namespaces of
	// deleted ones, still use it.
	ReasonInUse = "InUse"
	// ReasonAwaitingApproval: an approver must approve the Elevation.
	ReasonAwaitingApproval = "AwaitingApproval"
	// ReasonGranted: the Elevation is granted, and has not ended.
	ReasonGranted = "Granted"
	// ReasonEnded: the Elevation was granted, and has ended.
	ReasonEnded = "Ended"
	// ReasonRefused: the Elevation was not granted; the message gives the cause. Make a new
	// request. Or the TenantCaller was created for an earlier tenant of the same name: create
	// it again.
	ReasonRefused = "Refused"
)
