// Package focus writes charges in the form of the FinOps Open Cost and Usage Specification (FOCUS), version
// 1.2, with the columns of version 1.3 for split costs. Amounts and quantities are exact. It does no I/O of
// its own.
//
// Source: https://github.com/FinOps-Open-Cost-and-Usage-Spec/FOCUS_Spec, tag v1.2, specification/columns.
package focus

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"math/big"
	"strings"
	"time"

	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/money"
	"croft.dev/croft/internal/cost/report"
)

// croft is the provider, the publisher and the issuer: a tenant gets its share of the cluster from croft's
// platform, and not from the cloud.
const croft = "croft"

// MethodID identifies the division of nodes by requests in AllocatedMethodId, a column of FOCUS 1.3.
// docs/explanation/cost.md describes the method.
const MethodID = "croft/requests"

// row is a row of the dataset: one part of a charge.
type row struct {
	*report.Charge
	// account is the billing account: the cluster.
	account, currency string
	// shared means the charge's share of the idle cost, and not its own cost.
	shared bool
}

// column is a column of the dataset, in the order of the specification. An empty value is null.
type column struct {
	name  string
	value func(*row) string
}

var columns = []column{
	{"AllocatedMethodId", func(r *row) string { return r.ifNode(MethodID) }},
	{"AllocatedResourceId", func(r *row) string { return r.ifNode(join("/", r.Namespace, r.Workload)) }},
	{"AllocatedResourceName", func(r *row) string { return r.ifNode(r.Workload) }},
	{"BilledCost", (*row).formatCost},
	{"BillingAccountId", func(r *row) string { return r.account }},
	{"BillingAccountName", null},
	{"BillingCurrency", func(r *row) string { return r.currency }},
	{"BillingPeriodEnd", func(r *row) string { return formatTime(r.findMonth().AddDate(0, 1, 0)) }},
	{"BillingPeriodStart", func(r *row) string { return formatTime(r.findMonth()) }},
	{"ChargeCategory", constant("Usage")},
	{"ChargeClass", null},
	{"ChargeDescription", (*row).describe},
	{"ChargeFrequency", constant("Usage-Based")},
	{"ChargePeriodEnd", func(r *row) string { return formatTime(r.Until) }},
	{"ChargePeriodStart", func(r *row) string { return formatTime(r.From) }},
	{"ConsumedQuantity", (*row).formatConsumption},
	{"ConsumedUnit", func(r *row) string { return services[r.Resource].consumed }},
	{"ContractedCost", (*row).formatCost},
	{"EffectiveCost", (*row).formatCost},
	{"InvoiceId", null},
	{"InvoiceIssuerName", constant(croft)},
	{"ListCost", (*row).formatCost},
	{"PricingCategory", (*row).classifyPrice},
	{"PricingQuantity", (*row).formatQuantity},
	{"PricingUnit", func(r *row) string { return services[r.Resource].priced }},
	{"ProviderName", constant(croft)},
	{"PublisherName", constant(croft)},
	{"ResourceId", (*row).identifyResource},
	{"ResourceName", null},
	{"ResourceType", (*row).nameResourceType},
	{"ServiceCategory", func(r *row) string { return services[r.Resource].category }},
	{"ServiceName", func(r *row) string { return services[r.Resource].name }},
	{"ServiceSubcategory", func(r *row) string { return services[r.Resource].subcategory }},
	{"SkuId", (*row).identifySku},
	{"SkuMeter", (*row).nameMeter},
	{"SkuPriceDetails", (*row).listPriceDetails},
	{"SkuPriceId", func(r *row) string { return join("/", r.identifySku(), r.CapacityType) }},
	{"SubAccountId", func(r *row) string { return r.Tenant }},
	{"SubAccountName", func(r *row) string { return r.Tenant }},
	{"Tags", (*row).listTags},
	{"x_EstimatedCost", func(r *row) string { return r.estimate().String() }},
	{"x_PriceSource", func(r *row) string { return r.PriceSource }},
}

// service describes the charges for one type of resources, in the specification's terms.
type service struct{ name, category, subcategory, consumed, priced string }

var services = map[ledger.Resource]service{
	ledger.NodeResource:         {"Kubernetes nodes", "Compute", "Virtual Machines", "Core-Seconds", "GiB-Seconds"},
	ledger.VolumeResource:       {"Kubernetes volumes", "Storage", "Block Storage", "GiB-Seconds", "GiB-Seconds"},
	ledger.LoadBalancerResource: {"Kubernetes load balancers", "Networking", "Application Networking", "Seconds", "Seconds"},
}

// Writer writes a dataset as CSV.
type Writer struct {
	csv               *csv.Writer
	account, currency string
	cells             []string
}

// NewWriter returns a writer, and writes the header. account identifies the cluster.
func NewWriter(w io.Writer, account, currency string) *Writer {
	f := &Writer{csv: csv.NewWriter(w), account: account, currency: currency, cells: make([]string, len(columns))}
	for i, c := range columns {
		f.cells[i] = c.name
	}
	_ = f.csv.Write(f.cells) // Flush returns the error
	return f
}

// Write writes the rows of a charge: its own cost, and its share of the idle cost. The sum of
// EffectiveCost over all rows is the sum of Charge.Total. A charge without a known price has no row.
func (f *Writer) Write(c *report.Charge) error {
	for _, r := range []row{{c, f.account, f.currency, false}, {c, f.account, f.currency, true}} {
		if r.cost() == 0 {
			continue
		}
		for i := range columns {
			f.cells[i] = columns[i].value(&r)
		}
		if err := f.csv.Write(f.cells); err != nil {
			return err
		}
	}
	return nil
}

// Flush writes buffered rows, and returns the first error of all writes.
func (f *Writer) Flush() error {
	f.csv.Flush()
	return f.csv.Error()
}

func null(*row) string { return "" }

func constant(text string) func(*row) string { return func(*row) string { return text } }

// ifNode returns a text for parts of a node, which are split costs.
func (r *row) ifNode(text string) string {
	if r.Resource != ledger.NodeResource {
		return ""
	}
	return text
}

func (r *row) cost() money.Amount {
	if r.shared {
		return r.Idle
	}
	return r.Own()
}

func (r *row) estimate() money.Amount {
	switch {
	case r.shared:
		return r.EstimatedIdle
	default:
		return r.EstimatedCost
	}
}

func (r *row) formatCost() string { return r.cost().String() }

func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// findMonth returns the beginning of the billing period: the calendar month in UTC.
func (r *row) findMonth() time.Time {
	year, month, _ := r.From.UTC().Date()
	return time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)
}

func (r *row) describe() string {
	nodes := join(" ", "nodes", r.Pool, r.InstanceType, r.CapacityType)
	var text string
	switch {
	case r.Resource == ledger.VolumeResource:
		text = join(" ", "size of volumes of StorageClass", r.InstanceType)
	case r.Resource == ledger.LoadBalancerResource:
		text = "load balancer"
	case r.Kind == ledger.Idle:
		return "idle capacity of " + nodes + ", in a pool without requests"
	case r.Kind == ledger.Unallocated:
		return nodes + ", not registered"
	case r.shared:
		text = "share of the idle capacity of " + nodes
	default:
		text = "requests on " + nodes
	}
	if r.Workload == "" {
		return text
	}
	return text + ": " + join(" ", r.Namespace, r.Workload)
}

// formatConsumption formats the requested CPU, the size × time of a volume, or the time of a load balancer.
// Idle capacity was not consumed.
func (r *row) formatConsumption() string {
	switch {
	case r.Resource != ledger.NodeResource:
		return r.formatQuantity()
	case r.shared:
		return "0"
	default:
		return formatQuotient(r.CPU, 1000)
	}
}

// weightPerGiB is the weight of a GiB for a second in ledger.WeightRule.
const weightPerGiB = 1024 * 1000

// formatQuantity formats the weight by which the cost was divided. For nodes it is in GiB of memory, as
// which a CPU counts by ledger.WeightRule.
func (r *row) formatQuantity() string {
	switch r.Resource {
	case ledger.NodeResource:
		return formatQuotient(r.Weight, weightPerGiB)
	case ledger.VolumeResource:
		return formatQuotient(r.Weight, 1024)
	default:
		return formatQuotient(r.Weight, 1)
	}
}

// formatQuotient formats n / d without rounding: all divisors have at most 13 factors of 2 and of 5.
func formatQuotient(n, d int64) string {
	text := big.NewRat(n, d).FloatString(13)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

func (r *row) classifyPrice() string {
	if r.CapacityType == "spot" {
		return "Dynamic"
	}
	return "Standard"
}

// identifyResource identifies the nodes whose cost was divided, or the volume or the load balancer.
func (r *row) identifyResource() string {
	if r.Resource != ledger.NodeResource {
		return join("/", r.Namespace, r.Workload)
	}
	var parts []string
	for _, part := range [][2]string{{"pool", r.Pool}, {"instanceType", r.InstanceType}, {"capacityType", r.CapacityType}} {
		if part[1] != "" {
			parts = append(parts, part[0]+"="+part[1])
		}
	}
	return strings.Join(parts, ",")
}

func (r *row) nameResourceType() string {
	if r.Resource == ledger.NodeResource {
		if r.identifyResource() == "" {
			return ""
		}
		return "Nodes"
	}
	kind, _, _ := strings.Cut(r.Workload, "/")
	return kind
}

func (r *row) identifySku() string { return join("/", string(r.Resource), r.InstanceType) }

func (r *row) nameMeter() string {
	switch {
	case r.Resource == ledger.VolumeResource:
		return "Size"
	case r.Resource == ledger.LoadBalancerResource:
		return "Time"
	case r.shared:
		return "Idle capacity"
	default:
		return "Requests"
	}
}

func (r *row) listPriceDetails() string {
	switch r.Resource {
	case ledger.NodeResource:
		return formatPairs("InstanceType", r.InstanceType)
	case ledger.VolumeResource:
		return formatPairs("StorageClass", r.InstanceType)
	default:
		return ""
	}
}

func (r *row) listTags() string {
	return formatPairs("costCode", r.CostCode, "namespace", r.Namespace, "pool", r.Pool, "tenant", r.Tenant)
}

// formatPairs formats pairs of keys and values as a JSON object, without empty values. It returns "" for no
// pairs.
func formatPairs(pairs ...string) string {
	values := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			values[pairs[i]] = pairs[i+1]
		}
	}
	if len(values) == 0 {
		return ""
	}
	text, err := json.Marshal(values) // in the order of keys
	if err != nil {
		return "" // texts do not fail
	}
	return string(text)
}

// join joins the parts that are not empty.
func join(separator string, parts ...string) string {
	var kept []string
	for _, part := range parts {
		if part != "" {
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, separator)
}
