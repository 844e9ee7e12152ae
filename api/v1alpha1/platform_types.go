package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Platform says what holds for the whole cluster. There is one, named default.
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

// PlatformStatus reports the Platform's conditions, and how the walls were last tried.
type PlatformStatus struct {
	Status `json:",inline"`
	// Verify is the last run of `croft verify --record`. Whoever ran it wrote it.
	// +optional
	Verify *VerifyStatus `json:"verify,omitempty"`
}

// VerifyStatus is the result of one run of `croft verify`.
type VerifyStatus struct {
	// Time is when the run ended.
	// +required
	Time metav1.Time `json:"time"`
	// Version is that of the croft that tried.
	// +optional
	Version string `json:"version,omitempty"`
	// Held is the number of attacks that were stopped by what should stop them.
	// +required
	Held int32 `json:"held"`
	// Breached is the number of attacks that went through, and of harmless requests that
	// were stopped.
	// +required
	Breached int32 `json:"breached"`
	// BlockedElsewhere is the number of attacks that failed, but not by the wall that
	// should stop them: they say nothing about it.
	// +required
	BlockedElsewhere int32 `json:"blockedElsewhere"`
	// NotTried is the number of attacks that there was nothing to try on.
	// +required
	NotTried int32 `json:"notTried"`
}

// PlatformSpec is what the platform team declares once for the cluster.
type PlatformSpec struct {
	// ClusterName names the cluster in tags and in the discovery of cloud
	// resources. It is the name that the cloud knows it by.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +required
	ClusterName string `json:"clusterName"`

	// TenantDomain is the domain below which every tenant owns
	// <tenant>.<tenantDomain> and everything below that. Without it a tenant has
	// only the domains that it is granted by name.
	// +kubebuilder:validation:MaxLength=189
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\\\\.)+[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')",message="must be a domain in lower case without a wildcard, such as tenants.example.org"
	// +optional
	TenantDomain string `json:"tenantDomain,omitempty"`

	// TopLevelNamespaces are namespaces that tenants may have although they are
	// called as hosts outside end: by a country's top-level domain, by one that pods
	// call much, such as com or dev, or by one of the cluster's own, such as svc. The
	// Service google of a namespace com answers for google.com in every pod.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:XValidation:rule="!format.dns1123Label().validate(self).hasValue()",message="must be the name of a namespace"
	// +listType=set
	// +optional
	TopLevelNamespaces []string `json:"topLevelNamespaces,omitempty"`

	// ClusterDNS are the addresses of name servers in pods' /etc/resolv.conf. They are
	// needed where nodes do not find them out themselves, and where no pod answers at
	// the address: DNS caches on nodes (169.254.20.10 is always allowed), Cloud DNS of
	// GKE (169.254.169.254), AKS LocalDNS (169.254.10.11), servers outside of the
	// cluster. Tenants reach port 53 of them, of metadata addresses too, and there no
	// other port.
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:items:MaxLength=45
	// +kubebuilder:validation:items:XValidation:rule="isIP(self)",message="must be an IP address, such as 10.100.0.10"
	// +kubebuilder:validation:items:XValidation:rule="!isIP(self) || ip(self).isGlobalUnicast() || ip(self).isLinkLocalUnicast()",message="must be an address that pods reach: loopback addresses, such as 127.0.0.53, are each pod's own"
	// +listType=set
	// +optional
	ClusterDNS []string `json:"clusterDNS,omitempty"`

	// Admins are the groups of people who may declare the platform, its pools and
	// tenants, read what auditors may, and change the objects that croft manages as
	// far as other roles let them. They are named as the API server sees them:
	// groupPrefix is not put before them. Members of system:masters always may. Tools
	// are named by system:serviceaccounts:NAMESPACE, for a namespace in
	// network.platformNamespaces: all its service accounts may then do the same.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:XValidation:rule="!self.matches('[\\\\p{Cc}\\\\p{Cf}\\\\p{Zl}\\\\p{Zp}\\\\x{034F}\\\\x{115F}\\\\x{1160}\\\\x{17B4}\\\\x{17B5}\\\\x{180B}-\\\\x{180F}\\\\x{2800}\\\\x{3164}\\\\x{FE00}-\\\\x{FE0F}\\\\x{FFA0}\\\\x{E0100}-\\\\x{E01EF}]')",message="must not contain invisible characters, such as those of zero width"
	// +listType=set
	// +optional
	Admins []string `json:"admins,omitempty"`

	// Auditors are the groups of people who may read all that `croft status`,
	// `doctor`, `reach`, `why` and `diff` read in the whole cluster, and write
	// nothing. Secrets are not among it. They are named as the API server sees them.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:XValidation:rule="!self.matches('[\\\\p{Cc}\\\\p{Cf}\\\\p{Zl}\\\\p{Zp}\\\\x{034F}\\\\x{115F}\\\\x{1160}\\\\x{17B4}\\\\x{17B5}\\\\x{180B}-\\\\x{180F}\\\\x{2800}\\\\x{3164}\\\\x{FE00}-\\\\x{FE0F}\\\\x{FFA0}\\\\x{E0100}-\\\\x{E01EF}]')",message="must not contain invisible characters, such as those of zero width"
	// +listType=set
	// +optional
	Auditors []string `json:"auditors,omitempty"`

	// ClassReaders are the groups of people who may read StorageClasses,
	// IngressClasses, GatewayClasses, PriorityClasses, RuntimeClasses, DeviceClasses
	// and VolumeSnapshotClasses, which Kubernetes lets no tenant do: a group of all
	// developers, named as the API server sees it, or system:authenticated.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:XValidation:rule="!self.matches('[\\\\p{Cc}\\\\p{Cf}\\\\p{Zl}\\\\p{Zp}\\\\x{034F}\\\\x{115F}\\\\x{1160}\\\\x{17B4}\\\\x{17B5}\\\\x{180B}-\\\\x{180F}\\\\x{2800}\\\\x{3164}\\\\x{FE00}-\\\\x{FE0F}\\\\x{FFA0}\\\\x{E0100}-\\\\x{E01EF}]')",message="must not contain invisible characters, such as those of zero width"
	// +listType=set
	// +optional
	ClassReaders []string `json:"classReaders,omitempty"`

	// Elevation lets people who have access to a tenant ask for the role operator in it
	// for a limited time, with `croft elevate`. Without it nobody may.
	// +optional
	Elevation *PlatformElevation `json:"elevation,omitempty"`

	// Proxy gives `croft proxy` the rights that it needs to let people in; none without
	// it. It runs where `croft install --authentication-config` puts it.
	// +optional
	Proxy *Proxy `json:"proxy,omitempty"`

	// GitOps is the tool that applies tenants' sources; Flux by default. Flux' objects are
	// written by croft's operator, those of Argo CD are printed by `croft render --argocd`.
	// +optional
	GitOps GitOpsTool `json:"gitops,omitempty"`

	// Addons are kinds of add-ons that tenants' people may use in their namespaces,
	// beyond those that the roles viewer and operator know: viewers read them,
	// operators write them. See docs/addons.md for what the known ones open.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=apiGroup
	// +optional
	Addons []Addon `json:"addons,omitempty"`

	// Roles are roles of the platform's own, by name, that a Tenant's access may name
	// beside viewer and operator. They give no more than operator does. After a role
	// was added, `croft install` lets croft's operator write it.
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(name, name.matches('^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$'))",message="names of roles are at most 40 lower-case letters, digits and '-', beginning with a letter"
	// +optional
	Roles map[string]OwnRole `json:"roles,omitempty"`

	// GroupPrefix is put before every group that a Tenant's access names, as the
	// API server's --oidc-groups-prefix does: with "oidc:", the group devs is
	// bound as oidc:devs.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\p{Cc}\\\\p{Cf}\\\\p{Zl}\\\\p{Zp}\\\\x{034F}\\\\x{115F}\\\\x{1160}\\\\x{17B4}\\\\x{17B5}\\\\x{180B}-\\\\x{180F}\\\\x{2800}\\\\x{3164}\\\\x{FE00}-\\\\x{FE0F}\\\\x{FFA0}\\\\x{E0100}-\\\\x{E01EF}]')",message="must not contain invisible characters, such as those of zero width"
	// +optional
	GroupPrefix string `json:"groupPrefix,omitempty"`

	// Finalizers are those that tenants may put on their objects beside
	// Kubernetes' own. A finalizer that nobody removes keeps a namespace for ever.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	Finalizers []string `json:"finalizers,omitempty"`

	// Tolerations are the keys of taints that tenants' pods may tolerate, with any value and
	// effect, besides the life cycle of nodes, their own pools, and the devices that they
	// request: those that clouds and the API server's plugins add to pods. They decide
	// nothing about whose nodes a pod runs on. If not given, they are the keys of common
	// devices (nvidia.com/gpu and others), of spot nodes on AKS and GKE, and
	// kubernetes.io/arch; an empty list allows none.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=317
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",message="must be the key of a taint, such as nvidia.com/gpu"
	// +kubebuilder:validation:items:XValidation:rule="!self.matches('^((.*[.])?karpenter.sh|node-role.kubernetes.io|readiness.k8s.io|(.*[.])?croft.dev)/')",message="keeps pods off nodes that are not theirs, or not ready: no tenant's pod may tolerate it"
	// +listType=set
	// +optional
	Tolerations []string `json:"tolerations,omitzero"`

	// NodeClass is the template of every pool's nodes; a Pool may override it.
	// +required
	NodeClass NodeClass `json:"nodeClass"`

	// NodePoolKey is the key of the label and the taint that tie nodes to pools.
	// +kubebuilder:default="croft.node-restriction.kubernetes.io/pool"
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",message="must be a label key, such as node-pool or platform.example.org/node-pool"
	// +optional
	NodePoolKey string `json:"nodePoolKey,omitempty"`

	// Placement is the engine that puts tenants' pods on their pools.
	// +kubebuilder:default=Native
	// +optional
	Placement PlacementEngine `json:"placement,omitempty"`

	// Network says how the network wall is built.
	// +kubebuilder:default={}
	// +optional
	Network PlatformNetwork `json:"network,omitempty"`

	// TenantDefaults hold for every tenant that does not say otherwise.
	// +kubebuilder:default={}
	// +optional
	TenantDefaults TenantDefaults `json:"tenantDefaults,omitempty"`
}

// Proxy is how `croft proxy` may act for people.
type Proxy struct {
	// Impersonation is the kind of right by which the proxy acts for people; Constrained
	// by default. The proxy's token lets nobody act as a node, as a service account or as
	// a member of a group that no tenant and no list of the Platform names.
	// +kubebuilder:default=Constrained
	// +optional
	Impersonation Impersonation `json:"impersonation,omitempty"`
}

// Impersonation is a kind of right to act for others.
// +kubebuilder:validation:Enum=Constrained;Legacy
type Impersonation string

const (
	// ImpersonationConstrained is by rights to impersonate people alone (KEP-5284), on by
	// default since Kubernetes 1.36.
	ImpersonationConstrained Impersonation = "Constrained"
	// ImpersonationLegacy is by the right to impersonate that every Kubernetes has. It is
	// limited to the same users and groups, but not to people: the API server takes
	// system:node:NAME for a user like any other.
	ImpersonationLegacy Impersonation = "Legacy"
)

// GitOpsTool is what applies tenants' sources.
// +kubebuilder:validation:Enum=Flux;ArgoCD
type GitOpsTool string

const (
	// GitOpsFlux is Flux: croft's operator writes its objects into tenants' namespaces.
	GitOpsFlux GitOpsTool = "Flux"
	// GitOpsArgoCD is Argo CD: `croft render --argocd` prints an AppProject for each tenant
	// and an Application for each source, which the platform applies in Argo CD's
	// namespace. The operator has no rights to these kinds: whoever writes Applications
	// there can apply anything in the cluster.
	GitOpsArgoCD GitOpsTool = "ArgoCD"
)

// Addon is an API group of which tenants' people may use some kinds.
type Addon struct {
	// APIGroup is the API group, such as monitoring.coreos.com. Kubernetes' own, and
	// those that would undo a wall, are refused.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?[.])+[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the API group of an add-on, such as monitoring.coreos.com"
	// +required
	APIGroup string `json:"apiGroup"`
	// Resources are the kinds as RBAC names them: plural, in lower case, such as
	// servicemonitors. Kinds of the whole cluster stay out of reach.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=127
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?(/scale)?$')",message="must be the plural name of a kind in lower case, such as servicemonitors"
	// +listType=set
	// +required
	Resources []string `json:"resources"`
	// ReadOnly keeps operators from writing them.
	// +optional
	ReadOnly bool `json:"readOnly,omitempty"`
}

// OwnRole is a role of the platform's own.
type OwnRole struct {
	// Rules are what it gives, each within what the role operator gives.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +required
	Rules []RoleRule `json:"rules"`
}

// RoleRule gives verbs on kinds, as a rule of Kubernetes' RBAC does. There are no
// wildcards.
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
	// Verbs are what may be done, such as get, list, watch, create, update, patch
	// and delete.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +required
	Verbs []string `json:"verbs"`
}

// PlacementEngine is what puts tenants' pods on their pools.
//
// +kubebuilder:validation:Enum=Native;Gatekeeper
type PlacementEngine string

const (
	// PlacementNative places pods by the API server's own MutatingAdmissionPolicy
	// (Kubernetes 1.36 and later, and 1.34 behind a feature gate; no webhook).
	PlacementNative PlacementEngine = "Native"
	// PlacementGatekeeper places pods by mutators of Gatekeeper, some for each
	// tenant, for clusters that have no MutatingAdmissionPolicy. Gatekeeper holds
	// the rules on placement, Services and hosts besides; the API server's own
	// policies (Kubernetes 1.30 and later) stay.
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
	// DialectCalico writes Calico NetworkPolicies: what nobody may is denied first,
	// by order, and what a tenant may comes last.
	DialectCalico NetworkDialect = "Calico"
	// DialectClusterNetworkPolicy writes, beside the NetworkPolicies of dialect
	// Kubernetes, one policy.networking.k8s.io/v1alpha2 ClusterNetworkPolicy of the
	// tier Admin for each tenant, which no NetworkPolicy can undo.
	DialectClusterNetworkPolicy NetworkDialect = "ClusterNetworkPolicy"
	// DialectAWS is DialectClusterNetworkPolicy in the API of the Amazon VPC CNI,
	// networking.k8s.aws/v1alpha1 (version 1.21 and later).
	DialectAWS NetworkDialect = "AWS"
)

// PlatformNetwork says how the network wall is built.
//
// +kubebuilder:validation:XValidation:rule="!has(self.calico) || has(self.dialect) && self.dialect == 'Calico'",message="calico is for the dialect Calico: set dialect to Calico, or leave it out"
type PlatformNetwork struct {
	// Dialect is the API that the wall is written in. Whichever it is, the wall
	// holds the same; see docs/walls.md for which to choose.
	// +kubebuilder:default=Kubernetes
	// +optional
	Dialect NetworkDialect `json:"dialect,omitempty"`

	// Calico is for the dialect Calico.
	// +optional
	Calico *CalicoNetwork `json:"calico,omitempty"`

	// PlatformNamespaces hold the services that must reach every tenant, such as
	// ingress controllers and Prometheus: traffic from them is let in.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:XValidation:rule="!format.dns1123Label().validate(self).hasValue()",message="must be the name of a namespace"
	// +listType=set
	// +optional
	PlatformNamespaces []string `json:"platformNamespaces,omitempty"`

	// DNSPods are pods that resolve names, in addition to the usual ones: in kube-system,
	// k8s-app kube-dns on port 53 (and 8053, of Gardener) and node-local-dns; and
	// OpenShift's, in openshift-dns. Tenants with Restricted egress reach them, too.
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	DNSPods []DNSPods `json:"dnsPods,omitempty"`

	// MetadataAddresses are the addresses at which clouds hand credentials to whoever
	// asks from an instance. No tenant reaches them, over NAT64 (64:ff9b::/96) neither.
	// The default names those of AWS (with ECS), Google Cloud, Azure, Alibaba Cloud and
	// Oracle Cloud. 169.254.170.23 and fd00:ec2::23, at which the EKS Pod Identity
	// agent serves each pod its own credentials, are not among them: pods need these.
	// A list that is given replaces the default as a whole.
	// +kubebuilder:default={"169.254.169.254","fd00:ec2::254","169.254.170.2","100.100.100.200","168.63.129.16","192.0.0.192","fd20:ce::254"}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=45
	// +kubebuilder:validation:items:XValidation:rule="isIP(self)",message="must be an IP address, such as 169.254.169.254"
	// +listType=set
	// +optional
	MetadataAddresses []string `json:"metadataAddresses,omitempty"`
}

// DefaultMetadataAddresses returns those of a Platform that names none: of all
// clouds (169.254.169.254), and beside it of AWS over IPv6, of ECS, Alibaba Cloud,
// Azure, Oracle Cloud, and Google Cloud over IPv6.
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
	// Labels are labels that the pods have, all of them.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=4
	// +required
	Labels map[string]string `json:"labels"`
	// Port is the port of the pods, by UDP and TCP. Their Service's port may be another.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +kubebuilder:default=53
	// +optional
	Port int32 `json:"port,omitempty"`
}

// CalicoAPIGroup is an API group of Calico's.
//
// +kubebuilder:validation:Enum=projectcalico.org;crd.projectcalico.org
type CalicoAPIGroup string

const (
	// CalicoGroup is what people write, in version v3: served by Calico's own API
	// server, or as CustomResourceDefinitions.
	CalicoGroup CalicoAPIGroup = "projectcalico.org"
	// CalicoStorageGroup is where Calico keeps its objects, in version v1: for
	// clusters without Calico's API server.
	CalicoStorageGroup CalicoAPIGroup = "crd.projectcalico.org"
)

// CalicoNetwork says how the wall is written in Calico's API.
type CalicoNetwork struct {
	// APIGroup is the API group that policies are written to.
	// +kubebuilder:default=projectcalico.org
	// +optional
	APIGroup CalicoAPIGroup `json:"apiGroup,omitempty"`

	// TenantPolicies lets tenants' operators write Calico NetworkPolicies of their
	// own, of a higher order than croft's. An admission policy keeps them from
	// undoing the wall. It holds where Kubernetes' API server serves the kind from a
	// CustomResourceDefinition; Calico's own API server runs no admission policies
	// unless it is told to. `croft verify` shows whether it holds.
	// +optional
	TenantPolicies bool `json:"tenantPolicies,omitempty"`
}

// NodeClass says what the nodes of a pool are made from. Exactly one member is set.
//
// +kubebuilder:validation:XValidation:rule="(has(self.kwok) ? 1 : 0) + (has(self.aws) ? 1 : 0) + (has(self.ref) ? 1 : 0) == 1",message="set exactly one of kwok, aws and ref"
type NodeClass struct {
	// Kwok makes simulated nodes, for trying croft and for tests.
	// +optional
	Kwok *KwokNodeClass `json:"kwok,omitempty"`
	// AWS makes EC2 instances.
	// +optional
	AWS *AWSNodeClass `json:"aws,omitempty"`
	// Ref names a node class that the platform team keeps itself, of any
	// Karpenter provider.
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

// TenantDefaults hold for every tenant that does not say otherwise.
type TenantDefaults struct {
	// Egress is where tenants' pods may connect to.
	// +kubebuilder:default=Open
	// +optional
	Egress Egress `json:"egress,omitempty"`
	// PodSecurity is the Pod Security level of tenants' namespaces.
	// +kubebuilder:default=baseline
	// +optional
	PodSecurity PodSecurityLevel `json:"podSecurity,omitempty"`
	// Policy is what tenants' objects may use of what the policy wall otherwise
	// refuses.
	// +kubebuilder:default={}
	// +optional
	Policy Allowances `json:"policy,omitempty"`
	// Quota is what all objects in all of a tenant's namespaces together may ask
	// for. Without one there are generous bounds on the number of objects; an
	// empty one, {}, lifts them.
	// +optional
	Quota corev1.ResourceList `json:"quota,omitzero"`
	// Limits are the requests and limits of containers.
	// +optional
	Limits *ContainerLimits `json:"limits,omitempty"`
}

// PlatformList is a list of Platforms.
//
// +kubebuilder:object:root=true
type PlatformList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Platform `json:"items"`
}
