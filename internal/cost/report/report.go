// Package report adds up the hours of a ledger: one line for each tenant, namespace, workload, pool,
// cost code or instance type, and the limits of the figures. It does no I/O.
package report

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/money"
)

// Groupings are the values of Options.By.
const (
	ByTenant       = "tenant"
	ByNamespace    = "namespace"
	ByWorkload     = "workload"
	ByPool         = "pool"
	ByCostCode     = "costCode"
	ByInstanceType = "instanceType"
)

// Groupings returns all values of Options.By.
func Groupings() []string {
	return []string{ByTenant, ByNamespace, ByWorkload, ByPool, ByCostCode, ByInstanceType}
}

// Options select the period and the lines.
type Options struct {
	// Period ends now: the objects are the cluster's at its end.
	Period   ledger.Span
	By       string
	Currency string
}

// Report is the cost of a period.
type Report struct {
	From     time.Time `json:"from"`
	Until    time.Time `json:"until"`
	Currency string    `json:"currency"`
	By       string    `json:"by"`
	Lines    []*Line   `json:"lines"`
	Total    *Line     `json:"total"`
	// PriceSources are the costs by the sources of their prices.
	PriceSources []SourceCost `json:"priceSources"`
	// MissingPrices are objects whose cost is unknown, since no source has their price.
	MissingPrices []string `json:"missingPrices"`
	// Limits are the parts of the period that cannot be known, and their effects.
	Limits []string `json:"limits"`
}

// SourceCost is the cost that was computed with prices of one source.
type SourceCost struct {
	Source string       `json:"source"`
	Cost   money.Amount `json:"cost"`
}

// Line is the cost of one tenant, pool or other group.
type Line struct {
	// Name is in parentheses if it is not the name of an object.
	Name string `json:"name"`
	// Cost is the group's own cost. Idle is its share of idle capacity.
	Cost  money.Amount `json:"cost"`
	Idle  money.Amount `json:"idle"`
	Total money.Amount `json:"total"`
	// Estimated is the part of Total that is estimated.
	Estimated money.Amount `json:"estimated"`
	// PerHourNow is the cost of an hour in which all objects stay as they are now.
	PerHourNow money.Amount `json:"perHourNow"`
	// CPUHours and MemoryHours are the requests in hours of a CPU and of a GiB.
	CPUHours    float64 `json:"cpuHours"`
	MemoryHours float64 `json:"memoryGiBHours"`
	// MeasuredShare is the part of the pods' time in which their usage is known, from 0 to 1, and nil without pods.
	// CPUUsedHours and MemoryUsedHours are the usage in this part. If it is 0 they are nil: usage is unknown then, and not 0.
	MeasuredShare   *float64 `json:"measuredShare,omitempty"`
	CPUUsedHours    *float64 `json:"cpuUsedHours,omitempty"`
	MemoryUsedHours *float64 `json:"memoryUsedGiBHours,omitempty"`
	// UnknownSeconds is the time of pods, nodes, volumes and load balancers whose cost is
	// unknown. It is missing in all sums: CostUnknown, IdleUnknown and NowUnknown mark Cost,
	// Idle and PerHourNow.
	UnknownSeconds int64 `json:"unknownSeconds"`
	CostUnknown    bool  `json:"costUnknown"`
	IdleUnknown    bool  `json:"idleUnknown"`
	NowUnknown     bool  `json:"nowUnknown"`
	// IdleHidden means that Idle, Total and PerHourNow lack the idle cost of a shared pool.
	IdleHidden bool `json:"idleHidden,omitempty"`

	rank        int
	cpu, memory int64
	// usedCPU, usedMemory, measured and unmeasured are sums of the same fields of rows.
	usedCPU, usedMemory, measured, unmeasured int64
}

// Build computes the hours of a period.
func Build(in ledger.Input, o Options) (*Report, error) {
	l, err := ledger.New(in)
	if err != nil {
		return nil, err
	}
	b := newBuilder(o.By)
	for _, span := range ledger.Split(o.Period) {
		for _, row := range l.Compute(span).Rows {
			b.addRow(&row)
		}
	}
	now := l.Compute(ledger.Span{From: o.Period.Until, Until: o.Period.Until.Add(time.Hour)})
	for _, row := range now.Rows {
		b.addCurrentRow(&row)
	}
	return b.build(o, b.describeLimits(in, o.Period)), nil
}

func newBuilder(by string) *builder {
	return &builder{by: by, lines: map[string]*Line{}, sources: map[string]money.Amount{}, missing: map[string]bool{},
		unrequested: map[string]bool{}, total: &Line{Name: "total"}, users: map[string]map[*Line]bool{}}
}

// build returns the report of all added rows.
func (b *builder) build(o Options, limits []string) *Report {
	r := &Report{From: o.Period.From.UTC(), Until: o.Period.Until.UTC(), Currency: o.Currency, By: o.By,
		Lines: b.finishLines(), Total: b.total, PriceSources: []SourceCost{}, Limits: append([]string{}, limits...),
		MissingPrices: append([]string{}, slices.Sorted(maps.Keys(b.missing))...)}
	for _, source := range slices.Sorted(maps.Keys(b.sources)) {
		r.PriceSources = append(r.PriceSources, SourceCost{source, b.sources[source]})
	}
	return r
}

// builder adds rows to lines.
type builder struct {
	by                   string
	lines                map[string]*Line
	total                *Line
	sources              map[string]money.Amount
	missing, unrequested map[string]bool
	// hidden are the pools whose idle cost is not shown. They are known after all rows. users are the lines that
	// have a share of a pool's idle cost.
	hidden map[string]bool
	users  map[string]map[*Line]bool
}

// isByNode reports whether lines are parts of the cluster, and not the users of its capacity. Idle cost
// then counts where it arises, and not for the users among whom it is distributed.
func (b *builder) isByNode() bool { return b.by == ByPool || b.by == ByInstanceType }

// split returns a row's own cost, its idle cost, and the estimated part of both.
func (b *builder) split(row *ledger.Row) (own, idle, estimated money.Amount) {
	switch {
	case row.Kind == ledger.Idle && b.isByNode():
		return 0, row.Cost, row.EstimatedCost
	case row.Kind == ledger.Idle:
		return 0, row.Idle, row.EstimatedIdle
	case b.isByNode():
		return row.Cost, 0, row.EstimatedCost
	default:
		return row.Cost, row.Idle, row.EstimatedCost + row.EstimatedIdle
	}
}

// addUser records that a line may have a share of the idle cost of a row's pool. Grouped by nodes, it has none.
func (b *builder) addUser(line *Line, row *ledger.Row) {
	if b.hidden == nil || b.isByNode() || row.Resource != ledger.NodeResource {
		return
	}
	if b.users[row.Pool] == nil {
		b.users[row.Pool] = map[*Line]bool{}
	}
	b.users[row.Pool][line] = true
}

func (b *builder) addRow(row *ledger.Row) {
	own, idle, estimated := b.split(row)
	for _, line := range []*Line{b.findLine(row), b.total} {
		line.Cost += own
		line.Idle += idle
		line.Total += own + idle
		line.Estimated += estimated
		line.UnknownSeconds += row.Unpriced
		line.CostUnknown = line.CostUnknown || row.Unpriced > 0 && row.Kind != ledger.Idle
		// A workload on a node without a price also has an unknown share of the idle cost.
		line.IdleUnknown = line.IdleUnknown || row.Unpriced > 0 && row.Resource == ledger.NodeResource
		line.cpu += row.CPU
		line.memory += row.Memory
		line.usedCPU += row.UsedCPU
		line.usedMemory += row.UsedMemory
		line.measured += row.Measured
		line.unmeasured += row.Unmeasured
		b.addUser(line, row)
	}
	if row.PriceSource != "" {
		b.sources[row.PriceSource] += row.Cost
	}
	if row.Unpriced > 0 {
		b.missing[DescribeMissing(row)] = true
	}
	if row.IsUnrequested() {
		b.unrequested[row.Namespace+" "+row.Workload] = true
	}
}

// addCurrentRow adds a row of the hour that begins now.
func (b *builder) addCurrentRow(row *ledger.Row) {
	own, idle, _ := b.split(row)
	for _, line := range []*Line{b.findLine(row), b.total} {
		line.PerHourNow += own + idle
		b.addUser(line, row)
		line.NowUnknown = line.NowUnknown || row.Unpriced > 0
	}
}

func (b *builder) findLine(row *ledger.Row) *Line {
	name, rank := b.nameLine(row)
	line := b.lines[name]
	if line == nil {
		line = &Line{Name: name, rank: rank}
		b.lines[name] = line
	}
	return line
}

// nameLine returns the name of a row's line, and its rank in the order of lines.
func (b *builder) nameLine(row *ledger.Row) (name string, rank int) {
	switch {
	case b.isByNode() && row.Resource == ledger.VolumeResource:
		return "(volumes)", 1
	case b.isByNode() && row.Resource == ledger.LoadBalancerResource:
		return "(load balancers)", 2
	case b.by == ByPool:
		return cmp.Or(row.Pool, "(no pool)"), 0
	case b.by == ByInstanceType:
		return cmp.Or(row.InstanceType, "(no instance type)"), 0
	case row.Kind == ledger.Idle:
		return "(idle)", 4
	case row.Kind == ledger.Unallocated:
		return "(unallocated)", 5
	case b.by == ByNamespace:
		return row.Namespace, 0
	case b.by == ByWorkload:
		return row.Namespace + " " + row.Workload, 0
	case row.Kind == ledger.Platform:
		return "(platform)", 3
	case b.by == ByCostCode:
		return cmp.Or(row.CostCode, "(no cost code)"), 0
	default:
		return row.Tenant, 0
	}
}

// finishLines completes the lines and the total, after all rows. It returns the most expensive lines first, and platform,
// idle and unallocated cost last.
func (b *builder) finishLines() []*Line {
	for pool := range b.hidden {
		for line := range b.users[pool] {
			line.IdleHidden = true
		}
	}
	lines := slices.Collect(maps.Values(b.lines))
	for _, line := range append(lines, b.total) {
		line.CPUHours = float64(line.cpu) / 1000 / 3600
		line.MemoryHours = float64(line.memory) / 1024 / 3600
		line.finishUsage()
	}
	slices.SortFunc(lines, func(a, b *Line) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(b.Total, a.Total),
			cmp.Compare(b.PerHourNow, a.PerHourNow), strings.Compare(a.Name, b.Name))
	})
	return lines
}

func (l *Line) finishUsage() {
	if seconds := l.measured + l.unmeasured; seconds > 0 {
		l.MeasuredShare = new(float64(l.measured) / float64(seconds))
	}
	if l.measured > 0 {
		l.CPUUsedHours, l.MemoryUsedHours = new(float64(l.usedCPU)/3600), new(float64(l.usedMemory)/3600)
	}
}
