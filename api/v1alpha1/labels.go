package v1alpha1

const (
	// TenantLabel names the tenant that an object stands for. On a namespace it
	// is what selects it for every policy, so nobody but croft and the platform's
	// admins may write it.
	TenantLabel = "croft.dev/tenant"
	// PoolLabel names the Pool that an object was made for. It is not the label
	// that nodes are selected by: that is the Platform's nodePoolKey.
	PoolLabel = "croft.dev/pool"
	// WallLabel names the wall that an object belongs to: network, nodes,
	// identity or policy; shared if several have it in common.
	WallLabel = "croft.dev/wall"
	// CostCodeLabel carries a Pool's or Tenant's cost code on nodes and namespaces.
	CostCodeLabel = "croft.dev/cost-code"
	// PlacementLabel with the value Gatekeeper selects, for its constraints, the
	// namespaces that carry a tenant's rules below RulesAnnotationPrefix.
	PlacementLabel = "croft.dev/placement"
	// ManagedByLabel with the value ManagedBy marks every object that croft made.
	ManagedByLabel = "app.kubernetes.io/managed-by"
	// ManagedBy is the value of ManagedByLabel, and the name of croft's field manager.
	ManagedBy = "croft"

	// AdoptAnnotation on a namespace that croft did not create permits the named
	// tenant, and no other, to take it over. Only a platform admin can set it:
	// no tenant role may write namespaces.
	AdoptAnnotation = "croft.dev/adopt"
	// CreatedAnnotation on a namespace says that croft created it, so that
	// deleting its tenant with `deletion: Delete` may delete it too. Adopted
	// namespaces never carry it.
	CreatedAnnotation = "croft.dev/created"
	// RequestedAnnotation on a namespace that a tenant asked for itself is the namespace of
	// its TenantNamespace, which has the same name.
	RequestedAnnotation = "croft.dev/requested"
	// OwnerAnnotation on a namespace names the tenant that croft last wrote it for. It
	// counts only as croft's own field: by it croft knows a namespace of the tenant's
	// whose TenantLabel somebody took away.
	OwnerAnnotation = "croft.dev/owner"
	// AppliedAnnotation is a hash of the last content that croft applied to an
	// object. Field ownership does not reach into atomic lists and maps: without the
	// hash, a field that croft wants no longer looks like a default of the API server.
	AppliedAnnotation = "croft.dev/applied"
	// RulesAnnotationPrefix precedes, on a namespace, the tenant's rules as the admission
	// policies read them: "croft.dev/rules.pools" is a comma-separated list, in which %2C
	// is a comma and %25 a percent sign. They say what TenantRules say.
	RulesAnnotationPrefix = "croft.dev/rules."
	// MaxObjectBytesAnnotation on a namespace says how large a Secret or ConfigMap may
	// be there, with either engine. The policy that reads it looks at every kind of
	// object, so it must not wait for TenantRules.
	MaxObjectBytesAnnotation = RulesAnnotationPrefix + "maxObjectBytes"
	// MaxHelmReleaseBytesAnnotation says the same of a release of Helm's.
	MaxHelmReleaseBytesAnnotation = RulesAnnotationPrefix + "maxHelmReleaseBytes"
	// MaxOtherObjectBytesAnnotation says the same of every other kind.
	MaxOtherObjectBytesAnnotation = RulesAnnotationPrefix + "maxOtherObjectBytes"
	// ScratchLabel marks what `croft verify` makes for itself, and removes at its end.
	ScratchLabel = "croft.dev/scratch"
	// ScratchUntilAnnotation says until when that may be needed, in RFC 3339. What is
	// there later was left by a run that was killed, and the next one removes it.
	ScratchUntilAnnotation = "croft.dev/scratch-until"
	// UntilAnnotation on a RoleBinding lists the subjects whose access ends, and when:
	// "devs=2026-12-01T00:00:00Z, eve=2026-12-24T00:00:00Z".
	UntilAnnotation = "croft.dev/until"
	// TagAnnotationPrefix precedes a Pool's tags where the cloud has none of its
	// own, as on kwok nodes.
	TagAnnotationPrefix = "tags.croft.dev/"

	// NetworksAnnotation on a pod names the secondary networks that it is attached to,
	// separated by commas: "n3, n6".
	NetworksAnnotation = "croft.dev/networks"

	// NodeNetworksLabel with the value true is on the nodes of pools that wait for their
	// networks. croft's agent runs on these nodes.
	NodeNetworksLabel = "croft.dev/secondary-networks"
	// NodeNetworksAnnotation on a Node lists its interfaces in secondary networks, as JSON.
	// The operator writes it once all of them are attached, and croft's agent reads it.
	NodeNetworksAnnotation = "croft.dev/node-networks"
	// NetworksTaint keeps pods off a node until its secondary networks are ready. The
	// prefix is the one that the node readiness controller of kubernetes-sigs asks for.
	NetworksTaint = "readiness.k8s.io/croft-networks"
	// BootAnnotation on a Node has the times of the events of its boot, which croft's agent
	// found in the node's journal: a JSON object, for croft latency.
	BootAnnotation = "croft.dev/boot"
	// NetworksTaintValue is the value of NetworksTaint.
	NetworksTaintValue = "pending"

	// ProbeLabel on a pod names the one placement engine that may place it, so that
	// an engine can be seen to work while another still does. A pod that no engine
	// places is refused: a tenant gains nothing by it.
	ProbeLabel = "croft.dev/probe"

	// TenantFinalizer keeps a Tenant until its access is taken away and, with
	// `deletion: Delete`, until what croft made for it is gone.
	TenantFinalizer = "croft.dev/tenant"
	// PoolFinalizer keeps a Pool for as long as a Tenant uses it.
	PoolFinalizer = "croft.dev/pool"

	// TenantRulesName is the name of the one TenantRules that counts in a
	// namespace. It is fixed, so that policies look it up at a flat cost, see
	// https://github.com/kubernetes/kubernetes/issues/133383.
	TenantRulesName = "croft"
	// ElevationLabel on a RoleBinding or a ServiceAccount is the name of the service account
	// of an elevation. An annotation of the same key names the elevation itself, as
	// "shop/eve-7f3k2".
	ElevationLabel = "croft.dev/elevation"
	// ElevationsNamespace is where the service accounts of elevations live: apart from
	// croft's own, so that the operator can request tokens of the former alone.
	ElevationsNamespace = "croft-elevations"
	// AgentNamespace is where croft's agent lives: apart from the operator, because the
	// agent's pods use the node's network.
	AgentNamespace = "croft-agent"
	// SystemNamespace is where croft's operator lives.
	SystemNamespace = "croft-system"
	// PlatformName is the name of the one Platform of a cluster.
	PlatformName = "default"

	// DefaultNodePoolKey is the label and taint key of tenants' nodes. A kubelet
	// cannot set a label below node-restriction.kubernetes.io on its own Node
	// (NodeRestriction admission), so a stolen node cannot join another pool.
	DefaultNodePoolKey = "croft.node-restriction.kubernetes.io/pool"
)
