package v1alpha1

const (
	// TenantLabel names the tenant that an object belongs to. Every policy selects
	// namespaces by it, so only croft and the platform's admins may write it on a
	// namespace.
	TenantLabel = "croft.dev/tenant"
	// PoolLabel names the Pool that an object was made for. Nodes are not selected by it,
	// but by the Platform's nodePoolKey.
	PoolLabel = "croft.dev/pool"
	// WallLabel names the wall that an object belongs to: network, nodes, identity or
	// policy, or shared for several walls.
	WallLabel = "croft.dev/wall"
	// CostCodeLabel is a Pool's or Tenant's cost code on nodes and namespaces.
	CostCodeLabel = "croft.dev/cost-code"
	// PlacementLabel with the value Gatekeeper marks namespaces with a tenant's rules
	// below RulesAnnotationPrefix. Gatekeeper's constraints select them by it.
	PlacementLabel = "croft.dev/placement"
	// ConsentLabel on a network policy or a ReferenceGrant names the other tenant of a
	// connection to which two tenants have agreed.
	ConsentLabel = "croft.dev/consent"
	// ServiceLabelPrefix begins the labels of namespaces whose routes may send requests to a Service
	// of another tenant. The namespace and the name of the Service follow:
	// "croft.dev/service.shop.api". Admission policies read them, and their value is Agreed.
	ServiceLabelPrefix = "croft.dev/service."
	// GatewayLabelPrefix begins the labels of namespaces whose routes and ListenerSets may attach
	// to a Gateway of another tenant, as "croft.dev/gateway.shop.web". The Gateway selects
	// them.
	GatewayLabelPrefix = "croft.dev/gateway."
	// Agreed is the value of labels that begin with ServiceLabelPrefix or GatewayLabelPrefix.
	Agreed = "agreed"
	// SettingsLabel with the value true marks the namespaces of tenants with enforced
	// settings, such as images, or with a trial. The policies on these settings select
	// namespaces by it, so they cost other tenants nothing.
	SettingsLabel = "croft.dev/settings"
	// ManagedByLabel with the value ManagedBy marks every object that croft made.
	ManagedByLabel = "app.kubernetes.io/managed-by"
	// ManagedBy is the value of ManagedByLabel, and the name of croft's field manager.
	ManagedBy = "croft"

	// AdoptAnnotation on a namespace that croft did not create permits the named
	// tenant, and no other, to take it over. Only a platform admin can set it:
	// no tenant role may write namespaces.
	AdoptAnnotation = "croft.dev/adopt"
	// CreatedAnnotation marks a namespace that croft created. Only these may be deleted
	// with their tenant by `deletion: Delete`. Adopted namespaces never have it.
	CreatedAnnotation = "croft.dev/created"
	// RequestedAnnotation on a namespace that a tenant requested is the namespace of its
	// TenantNamespace, which has the same name.
	RequestedAnnotation = "croft.dev/requested"
	// OwnerAnnotation on a namespace names the tenant that croft last wrote it for. It
	// counts only as a field that croft owns. With it, croft recognizes a tenant's
	// namespace whose TenantLabel was removed.
	OwnerAnnotation = "croft.dev/owner"
	// AppliedAnnotation is a hash of the last content that croft applied to an object.
	// Field ownership does not cover atomic lists and maps: without the hash, a field
	// that croft no longer sets looks like a default of the API server.
	AppliedAnnotation = "croft.dev/applied"
	// RulesAnnotationPrefix is the prefix of a namespace's annotations with the tenant's
	// rules, for the admission policies: "croft.dev/rules.pools" is a comma-separated
	// list, in which %2C is a comma and %25 a percent sign. TenantRules hold the same
	// rules.
	RulesAnnotationPrefix = "croft.dev/rules."
	// MaxObjectBytesAnnotation on a namespace is the maximum size of a Secret or
	// ConfigMap, with either engine. Its policy evaluates every kind of object, so it
	// must not wait for TenantRules.
	MaxObjectBytesAnnotation = RulesAnnotationPrefix + "maxObjectBytes"
	// MaxHelmReleaseBytesAnnotation is the maximum size of a Helm release.
	MaxHelmReleaseBytesAnnotation = RulesAnnotationPrefix + "maxHelmReleaseBytes"
	// MaxOtherObjectBytesAnnotation is the maximum size of any other kind.
	MaxOtherObjectBytesAnnotation = RulesAnnotationPrefix + "maxOtherObjectBytes"
	// BudgetLabel on a namespace is the stage of its tenant's budget. The policies on budgets
	// select namespaces by it, so that they cost nothing in all others.
	BudgetLabel = "croft.dev/budget"
	// BudgetAnnotation on a namespace states the figures of the budget and the contact, for the
	// messages of these policies.
	BudgetAnnotation = RulesAnnotationPrefix + "budget"
	// PriceLabel on a namespace is set if workloads get a warning with their price. The policy on prices selects
	// namespaces by it, so that it costs nothing in all others.
	PriceLabel = "croft.dev/price-in-response"
	// PriceAnnotation on a namespace has the figures for these warnings: see budget.DescribePrices.
	PriceAnnotation = RulesAnnotationPrefix + "prices"
	// ScratchLabel marks objects that `croft verify` creates, and deletes at its end.
	ScratchLabel = "croft.dev/scratch"
	// ScratchUntilAnnotation is the expiry of a scratch object, in RFC 3339. Expired
	// objects are left by killed runs; the next `croft verify` deletes them.
	ScratchUntilAnnotation = "croft.dev/scratch-until"
	// UntilAnnotation on a RoleBinding lists the subjects with limited access and its
	// end: "devs=2026-12-01T00:00:00Z, eve=2026-12-24T00:00:00Z". On a network policy with
	// ConsentLabel it is the end of the connection.
	UntilAnnotation = "croft.dev/until"
	// FrozenLabel on a namespace of a frozen tenant selects it for the policy croft-frozen.
	// The value is FrozenExceptScale if its people may change the number of replicas, and
	// FrozenCompletely otherwise. The annotation of the same name is the reason, for
	// refusals.
	FrozenLabel = "croft.dev/frozen"
	// FrozenCompletely is the value of FrozenLabel if the tenant's people may change nothing.
	FrozenCompletely = "Completely"
	// FrozenExceptScale is the value of FrozenLabel if they may change the number of replicas.
	FrozenExceptScale = "ExceptScale"
	// TagAnnotationPrefix precedes a Pool's tags in annotations of nodes without cloud
	// tags, such as kwok's.
	TagAnnotationPrefix = "tags.croft.dev/"

	// RefusedLaunchesAnnotation on a NodePool records, as JSON, that the cloud refuses the
	// pool's launches, and until when croft holds them.
	RefusedLaunchesAnnotation = "croft.dev/refused-launches"
	// HoldLimit is a limit of a NodePool that croft sets while it holds the pool's launches.
	HoldLimit = "croft.dev/launches"

	// NetworksAnnotation on a pod names the secondary networks that it is attached to,
	// separated by commas: "n3, n6".
	NetworksAnnotation = "croft.dev/networks"

	// NodeNetworksLabel with the value true marks the nodes of pools with
	// waitForNetworks. croft's agent runs on these nodes.
	NodeNetworksLabel = "croft.dev/secondary-networks"
	// NodeNetworksAnnotation on a Node lists its interfaces in secondary networks, as JSON.
	// The operator writes it once all of them are attached, and croft's agent reads it.
	NodeNetworksAnnotation = "croft.dev/node-networks"
	// NetworksTaint keeps pods off a node until its secondary networks are ready. The
	// node readiness controller of kubernetes-sigs requires the prefix.
	NetworksTaint = "readiness.k8s.io/croft-networks"
	// BootAnnotation on a Node is a JSON object with the times of its boot events, for
	// croft latency. croft's agent reads them from the node's journal.
	BootAnnotation = "croft.dev/boot"
	// NetworksTaintValue is the value of NetworksTaint.
	NetworksTaintValue = "pending"

	// ProbeLabel on a pod names the only placement engine that may place it, so that an
	// engine can be tested while another is active. A tenant gains nothing by it: a pod
	// that no engine places is refused.
	ProbeLabel = "croft.dev/probe"

	// TenantFinalizer keeps a Tenant until its access is removed and, with `deletion:
	// Delete`, the objects that croft created for it are deleted.
	TenantFinalizer = "croft.dev/tenant"
	// PoolFinalizer keeps a Pool while a Tenant uses it.
	PoolFinalizer = "croft.dev/pool"

	// TenantRulesName is the name of the only TenantRules in a namespace that policies
	// read. The name is fixed, so the lookup has a constant cost, see
	// https://github.com/kubernetes/kubernetes/issues/133383.
	TenantRulesName = "croft"
	// ElevationLabel on a RoleBinding or a ServiceAccount is the name of an elevation's
	// service account. The annotation of the same key names the elevation, as
	// "shop/eve-7f3k2".
	ElevationLabel = "croft.dev/elevation"
	// ElevationsNamespace is the namespace of elevations' service accounts. It contains
	// none of croft's own, so that the operator can request tokens of elevations only.
	ElevationsNamespace = "croft-elevations"
	// AgentNamespace is the namespace of croft's agent. It is not the operator's, because
	// the agent's pods use the node's network.
	AgentNamespace = "croft-agent"
	// SecretLabel on a RoleBinding, and on the copy, is the name of the copy of a Secret in the
	// same namespace. The RoleBinding lets `croft copy-secrets` write the copy, and owns it: the
	// copy is deleted with the RoleBinding.
	SecretLabel = "croft.dev/secret"
	// SecretSourceAnnotation on that RoleBinding is the name of the Secret in SecretsNamespace
	// that is copied.
	SecretSourceAnnotation = "croft.dev/secret-source"
	// SecretsNamespace is the namespace of the Secrets that are copied into tenants' namespaces.
	// It contains none of croft's own, so that their owners need no rights in SystemNamespace.
	SecretsNamespace = "croft-secrets"
	// SystemNamespace is the namespace of croft's operator.
	SystemNamespace = "croft-system"
	// PlatformName is the name of the cluster's only Platform.
	PlatformName = "default"

	// DefaultNodePoolKey is the label and taint key of tenants' nodes. A kubelet
	// cannot set a label below node-restriction.kubernetes.io on its own Node
	// (NodeRestriction admission), so a stolen node cannot join another pool.
	DefaultNodePoolKey = "croft.node-restriction.kubernetes.io/pool"
)
