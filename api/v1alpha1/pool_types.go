package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pool is a kind of node that tenants' pods run on. It becomes a Karpenter
// NodePool and a node class, both of the same name.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=croft
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.nodes`
// +kubebuilder:printcolumn:name="CPU",type=string,JSONPath=`.status.resources.cpu`
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=`.status.resources.memory`
// +kubebuilder:printcolumn:name="Cost-Code",type=string,JSONPath=`.spec.costCode`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63 && !self.metadata.name.contains('.')",message="a pool's name becomes a label and a taint: at most 63 lower-case letters, digits and '-'"
type Pool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:default={}
	// +optional
	Spec PoolSpec `json:"spec"`
	// +optional
	Status PoolStatus `json:"status,omitempty"`
}

// PoolSpec specifies the nodes of a pool and their lifetime.
//
// +kubebuilder:validation:XValidation:rule="!has(self.waitForNetworks) || !self.waitForNetworks || has(self.secondaryNetworks) && self.secondaryNetworks.size() > 0",message="waitForNetworks: the pool has no secondaryNetworks to wait for"
// +kubebuilder:validation:XValidation:rule="!has(self.emptyTTL) || !has(self.consolidation) || self.consolidation == 'WhenEmpty' || self.emptyTTL != 'Never'",message="emptyTTL: Never keeps nodes for ever, so consolidation can only be WhenEmpty"
type PoolSpec struct {
	// Instances selects the instances that may become nodes.
	// +croft:tenants:shown=the instances that a pod may request
	// +kubebuilder:default={}
	// +optional
	Instances Instances `json:"instances,omitempty"`

	// Limits are the maximum total resources of the pool's nodes, such as cpu and memory.
	// Without them, only the quotas of its tenants limit the pool.
	// +croft:tenants:shown=explains why the pool gets no more nodes
	// +croft:change=kept, also above the new limit; Karpenter creates no more nodes above it | new pods wait above the limit
	// +optional
	Limits corev1.ResourceList `json:"limits,omitempty"`

	// EmptyTTL is how long a node must be empty (or, with consolidation
	// WhenEmptyOrUnderutilized, unchanged) before it is removed.
	// +croft:tenants:shown=the lifetime of an empty node
	// +croft:change=kept; nodes that are empty for longer are deleted | kept
	// +kubebuilder:default="1h"
	// +optional
	EmptyTTL Duration `json:"emptyTTL,omitempty"`

	// Consolidation selects nodes that may be removed to save money.
	// +croft:tenants:shown=shows whether pods are moved to save money
	// +croft:change=kept; with `WhenEmptyOrUnderutilized` Karpenter drains underutilized nodes from then on | restart when their node is drained
	// +kubebuilder:default=WhenEmpty
	// +optional
	Consolidation Consolidation `json:"consolidation,omitempty"`

	// TTL is the age at which a node is replaced.
	// +croft:tenants:shown=the maximum time of a pod on a node
	// +croft:change=replaced: nodes keep the expiry from their creation | restart
	// +kubebuilder:default=Never
	// +optional
	TTL Duration `json:"ttl,omitempty"`

	// TerminationGracePeriod is how long a terminating node waits for its pods. After
	// that, even a PodDisruptionBudget or karpenter.sh/do-not-disrupt does not keep it.
	// Never sets no limit.
	// +croft:tenants:shown=the time that a node waits for its pods
	// +croft:change=replaced, as for `ttl` | restart
	// +kubebuilder:default="24h"
	// +optional
	TerminationGracePeriod Duration `json:"terminationGracePeriod,omitempty"`

	// Budgets limit how many nodes are disrupted at once. Defaults to 10%.
	// +croft:tenants:shown=the number of nodes that are replaced at once
	// +croft:change=kept; they limit the number of nodes that are replaced at once | kept
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	// +optional
	Budgets []Budget `json:"budgets,omitempty"`

	// Weight is the priority among pools that fit a pod: highest first.
	// +croft:tenants:hidden=orders the platform's pools among themselves
	// +croft:change=kept; Karpenter tries the pool with the highest weight first | kept
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	Weight *int32 `json:"weight,omitempty"`

	// CostCode identifies the payer. It becomes a label of the nodes and, in a cloud with
	// tags, the tag CostCode.
	// +croft:tenants:shown=cost allocation; a label of the nodes
	// +croft:change=replaced: it is a label of nodes (with AWS, a tag of instances, too) | restart
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="becomes a label: letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"
	// +optional
	CostCode string `json:"costCode,omitempty"`

	// Tags are put on the instances in the cloud.
	// +croft:tenants:hidden=the cloud account's bookkeeping
	// +croft:change=replaced: they are tags of instances, or annotations of nodes without AWS | restart
	// +kubebuilder:validation:MaxProperties=40
	// +optional
	Tags map[string]string `json:"tags,omitempty"`

	// NodeClass overrides the Platform's as a whole; only aws is merged into the
	// Platform's aws, field by field.
	// +croft:tenants:hidden=subnets, security groups, images and roles of the cloud account
	// +optional
	NodeClass *NodeClass `json:"nodeClass,omitempty"`

	// StartupTaints keep pods off a new node until another program removes them, such as
	// the agent of a network plugin or of a CSI driver. Without that program, nodes stay
	// empty. A change replaces the pool's nodes.
	// +croft:tenants:shown=explains why a new node takes no pods yet
	// +croft:change=replaced: Karpenter hashes them. Their order does not matter | restart
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	StartupTaints []StartupTaint `json:"startupTaints,omitempty"`

	// SecondaryNetworks name the SecondaryNetworks that the nodes are attached to.
	// +croft:tenants:hidden=names networks of the platform, which teams cannot read
	// +croft:change=kept; their network interfaces are attached or detached ([networks.md](../how-to/networks.md)) | pods that use a removed network lose it
	// +kubebuilder:validation:MaxItems=14
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +optional
	SecondaryNetworks []string `json:"secondaryNetworks,omitempty"`

	// WaitForNetworks keeps pods off a node until croft's agent has set up the node's
	// interfaces in the secondary networks. Install the agent first (croft install
	// --agent): without it, nodes stay empty. A change replaces the pool's nodes.
	// +croft:tenants:shown=explains why a new node takes no pods yet
	// +croft:change=replaced: it is a label and a startup taint | restart
	// +optional
	WaitForNetworks bool `json:"waitForNetworks,omitempty"`
}

// Consolidation selects nodes that may be removed to save money.
//
// +kubebuilder:validation:Enum=WhenEmpty;WhenEmptyOrUnderutilized
type Consolidation string

const (
	// ConsolidateWhenEmpty removes nodes without pods, and moves no pod.
	ConsolidateWhenEmpty Consolidation = "WhenEmpty"
	// ConsolidateWhenUnderutilized also moves pods together onto fewer nodes.
	ConsolidateWhenUnderutilized Consolidation = "WhenEmptyOrUnderutilized"
)

// Duration is a time span with its unit, or Never.
//
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:XValidation:rule="self.matches('^(([0-9]+(s|m|h))+|Never)$')",message="must be a duration with its unit, such as 30s, 10m or 168h, or Never"
type Duration string

// Never is the Duration that does not end.
const Never Duration = "Never"

// Budget limits how many nodes may be disrupted at once.
//
// +kubebuilder:validation:XValidation:rule="has(self.schedule) == has(self.duration)",message="schedule and duration go together"
type Budget struct {
	// Nodes is a number or a percentage of the pool's nodes.
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:XValidation:rule="self.matches('^((100|[0-9]{1,2})%|[0-9]+)$')",message="must be a number of nodes or a percentage, such as 3 or 10%"
	// +required
	Nodes string `json:"nodes"`
	// Schedule is the start of the budget, in cron syntax, UTC.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +optional
	Schedule string `json:"schedule,omitempty"`
	// Duration is how long the budget applies after each start.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+(m|h))+$')",message="must be hours and minutes, such as 8h or 1h30m"
	// +optional
	Duration string `json:"duration,omitempty"`
	// Reasons are the disruptions that the budget limits. Defaults to all: Underutilized
	// (to save money), Empty (no pods) and Drifted (the node differs from its pool).
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:items:Enum=Underutilized;Empty;Drifted
	// +listType=set
	// +optional
	Reasons []string `json:"reasons,omitempty"`
}

// PoolStatus reports a pool's conditions and its size.
type PoolStatus struct {
	Status `json:",inline"`
	// Nodes is the number of nodes in the pool.
	// +optional
	Nodes int64 `json:"nodes"`
	// Resources are the total resources of the pool's nodes.
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`
	// Tenants is the number of tenants using the pool.
	// +optional
	Tenants int64 `json:"tenants"`
}

// PoolList is a list of Pools.
//
// +kubebuilder:object:root=true
type PoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Pool `json:"items"`
}
