// Package ledger divides the cost of nodes, volumes and load balancers among tenants, exactly: for
// each hour the sum of all rows is the cost of everything that existed, to the last millionth of
// the currency, for any order of the objects. It does no I/O.
//
// A node's cost is divided by requests. The weight of a request is its CPU plus its memory, where
// one CPU counts as much as memoryPerCPU. Capacity without requests is idle. Times are whole
// seconds, as the API server stores them.
package ledger

import (
	"time"

	"croft.dev/croft/internal/cost/price"
)

// memoryPerCPU is the amount of memory, in MiB, that costs as much as one CPU: 9 GiB. Clouds sell
// both together. From AWS's on-demand prices of families with 2, 4 and 8 GiB per CPU follow ratios
// from 8.8 to 13.5; a test computes them. The constant is at the lower end.
const memoryPerCPU = 9 << 10

// Span is a time from From until Until, exclusive. An object that still exists has no Until.
type Span struct{ From, Until time.Time }

// Input are all objects that cost money, and the pods and namespaces among which the cost is
// divided. The order is irrelevant.
type Input struct {
	Nodes         []Node
	Pods          []Pod
	Volumes       []Volume
	LoadBalancers []LoadBalancer
	Owners        []Owner
}

// Node is a node while none of its properties changes. A node that changes its pool or its price
// has several, with spans that do not overlap.
type Node struct {
	Name, Pool, CapacityType, InstanceType string
	Price                                  price.Price
	Span
	// CPU, in thousandths, and Memory, in MiB, are allocatable to pods. Both are 0 for an instance
	// that has not registered.
	CPU, Memory int64
	// Observed is the time since when all pods of the node are known. Earlier capacity
	// without requests may have been used by pods that were deleted: its cost is estimated.
	Observed time.Time
}

// Pod is a pod on a node. A pod whose requests change has several, with spans that do not
// overlap.
type Pod struct {
	Namespace, Workload, Node string
	// CPU is in thousandths, Memory in MiB. A pod without requests costs nothing.
	CPU, Memory int64
	Span
	// Estimated means that the pod may have ended earlier or later.
	Estimated bool
	// Usage are the times in which the usage of the pod is known. They do not overlap.
	Usage []Usage
}

// Usage is the usage of a pod from From until Until, in seconds since 1970, multiplied with its seconds: millionths of a
// CPU, and MiB.
type Usage struct {
	From   int64 `json:"from"`
	Until  int64 `json:"until"`
	CPU    int64 `json:"cpu,omitempty"`
	Memory int64 `json:"memory,omitempty"`
}

// Volume is a PersistentVolume. Namespace is empty if no claim uses the volume.
type Volume struct {
	Namespace, Workload, Class string
	// Size is in MiB.
	Size int64
	// Price is the price of a GiB for a month.
	Price price.Price
	Span
}

// LoadBalancer is the load balancer of a Service.
type LoadBalancer struct {
	Namespace, Workload string
	Price               price.Price
	Span
}

// Owner is the tenant to which a namespace belongs for some time, and the tenant's cost code. The
// spans of one namespace do not overlap. A namespace without an owner belongs to the platform.
type Owner struct {
	Namespace, Tenant, CostCode string
	Span
	// Estimated means that the namespace may have had another owner for a part of the span.
	Estimated bool
}
