package v1alpha1

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Tenant is a team, an application or an environment: whoever works one croft.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=croft
// +kubebuilder:printcolumn:name="Pools",type=string,JSONPath=`.status.pools`
// +kubebuilder:printcolumn:name="Namespaces",type=string,JSONPath=`.status.namespaces`
// +kubebuilder:printcolumn:name="Refused",type=integer,JSONPath=`.status.refusedPods.workloads`
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
// +kubebuilder:validation:XValidation:rule="!has(self.selfService) || !has(self.selfService.namespaces) || self.selfService.namespaces + (has(self.namespaces) ? size(self.namespaces) : 1) <= 64",message="a tenant has at most 64 namespaces, those of selfService among them: lower selfService.namespaces"
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

	// SelfService is what the tenant's operators may make for the tenant themselves;
	// nothing by default.
	// +optional
	SelfService SelfService `json:"selfService,omitzero"`

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

	// QuotaMinimums are parts of the quota that are reserved for namespaces, by
	// name: a namespace's share never falls below its minimum, whatever the others
	// use. Together they fit into the quota. None by default.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(ns, size(self[ns]) > 0)",message="must name at least one resource of each namespace, such as {pods: \"40\"}; leave a namespace without a minimum out"
	// +optional
	QuotaMinimums map[string]corev1.ResourceList `json:"quotaMinimums,omitempty"`

	// Limits are the requests and limits of containers. They replace the
	// Platform's default as a whole.
	// +optional
	Limits *ContainerLimits `json:"limits,omitempty"`

	// Network holds the tenant's exceptions from the network wall.
	// +kubebuilder:default={}
	// +optional
	Network TenantNetwork `json:"network,omitempty"`

	// Networks name the SecondaryNetworks that the tenant's pods may be attached to, by
	// the annotation croft.dev/networks; none by default. Each must be among the
	// secondaryNetworks of a pool of the tenant.
	// +kubebuilder:validation:MaxItems=14
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +optional
	Networks []string `json:"networks,omitempty"`

	// Policy holds the tenant's exceptions from the policy wall.
	// +kubebuilder:default={}
	// +optional
	Policy TenantPolicy `json:"policy,omitempty"`

	// Sources are what Flux applies for the tenant, from Git repositories and OCI
	// artifacts, by name. A source that is taken out leaves what it has applied.
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(name, name.matches('^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$'))",message="names of sources are at most 40 lower-case letters, digits and '-', beginning with a letter"
	// +optional
	Sources map[string]Source `json:"sources,omitempty"`

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
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\p{Cc}\\\\p{Cf}\\\\p{Zl}\\\\p{Zp}\\\\x{034F}\\\\x{115F}\\\\x{1160}\\\\x{17B4}\\\\x{17B5}\\\\x{180B}-\\\\x{180F}\\\\x{2800}\\\\x{3164}\\\\x{FE00}-\\\\x{FE0F}\\\\x{FFA0}\\\\x{E0100}-\\\\x{E01EF}]')",message="must not contain invisible characters, such as those of zero width"
	// +optional
	Group string `json:"group,omitempty"`
	// User is the name of a single user, as the API server sees it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('system:')",message="users that begin with system: are Kubernetes' own: name a person or a robot of your identity provider"
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\p{Cc}\\\\p{Cf}\\\\p{Zl}\\\\p{Zp}\\\\x{034F}\\\\x{115F}\\\\x{1160}\\\\x{17B4}\\\\x{17B5}\\\\x{180B}-\\\\x{180F}\\\\x{2800}\\\\x{3164}\\\\x{FE00}-\\\\x{FE0F}\\\\x{FFA0}\\\\x{E0100}-\\\\x{E01EF}]')",message="must not contain invisible characters, such as those of zero width"
	// +optional
	User string `json:"user,omitempty"`
	// Role is what they may do.
	// +required
	Role Role `json:"role"`
	// Until is when the access ends, such as 2026-12-01T00:00:00Z; never by default.
	// The operator removes it from the RoleBindings at that time. A RoleBinding does
	// not end by itself: while no operator runs, the access goes on. What has to end
	// in any case is an Elevation.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
}

// Ended reports whether the access is over at a time. At the zero time none is.
func (a Access) Ended(now time.Time) bool {
	return a.Until != nil && !now.IsZero() && !now.Before(a.Until.Time)
}

// Role is what somebody may do in a tenant's namespaces: viewer, operator, or one
// of the Platform's roles.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=40
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
	// ImagePullPolicies are what containers and image volumes may ask for; the first
	// is given to those that ask for another. Always alone by default: with any other, a
	// container may run an image that somebody else's secret pulled to the node.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:items:Enum=Always;IfNotPresent;Never
	// +listType=atomic
	// +optional
	ImagePullPolicies []corev1.PullPolicy `json:"imagePullPolicies,omitzero"`
	// PriorityClasses are those that pods may ask for; none by default. Where the
	// cluster has a default class, it must be allowed for pods to be admitted.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	PriorityClasses []string `json:"priorityClasses,omitzero"`
	// RuntimeClasses are those that pods may ask for; none by default.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	RuntimeClasses []string `json:"runtimeClasses,omitzero"`
	// StorageClasses are those that claims may ask for; any by default. The empty
	// name, which asks for a volume that exists already, is never among "*".
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	StorageClasses []string `json:"storageClasses,omitzero"`
	// IngressClasses are those that Ingresses may ask for; any by default.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	IngressClasses []string `json:"ingressClasses,omitzero"`
	// GatewayClasses are those that Gateways may ask for; any by default.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	GatewayClasses []string `json:"gatewayClasses,omitzero"`
	// Issuers are those that Certificates may name, as KIND/NAME: ClusterIssuer/letsencrypt,
	// or Issuer/* for every Issuer of the namespace. A kind of another API group has that
	// behind it: AWSPCAClusterIssuer.awspca.cert-manager.io/internal. Any by default.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule="self == '*' || self.matches('^[A-Z][A-Za-z0-9]*([.][a-z0-9]([-a-z0-9.]*[a-z0-9])?)?/([*]|[a-z0-9]([-a-z0-9.]*[a-z0-9])?)$')",message="must be the kind and the name of an issuer, such as ClusterIssuer/letsencrypt or Issuer/*, or \"*\" for any"
	// +listType=set
	// +optional
	Issuers []string `json:"issuers,omitzero"`
	// IssuerTypes are what Issuers that the tenant writes itself may be, as
	// cert-manager's field is called; selfSigned and ca by default. The others make
	// cert-manager connect to the address that the Issuer names.
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:validation:items:Enum=acme;ca;selfSigned;vault;venafi
	// +listType=set
	// +optional
	IssuerTypes []string `json:"issuerTypes,omitzero"`
	// SourceHosts are the hosts that Flux fetches from for the tenant, exact or with a
	// leading "*." for everything below. "*", the default, is every host outside of the
	// cluster that has a name; a host inside, or an address, is named. Services of the
	// tenant's own namespaces and of the platform's need no naming.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule="self == '*' || isIP(self) || self.matches('^(\\\\*\\\\.)?([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\\\\.)*[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')",message="must be a host in lower case, such as github.com or *.example.org, an address, or \"*\" for every host outside of the cluster"
	// +listType=set
	// +optional
	SourceHosts []string `json:"sourceHosts,omitzero"`
	// CSIDrivers are those that pods may mount inline volumes of, such as
	// secrets-store.csi.k8s.io; none by default. Claims are not concerned.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	CSIDrivers []string `json:"csiDrivers,omitzero"`
	// DeviceClasses are those that ResourceClaims and pods may ask for devices of,
	// such as gpu.example.com; none by default. The scheduler searches for devices
	// while all other pods wait: grant a class only where its users may hold it up.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	DeviceClasses []string `json:"deviceClasses,omitzero"`
	// VolumeTypes are those that pods may mount beside configMap, secret, projected,
	// downwardAPI, emptyDir, persistentVolumeClaim, ephemeral, image and, of
	// csiDrivers, csi; none by default. Each of them reaches from the node, past every
	// NetworkPolicy, or mounts any disk of the cloud account by its ID. hostPath is not
	// among them: Pod Security allows it at the level privileged alone.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:Enum=awsElasticBlockStore;azureDisk;azureFile;cephfs;cinder;fc;flexVolume;flocker;gcePersistentDisk;gitRepo;glusterfs;iscsi;nfs;photonPersistentDisk;portworxVolume;quobyte;rbd;scaleIO;storageos;vsphereVolume;*
	// +listType=set
	// +optional
	VolumeTypes []VolumeType `json:"volumeTypes,omitzero"`
	// VolumeAttributesClasses are those that claims may ask for, such as for more
	// IOPS; none by default. Kubernetes lets a claim change it at any time.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	VolumeAttributesClasses []string `json:"volumeAttributesClasses,omitzero"`
	// MaxVolumeSize is the most storage that one claim may ask for; 1Ti by default.
	// All claims together are bounded by requests.storage in the tenant's quota.
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="must be more than 0, such as 500Gi"
	// +optional
	MaxVolumeSize *resource.Quantity `json:"maxVolumeSize,omitempty"`
	// ShareWith are the people and service accounts beyond the tenant's own to whom
	// its RoleBindings may give roles; nobody by default. The tenant's own are the
	// groups and users of its access and the service accounts of its namespaces.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	ShareWith []Sharer `json:"shareWith,omitzero"`
	// CloudIdentities are the identities at a cloud that service accounts may name
	// in the annotations of AWS (eks.amazonaws.com/role-arn), Google
	// (iam.gke.io/gcp-service-account), Azure (azure.workload.identity/client-id)
	// and Alibaba (pod-identity.alibabacloud.com/role-name): whole, or up to a
	// trailing "*", such as arn:aws:iam::111122223333:role/shop-*; none by default.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[^*,]*[*]?$')",message="must be an identity, or the beginning of some with a trailing \"*\", such as arn:aws:iam::111122223333:role/shop-*"
	// +listType=set
	// +optional
	CloudIdentities []string `json:"cloudIdentities,omitzero"`
	// ClusterIPs are the addresses that Services may choose for themselves; none by
	// default: the cluster gives each Service one that is free. An address that is
	// chosen may be one that another tenant's Service had a moment ago, or that the
	// cluster's DNS is about to take.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=45
	// +kubebuilder:validation:items:XValidation:rule="self == '*' || isIP(self)",message="must be an IP address, such as 10.100.7.7, or \"*\" for any"
	// +listType=set
	// +optional
	ClusterIPs []string `json:"clusterIPs,omitzero"`
	// MaxTokenExpirationSeconds is how long a token of a service account may be
	// valid that somebody asks for (kubectl create token); 86400, a day, by default.
	// Tokens that pods mount are the kubelet's to ask for, and end with their pod.
	// +kubebuilder:validation:Minimum=600
	// +optional
	MaxTokenExpirationSeconds *int64 `json:"maxTokenExpirationSeconds,omitempty"`
	// TokenSecrets says whether Secrets may be of the type
	// kubernetes.io/service-account-token, whose tokens never expire; false by
	// default.
	// +optional
	TokenSecrets *bool `json:"tokenSecrets,omitempty"`
	// MaxTerminationGracePeriodSeconds is how long a pod may take to end; 3600,
	// an hour, by default. It is at least the 30 that a pod gets which asks for
	// nothing.
	// +kubebuilder:validation:Minimum=30
	// +optional
	MaxTerminationGracePeriodSeconds *int64 `json:"maxTerminationGracePeriodSeconds,omitempty"`
	// MaxObjectBytes is the largest Secret or ConfigMap that may be written; 262144,
	// 256 KiB, by default. An object is measured as it is stored, with its metadata.
	// Together with the quota it bounds what a tenant can hold of etcd.
	// +kubebuilder:validation:Minimum=16384
	// +kubebuilder:validation:Maximum=1572864
	// +optional
	MaxObjectBytes *int64 `json:"maxObjectBytes,omitempty"`
	// MaxHelmReleaseBytes is the largest Secret of type helm.sh/release.v1, in which
	// Helm keeps each revision of a release; maxObjectBytes by default. Large charts
	// need up to 1048576, 1 MiB.
	// +kubebuilder:validation:Minimum=16384
	// +kubebuilder:validation:Maximum=1572864
	// +optional
	MaxHelmReleaseBytes *int64 `json:"maxHelmReleaseBytes,omitempty"`
	// MaxOtherObjectBytes is the largest object of any other kind, such as a pod, a
	// Deployment or an add-on's; 49152, 48 KiB, by default. Events and Leases are
	// held to 8 KiB whatever this says.
	// +kubebuilder:validation:Minimum=16384
	// +kubebuilder:validation:Maximum=1572864
	// +optional
	MaxOtherObjectBytes *int64 `json:"maxOtherObjectBytes,omitempty"`
	// DoNotDisrupt says whether pods may carry karpenter.sh/do-not-disrupt, which
	// keeps their nodes until the pool's ttl and terminationGracePeriod, or what says
	// the same to the cluster-autoscaler or the descheduler; false by default.
	// +optional
	DoNotDisrupt *bool `json:"doNotDisrupt,omitempty"`
	// Annotations are annotations and labels that objects may carry although an
	// add-on would act upon them: a key, a key and its value as KEY=VALUE, or all
	// below a prefix, which ends in a slash; none by default. See docs/addons.md for
	// the add-ons that croft knows.
	// +kubebuilder:validation:MaxItems=24
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule="!self.contains(',')",message="must be an annotation's key, KEY=VALUE, or a prefix that ends in a slash, without commas"
	// +listType=set
	// +optional
	Annotations []string `json:"annotations,omitzero"`
	// UnknownAnnotations says what becomes of annotations whose prefix croft's
	// catalogue of add-ons does not know: Allow, Warn or Deny; Warn by default, since
	// most of them are read by nobody, and one that is read by an add-on should be
	// seen. Pods of Deployments and the like get none, since their template got one.
	// +optional
	UnknownAnnotations UnknownAnnotations `json:"unknownAnnotations,omitempty"`
}

// VolumeType is a type of volumes, as a pod names it.
type VolumeType string

// Sharer is a group, a user or a service account that a tenant may share with.
//
// +kubebuilder:validation:XValidation:rule="(has(self.group) ? 1 : 0) + (has(self.user) ? 1 : 0) + (has(self.serviceAccount) ? 1 : 0) == 1",message="set exactly one of group, user and serviceAccount"
type Sharer struct {
	// Group is a group as the API server sees it: the Platform's groupPrefix is not
	// put before it. "*" is any group but those that begin with system:.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('system:')",message="groups that begin with system: are Kubernetes' own and hold everybody or nobody you want: name a group of your identity provider, or a serviceAccount"
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\p{Cc}\\\\p{Cf}\\\\p{Zl}\\\\p{Zp}\\\\x{034F}\\\\x{115F}\\\\x{1160}\\\\x{17B4}\\\\x{17B5}\\\\x{180B}-\\\\x{180F}\\\\x{2800}\\\\x{3164}\\\\x{FE00}-\\\\x{FE0F}\\\\x{FFA0}\\\\x{E0100}-\\\\x{E01EF}]')",message="must not contain invisible characters, such as those of zero width"
	// +optional
	Group string `json:"group,omitempty"`
	// User is the name of a single user, as the API server sees it. "*" is any user
	// but those that begin with system:.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('system:')",message="users that begin with system: are Kubernetes' own: name a person or a robot of your identity provider, or a serviceAccount"
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\p{Cc}\\\\p{Cf}\\\\p{Zl}\\\\p{Zp}\\\\x{034F}\\\\x{115F}\\\\x{1160}\\\\x{17B4}\\\\x{17B5}\\\\x{180B}-\\\\x{180F}\\\\x{2800}\\\\x{3164}\\\\x{FE00}-\\\\x{FE0F}\\\\x{FFA0}\\\\x{E0100}-\\\\x{E01EF}]')",message="must not contain invisible characters, such as those of zero width"
	// +optional
	User string `json:"user,omitempty"`
	// ServiceAccount is a service account, as NAMESPACE/NAME, or all of a namespace,
	// as NAMESPACE/*.
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?/([*]|[a-z0-9]([-a-z0-9.]*[a-z0-9])?)$')",message="must be NAMESPACE/NAME, such as monitoring/prometheus, or NAMESPACE/*"
	// +optional
	ServiceAccount string `json:"serviceAccount,omitempty"`
}

// UnknownAnnotations says what becomes of annotations that the catalogue of add-ons
// does not know.
//
// +kubebuilder:validation:Enum=Allow;Warn;Deny
type UnknownAnnotations string

const (
	// UnknownAllow lets them through.
	UnknownAllow UnknownAnnotations = "Allow"
	// UnknownWarn lets them through with a warning.
	UnknownWarn UnknownAnnotations = "Warn"
	// UnknownDeny refuses them.
	UnknownDeny UnknownAnnotations = "Deny"
)

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
	// Pools are all pools that the tenant's pods may run on, the default first.
	// +listType=atomic
	// +optional
	Pools []string `json:"pools,omitempty"`
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
	// RefusedPods counts the workloads whose pods the API server refuses, by quota,
	// policies, Pod Security or limits. It is absent if there are none.
	// +optional
	RefusedPods *RefusedPods `json:"refusedPods,omitempty"`
}

// RefusedPods are workloads whose pods the API server refuses, by the events of
// Kubernetes' own controllers. A workload counts until its controller has had the time to
// try again: for as long after the last refusal as it has been refused, and for at most 20
// minutes.
type RefusedPods struct {
	// Workloads is the number of ReplicaSets, StatefulSets, DaemonSets, Jobs, CronJobs
	// and ReplicationControllers that are refused.
	// +required
	Workloads int64 `json:"workloads"`
	// First is the workload that was refused first.
	// +required
	First RefusedWorkload `json:"first"`
}

// RefusedWorkload is a workload whose pods the API server refuses.
type RefusedWorkload struct {
	// Namespace is the workload's namespace.
	// +required
	Namespace string `json:"namespace"`
	// Kind is the workload's kind, such as ReplicaSet.
	// +required
	Kind string `json:"kind"`
	// Name is the workload's name.
	// +required
	Name string `json:"name"`
	// Message is the API server's reason for the last refusal.
	// +optional
	Message string `json:"message,omitempty"`
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
