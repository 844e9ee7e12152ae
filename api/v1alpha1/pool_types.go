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

// PoolSpec says which nodes a pool has and how long it keeps them.
//
// +kubebuilder:validation:XValidation:rule="!has(self.waitForNetworks) || !self.waitForNetworks || has(self.secondaryNetworks) && self.secondaryNetworks.size() > 0",message="waitForNetworks: the pool has no secondaryNetworks to wait for"
// +kubebuilder:validation:XValidation:rule="!has(self.emptyTTL) || !has(self.consolidation) || self.consolidation == 'WhenEmpty' || self.emptyTTL != 'Never'",message="emptyTTL: Never keeps nodes for ever, so consolidation can only be WhenEmpty"
type PoolSpec struct {
	// Instances says which instances may become nodes of this pool.
	// +kubebuilder:default={}
	// +optional
	Instances Instances `json:"instances,omitempty"`

	// Limits are the most that all nodes of the pool may have together, such as
	// cpu and memory. Without it a pool grows as its tenants' quotas let it.
	// +optional
	Limits corev1.ResourceList `json:"limits,omitempty"`

	// EmptyTTL is how long a node may stand empty (or, with consolidation
	// WhenEmptyOrUnderutilized, unchanged) before it is removed.
	// +kubebuilder:default="1h"
	// +optional
	EmptyTTL Duration `json:"emptyTTL,omitempty"`

	// Consolidation says which nodes may be removed to save money.
	// +kubebuilder:default=WhenEmpty
	// +optional
	Consolidation Consolidation `json:"consolidation,omitempty"`

	// TTL is how old a node may grow before it is replaced.
	// +kubebuilder:default=Never
	// +optional
	TTL Duration `json:"ttl,omitempty"`

	// TerminationGracePeriod is how long a node that is to go waits for its pods;
	// after that even a PodDisruptionBudget or karpenter.sh/do-not-disrupt does
	// not hold it. Never waits for ever.
	// +kubebuilder:default="24h"
	// +optional
	TerminationGracePeriod Duration `json:"terminationGracePeriod,omitempty"`

	// Budgets limit how many nodes go at once; 10% if none are given.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	// +optional
	Budgets []Budget `json:"budgets,omitempty"`

	// Weight orders pools when several could take a pod: the highest first.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	Weight *int32 `json:"weight,omitempty"`

	// CostCode says who pays. It becomes a label of the nodes and, in a cloud
	// that has them, the tag CostCode.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="becomes a label: letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"
	// +optional
	CostCode string `json:"costCode,omitempty"`

	// Tags are put on the instances in the cloud.
	// +kubebuilder:validation:MaxProperties=40
	// +optional
	Tags map[string]string `json:"tags,omitempty"`

	// NodeClass overrides the Platform's: as a whole, but for aws over aws, which is
	// laid over it field by field.
	// +optional
	NodeClass *NodeClass `json:"nodeClass,omitempty"`

	// StartupTaints keep pods off a new node until another program has removed them, such as
	// the agent of a network plugin or of a CSI driver. Without that program on the nodes
	// they stay empty. A change replaces the pool's nodes.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	StartupTaints []StartupTaint `json:"startupTaints,omitempty"`

	// SecondaryNetworks name the SecondaryNetworks that the nodes are attached to.
	// +kubebuilder:validation:MaxItems=14
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +optional
	SecondaryNetworks []string `json:"secondaryNetworks,omitempty"`

	// WaitForNetworks keeps pods off a node until croft's agent has set up its interfaces
	// in the secondary networks. Install the agent first (croft install --agent): without
	// it the nodes stay empty. Changing it replaces the pool's nodes.
	// +optional
	WaitForNetworks bool `json:"waitForNetworks,omitempty"`
}

// Consolidation says which nodes may be removed to save money.
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
	// Schedule is when the budget begins to hold, in cron syntax, UTC.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +optional
	Schedule string `json:"schedule,omitempty"`
	// Duration is how long the budget holds from then on.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+(m|h))+$')",message="must be hours and minutes, such as 8h or 1h30m"
	// +optional
	Duration string `json:"duration,omitempty"`
	// Reasons are the disruptions that the budget is for; all if none are given.
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:items:Enum=Underutilized;Empty;Drifted
	// +listType=set
	// +optional
	Reasons []string `json:"reasons,omitempty"`
}

// PoolStatus reports a pool's conditions and its size.
type PoolStatus struct {
	Status `json:",inline"`
	// Nodes is how many nodes the pool has.
	// +optional
	Nodes int64 `json:"nodes"`
	// Resources are what the pool's nodes have together.
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`
	// Tenants is how many tenants use the pool.
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
