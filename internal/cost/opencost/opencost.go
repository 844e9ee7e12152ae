// Package opencost writes charges in the form in which OpenCost answers requests for /allocation, for programs that
// read it. Amounts are exact. It does no I/O.
//
// Source: https://github.com/opencost/opencost, core/pkg/opencost/allocation_json.go and allocationprops.go.
package opencost

import (
	"cmp"
	"maps"
	"net/http"
	"strings"
	"time"

	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/money"
	"croft.dev/croft/internal/cost/report"
)

// Names of OpenCost for costs without a workload, and for workloads without a label.
const (
	idle        = "__idle__"
	unmounted   = "__unmounted__"
	unallocated = "__unallocated__"
)

// The labels of croft's namespaces, in the form in which Prometheus, and so OpenCost, writes labels.
const (
	tenantLabel   = "croft_dev_tenant"
	costCodeLabel = "croft_dev_cost_code"
)

// Answer is an answer to a request for /allocation.
type Answer struct {
	Code    int    `json:"code"`
	Status  string `json:"status"`
	Message string `json:"message"`
	// Data has one set of allocations, by their names, for the whole period.
	Data []map[string]*Allocation `json:"data"`
}

// Cost is an amount as a number with all of its decimals.
type Cost money.Amount

// MarshalJSON writes no text, unlike an Amount: OpenCost's programs expect a number.
func (c Cost) MarshalJSON() ([]byte, error) { return []byte(money.Amount(c).String()), nil }

// Window is a period.
type Window struct {
	Start string `json:"start"`
	End   string `json:"end"`
}

// Properties identify a workload.
type Properties struct {
	Cluster        string            `json:"cluster,omitempty"`
	Controller     string            `json:"controller,omitempty"`
	ControllerKind string            `json:"controllerKind,omitempty"`
	Namespace      string            `json:"namespace,omitempty"`
	Pod            string            `json:"pod,omitempty"`
	Services       []string          `json:"services,omitempty"`
	Labels         map[string]string `json:"labels,omitempty"`
}

// Allocation is the cost of a workload in a period. As with OpenCost's parameter shareIdle, the share of the idle cost
// is in the costs of CPU and memory.
type Allocation struct {
	Name       string     `json:"name"`
	Properties Properties `json:"properties"`
	Window     Window     `json:"window"`
	// Start and End are the times of the first and of the last charge.
	Start                 string  `json:"start"`
	End                   string  `json:"end"`
	Minutes               float64 `json:"minutes"`
	CPUCores              float64 `json:"cpuCores"`
	CPUCoreRequestAverage float64 `json:"cpuCoreRequestAverage"`
	CPUCoreHours          float64 `json:"cpuCoreHours"`
	CPUCost               Cost    `json:"cpuCost"`
	// CPUCostIdle and RAMCostIdle are the parts of CPUCost and RAMCost that are shares of idle cost.
	CPUCostIdle           Cost    `json:"cpuCostIdle"`
	RAMBytes              float64 `json:"ramBytes"`
	RAMByteRequestAverage float64 `json:"ramByteRequestAverage"`
	RAMByteHours          float64 `json:"ramByteHours"`
	RAMCost               Cost    `json:"ramCost"`
	RAMCostIdle           Cost    `json:"ramCostIdle"`
	PVBytes               float64 `json:"pvBytes"`
	PVByteHours           float64 `json:"pvByteHours"`
	PVCost                Cost    `json:"pvCost"`
	LoadBalancerCost      Cost    `json:"loadBalancerCost"`
	TotalCost             Cost    `json:"totalCost"`
	absent

	from, until time.Time
	// cpu, memory and volumes are in thousandths of a CPU and in MiB, multiplied with seconds.
	cpu, memory, volumes int64
}

// absent are the fields for which the ledger has no figures, or figures for a part of the time only. Costs and quantities are 0; averages of usage, ratios
// and lists are null, which OpenCost, too, writes for unknown figures.
type absent struct {
	CPUCoreUsageAverage        *float64          `json:"cpuCoreUsageAverage"`
	CPUCostAdjustment          Cost              `json:"cpuCostAdjustment"`
	CPUEfficiency              *float64          `json:"cpuEfficiency"`
	GPUCount                   float64           `json:"gpuCount"`
	GPUHours                   float64           `json:"gpuHours"`
	GPUCost                    Cost              `json:"gpuCost"`
	GPUCostAdjustment          Cost              `json:"gpuCostAdjustment"`
	GPUCostIdle                Cost              `json:"gpuCostIdle"`
	GPUEfficiency              *float64          `json:"gpuEfficiency"`
	NetworkTransferBytes       float64           `json:"networkTransferBytes"`
	NetworkReceiveBytes        float64           `json:"networkReceiveBytes"`
	NetworkCost                Cost              `json:"networkCost"`
	NetworkCrossZoneCost       Cost              `json:"networkCrossZoneCost"`
	NetworkCrossRegionCost     Cost              `json:"networkCrossRegionCost"`
	NetworkInternetCost        Cost              `json:"networkInternetCost"`
	NetworkCostAdjustment      Cost              `json:"networkCostAdjustment"`
	LoadBalancerCostAdjustment Cost              `json:"loadBalancerCostAdjustment"`
	PVs                        map[string]string `json:"pvs"`
	PVCostAdjustment           Cost              `json:"pvCostAdjustment"`
	RAMByteUsageAverage        *float64          `json:"ramByteUsageAverage"`
	RAMCostAdjustment          Cost              `json:"ramCostAdjustment"`
	RAMEfficiency              *float64          `json:"ramEfficiency"`
	SharedCost                 Cost              `json:"sharedCost"`
	ExternalCost               Cost              `json:"externalCost"`
	TotalEfficiency            *float64          `json:"totalEfficiency"`
	LoadBalancers              map[string]string `json:"lbAllocations"`
}

// Set adds up the charges of a period by workloads.
type Set struct {
	cluster, currency string
	window            Window
	allocations       map[string]*Allocation
}

// New returns a set without charges for the period and the currency of a report. cluster identifies the cluster.
func New(cluster string, r *report.Report) *Set {
	return &Set{cluster: cluster, currency: r.Currency, window: Window{formatTime(r.From), formatTime(r.Until)},
		allocations: map[string]*Allocation{}}
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Add adds a charge. The sum of TotalCost over all allocations is the sum of Charge.Total. It returns no error.
func (s *Set) Add(c *report.Charge) error {
	if c.Kind == ledger.Idle && c.Total() == 0 {
		return nil // all of it is distributed
	}
	a := s.findAllocation(&c.Row)
	if a.from.IsZero() || c.From.Before(a.from) {
		a.from = c.From
	}
	if c.Until.After(a.until) {
		a.until = c.Until
	}
	switch c.Resource {
	case ledger.VolumeResource:
		a.PVCost += Cost(c.Total())
		a.volumes += c.Weight
	case ledger.LoadBalancerResource:
		a.LoadBalancerCost += Cost(c.Total())
	default:
		cpu, memory := divideAmount(c.Own(), &c.Row)
		idleCPU, idleMemory := divideAmount(c.Idle, &c.Row)
		a.CPUCost += cpu + idleCPU
		a.CPUCostIdle += idleCPU
		a.RAMCost += memory + idleMemory
		a.RAMCostIdle += idleMemory
		a.cpu += c.CPU
		a.memory += c.Memory
	}
	a.TotalCost += Cost(c.Total())
	return nil
}

// divideAmount divides an amount between CPU and memory, in proportion to their weights. The ledger does not record
// the CPU and the memory of capacity without requests: its cost counts for CPU.
func divideAmount(amount money.Amount, row *ledger.Row) (cpu, memory Cost) {
	cpuWeight, memoryWeight := row.WeighRequests()
	parts := money.Divide(amount, []int64{cpuWeight, memoryWeight})
	if parts == nil {
		return Cost(amount), 0
	}
	return Cost(parts[0].Amount), Cost(parts[1].Amount)
}

// findAllocation returns the allocation of a row. A label whose value differs among its rows is left out.
func (s *Set) findAllocation(row *ledger.Row) *Allocation {
	name, properties := describeRow(row)
	properties.Cluster = s.cluster
	a := s.allocations[name]
	if a == nil {
		a = &Allocation{Name: name, Properties: properties, Window: s.window}
		s.allocations[name] = a
	}
	maps.DeleteFunc(a.Properties.Labels, func(label, value string) bool { return properties.Labels[label] != value })
	return a
}

// describeRow returns the name of a row's allocation, and the properties of its workload.
func describeRow(row *ledger.Row) (name string, p Properties) {
	switch {
	case row.Kind == ledger.Unallocated && row.Resource == ledger.VolumeResource:
		return unmounted, p
	case row.Kind == ledger.Idle || row.Kind == ledger.Unallocated:
		return idle, p
	}
	kind, workload, _ := strings.Cut(row.Workload, "/")
	kind = strings.ToLower(kind)
	p.Namespace, p.Labels = row.Namespace, map[string]string{}
	switch kind {
	case "pod":
		p.Pod = workload
	case "service":
		p.Services = []string{workload}
	default:
		p.Controller, p.ControllerKind = workload, kind
	}
	if row.Tenant != "" {
		p.Labels[tenantLabel] = row.Tenant
	}
	if row.CostCode != "" {
		p.Labels[costCodeLabel] = row.CostCode
	}
	return strings.Join([]string{cmp.Or(row.Tenant, unallocated), row.Namespace, kind, workload}, "/"), p
}

const (
	secondsPerHour = 3600
	bytesPerMiB    = 1 << 20
)

// Finish computes the averages, and returns the answer.
func (s *Set) Finish() *Answer {
	for _, a := range s.allocations {
		a.Start, a.End = formatTime(a.from), formatTime(a.until)
		a.Minutes = a.until.Sub(a.from).Minutes()
		a.CPUCoreHours = float64(a.cpu) / 1000 / secondsPerHour
		a.RAMByteHours = float64(a.memory) * bytesPerMiB / secondsPerHour
		a.PVByteHours = float64(a.volumes) * bytesPerMiB / secondsPerHour
		hours := a.Minutes / 60
		if hours == 0 {
			continue
		}
		a.CPUCores, a.RAMBytes, a.PVBytes = a.CPUCoreHours/hours, a.RAMByteHours/hours, a.PVByteHours/hours
		a.CPUCoreRequestAverage, a.RAMByteRequestAverage = a.CPUCores, a.RAMBytes
	}
	return &Answer{Code: http.StatusOK, Status: "success", Message: "amounts are in " + s.currency,
		Data: []map[string]*Allocation{s.allocations}}
}
