package ledger

import (
	"cmp"
	"strings"

	"croft.dev/croft/internal/cost/money"
)

// Kind distinguishes the four parts of the cost.
type Kind string

// The kinds of rows. Their order is the order of rows.
const (
	// Tenant is the cost of a tenant's pods, volumes and load balancers.
	Tenant Kind = "tenant"
	// Platform is the same for namespaces outside of tenants.
	Platform Kind = "platform"
	// Idle is the cost of capacity that no pod requested.
	Idle Kind = "idle"
	// Unallocated is the cost of instances before they registered, and of volumes without a
	// claim.
	Unallocated Kind = "unallocated"
)

// Resource is the type of an object that costs money.
type Resource string

// The types of objects that cost money.
const (
	NodeResource         Resource = "node"
	VolumeResource       Resource = "volume"
	LoadBalancerResource Resource = "loadBalancer"
)

// Key identifies a row of an hour.
type Key struct {
	Kind         Kind     `json:"kind"`
	Resource     Resource `json:"resource"`
	Pool         string   `json:"pool,omitempty"`
	CapacityType string   `json:"capacityType,omitempty"`
	// InstanceType is the StorageClass of volumes.
	InstanceType string `json:"instanceType,omitempty"`
	Tenant       string `json:"tenant,omitempty"`
	CostCode     string `json:"costCode,omitempty"`
	Namespace    string `json:"namespace,omitempty"`
	Workload     string `json:"workload,omitempty"`
	PriceSource  string `json:"priceSource,omitempty"`
}

// Compare orders keys, so that divisions do not depend on the order of the input.
func (k Key) Compare(other Key) int {
	return cmp.Or(
		strings.Compare(string(k.Resource), string(other.Resource)),
		strings.Compare(k.Pool, other.Pool),
		strings.Compare(k.CapacityType, other.CapacityType),
		strings.Compare(k.InstanceType, other.InstanceType),
		strings.Compare(string(k.Kind), string(other.Kind)),
		strings.Compare(k.Tenant, other.Tenant),
		strings.Compare(k.CostCode, other.CostCode),
		strings.Compare(k.Namespace, other.Namespace),
		strings.Compare(k.Workload, other.Workload),
		strings.Compare(k.PriceSource, other.PriceSource),
	)
}

// Row is one part of the cost of an hour.
type Row struct {
	Key
	// CPU and Memory are the requests, multiplied with their seconds: thousandths of a CPU,
	// and MiB.
	CPU    int64 `json:"cpu,omitempty"`
	Memory int64 `json:"memory,omitempty"`
	// Weight is the weight by which costs with a known price were divided: WeightRule for nodes,
	// MiB × seconds for volumes, and seconds for load balancers.
	Weight int64 `json:"weight,omitempty"`
	// Cost is the row's own cost. For a row of the kind Idle it is the cost of idle capacity.
	// The sum over all rows is the cost of everything.
	Cost money.Amount `json:"cost"`
	// Idle is the row's share of the idle cost. For a row of the kind Idle it is the rest that
	// has no share. The sum over all rows is the cost of all rows of the kind Idle.
	Idle money.Amount `json:"idle"`
	// EstimatedCost and EstimatedIdle are the parts of Cost and Idle that are estimated.
	EstimatedCost money.Amount `json:"estimatedCost"`
	EstimatedIdle money.Amount `json:"estimatedIdle"`
	// Unpriced is the time, in seconds, in which the cost is unknown, since the node or its
	// price is unknown. The cost of this time is in no sum.
	Unpriced int64 `json:"unpriced,omitempty"`
	// UsedCPU, in seconds of a CPU, and UsedMemory, in seconds of a GiB, are the usage of the row's pods in the time
	// Measured. In the time Unmeasured it is unknown, and not 0. Both times are the sums of the pods' seconds.
	UsedCPU    int64 `json:"usedCPU,omitempty"`
	UsedMemory int64 `json:"usedMemory,omitempty"`
	Measured   int64 `json:"measured,omitempty"`
	Unmeasured int64 `json:"unmeasured,omitempty"`
	// usedCPU and usedMemory are the same usage until it is rounded, in millionths of a CPU and in MiB.
	usedCPU, usedMemory int64
	// estimated means that the cost is estimated, even if the price is not.
	estimated bool
}

// IsUnrequested reports whether the row is of a workload that requests neither CPU nor memory.
func (r *Row) IsUnrequested() bool {
	return r.Resource == NodeResource && (r.Kind == Tenant || r.Kind == Platform) && r.CPU == 0 && r.Memory == 0
}

// Hour is the cost of an hour, or of a part of it.
type Hour struct {
	Span
	// Rows are in the order of their keys.
	Rows                          []Row
	Nodes, Volumes, LoadBalancers money.Amount
	// Divisions are the divisions in the order of their computation.
	Divisions []Division
}

// Division is the division of one amount, which a reader can repeat.
type Division struct {
	// Title describes the amount.
	Title  string
	Amount money.Amount
	Shares []Share
}

// Share is a row's share of a divided amount.
type Share struct {
	Key
	Weight int64
	money.Part
}
