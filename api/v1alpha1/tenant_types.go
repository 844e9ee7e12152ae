package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Tenant is a team, an application or an environment: whoever works one croft.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=croft
// +kubebuilder:printcolumn:name="Pool",type=string,JSONPath=`.status.pool`
// +kubebuilder:printcolumn:name="Namespaces",type=string,JSONPath=`.status.namespaces`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63 && !self.metadata.name.contains('.')",message="a tenant's name becomes a namespace and a domain: at most 63 lower-case letters, digits and '-'"
type Tenant struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec TenantSpec `json:"spec"`
	// +optional
	Status TenantStatus `json:"status,omitempty"`
}

// TenantSpec says what a tenant has and may do.
//
// +kubebuilder:validation:XValidation:rule="has(self.pool) != has(self.pools)",message="set exactly one of pool and pools"
type TenantSpec struct {
	// Pool is the pool that the tenant's pods run on.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Pool string `json:"pool,omitempty"`

	// Pools are the pools that the tenant's pods may run on. A pod chooses one by
	// a nodeSelector on the Platform's nodePoolKey; the first is the default.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +optional
	Pools []string `json:"pools,omitempty"`

	// Namespaces are the tenant's; one, named as the tenant, if none are given.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:XValidation:rule="!format.dns1123Label().validate(self).hasValue()",message="must be the name of a namespace: at most 63 lower-case letters, digits and '-'"
	// +listType=set
	// +optional
	Namespaces []string `json:"namespaces,omitempty"`

	// Access says who may do what in the tenant's namespaces.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Access []Access `json:"access,omitempty"`

	// Domains are the hosts that the tenant may serve, exact or with a leading
	// "*." for everything below. <tenant>.<tenantDomain> and everything below it
	// are granted without being named.
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^(\\\\*\\\\.)?([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\\\\.)+[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')",message="must be a domain in lower case, such as shop.example.org or *.shop.example.org"
	// +listType=set
	// +optional
	Domains []string `json:"domains,omitempty"`

	// Quota is what all objects in all of the tenant's namespaces together may ask
	// for, by the names that a ResourceQuota knows. It replaces the Platform's
	// default as a whole; an empty one, {}, lifts it. Of several namespaces each
	// has a share, which follows what it uses: status.shares.
	// +optional
	Quota corev1.ResourceList `json:"quota,omitzero"`

	// Limits are the requests and limits of containers. They replace the
	// Platform's default as a whole.
	// +optional
	Limits *ContainerLimits `json:"limits,omitempty"`

	// Network holds the tenant's exceptions from the network wall.
	// +kubebuilder:default={}
	// +optional
	Network TenantNetwork `json:"network,omitempty"`

	// Policy holds the tenant's exceptions from the policy wall.
	// +kubebuilder:default={}
	// +optional
	Policy TenantPolicy `json:"policy,omitempty"`

	// CostCode says who pays. It becomes a label of the namespaces.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="becomes a label: letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"
	// +optional
	CostCode string `json:"costCode,omitempty"`

	// Deletion says what becomes of the namespaces when the Tenant is deleted.
	// +kubebuilder:default=Retain
	// +optional
	Deletion DeletionPolicy `json:"deletion,omitempty"`
}

// Access gives one group or one user one role in all of a tenant's namespaces.
//
// +kubebuilder:validation:XValidation:rule="has(self.group) != has(self.user)",message="set exactly one of group and user"
type Access struct {
	// Group is a group of the identity provider, without the Platform's groupPrefix.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('system:')",message="groups that begin with system: are Kubernetes' own and hold everybody or nobody you want: name a group of your identity provider"
	// +optional
	Group string `json:"group,omitempty"`
	// User is the name of a single user, as the API server sees it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('system:')",message="users that begin with system: are Kubernetes' own: name a person or a robot of your identity provider"
	// +optional
	User string `json:"user,omitempty"`
	// Role is what they may do.
	// +required
	Role Role `json:"role"`
}

// Role is what somebody may do in a tenant's namespaces.
//
// +kubebuilder:validation:Enum=viewer;operator
type Role string

const (
	// RoleViewer reads everything but Secrets.
	RoleViewer Role = "viewer"
	// RoleOperator runs workloads: it writes all that a team needs inside its
	// namespaces, and nothing that croft manages.
	RoleOperator Role = "operator"
)

// Egress is where a tenant's pods may connect to.
//
// +kubebuilder:validation:Enum=Open;Restricted
type Egress string

const (
	// EgressOpen lets pods connect everywhere but to the instance metadata
	// address. Other tenants are still out of reach: they let nobody in.
	EgressOpen Egress = "Open"
	// EgressRestricted lets pods connect to DNS, to their own tenant and to the
	// networks of allowCIDRs.
	EgressRestricted Egress = "Restricted"
)

// TenantNetwork holds a tenant's exceptions from the network wall.
type TenantNetwork struct {
	// Egress is where the tenant's pods may connect to; the Platform's default
	// if not given.
	// +optional
	Egress Egress `json:"egress,omitempty"`
	// AllowCIDRs are networks that pods may connect to although egress is
	// Restricted.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=43
	// +kubebuilder:validation:items:XValidation:rule="isCIDR(self)",message="must be a network, such as 10.20.0.0/16"
	// +listType=set
	// +optional
	AllowCIDRs []string `json:"allowCIDRs,omitempty"`
}

// PodSecurityLevel is one of the Pod Security Standards.
//
// +kubebuilder:validation:Enum=privileged;baseline;restricted
type PodSecurityLevel string

const (
	// PodSecurityPrivileged refuses nothing.
	PodSecurityPrivileged PodSecurityLevel = "privileged"
	// PodSecurityBaseline refuses known ways out of a pod.
	PodSecurityBaseline PodSecurityLevel = "baseline"
	// PodSecurityRestricted also asks for today's hardening, such as not running
	// as root.
	PodSecurityRestricted PodSecurityLevel = "restricted"
)

// TenantPolicy holds a tenant's exceptions from the policy wall.
type TenantPolicy struct {
	// PodSecurity is the Pod Security level of the namespaces; the Platform's
	// default if not given.
	// +optional
	PodSecurity PodSecurityLevel `json:"podSecurity,omitempty"`

	Allowances `json:",inline"`
}

// Allowances are what a tenant's objects may use of what the policy wall
// otherwise refuses. A list that is given replaces the Platform's default as a
// whole; an empty one allows nothing. In the lists of names, "*" allows every
// name.
type Allowances struct {
	// ServiceTypes are the types of Services; ClusterIP alone by default.
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:Enum=ClusterIP;NodePort;LoadBalancer;ExternalName
	// +listType=set
	// +optional
	ServiceTypes []corev1.ServiceType `json:"serviceTypes,omitzero"`
	// Registries are where images come from: a registry, such as
	// registry.example.org, a path in one, such as ghcr.io/example, or a single
	// repository. Images without a registry are those of docker.io. Any by default.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule="self == '*' || self.matches('^[a-z0-9]([-a-z0-9._:]*[a-z0-9])?(/[a-z0-9]([-a-z0-9._]*[a-z0-9])?)*$')",message="must be a registry or a path in one without a tag, such as registry.example.org or ghcr.io/example, or \"*\" for any"
	// +listType=set
	// +optional
	Registries []string `json:"registries,omitzero"`
	// ImagePullPolicies are what containers may ask for; the first is given to
	// those that ask for another. Always alone by default: with any other, a
	// container may run an image that somebody else's secret pulled to the node.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:items:Enum=Always;IfNotPresent;Never
	// +listType=atomic
	// +optional
	ImagePullPolicies []corev1.PullPolicy `json:"imagePullPolicies,omitzero"`
	// PriorityClasses are those that pods may ask for; none by default. Where the
	// cluster has a default class, it must be allowed for pods to be admitted.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	PriorityClasses []string `json:"priorityClasses,omitzero"`
	// RuntimeClasses are those that pods may ask for; none by default.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	RuntimeClasses []string `json:"runtimeClasses,omitzero"`
	// StorageClasses are those that claims may ask for; any by default. The empty
	// name, which asks for a volume that exists already, is never among "*".
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	StorageClasses []string `json:"storageClasses,omitzero"`
	// IngressClasses are those that Ingresses may ask for; any by default.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	IngressClasses []string `json:"ingressClasses,omitzero"`
	// GatewayClasses are those that Gateways may ask for; any by default.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	GatewayClasses []string `json:"gatewayClasses,omitzero"`
	// CSIDrivers are those that pods may mount inline volumes of, such as
	// secrets-store.csi.k8s.io; none by default. Claims are not concerned.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	CSIDrivers []string `json:"csiDrivers,omitzero"`
	// MaxTerminationGracePeriodSeconds is how long a pod may take to end; 3600,
	// an hour, by default. It is at least the 30 that a pod gets which asks for
	// nothing.
	// +kubebuilder:validation:Minimum=30
	// +optional
	MaxTerminationGracePeriodSeconds *int64 `json:"maxTerminationGracePeriodSeconds,omitempty"`
	// DoNotDisrupt says whether pods may carry karpenter.sh/do-not-disrupt, which
	// keeps their nodes until the pool's ttl and terminationGracePeriod; false by
	// default.
	// +optional
	DoNotDisrupt *bool `json:"doNotDisrupt,omitempty"`
}

// ContainerLimits are the requests and limits of containers, as in a LimitRange.
type ContainerLimits struct {
	// Default are the limits of a container that sets none.
	// +optional
	Default corev1.ResourceList `json:"default,omitempty"`
	// DefaultRequest are the requests of a container that sets none.
	// +optional
	DefaultRequest corev1.ResourceList `json:"defaultRequest,omitempty"`
	// Max is the most that a container may ask for.
	// +optional
	Max corev1.ResourceList `json:"max,omitempty"`
	// Min is the least that a container may ask for.
	// +optional
	Min corev1.ResourceList `json:"min,omitempty"`
}

// DeletionPolicy says what becomes of the namespaces when a Tenant is deleted.
//
// +kubebuilder:validation:Enum=Retain;Delete
type DeletionPolicy string

const (
	// DeletionRetain keeps the namespaces, the workloads and the walls, and takes
	// away people's access.
	DeletionRetain DeletionPolicy = "Retain"
	// DeletionDelete deletes the namespaces that croft created, with everything
	// in them, and releases those that it adopted.
	DeletionDelete DeletionPolicy = "Delete"
)

// TenantStatus reports a tenant's conditions and what it has.
type TenantStatus struct {
	Status `json:",inline"`
	// Pool is the default pool.
	// +optional
	Pool string `json:"pool,omitempty"`
	// Namespaces are those that croft keeps for the tenant.
	// +listType=atomic
	// +optional
	Namespaces []string `json:"namespaces,omitempty"`
	// Domains are all that the tenant may serve.
	// +listType=atomic
	// +optional
	Domains []string `json:"domains,omitempty"`
	// Placement is the engine that was last seen to place the tenant's pods.
	// +optional
	Placement PlacementEngine `json:"placement,omitempty"`
	// Shares are how the quota is divided among several namespaces: the ledger
	// from which their ResourceQuotas are written. A single one has the whole, and
	// no ledger is kept.
	// +listType=map
	// +listMapKey=namespace
	// +optional
	Shares []QuotaShare `json:"shares,omitempty"`
}

// QuotaShare is one namespace's share of its tenant's quota.
type QuotaShare struct {
	// Namespace has the share.
	// +required
	Namespace string `json:"namespace"`
	// Hard is what all of the namespace's objects may ask for together.
	// +optional
	Hard corev1.ResourceList `json:"hard,omitempty"`
}

// TenantList is a list of Tenants.
//
// +kubebuilder:object:root=true
type TenantList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Tenant `json:"items"`
}
