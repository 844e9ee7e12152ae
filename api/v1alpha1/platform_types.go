package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Platform configures croft for the cluster. There is one, named default.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=croft
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.clusterName`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'default'",message="a cluster has one Platform, named default: set metadata.name to default"
type Platform struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec PlatformSpec `json:"spec"`
	// +optional
	Status PlatformStatus `json:"status,omitempty"`
}

// PlatformStatus reports the Platform's conditions and the last test of the walls.
type PlatformStatus struct {
	Status `json:",inline"`
	// Verify is the result of the last `croft verify --record`, which writes it.
	// +optional
	Verify *VerifyStatus `json:"verify,omitempty"`
	// VerifyHistory has the results before `verify`, the newest first. `croft verify --record` drops the oldest ones.
	// +kubebuilder:validation:MaxItems=19
	// +optional
	// +listType=atomic
	VerifyHistory []VerifyStatus `json:"verifyHistory,omitempty"`
}

// MaxVerifyHistory is the maximum length of a Platform's verifyHistory.
const MaxVerifyHistory = 19

// MaxFirstBreach is the maximum length of a result's firstBreach.
const MaxFirstBreach = 200

// VerifyStatus is the result of one run of `croft verify`.
type VerifyStatus struct {
	// Time is the end of the run.
	// +required
	Time metav1.Time `json:"time"`
	// Version is the version of croft that ran.
	// +optional
	Version string `json:"version,omitempty"`
	// Held is the number of attacks that the responsible wall stopped.
	// +required
	Held int32 `json:"held"`
	// Breached is the number of attacks that succeeded, and of harmless requests that
	// were stopped.
	// +required
	Breached int32 `json:"breached"`
	// BlockedElsewhere is the number of attacks that failed, but not because of the
	// responsible wall. They prove nothing about it.
	// +required
	BlockedElsewhere int32 `json:"blockedElsewhere"`
	// NotTried is the number of attacks that had no object to run against.
	// +required
	NotTried int32 `json:"notTried"`
	// Duration is the time that the run took, in whole seconds.
	// +optional
	Duration *metav1.Duration `json:"duration,omitempty"`
	// FirstBreach is the wall and the name of the first attack with the result BREACHED, such as nodes/tolerate-every-taint.
	// It is empty if there is none.
	// +kubebuilder:validation:MaxLength=200
	// +optional
	FirstBreach string `json:"firstBreach,omitempty"`
}

// PlatformSpec is the platform team's configuration of the cluster.
type PlatformSpec struct {
	// ClusterName is the name of the cluster in the cloud. It is used in tags and to
	// discover cloud resources.
	// +croft:change=with AWS: nodes are replaced if `discovery` is not set, since it selects subnets and security groups; kept otherwise
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +required
	ClusterName string `json:"clusterName"`

	// TenantDomain is the parent of tenants' domains: every tenant owns
	// <tenant>.<tenantDomain> and its subdomains. Without it, a tenant has only the
	// domains that it is granted by name.
	// +croft:change=kept | every tenant's own domain changes, with the effects of `domains` of the Tenant
	// +kubebuilder:validation:MaxLength=189
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\\\\.)+[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')",message="must be a domain in lower case without a wildcard, such as tenants.example.org"
	// +optional
	TenantDomain string `json:"tenantDomain,omitempty"`

	// TopLevelNamespaces are namespaces that tenants may have although their names are
	// top-level domains: of a country, of hosts that pods often call, such as com or dev,
	// or of the cluster, such as svc. The Service google of a namespace com answers for
	// google.com in every pod.
	// +croft:change=kept | tenants may use these names, or no longer
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:XValidation:rule="!format.dns1123Label().validate(self).hasValue()",message="must be the name of a namespace"
	// +listType=set
	// +optional
	TopLevelNamespaces []string `json:"topLevelNamespaces,omitempty"`

	// ClusterDNS are the addresses of name servers in pods' /etc/resolv.conf. Set it if
	// nodes do not discover them, or if no pod serves the address: DNS caches on nodes
	// (169.254.20.10 is always allowed), Cloud DNS of GKE (169.254.169.254), AKS LocalDNS
	// (169.254.10.11), servers outside the cluster. Tenants reach port 53 of these
	// addresses. Of a metadata address, they reach no other port.
	// +croft:change=with AWS: replaced, since it is a kubelet setting; otherwise kept. Network rules for DNS change at once
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:items:MaxLength=45
	// +kubebuilder:validation:items:XValidation:rule="isIP(self)",message="must be an IP address, such as 10.100.0.10"
	// +kubebuilder:validation:items:XValidation:rule="!isIP(self) || ip(self).isGlobalUnicast() || ip(self).isLinkLocalUnicast()",message="must be an address that pods can reach: loopback addresses, such as 127.0.0.53, lead to the pod itself"
	// +listType=set
	// +optional
	ClusterDNS []string `json:"clusterDNS,omitempty"`

	// Admins are the groups that may declare the platform, its pools and tenants, and
	// read everything that auditors may. They may also change objects that croft manages,
	// if other roles let them. Members of system:masters always may. Groups are named as
	// the API server sees them: groupPrefix does not apply. For tools, use
	// system:serviceaccounts:NAMESPACE, with a namespace in network.platformNamespaces:
	// all its service accounts get these rights.
	// +croft:change=kept | granted or revoked at once: do not remove your own group
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:XValidation:rule="!self.matches('[\\\\p{Cc}\\\\p{Cf}\\\\p{Zl}\\\\p{Zp}\\\\x{034F}\\\\x{115F}\\\\x{1160}\\\\x{17B4}\\\\x{17B5}\\\\x{180B}-\\\\x{180F}\\\\x{2800}\\\\x{3164}\\\\x{FE00}-\\\\x{FE0F}\\\\x{FFA0}\\\\x{E0100}-\\\\x{E01EF}]')",message="must not contain invisible characters, such as zero-width characters"
	// +listType=set
	// +optional
	Admins []string `json:"admins,omitempty"`

	// Auditors are the groups that may read everything that `croft status`, `doctor`,
	// `reach`, `why` and `diff` read in the whole cluster, but write nothing. Secrets are
	// excluded. Groups are named as the API server sees them.
	// +croft:change=kept | granted or revoked at once: do not remove your own group
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:XValidation:rule="!self.matches('[\\\\p{Cc}\\\\p{Cf}\\\\p{Zl}\\\\p{Zp}\\\\x{034F}\\\\x{115F}\\\\x{1160}\\\\x{17B4}\\\\x{17B5}\\\\x{180B}-\\\\x{180F}\\\\x{2800}\\\\x{3164}\\\\x{FE00}-\\\\x{FE0F}\\\\x{FFA0}\\\\x{E0100}-\\\\x{E01EF}]')",message="must not contain invisible characters, such as zero-width characters"
	// +listType=set
	// +optional
	Auditors []string `json:"auditors,omitempty"`

	// ClassReaders are the groups that may read StorageClasses, VolumeAttributesClasses,
	// IngressClasses, GatewayClasses, PriorityClasses, RuntimeClasses, DeviceClasses and
	// VolumeSnapshotClasses. Kubernetes lets no tenant read them. Name a group of all
	// developers, as the API server sees it, or system:authenticated.
	// +croft:change=kept | granted or revoked at once: do not remove your own group
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:XValidation:rule="!self.matches('[\\\\p{Cc}\\\\p{Cf}\\\\p{Zl}\\\\p{Zp}\\\\x{034F}\\\\x{115F}\\\\x{1160}\\\\x{17B4}\\\\x{17B5}\\\\x{180B}-\\\\x{180F}\\\\x{2800}\\\\x{3164}\\\\x{FE00}-\\\\x{FE0F}\\\\x{FFA0}\\\\x{E0100}-\\\\x{E01EF}]')",message="must not contain invisible characters, such as zero-width characters"
	// +listType=set
	// +optional
	ClassReaders []string `json:"classReaders,omitempty"`

	// Elevation lets people with access to a tenant request the role operator in it for a
	// limited time, with `croft elevate`. Without it, they cannot.
	// +optional
	Elevation *PlatformElevation `json:"elevation,omitempty"`

	// Proxy grants `croft proxy` the rights to act for users. Without it, the proxy has
	// none. `croft install --authentication-config` deploys the proxy.
	// +optional
	Proxy *Proxy `json:"proxy,omitempty"`

	// GitOps is the tool that applies tenants' sources. Defaults to Flux. croft's
	// operator writes objects for Flux; `croft render --argocd` prints objects for Argo
	// CD.
	// +croft:change=kept; objects that Flux or Argo CD has applied stay
	// +optional
	GitOps GitOpsTool `json:"gitops,omitempty"`

	// Addons are kinds of add-ons that tenants may use in their namespaces, in addition
	// to the kinds of the roles viewer and operator. Viewers read them, operators write
	// them. See docs/reference/addons.md for the access that known add-ons open.
	// +croft:change=kept | rights of tenants' people change at once. With another prefix, people lose access unless their group has this prefix
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=apiGroup
	// +optional
	Addons []Addon `json:"addons,omitempty"`

	// Roles are additional roles, by name, that a Tenant's access may use. They give no
	// more than the role operator. After you add a role, run `croft install`, which lets
	// croft's operator write it.
	// +croft:change=kept | rights of tenants' people change at once. With another prefix, people lose access unless their group has this prefix
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(name, name.matches('^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$'))",message="names of roles are at most 40 lower-case letters, digits and '-', beginning with a letter"
	// +optional
	Roles map[string]OwnRole `json:"roles,omitempty"`

	// GroupPrefix is prepended to every group in a Tenant's access, like the API server's
	// --oidc-groups-prefix: with "oidc:", the group devs is bound as oidc:devs.
	// +croft:change=kept | rights of tenants' people change at once. With another prefix, people lose access unless their group has this prefix
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\p{Cc}\\\\p{Cf}\\\\p{Zl}\\\\p{Zp}\\\\x{034F}\\\\x{115F}\\\\x{1160}\\\\x{17B4}\\\\x{17B5}\\\\x{180B}-\\\\x{180F}\\\\x{2800}\\\\x{3164}\\\\x{FE00}-\\\\x{FE0F}\\\\x{FFA0}\\\\x{E0100}-\\\\x{E01EF}]')",message="must not contain invisible characters, such as zero-width characters"
	// +optional
	GroupPrefix string `json:"groupPrefix,omitempty"`

	// Finalizers may be put by tenants on their objects, in addition to Kubernetes' own.
	// A finalizer that is never removed keeps a namespace forever.
	// +croft:change=kept | finalizers that tenants may set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	Finalizers []string `json:"finalizers,omitempty"`

	// Tolerations are the keys of taints that tenants' pods may tolerate, with any value
	// and effect: clouds and the API server's plugins add such tolerations to pods.
	// Taints of the node lifecycle, the tenant's pools and requested devices are always
	// allowed. Tolerations do not decide on which tenant's nodes a pod runs. Defaults to
	// the keys of common devices (nvidia.com/gpu and others), of spot nodes on AKS and
	// GKE, and kubernetes.io/arch; an empty list allows none.
	// +croft:change=kept | keys of taints that new pods may tolerate
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=317
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",message="must be the key of a taint, such as nvidia.com/gpu"
	// +kubebuilder:validation:items:XValidation:rule="!self.matches('^((.*[.])?karpenter.sh|node-role.kubernetes.io|readiness.k8s.io|(.*[.])?croft.dev)/')",message="keeps pods off nodes of others, or nodes that are not ready: pods of tenants may not tolerate it"
	// +listType=set
	// +optional
	Tolerations []string `json:"tolerations,omitzero"`

	// NodeClass is the template of every pool's nodes; a Pool may override it.
	// +croft:change=as the same field of each pool that does not set it
	// +required
	NodeClass NodeClass `json:"nodeClass"`

	// NodePoolKey is the key of the label and the taint that tie nodes to pools.
	// +croft:change=replaced, in every pool: it is the key of the label and of the taints | pods that were placed with the former key wait until they are re-created
	// +kubebuilder:default="croft.node-restriction.kubernetes.io/pool"
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",message="must be a label key, such as node-pool or platform.example.org/node-pool"
	// +optional
	NodePoolKey string `json:"nodePoolKey,omitempty"`

	// Placement is the engine that puts tenants' pods on their pools.
	// +croft:change=kept; the former engine places a tenant's pods until the new engine is proved to place them
	// +kubebuilder:default=Native
	// +optional
	Placement PlacementEngine `json:"placement,omitempty"`

	// Network configures the network wall.
	// +kubebuilder:default={}
	// +optional
	Network PlatformNetwork `json:"network,omitempty"`

	// TenantDefaults apply to tenants that do not set the field.
	// +croft:change=kept | as the field of the Tenant
	// +kubebuilder:default={}
	// +optional
	TenantDefaults TenantDefaults `json:"tenantDefaults,omitempty"`
}

// Proxy configures the rights of `croft proxy`.
type Proxy struct {
	// Impersonation is the kind of right that the proxy uses to act for users. Defaults
	// to Constrained. The proxy's token cannot act as a service account, as a member of a
	// group that no Tenant and no list of the Platform names, or, if Constrained, as a
	// node.
	// +croft:change=kept | without `proxy`, croft proxy loses its rights, and its users lose access
	// +kubebuilder:default=Constrained
	// +optional
	Impersonation Impersonation `json:"impersonation,omitempty"`
}

// Impersonation is a kind of right to act for other users.
// +kubebuilder:validation:Enum=Constrained;Legacy
type Impersonation string

const (
	// ImpersonationConstrained uses rights to impersonate people only (KEP-5284), on by
	// default since Kubernetes 1.36.
	ImpersonationConstrained Impersonation = "Constrained"
	// ImpersonationLegacy uses the verb impersonate, which all versions of Kubernetes
	// have. It is limited to the same users and groups, but not to people: the API server
	// treats system:node:NAME like any other user.
	ImpersonationLegacy Impersonation = "Legacy"
)

// GitOpsTool applies tenants' sources.
// +kubebuilder:validation:Enum=Flux;ArgoCD
type GitOpsTool string

const (
	// GitOpsFlux is Flux: croft's operator writes its objects into tenants' namespaces.
	GitOpsFlux GitOpsTool = "Flux"
	// GitOpsArgoCD is Argo CD: `croft render --argocd` prints an AppProject for each
	// tenant and an Application for each source, which the platform team applies in Argo
	// CD's namespace. The operator has no rights to these kinds: an Application there can
	// apply anything in the cluster.
	GitOpsArgoCD GitOpsTool = "ArgoCD"
)

// Addon is an API group with the kinds that tenants may use.
type Addon struct {
	// APIGroup is the API group, such as monitoring.coreos.com. Kubernetes' own groups,
	// and groups that undo a wall, are refused.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?[.])+[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the API group of an add-on, such as monitoring.coreos.com"
	// +required
	APIGroup string `json:"apiGroup"`
	// Resources are the kinds as RBAC names them: plural, in lower case, such as
	// servicemonitors. Cluster-scoped kinds stay inaccessible.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=127
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?(/scale)?$')",message="must be the plural name of a kind in lower case, such as servicemonitors"
	// +listType=set
	// +required
	Resources []string `json:"resources"`
	// ReadOnly keeps operators from writing the kinds.
	// +optional
	ReadOnly bool `json:"readOnly,omitempty"`
}

// OwnRole is a role that the platform defines.
type OwnRole struct {
	// Rules are the rights of the role. None may exceed the role operator.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +required
	Rules []RoleRule `json:"rules"`
}

// RoleRule gives verbs on kinds, like a rule of Kubernetes' RBAC, but without wildcards.
type RoleRule struct {
	// APIGroups are API groups; "" is Kubernetes' core group.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +required
	APIGroups []string `json:"apiGroups"`
	// Resources are kinds as RBAC names them, such as deployments or pods/log.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=127
	// +listType=set
	// +required
	Resources []string `json:"resources"`
	// Verbs are the allowed verbs, such as get, list, watch, create, update, patch and
	// delete.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +required
	Verbs []string `json:"verbs"`
}

// PlacementEngine puts tenants' pods on their pools.
//
// +kubebuilder:validation:Enum=Native;Gatekeeper
type PlacementEngine string

const (
	// PlacementNative places pods with the API server's MutatingAdmissionPolicy
	// (Kubernetes 1.36 and later, 1.34 and 1.35 behind a feature gate; no webhook).
	PlacementNative PlacementEngine = "Native"
	// PlacementGatekeeper places pods with Gatekeeper mutators, some for each tenant, on
	// clusters without MutatingAdmissionPolicy. Gatekeeper also enforces the rules on
	// placement, Services and hosts; the API server's own policies (Kubernetes 1.30 and
	// later) remain.
	PlacementGatekeeper PlacementEngine = "Gatekeeper"
)

// NetworkDialect is the API that the network wall is written in.
//
// +kubebuilder:validation:Enum=Kubernetes;Calico;ClusterNetworkPolicy;AWS
type NetworkDialect string

const (
	// DialectKubernetes writes networking.k8s.io/v1 NetworkPolicies, which every
	// network plugin that enforces policies understands.
	DialectKubernetes NetworkDialect = "Kubernetes"
	// DialectCalico writes Calico NetworkPolicies. By order, denials for every tenant
	// come first, and a tenant's permissions last.
	DialectCalico NetworkDialect = "Calico"
	// DialectClusterNetworkPolicy writes the NetworkPolicies of the dialect Kubernetes
	// and one policy.networking.k8s.io/v1alpha2 ClusterNetworkPolicy of the tier Admin
	// for each tenant, which no NetworkPolicy can override.
	DialectClusterNetworkPolicy NetworkDialect = "ClusterNetworkPolicy"
	// DialectAWS is DialectClusterNetworkPolicy in the API of the Amazon VPC CNI,
	// networking.k8s.aws/v1alpha1 (version 1.21 and later).
	DialectAWS NetworkDialect = "AWS"
)

// PlatformNetwork configures the network wall.
//
// +kubebuilder:validation:XValidation:rule="!has(self.calico) || has(self.dialect) && self.dialect == 'Calico'",message="calico is for the dialect Calico: set dialect to Calico, or leave it out"
type PlatformNetwork struct {
	// Dialect is the API that the wall is written in. Every dialect enforces the same
	// wall; docs/how-to/network-policies.md helps to choose one.
	// +croft:change=kept. The new policies exist before the former policies are deleted
	// +kubebuilder:default=Kubernetes
	// +optional
	Dialect NetworkDialect `json:"dialect,omitempty"`

	// Calico configures the dialect Calico.
	// +optional
	Calico *CalicoNetwork `json:"calico,omitempty"`

	// PlatformNamespaces hold the services that must reach every tenant, such as ingress
	// controllers and Prometheus. Tenants accept traffic from them.
	// +croft:change=kept; connections that are no longer allowed end
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:XValidation:rule="!format.dns1123Label().validate(self).hasValue()",message="must be the name of a namespace"
	// +listType=set
	// +optional
	PlatformNamespaces []string `json:"platformNamespaces,omitempty"`

	// DNSPods are DNS server pods, in addition to the usual ones: in kube-system, k8s-app
	// kube-dns on port 53 (and 8053, on Gardener) and node-local-dns; and OpenShift's, in
	// openshift-dns. Tenants with Restricted egress reach them, too.
	// +croft:change=kept; connections that are no longer allowed end
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	DNSPods []DNSPods `json:"dnsPods,omitempty"`

	// MetadataAddresses are the addresses at which clouds give credentials to instances.
	// No tenant reaches them, neither directly nor over NAT64 (64:ff9b::/96). The default
	// covers AWS (with ECS), Google Cloud, Azure, Alibaba Cloud and Oracle Cloud. It
	// omits 169.254.170.23 and fd00:ec2::23, where the EKS Pod Identity agent serves each
	// pod its own credentials: pods need them. A list replaces the whole default.
	// +croft:change=kept; connections that are no longer allowed end
	// +kubebuilder:default={"169.254.169.254","fd00:ec2::254","169.254.170.2","100.100.100.200","168.63.129.16","192.0.0.192","fd20:ce::254"}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=45
	// +kubebuilder:validation:items:XValidation:rule="isIP(self)",message="must be an IP address, such as 169.254.169.254"
	// +listType=set
	// +optional
	MetadataAddresses []string `json:"metadataAddresses,omitempty"`
}

// DefaultMetadataAddresses returns the default of metadataAddresses: the address of all
// clouds (169.254.169.254), then of AWS over IPv6, ECS, Alibaba Cloud, Azure, Oracle
// Cloud, and Google Cloud over IPv6.
func DefaultMetadataAddresses() []string {
	return []string{"169.254.169.254", "fd00:ec2::254", "169.254.170.2", "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd20:ce::254"}
}

// DNSPods selects pods that resolve names.
type DNSPods struct {
	// Namespace is the namespace of the pods. No tenant may have it.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Label().validate(self).hasValue()",message="must be the name of a namespace"
	// +required
	Namespace string `json:"namespace"`
	// Labels are the labels that the pods must have.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=4
	// +required
	Labels map[string]string `json:"labels"`
	// Port is the pods' port, over UDP and TCP. It may differ from the Service's port.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +kubebuilder:default=53
	// +optional
	Port int32 `json:"port,omitempty"`
}

// CalicoAPIGroup is an API group of Calico.
//
// +kubebuilder:validation:Enum=projectcalico.org;crd.projectcalico.org
type CalicoAPIGroup string

const (
	// CalicoGroup is the API for users, in version v3, served by Calico's own API server
	// or as CustomResourceDefinitions.
	CalicoGroup CalicoAPIGroup = "projectcalico.org"
	// CalicoStorageGroup is Calico's storage API, in version v1, for clusters without
	// Calico's API server.
	CalicoStorageGroup CalicoAPIGroup = "crd.projectcalico.org"
)

// CalicoNetwork configures the dialect Calico.
type CalicoNetwork struct {
	// APIGroup is the API group that policies are written to.
	// +croft:change=kept. The new policies exist before the former policies are deleted
	// +kubebuilder:default=projectcalico.org
	// +optional
	APIGroup CalicoAPIGroup `json:"apiGroup,omitempty"`

	// TenantPolicies lets tenants' operators write their own Calico NetworkPolicies, of a
	// higher order than croft's. An admission policy prevents them from undoing the wall.
	// It takes effect if Kubernetes' API server serves the kind from a
	// CustomResourceDefinition; Calico's own API server runs no admission policies unless
	// it is configured to. `croft verify` tests it.
	// +croft:change=kept. The new policies exist before the former policies are deleted
	// +optional
	TenantPolicies bool `json:"tenantPolicies,omitempty"`
}

// NodeClass is the template for a pool's nodes. Exactly one member is set.
//
// +kubebuilder:validation:XValidation:rule="(has(self.kwok) ? 1 : 0) + (has(self.aws) ? 1 : 0) + (has(self.ref) ? 1 : 0) == 1",message="set exactly one of kwok, aws and ref"
type NodeClass struct {
	// Kwok creates simulated nodes, for trying croft and for tests.
	// +croft:change=refused: Karpenter does not allow a NodePool to change to another kind of class; another name of `ref` replaces the nodes | move tenants to a new pool
	// +optional
	Kwok *KwokNodeClass `json:"kwok,omitempty"`
	// AWS creates EC2 instances.
	// +optional
	AWS *AWSNodeClass `json:"aws,omitempty"`
	// Ref names a node class of any Karpenter provider, which the platform team
	// maintains.
	// +croft:change=refused: Karpenter does not allow a NodePool to change to another kind of class; another name of `ref` replaces the nodes | move tenants to a new pool
	// +optional
	Ref *NodeClassRef `json:"ref,omitempty"`
}

// KwokNodeClass has no settings: a kwok node has only the instance type's size.
type KwokNodeClass struct{}

// NodeClassRef names a node class by its API group, kind and name.
type NodeClassRef struct {
	// Group is the API group, such as karpenter.k8s.aws.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Group string `json:"group"`
	// Kind is the kind, such as EC2NodeClass.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Kind string `json:"kind"`
	// Name is the object's name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// TenantDefaults are the defaults for Tenants.
type TenantDefaults struct {
	// Egress limits the destinations of tenants' pods.
	// +kubebuilder:default=Open
	// +optional
	Egress Egress `json:"egress,omitempty"`
	// CallersFrom are the tenants from which teams may accept connections themselves, by
	// TenantCallers: names, or "*" for all. A tenant's network.callersFrom replaces the list.
	// Defaults to none.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:XValidation:rule="self == '*' || !format.dns1123Label().validate(self).hasValue()",message="must be the name of a tenant, or *"
	// +listType=set
	// +optional
	CallersFrom []string `json:"callersFrom,omitempty"`
	// PodSecurity is the Pod Security level of tenants' namespaces.
	// +kubebuilder:default=baseline
	// +optional
	PodSecurity PodSecurityLevel `json:"podSecurity,omitempty"`
	// Policy allows tenants' objects to use features that the policy wall otherwise
	// refuses.
	// +kubebuilder:default={}
	// +optional
	Policy Allowances `json:"policy,omitempty"`
	// Namespace holds labels and annotations of all tenants' namespaces. A tenant's value of
	// the same key wins.
	// +optional
	Namespace NamespaceMetadata `json:"namespace,omitzero"`
	// Objects are manifests of objects that exist in every namespace of all tenants:
	// ConfigMaps, LimitRanges, NetworkPolicies and RoleBindings. In croft.yaml, an item may be
	// the path of a file with manifests instead, relative to croft.yaml. A tenant's object of
	// the same kind and name wins. Defaults to none.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:XPreserveUnknownFields
	// +listType=atomic
	// +optional
	Objects []runtime.RawExtension `json:"objects,omitempty"`
	// Secrets are copies of Secrets of the namespace croft-secrets that exist in every namespace
	// of all tenants, by the name of the copy: {registry: {from: registry-credentials}}. A
	// tenant's copy of the same name wins. Defaults to none.
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(name, name.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$') && !name.startsWith('croft'))",message="names of copies are at most 63 lower-case letters, digits and '-', and do not begin with croft"
	// +optional
	Secrets map[string]SecretCopy `json:"secrets,omitempty"`
	// Quota limits the total resources that objects in all of a tenant's namespaces
	// request. Without one, generous limits on object counts apply; an empty one, {},
	// removes them.
	// +optional
	Quota corev1.ResourceList `json:"quota,omitzero"`
	// Limits are the requests and limits of containers.
	// +optional
	Limits *ContainerLimits `json:"limits,omitempty"`
	// Budget is the budget of each tenant without one of its own. Defaults to none.
	// +optional
	Budget *TenantBudget `json:"budget,omitempty"`
}

// PlatformList is a list of Platforms.
//
// +kubebuilder:object:root=true
type PlatformList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Platform `json:"items"`
}
