package v1alpha1

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Tenant is a team, an application or an environment that shares the cluster.
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
// +kubebuilder:printcolumn:name="Budget",type=string,JSONPath=`.status.budget.stage`,priority=1
// +kubebuilder:printcolumn:name="Owner",type=string,JSONPath=`.spec.owner`,priority=1
// +kubebuilder:printcolumn:name="Contact",type=string,JSONPath=`.spec.contact`,priority=1
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

// TenantSpec specifies a tenant's resources and rights.
//
// +kubebuilder:validation:XValidation:rule="has(self.pool) != has(self.pools)",message="set exactly one of pool and pools"
// +kubebuilder:validation:XValidation:rule="!has(self.selfService) || !has(self.selfService.namespaces) || self.selfService.namespaces + (has(self.namespaces) ? size(self.namespaces) : 1) <= 64",message="a tenant has at most 64 namespaces, including those of selfService: lower selfService.namespaces"
type TenantSpec struct {
	// Pool is the pool that the tenant's pods run on.
	// +croft:tenants:shown=the team's default pool
	// +croft:change=stay on nodes of the former pool until they are re-created: `croft move tenant NAME` | new pods run on the new pools
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Pool string `json:"pool,omitempty"`

	// Pools are the pools that the tenant's pods may run on. A pod chooses one by
	// a nodeSelector on the Platform's nodePoolKey; the first is the default.
	// +croft:tenants:shown=the pools that the team's pods may use
	// +croft:change=stay on nodes of the former pool until they are re-created: `croft move tenant NAME` | new pods run on the new pools
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +optional
	Pools []string `json:"pools,omitempty"`

	// Namespaces are the tenant's namespaces. Defaults to one with the tenant's name.
	// +croft:tenants:shown=the team's own namespaces
	// +croft:change=in a removed namespace: kept with `deletion: Retain`; with `Delete`, deleted with the namespace if croft created it | people lose access to a removed namespace. croft creates a new namespace; an existing one needs `croft adopt`
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:XValidation:rule="!format.dns1123Label().validate(self).hasValue()",message="must be the name of a namespace: at most 63 lower-case letters, digits and '-'"
	// +listType=set
	// +optional
	Namespaces []string `json:"namespaces,omitempty"`

	// Namespace holds labels and annotations of all namespaces of the tenant, also of namespaces
	// that the team creates itself. They are merged with the Platform's defaults by key.
	// +croft:tenants:shown=labels and annotations of the team's namespaces; the namespaces show the same
	// +croft:change=kept | labels and annotations of the namespaces change at once; removed ones are removed
	// +optional
	Namespace NamespaceMetadata `json:"namespace,omitzero"`

	// Objects are manifests of objects that exist in every namespace of the tenant, also in
	// namespaces that the team creates itself: ConfigMaps, LimitRanges, NetworkPolicies and
	// RoleBindings. Teams can read them, and cannot change them. In croft.yaml, an item may be
	// the path of a file with manifests instead, relative to croft.yaml. An object replaces the
	// object of the Platform with the same kind and name. $(tenant), $(namespace), $(costCode)
	// and $(domain) in values are replaced. Defaults to none.
	// +croft:tenants:shown=the platform's objects in the team's namespaces; the namespaces show the same
	// +croft:change=kept | the objects change at once; removed ones are deleted
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:XPreserveUnknownFields
	// +listType=atomic
	// +optional
	Objects []runtime.RawExtension `json:"objects,omitempty"`

	// Secrets are copies of Secrets of the namespace croft-secrets that exist in every namespace
	// of the tenant, also in namespaces that the team creates itself, by the name of the copy:
	// {registry: {from: registry-credentials}}. `croft copy-secrets` writes them. Teams can
	// read them, and cannot change them. A copy replaces the Platform's copy of the same name.
	// After you add a name, run `croft install --copy-secrets` or `helm upgrade`, which give
	// the right to copy it. Defaults to none.
	// +croft:tenants:shown=the names of the platform's Secrets in the team's namespaces; the RoleBindings show the same
	// +croft:change=kept; pods read a changed Secret as with any other | the copies appear or change within seconds; removed ones are deleted
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(name, name.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$') && !name.startsWith('croft'))",message="names of copies are at most 63 lower-case letters, digits and '-', and do not begin with croft"
	// +optional
	Secrets map[string]SecretCopy `json:"secrets,omitempty"`

	// SelfService lets the tenant's operators create namespaces. Disabled by default.
	// +croft:tenants:shown=the number of namespaces that the team may create itself; TenantRules show the same
	// +optional
	SelfService SelfService `json:"selfService,omitzero"`

	// Access gives groups and users roles in the tenant's namespaces.
	// +croft:tenants:shown=the roles of the team's people; RoleBindings show the same
	// +croft:change=kept | granted or revoked at once; revoked at the time in `until`
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Access []Access `json:"access,omitempty"`

	// Domains are the hosts that the tenant may serve: exact names, or a leading "*." for
	// all subdomains. <tenant>.<tenantDomain> and its subdomains are always granted.
	// +croft:tenants:shown=the hosts that the team may serve
	// +croft:change=keep serving | Ingresses, routes and certificates with removed hosts stay until they are changed; new ones are refused
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^(\\\\*\\\\.)?([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\\\\.)+[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')",message="must be a domain in lower case, such as shop.example.org or *.shop.example.org"
	// +listType=set
	// +optional
	Domains []string `json:"domains,omitempty"`

	// Quota limits the resources of all objects in all of the tenant's namespaces
	// together, by the names of a ResourceQuota. It replaces the Platform's default as a
	// whole; {} removes the quota. Each of several namespaces has a share, which follows
	// its usage: status.shares.
	// +croft:tenants:shown=the team's quota; ResourceQuotas show the same
	// +croft:change=kept, also above the new quota | new pods and objects are refused above it
	// +optional
	Quota corev1.ResourceList `json:"quota,omitzero"`

	// QuotaMinimums reserve parts of the quota for namespaces, by name. A namespace's
	// share never falls below its minimum, regardless of other namespaces. The minimums together
	// must fit into the quota. Defaults to none.
	// +croft:tenants:shown=the division of the quota
	// +croft:change=kept, also above the new quota | new pods and objects are refused above it
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(ns, size(self[ns]) > 0)",message="must name at least one resource of each namespace, such as {pods: \"40\"}; leave a namespace without a minimum out"
	// +optional
	QuotaMinimums map[string]corev1.ResourceList `json:"quotaMinimums,omitempty"`

	// Limits are the requests and limits of containers. They replace the
	// Platform's default as a whole.
	// +croft:tenants:shown=the defaults of the team's containers; LimitRanges show the same
	// +croft:change=kept | new containers get the new defaults, or are refused
	// +optional
	Limits *ContainerLimits `json:"limits,omitempty"`

	// Network holds the tenant's exceptions from the network wall.
	// +croft:tenants:shown=the networks that the team's pods may connect to; TenantRules show the same
	// +kubebuilder:default={}
	// +optional
	Network TenantNetwork `json:"network,omitempty"`

	// Networks are the SecondaryNetworks that the tenant's pods may attach to, by the
	// annotation croft.dev/networks. Each must be in the secondaryNetworks of one of the
	// tenant's pools. Defaults to none.
	// +croft:tenants:shown=the secondary networks that the team's pods may be attached to
	// +croft:change=kept, with their existing interfaces | new pods may use only the new list
	// +kubebuilder:validation:MaxItems=14
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +optional
	Networks []string `json:"networks,omitempty"`

	// Policy holds the tenant's exceptions from the policy wall.
	// +croft:tenants:shown=the values that the team's objects may use; TenantRules show the same
	// +kubebuilder:default={}
	// +optional
	Policy TenantPolicy `json:"policy,omitempty"`

	// Sources are the Git repositories and OCI artifacts, by name, that Flux applies for
	// the tenant. The objects of a removed source stay.
	// +croft:tenants:shown=the sources that Flux applies for the team
	// +croft:change=kept: objects of a removed source stay | Flux applies the new list
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(name, name.matches('^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$'))",message="names of sources are at most 40 lower-case letters, digits and '-', beginning with a letter"
	// +optional
	Sources map[string]Source `json:"sources,omitempty"`

	// CostCode identifies the payer. It becomes a label of the namespaces.
	// +croft:tenants:shown=cost allocation; a label of the team's namespaces
	// +croft:change=kept | a label of the namespaces
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="becomes a label: letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"
	// +optional
	CostCode string `json:"costCode,omitempty"`

	// Budget limits the tenant's cost in a calendar month. It replaces the Platform's default as
	// a whole; {} removes it.
	// +croft:tenants:shown=the team's own budget
	// +croft:change=kept, also beyond the budget | the stage follows the new budget within seconds
	// +optional
	Budget *TenantBudget `json:"budget,omitempty"`

	// Owner is the team, department or person that answers for the tenant. `croft status -o
	// wide` shows it. Defaults to none.
	// +croft:tenants:shown=the owner of the team's own tenant
	// +croft:change=kept | shown at once by `croft status -o wide` and the dashboard
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\p{Cc}\\\\p{Cf}\\\\p{Zl}\\\\p{Zp}\\\\x{034F}\\\\x{115F}\\\\x{1160}\\\\x{17B4}\\\\x{17B5}\\\\x{180B}-\\\\x{180F}\\\\x{2800}\\\\x{3164}\\\\x{FE00}-\\\\x{FE0F}\\\\x{FFA0}\\\\x{E0100}-\\\\x{E01EF}]')",message="must be one line, without control characters and invisible characters"
	// +optional
	Owner string `json:"owner,omitempty"`

	// Contact is how to reach the team: an e-mail address, an https URL or a #channel of a
	// chat. `croft status -o wide`, `croft me`, `croft doctor` and `croft why` show it.
	// Defaults to none.
	// +croft:tenants:shown=the team's own contact, which other teams do not see
	// +croft:change=kept | shown at once by `croft me` and `croft status -o wide`
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\p{Cc}\\\\p{Cf}\\\\p{Zl}\\\\p{Zp}\\\\x{034F}\\\\x{115F}\\\\x{1160}\\\\x{17B4}\\\\x{17B5}\\\\x{180B}-\\\\x{180F}\\\\x{2800}\\\\x{3164}\\\\x{FE00}-\\\\x{FE0F}\\\\x{FFA0}\\\\x{E0100}-\\\\x{E01EF}]')",message="must be one line, without control characters and invisible characters"
	// +kubebuilder:validation:XValidation:rule="self.matches('^(#[-_.\\\\p{L}\\\\p{N}]+|[-+_.%A-Za-z0-9]+@[-A-Za-z0-9]+([.][-A-Za-z0-9]+)+|https://[-.A-Za-z0-9]+(:[0-9]+)?([/?#][!-~]*)?)?$')",message="must be an e-mail address, an https URL or a #channel, such as shop@example.org, https://chat.example.org/shop or #shop-oncall"
	// +optional
	Contact string `json:"contact,omitempty"`

	// Description describes the tenant in one line. The dashboard shows it. Defaults to none.
	// +croft:tenants:shown=the description of the team's own tenant
	// +croft:change=kept | shown at once by the dashboard
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\p{Cc}\\\\p{Cf}\\\\p{Zl}\\\\p{Zp}\\\\x{034F}\\\\x{115F}\\\\x{1160}\\\\x{17B4}\\\\x{17B5}\\\\x{180B}-\\\\x{180F}\\\\x{2800}\\\\x{3164}\\\\x{FE00}-\\\\x{FE0F}\\\\x{FFA0}\\\\x{E0100}-\\\\x{E01EF}]')",message="must be one line, without control characters and invisible characters"
	// +optional
	Description string `json:"description,omitempty"`

	// Deletion is the policy for the namespaces when the Tenant is deleted.
	// +croft:tenants:shown=keeps or deletes the team's namespaces
	// +croft:change=kept. With `Delete`, namespaces that the tenant no longer declares are deleted at once, if croft created them
	// +kubebuilder:default=Retain
	// +optional
	Deletion DeletionPolicy `json:"deletion,omitempty"`

	// Protect protects the tenant from deletion. While it is true, the API server refuses to
	// delete the Tenant, and to remove namespaces from `namespaces`. To delete the tenant,
	// first set it to false, in a change of its own. Defaults to false.
	// +croft:tenants:shown=whether the tenant is protected from deletion
	// +croft:change=kept | the deletion of the tenant is refused or possible again
	// +optional
	Protect bool `json:"protect,omitempty"`

	// Frozen refuses changes of the tenant's namespaces by its people and robots. Controllers
	// and the platform's admins may still change them. Defaults to no freeze.
	// +croft:tenants:shown=the freeze of the team's own tenant; refusals show the same
	// +croft:change=kept, and replaced as before | changes by the team's people and robots are refused or possible again; possible at the time in `until`
	// +optional
	Frozen *Freeze `json:"frozen,omitempty"`
}

// Freeze refuses changes of a tenant's namespaces by its people and robots.
// +kubebuilder:validation:XValidation:rule="has(self.schedule) == has(self.duration)",message="schedule and duration need each other: write both or none"
type Freeze struct {
	// Reason is the purpose of the freeze, in one line. Refusals show it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\p{Cc}\\\\p{Cf}\\\\p{Zl}\\\\p{Zp}\\\\x{034F}\\\\x{115F}\\\\x{1160}\\\\x{17B4}\\\\x{17B5}\\\\x{180B}-\\\\x{180F}\\\\x{2800}\\\\x{3164}\\\\x{FE00}-\\\\x{FE0F}\\\\x{FFA0}\\\\x{E0100}-\\\\x{E01EF}]')",message="must be one line, without control characters and invisible characters"
	// +required
	Reason string `json:"reason"`
	// Except are the changes that stay possible: scale, the number of replicas. Defaults to
	// none.
	// +kubebuilder:validation:MaxItems=1
	// +listType=set
	// +optional
	Except []FreezeException `json:"except,omitempty"`
	// Schedule has the starts of a freeze that recurs, such as "0 18 * * fri": minute, hour, day of
	// the month, month and day of the week in UTC, as in a CronJob. The operator begins and ends each
	// freeze. Defaults to one freeze that has begun.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Schedule string `json:"schedule,omitempty"`
	// Duration is the length of each freeze of the schedule, such as 60h: at least 1m.
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m')",message="must be at least 1m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(h|m|s))+$`
	// +optional
	Duration *metav1.Duration `json:"duration,omitempty"`
	// Until is the end of the freeze, such as 2026-12-01T00:00:00Z. Defaults to no end. At
	// that time the operator ends the freeze. While no operator runs, it continues. A schedule does
	// not begin a freeze after it.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
}

// FreezeException is a change that a freeze allows.
//
// +kubebuilder:validation:Enum=scale
type FreezeException string

// FreezeExceptScale allows requests to the subresource scale, as kubectl scale sends them.
const FreezeExceptScale FreezeException = "scale"

// Ended reports whether the freeze has ended at a time. At the zero time it has not.
func (f *Freeze) Ended(now time.Time) bool {
	return f.Until != nil && !now.IsZero() && !now.Before(f.Until.Time)
}

// SecretCopy is a copy of a Secret of the platform.
type SecretCopy struct {
	// From is the name of the Secret in the namespace croft-secrets. Defaults to the name of
	// the copy.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="must be the name of a Secret: at most 63 lower-case letters, digits, '-' and '.'"
	// +optional
	From string `json:"from,omitempty"`
}

// NamespaceMetadata holds labels and annotations of a tenant's namespaces. In values, $(tenant)
// is the tenant's name. Keys that croft, Kubernetes, a service mesh or an add-on acts on are
// refused.
type NamespaceMetadata struct {
	// Labels are set on the namespaces, such as {team: $(tenant)}. Defaults to none.
	// +kubebuilder:validation:MaxProperties=32
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations are set on the namespaces. Each has at most 1024 bytes. Defaults to none.
	// +kubebuilder:validation:MaxProperties=32
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// Choose holds the labels that a team may set on the namespaces that it creates itself, by
	// key, with the allowed values: {env: [dev, prod]}. The team writes the label on its
	// TenantNamespace. It wins over labels. An empty list allows no value. Defaults to none.
	// +kubebuilder:validation:MaxProperties=16
	// +optional
	Choose map[string]LabelValues `json:"choose,omitempty"`
}

// LabelValues are the values that a label may have.
//
// +kubebuilder:validation:MaxItems=32
// +kubebuilder:validation:items:MaxLength=63
// +listType=set
type LabelValues []string

// Access gives one group or one user one role in all of a tenant's namespaces.
//
// +kubebuilder:validation:XValidation:rule="has(self.group) != has(self.user)",message="set exactly one of group and user"
type Access struct {
	// Group is a group of the identity provider, without the Platform's groupPrefix.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('system:')",message="groups that begin with system: belong to Kubernetes, and their members are not the people of one team: name a group of your identity provider"
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\p{Cc}\\\\p{Cf}\\\\p{Zl}\\\\p{Zp}\\\\x{034F}\\\\x{115F}\\\\x{1160}\\\\x{17B4}\\\\x{17B5}\\\\x{180B}-\\\\x{180F}\\\\x{2800}\\\\x{3164}\\\\x{FE00}-\\\\x{FE0F}\\\\x{FFA0}\\\\x{E0100}-\\\\x{E01EF}]')",message="must not contain invisible characters, such as zero-width characters"
	// +optional
	Group string `json:"group,omitempty"`
	// User is the name of a single user, as the API server sees it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('system:')",message="users that begin with system: belong to Kubernetes: name a person or a robot of your identity provider"
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\p{Cc}\\\\p{Cf}\\\\p{Zl}\\\\p{Zp}\\\\x{034F}\\\\x{115F}\\\\x{1160}\\\\x{17B4}\\\\x{17B5}\\\\x{180B}-\\\\x{180F}\\\\x{2800}\\\\x{3164}\\\\x{FE00}-\\\\x{FE0F}\\\\x{FFA0}\\\\x{E0100}-\\\\x{E01EF}]')",message="must not contain invisible characters, such as zero-width characters"
	// +optional
	User string `json:"user,omitempty"`
	// Role is the role of the group or user.
	// +required
	Role Role `json:"role"`
	// Until is the end of the access, such as 2026-12-01T00:00:00Z. Defaults to no end.
	// At that time the operator removes the access from the RoleBindings. A RoleBinding
	// does not expire: while no operator runs, the access continues. Use an Elevation for
	// access that must end in any case.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
}

// Ended reports whether the access has ended at a time. At the zero time it has not.
func (a Access) Ended(now time.Time) bool {
	return a.Until != nil && !now.IsZero() && !now.Before(a.Until.Time)
}

// Role is a role in a tenant's namespaces: viewer, operator, or one of the Platform's
// roles.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=40
type Role string

const (
	// RoleViewer reads everything except Secrets.
	RoleViewer Role = "viewer"
	// RoleOperator writes everything that a team needs to run workloads in its
	// namespaces, and nothing that croft manages.
	RoleOperator Role = "operator"
)

// Egress is the policy for connections from a tenant's pods.
//
// +kubebuilder:validation:Enum=Open;Restricted
type Egress string

const (
	// EgressOpen lets pods connect to every address except the instance metadata address.
	// Other tenants stay unreachable: they refuse the connection.
	EgressOpen Egress = "Open"
	// EgressRestricted lets pods connect to DNS, to their own tenant and to the
	// networks of allowCIDRs.
	EgressRestricted Egress = "Restricted"
)

// TenantNetwork holds a tenant's exceptions from the network wall.
type TenantNetwork struct {
	// Egress is the policy for connections from the tenant's pods. Defaults to the
	// Platform's.
	// +croft:change=kept; the network plugin ends connections that are no longer allowed | the same for new pods
	// +optional
	Egress Egress `json:"egress,omitempty"`
	// AllowCIDRs are networks that pods may connect to with Restricted egress.
	// +croft:change=kept; the network plugin ends connections that are no longer allowed | the same for new pods
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=43
	// +kubebuilder:validation:items:XValidation:rule="isCIDR(self)",message="must be a network, such as 10.20.0.0/16"
	// +listType=set
	// +optional
	AllowCIDRs []string `json:"allowCIDRs,omitempty"`
	// Callers are the other tenants that may connect to this tenant's pods, by name. A
	// connection opens only if the calls of the other tenant name this one, and only as far
	// as both agree: on the ports and pods that both name, until the first end. Defaults to
	// none.
	// +croft:change=kept; the network plugin ends connections that are no longer allowed | opens if the other tenant agrees; closed at once when either of the two withdraws, and at the time in `until`
	// +kubebuilder:validation:MaxProperties=64
	// +optional
	Callers map[string]Caller `json:"callers,omitempty"`
	// Calls are the other tenants that this tenant's pods may connect to, by name, if the
	// callers of the other tenant name this one. Defaults to none.
	// +croft:change=kept; the network plugin ends connections that are no longer allowed | opens if the other tenant agrees; closed at once when either of the two withdraws, and at the time in `until`
	// +kubebuilder:validation:MaxProperties=64
	// +optional
	Calls map[string]Call `json:"calls,omitempty"`
	// CallersFrom are the tenants from which the team may accept connections itself, by
	// TenantCallers in its namespaces: names, or "*" for all. Defaults to the Platform's; an
	// empty list allows none. A connection still opens only if the calls of the other tenant
	// name this one.
	// +croft:change=kept; the network plugin ends connections that are no longer allowed | connections that the team accepted close at once when their tenant is removed
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:XValidation:rule="self == '*' || !format.dns1123Label().validate(self).hasValue()",message="must be the name of a tenant, or *"
	// +listType=set
	// +optional
	CallersFrom []string `json:"callersFrom,omitzero"`
}

// PodSecurityLevel is one of the Pod Security Standards.
//
// +kubebuilder:validation:Enum=privileged;baseline;restricted
type PodSecurityLevel string

const (
	// PodSecurityPrivileged refuses nothing.
	PodSecurityPrivileged PodSecurityLevel = "privileged"
	// PodSecurityBaseline refuses known privilege escalations.
	PodSecurityBaseline PodSecurityLevel = "baseline"
	// PodSecurityRestricted also requires current hardening, such as not running as root.
	PodSecurityRestricted PodSecurityLevel = "restricted"
)

// TenantPolicy holds a tenant's exceptions from the policy wall.
type TenantPolicy struct {
	// PodSecurity is the Pod Security level of the namespaces. Defaults to the
	// Platform's.
	// +croft:change=kept; pods that violate it are refused when they are re-created | the same; the API server warns at once
	// +croft:exception=`baseline` | another Pod Security level
	// +optional
	PodSecurity PodSecurityLevel `json:"podSecurity,omitempty"`

	Allowances `json:",inline"`
}

// Allowances are the values that the policy wall allows in a tenant's objects. A given
// list replaces the Platform's default as a whole; an empty list allows nothing. In lists
// of names, "*" allows every name.
type Allowances struct {
	PolicySettings `json:",inline"`
	// Images are requirements on the references of images, such as a digest. Defaults to
	// none; an empty object removes the Platform's default.
	// +croft:change=kept | new pods and changes of existing objects are checked
	// +croft:exception=any | with `{digest: Required}`, only images with a digest; with `{latest: Forbidden}`, none whose tag is `latest` or missing; `{}` allows any again
	// +optional
	Images *Images `json:"images,omitempty"`
	// PriorityClass is the priority class that croft sets on pods without one. If the cluster
	// has a default class, pods get that class instead. Defaults to none; an empty object
	// removes the Platform's default.
	// +croft:change=kept | new pods get it
	// +croft:exception=none | with `{default: batch}`, pods without a class get this one of `priorityClasses`
	// +optional
	PriorityClass *PodPriorityClass `json:"priorityClass,omitempty"`
	// RuntimeClass is the runtime class that croft sets on pods without one, such as gvisor.
	// Defaults to none; an empty object removes the Platform's default.
	// +croft:change=kept | new pods get it
	// +croft:exception=none | with `{force: gvisor}`, only pods with this class, which croft sets; with `{default: gvisor}`, pods without a class get this one of `runtimeClasses`; `{}` allows others again
	// +optional
	RuntimeClass *PodRuntimeClass `json:"runtimeClass,omitempty"`
	// ShareWith are people and service accounts outside the tenant that its RoleBindings
	// may give roles to. Defaults to none. The groups and users of the tenant's access
	// and the service accounts of its namespaces are always allowed.
	// +croft:change=kept | existing objects stay and keep working; new objects and changes are checked
	// +croft:exception=none | RoleBindings to these groups, users and service accounts in addition to the tenant's own: `[{group: sre}, {serviceAccount: monitoring/prometheus}]`
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	ShareWith []Sharer `json:"shareWith,omitzero"`
	// MaxObjectBytes is the maximum size of a Secret or ConfigMap, as stored and with its
	// metadata. Defaults to 262144, 256 KiB. Together with the quota it limits a tenant's
	// space in etcd.
	// +croft:change=kept | existing objects stay and keep working; new objects and changes are checked
	// +croft:exception=262144 | larger Secrets and ConfigMaps
	// +kubebuilder:validation:Minimum=16384
	// +kubebuilder:validation:Maximum=1572864
	// +optional
	MaxObjectBytes *int64 `json:"maxObjectBytes,omitempty"`
	// MaxHelmReleaseBytes is the maximum size of a Secret of type helm.sh/release.v1, in
	// which Helm stores each revision of a release. Defaults to maxObjectBytes. Large
	// charts need up to 1048576, 1 MiB.
	// +croft:change=kept | existing objects stay and keep working; new objects and changes are checked
	// +croft:exception=`maxObjectBytes` | larger Secrets of type `helm.sh/release.v1`: Helm needs up to 1048576 for large charts
	// +kubebuilder:validation:Minimum=16384
	// +kubebuilder:validation:Maximum=1572864
	// +optional
	MaxHelmReleaseBytes *int64 `json:"maxHelmReleaseBytes,omitempty"`
	// MaxOtherObjectBytes is the maximum size of an object of any other kind, such as a
	// pod, a Deployment or an add-on's. Defaults to 49152, 48 KiB. The limit of Events,
	// Leases and Elevations is always 8 KiB.
	// +croft:change=kept | existing objects stay and keep working; new objects and changes are checked
	// +croft:exception=49152 | larger objects of every other kind
	// +kubebuilder:validation:Minimum=16384
	// +kubebuilder:validation:Maximum=1572864
	// +optional
	MaxOtherObjectBytes *int64 `json:"maxOtherObjectBytes,omitempty"`
}

// PolicySettings are the allowances that the admission policies read unchanged. TenantRules repeat them, with
// the defaults filled in. The type of a field is one that admissionpolicy can write as an annotation.
type PolicySettings struct {
	// ServiceTypes are the allowed types of Services. Defaults to ClusterIP.
	// +croft:change=kept | existing objects stay and keep working; new objects and changes are checked
	// +croft:exception=`[ClusterIP]` | Services of other types
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:Enum=ClusterIP;NodePort;LoadBalancer;ExternalName
	// +listType=set
	// +optional
	ServiceTypes []corev1.ServiceType `json:"serviceTypes,omitzero"`
	// Registries are the allowed sources of images: a registry, such as
	// registry.example.org, a path in one, such as ghcr.io/example, or a single
	// repository. Images without a registry come from docker.io. Defaults to any.
	// +croft:change=kept | new pods and changes of existing objects are checked
	// +croft:exception=any | images from these registries, paths or repositories only
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule="self == '*' || self.matches('^[a-z0-9]([-a-z0-9._:]*[a-z0-9])?(/[a-z0-9]([-a-z0-9._]*[a-z0-9])?)*$')",message="must be a registry or a path in one without a tag, such as registry.example.org or ghcr.io/example, or \"*\" for any"
	// +listType=set
	// +optional
	Registries []string `json:"registries,omitzero"`
	// ImagePullPolicies are the allowed pull policies of containers and image volumes.
	// The first replaces policies that are not in the list. Defaults to Always: with any
	// other, a container may run an image that another pod's secret pulled to the node.
	// +croft:change=kept | new pods and changes of existing objects are checked
	// +croft:exception=`[Always]` | other pull policies; a container with a policy that is not listed gets the first
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:items:Enum=Always;IfNotPresent;Never
	// +listType=atomic
	// +optional
	ImagePullPolicies []corev1.PullPolicy `json:"imagePullPolicies,omitzero"`
	// PriorityClasses are the allowed priority classes of pods. Defaults to none. If the
	// cluster has a default class, pods are refused unless it is allowed.
	// +croft:change=kept | new pods and changes of existing objects are checked
	// +croft:exception=none | these classes
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	PriorityClasses []string `json:"priorityClasses,omitzero"`
	// RuntimeClasses are the allowed runtime classes of pods. Defaults to none.
	// +croft:change=kept | new pods and changes of existing objects are checked
	// +croft:exception=none | these classes
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	RuntimeClasses []string `json:"runtimeClasses,omitzero"`
	// Seccomp is the minimum seccomp profile of pods. With RuntimeDefault, croft sets
	// RuntimeDefault on pods without a profile, and refuses Unconfined. Defaults to Any.
	// +croft:change=kept | new pods get it
	// +croft:exception=`Any` | with `RuntimeDefault`, only pods with a seccomp profile; croft sets a missing one
	// +kubebuilder:validation:Enum=Any;RuntimeDefault
	// +optional
	Seccomp string `json:"seccomp,omitempty"`
	// HostUsers decides whether pods may use the user IDs of their node. With Forbidden, pods
	// run in a user namespace: croft sets hostUsers to false on pods without the field, and
	// refuses true. Such pods cannot share their node's network, processes or IPC. Defaults to
	// Allowed.
	// +croft:change=kept | new pods get it
	// +croft:exception=`Allowed` | with `Forbidden`, only pods in a user namespace; croft sets a missing `hostUsers`
	// +kubebuilder:validation:Enum=Allowed;Forbidden
	// +optional
	HostUsers string `json:"hostUsers,omitempty"`
	// ServiceAccountToken decides whether pods get the token of their service account without
	// a request. With OnRequest, pods that would mount it are refused, unless they set
	// automountServiceAccountToken to true. A pod that needs no token sets the field to false,
	// or its service account does. Defaults to Automatic.
	// +croft:change=kept | new pods are checked
	// +croft:exception=`Automatic` | with `OnRequest`, only pods that request the token of their service account, or do not get it
	// +kubebuilder:validation:Enum=Automatic;OnRequest
	// +optional
	ServiceAccountToken string `json:"serviceAccountToken,omitempty"`
	// Trial names fields of policy whose rules do not refuse pods yet: they warn the user,
	// and add an annotation to the API server's audit log. Nothing is set on pods for
	// these fields. Defaults to none.
	// +croft:change=kept | the named rules warn instead of refusing, or refuse again
	// +croft:exception=none | pods that violate the rules of these fields, with a warning: `[images, runtimeClass]`
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:validation:items:Enum=hostUsers;images;registries;runtimeClass;serviceAccountToken
	// +listType=set
	// +optional
	Trial []string `json:"trial,omitzero"`
	// StorageClasses are the allowed storage classes of claims. Defaults to any. "*" does
	// not allow the empty name, which requests an existing volume.
	// +croft:change=kept | existing objects stay and keep working; new objects and changes are checked
	// +croft:exception=any | these classes only
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	StorageClasses []string `json:"storageClasses,omitzero"`
	// IngressClasses are the allowed classes of Ingresses. Defaults to any.
	// +croft:change=kept | existing objects stay and keep working; new objects and changes are checked
	// +croft:exception=any | these classes only
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	IngressClasses []string `json:"ingressClasses,omitzero"`
	// GatewayClasses are the allowed classes of Gateways. Defaults to any.
	// +croft:change=kept | existing objects stay and keep working; new objects and changes are checked
	// +croft:exception=any | these classes only
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	GatewayClasses []string `json:"gatewayClasses,omitzero"`
	// Issuers are the issuers that Certificates may name, as KIND/NAME:
	// ClusterIssuer/letsencrypt, or Issuer/* for every Issuer of the namespace. A kind of
	// another API group is followed by the group:
	// AWSPCAClusterIssuer.awspca.cert-manager.io/internal. Defaults to any.
	// +croft:change=kept | existing objects stay and keep working; new objects and changes are checked
	// +croft:exception=any | Certificates of these issuers only, as `ClusterIssuer/letsencrypt` or `Issuer/*`
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule="self == '*' || self.matches('^[A-Z][A-Za-z0-9]*([.][a-z0-9]([-a-z0-9.]*[a-z0-9])?)?/([*]|[a-z0-9]([-a-z0-9.]*[a-z0-9])?)$')",message="must be the kind and the name of an issuer, such as ClusterIssuer/letsencrypt or Issuer/*, or \"*\" for any"
	// +listType=set
	// +optional
	Issuers []string `json:"issuers,omitzero"`
	// IssuerTypes are the allowed types of the tenant's own Issuers, by the name of
	// cert-manager's field. Defaults to selfSigned and ca. The others make cert-manager
	// connect to the address that the Issuer names.
	// +croft:change=kept | existing objects stay and keep working; new objects and changes are checked
	// +croft:exception=`[selfSigned, ca]` | Issuers of other types, which make cert-manager connect to an address: `acme`, `vault`, `venafi`
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:validation:items:Enum=acme;ca;selfSigned;vault;venafi
	// +listType=set
	// +optional
	IssuerTypes []string `json:"issuerTypes,omitzero"`
	// SourceHosts are the hosts that Flux may fetch from for the tenant: exact names, or
	// a leading "*." for all subdomains. "*", the default, allows every host name outside
	// the cluster; hosts inside and IP addresses must be listed. Services in the tenant's
	// and the platform's namespaces are always allowed.
	// +croft:change=kept | existing objects stay and keep working; new objects and changes are checked
	// +croft:exception=any outside of the cluster | Flux sources at these hosts only; a host inside of the cluster, or an address, must be in the list
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule="self == '*' || isIP(self) || self.matches('^(\\\\*\\\\.)?([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\\\\.)*[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')",message="must be a host in lower case, such as github.com or *.example.org, an address, or \"*\" for every host outside of the cluster"
	// +listType=set
	// +optional
	SourceHosts []string `json:"sourceHosts,omitzero"`
	// CSIDrivers are the allowed drivers of pods' inline volumes, such as
	// secrets-store.csi.k8s.io. Defaults to none. Claims are not affected.
	// +croft:change=kept | new pods and changes of existing objects are checked
	// +croft:exception=none | inline volumes of these drivers
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	CSIDrivers []string `json:"csiDrivers,omitzero"`
	// DeviceClasses are the allowed device classes of ResourceClaims and pods, such as
	// gpu.example.com. Defaults to none. The scheduler searches for devices while all
	// other pods wait: allow a class only to tenants that may delay others.
	// +croft:change=kept | new pods and changes of existing objects are checked
	// +croft:exception=none | claims of devices of these classes (dynamic resource allocation)
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	DeviceClasses []string `json:"deviceClasses,omitzero"`
	// VolumeTypes are volume types that pods may mount in addition to configMap, secret,
	// projected, downwardAPI, emptyDir, persistentVolumeClaim, ephemeral, image and, with
	// csiDrivers, csi. Defaults to none. Each of them connects from the node, past every
	// NetworkPolicy, or mounts any disk of the cloud account by its ID. hostPath is not
	// among them: Pod Security allows it only at the level privileged.
	// +croft:change=kept | new pods and changes of existing objects are checked
	// +croft:exception=none | volumes of these types, by their names in the Kubernetes API (`nfs`), in addition to [the types of every pod](#volumes-and-claims)
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:Enum=awsElasticBlockStore;azureDisk;azureFile;cephfs;cinder;fc;flexVolume;flocker;gcePersistentDisk;gitRepo;glusterfs;iscsi;nfs;photonPersistentDisk;portworxVolume;quobyte;rbd;scaleIO;storageos;vsphereVolume;*
	// +listType=set
	// +optional
	VolumeTypes []VolumeType `json:"volumeTypes,omitzero"`
	// VolumeAttributesClasses are the allowed VolumeAttributesClasses of claims, such as
	// for more IOPS. Defaults to none. A claim can change its class at any time.
	// +croft:change=kept | existing objects stay and keep working; new objects and changes are checked
	// +croft:exception=none | these classes
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	VolumeAttributesClasses []string `json:"volumeAttributesClasses,omitzero"`
	// MaxVolumeSize is the maximum storage of one claim. Defaults to 1Ti. The tenant's
	// quota of requests.storage limits all claims together.
	// +croft:change=kept | existing objects stay and keep working; new objects and changes are checked
	// +croft:exception=`1Ti` | larger claims
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="must be more than 0, such as 500Gi"
	// +optional
	MaxVolumeSize *resource.Quantity `json:"maxVolumeSize,omitempty"`
	// CloudIdentities are the cloud identities that service accounts may name in the
	// annotations of AWS (eks.amazonaws.com/role-arn), Google
	// (iam.gke.io/gcp-service-account), Azure (azure.workload.identity/client-id) and
	// Alibaba (pod-identity.alibabacloud.com/role-name): exact, or a prefix with a
	// trailing "*", such as arn:aws:iam::111122223333:role/shop-*. Defaults to none.
	// +croft:change=kept | new pods and changes of existing objects are checked
	// +croft:exception=none | ServiceAccounts that name these roles or accounts of AWS, Google, Azure or Alibaba in their annotations: `["arn:aws:iam::111122223333:role/shop-*"]`
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[^*,]*[*]?$')",message="must be an identity, or the beginning of identities with a trailing \"*\", such as arn:aws:iam::111122223333:role/shop-*"
	// +listType=set
	// +optional
	CloudIdentities []string `json:"cloudIdentities,omitzero"`
	// ClusterIPs are the addresses that Services may choose. Defaults to none: the
	// cluster assigns a free one. A chosen address may be one that another tenant's
	// Service has just released, or that the cluster's DNS is about to take.
	// +croft:change=kept | existing objects stay and keep working; new objects and changes are checked
	// +croft:exception=none | Services that request these addresses
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=45
	// +kubebuilder:validation:items:XValidation:rule="self == '*' || isIP(self)",message="must be an IP address, such as 10.100.7.7, or \"*\" for any"
	// +listType=set
	// +optional
	ClusterIPs []string `json:"clusterIPs,omitzero"`
	// LoadBalancerClasses are the classes that Services of type LoadBalancer may choose, such as
	// service.k8s.aws/nlb. Defaults to none: the cluster's default implementation serves the
	// Service. A webhook that sets a class, such as the AWS Load Balancer Controller's, requires
	// it here.
	// +croft:change=kept | existing objects stay and keep working; new objects and changes are checked
	// +croft:exception=none | Services of these classes of load balancers
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=127
	// +listType=set
	// +optional
	LoadBalancerClasses []string `json:"loadBalancerClasses,omitzero"`
	// ExternalNames are the names that Services of type ExternalName may have: exact names, or
	// a leading "*." for all subdomains. "*", the default, allows every host name outside of
	// the cluster; names inside must be listed. serviceTypes allows the type.
	// +croft:change=kept | existing objects stay and keep working; new objects and changes are checked
	// +croft:exception=any outside of the cluster | ExternalNames for these names only; a name inside of the cluster must be in the list
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=96
	// +kubebuilder:validation:items:XValidation:rule="self == '*' || self.matches('^(\\\\*\\\\.)?([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\\\\.)*[a-z]([-a-z0-9]{0,61}[a-z0-9])?$')",message="must be a host name in lower case, such as db.example.org or *.example.org, or \"*\" for every host name outside of the cluster"
	// +listType=set
	// +optional
	ExternalNames []string `json:"externalNames,omitzero"`
	// MaxTokenExpirationSeconds is the maximum lifetime of a requested service account
	// token (kubectl create token). Defaults to 86400, a day. Tokens in pods are not
	// affected: the kubelet requests them, and they end with their pod.
	// +croft:change=kept | new pods and changes of existing objects are checked
	// +croft:exception=86400 | `kubectl create token` with a longer lifetime
	// +kubebuilder:validation:Minimum=600
	// +optional
	MaxTokenExpirationSeconds *int64 `json:"maxTokenExpirationSeconds,omitempty"`
	// TokenSecrets allows Secrets of the type kubernetes.io/service-account-token, which
	// hold tokens that never expire. Defaults to false.
	// +croft:change=kept | existing objects stay and keep working; new objects and changes are checked
	// +croft:exception=`false` | Secrets of type `kubernetes.io/service-account-token`, whose tokens never expire
	// +optional
	TokenSecrets *bool `json:"tokenSecrets,omitempty"`
	// MaxTerminationGracePeriodSeconds is the maximum terminationGracePeriodSeconds of
	// pods. Defaults to 3600, an hour. The minimum is Kubernetes' default of 30.
	// +croft:change=kept | new pods and changes of existing objects are checked
	// +croft:exception=3600 | pods with a longer termination grace period
	// +kubebuilder:validation:Minimum=30
	// +optional
	MaxTerminationGracePeriodSeconds *int64 `json:"maxTerminationGracePeriodSeconds,omitempty"`
	// DoNotDisrupt allows pods to carry karpenter.sh/do-not-disrupt, which keeps their
	// nodes until the pool's ttl and terminationGracePeriod, or its equivalents of the
	// cluster-autoscaler and the descheduler. Defaults to false.
	// +croft:change=kept | new pods and changes of existing objects are checked
	// +croft:exception=`false` | `karpenter.sh/do-not-disrupt` on pods, and its equivalents of the cluster-autoscaler and the descheduler
	// +optional
	DoNotDisrupt *bool `json:"doNotDisrupt,omitempty"`
	// Annotations are annotations and labels that objects may carry although an add-on
	// acts on them: a key, KEY=VALUE, or a prefix that ends in a slash. Defaults to none.
	// docs/reference/addons.md lists the add-ons that croft knows.
	// +croft:change=kept | new pods and changes of existing objects are checked
	// +croft:exception=none | annotations and labels that make add-ons act outside of the tenant ([the catalogue](addons.md#annotations-and-labels-that-make-add-ons-act))
	// +kubebuilder:validation:MaxItems=24
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule="!self.contains(',')",message="must be an annotation's key, KEY=VALUE, or a prefix that ends in a slash, without commas"
	// +listType=set
	// +optional
	Annotations []string `json:"annotations,omitzero"`
	// UnknownAnnotations is the policy for annotations with a prefix that croft's
	// catalogue of add-ons does not contain: Allow, Warn or Deny. Defaults to Warn: no
	// add-on reads most of them, and the warning shows the others. Pods from a template
	// get no warning, since the template got one.
	// +croft:change=kept | new pods and changes of existing objects are checked
	// +croft:exception=`Warn` | `Allow` or `Deny` annotations that the catalogue does not know
	// +optional
	UnknownAnnotations UnknownAnnotations `json:"unknownAnnotations,omitempty"`
}

// Images are requirements on the references of images in containers and image volumes.
type Images struct {
	// Digest requires a digest, as in app:1.2@sha256:…: every user who can push to the
	// registry can move a tag, but not a digest.
	// +kubebuilder:validation:Enum=Required
	// +optional
	Digest string `json:"digest,omitempty"`
	// Latest forbids the tag latest, and images with neither a tag nor a digest, which
	// mean latest: a restarted pod may run another version than its peers.
	// +kubebuilder:validation:Enum=Forbidden
	// +optional
	Latest string `json:"latest,omitempty"`
}

// PodPriorityClass is the priority class of a tenant's pods.
type PodPriorityClass struct {
	// Default is the name of a PriorityClass among priorityClasses. croft sets it on pods
	// without a class. With Gatekeeper as the placement engine, it must not be set.
	// +kubebuilder:validation:MaxLength=127
	// +optional
	Default string `json:"default,omitempty"`
}

// PodRuntimeClass is the runtime class of a tenant's pods.
//
// +kubebuilder:validation:XValidation:rule="!has(self.force) || !has(self.default)",message="set force or default, not both"
type PodRuntimeClass struct {
	// Force is the name of a RuntimeClass. croft sets it on pods without a class, and
	// refuses pods with another. It need not be among runtimeClasses.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Force string `json:"force,omitempty"`
	// Default is the name of a RuntimeClass among runtimeClasses. croft sets it on pods
	// without a class.
	// +kubebuilder:validation:MaxLength=127
	// +optional
	Default string `json:"default,omitempty"`
}

// VolumeType is a type of volume, as named in a pod.
type VolumeType string

// Sharer is a group, a user or a service account that a tenant may share with.
//
// +kubebuilder:validation:XValidation:rule="(has(self.group) ? 1 : 0) + (has(self.user) ? 1 : 0) + (has(self.serviceAccount) ? 1 : 0) == 1",message="set exactly one of group, user and serviceAccount"
type Sharer struct {
	// Group is a group as the API server sees it: the Platform's groupPrefix is not
	// prepended. "*" is any group except groups that begin with system:.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('system:')",message="groups that begin with system: belong to Kubernetes, and their members are not the people of one team: name a group of your identity provider, or a serviceAccount"
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\p{Cc}\\\\p{Cf}\\\\p{Zl}\\\\p{Zp}\\\\x{034F}\\\\x{115F}\\\\x{1160}\\\\x{17B4}\\\\x{17B5}\\\\x{180B}-\\\\x{180F}\\\\x{2800}\\\\x{3164}\\\\x{FE00}-\\\\x{FE0F}\\\\x{FFA0}\\\\x{E0100}-\\\\x{E01EF}]')",message="must not contain invisible characters, such as zero-width characters"
	// +optional
	Group string `json:"group,omitempty"`
	// User is the name of a single user, as the API server sees it. "*" is any user
	// except users that begin with system:.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('system:')",message="users that begin with system: belong to Kubernetes: name a person or a robot of your identity provider, or a serviceAccount"
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\p{Cc}\\\\p{Cf}\\\\p{Zl}\\\\p{Zp}\\\\x{034F}\\\\x{115F}\\\\x{1160}\\\\x{17B4}\\\\x{17B5}\\\\x{180B}-\\\\x{180F}\\\\x{2800}\\\\x{3164}\\\\x{FE00}-\\\\x{FE0F}\\\\x{FFA0}\\\\x{E0100}-\\\\x{E01EF}]')",message="must not contain invisible characters, such as zero-width characters"
	// +optional
	User string `json:"user,omitempty"`
	// ServiceAccount is a service account, as NAMESPACE/NAME, or all of a namespace,
	// as NAMESPACE/*.
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?/([*]|[a-z0-9]([-a-z0-9.]*[a-z0-9])?)$')",message="must be NAMESPACE/NAME, such as monitoring/prometheus, or NAMESPACE/*"
	// +optional
	ServiceAccount string `json:"serviceAccount,omitempty"`
}

// UnknownAnnotations is the policy for annotations that the catalogue of add-ons does not
// contain.
//
// +kubebuilder:validation:Enum=Allow;Warn;Deny
type UnknownAnnotations string

const (
	// UnknownAllow admits objects with unknown annotations.
	UnknownAllow UnknownAnnotations = "Allow"
	// UnknownWarn admits them with a warning.
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
	// Max is the maximum of a container's requests and limits.
	// +optional
	Max corev1.ResourceList `json:"max,omitempty"`
	// Min is the minimum of a container's requests and limits.
	// +optional
	Min corev1.ResourceList `json:"min,omitempty"`
}

// DeletionPolicy is the policy for the namespaces when a Tenant is deleted.
//
// +kubebuilder:validation:Enum=Retain;Delete
type DeletionPolicy string

const (
	// DeletionRetain keeps the namespaces, the workloads and the walls, and removes
	// people's access.
	DeletionRetain DeletionPolicy = "Retain"
	// DeletionDelete deletes the namespaces that croft created, with everything in them,
	// and releases adopted namespaces.
	DeletionDelete DeletionPolicy = "Delete"
)

// TenantStatus is the observed state of a Tenant.
type TenantStatus struct {
	Status `json:",inline"`
	// Pool is the default pool.
	// +optional
	Pool string `json:"pool,omitempty"`
	// Pools are all pools that the tenant's pods may run on, the default first.
	// +listType=atomic
	// +optional
	Pools []string `json:"pools,omitempty"`
	// Namespaces are the namespaces that croft manages for the tenant.
	// +listType=atomic
	// +optional
	Namespaces []string `json:"namespaces,omitempty"`
	// Domains are all hosts that the tenant may serve.
	// +listType=atomic
	// +optional
	Domains []string `json:"domains,omitempty"`
	// Consents are the UIDs of the Tenants that the tenant's callers and calls name. A consent
	// does not pass to a later Tenant of the same name.
	// +optional
	Consents map[string]string `json:"consents,omitempty"`
	// Placement is the engine that was last observed to place the tenant's pods.
	// +optional
	Placement PlacementEngine `json:"placement,omitempty"`
	// Shares divide the quota among several namespaces. croft writes their ResourceQuotas
	// from this list. A single namespace has the whole quota, and no list.
	// +listType=map
	// +listMapKey=namespace
	// +optional
	Shares []QuotaShare `json:"shares,omitempty"`
	// RefusedPods counts the workloads with pods that the API server refuses, by quota,
	// policies, Pod Security or limits. It is absent if there are none.
	// +optional
	RefusedPods *RefusedPods `json:"refusedPods,omitempty"`
	// Budget compares the tenant's cost in this month with its budget. It is absent without a
	// budget.
	// +optional
	Budget *TenantBudgetStatus `json:"budget,omitempty"`
}

// RefusedPods are workloads with pods that the API server refuses, by the events of
// Kubernetes' own controllers. A workload counts until its controller has had time to try
// again: after the last refusal, for as long as it has been refused and a minute more, at
// most 20 minutes.
type RefusedPods struct {
	// Workloads is the number of refused ReplicaSets, StatefulSets, DaemonSets, Jobs,
	// CronJobs and ReplicationControllers.
	// +required
	Workloads int64 `json:"workloads"`
	// First is the workload that was refused first.
	// +required
	First RefusedWorkload `json:"first"`
}

// RefusedWorkload is a workload with pods that the API server refuses.
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
	// Namespace is the namespace's name.
	// +required
	Namespace string `json:"namespace"`
	// Hard is the limit of all of the namespace's objects together.
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
