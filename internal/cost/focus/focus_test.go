package focus_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"croft.dev/croft/internal/cost/focus"
	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/money"
	"croft.dev/croft/internal/cost/price"
	"croft.dev/croft/internal/cost/report"
)

// evening is an hour before the end of a month.
var evening = time.Date(2026, 10, 31, 23, 0, 0, 0, time.UTC)

// makeInput returns all kinds of objects: nodes of pools and of none, spot instances, a node that has not
// registered, a pool without pods, prices that are unknown, volumes without a claim, and load balancers.
func makeInput(seed uint64) ledger.Input {
	r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test repeats its numbers
	at := func(minutes int) ledger.Span {
		return ledger.Span{From: evening.Add(time.Duration(minutes) * time.Minute)}
	}
	priced := func() price.Price {
		return price.Price{Amount: money.Amount(r.Int64N(1_000_000)), Known: true, Source: "prices.yaml", Estimated: r.IntN(2) == 0}
	}
	in := ledger.Input{
		Nodes: []ledger.Node{
			{Name: "a", Pool: "apps", CapacityType: "on-demand", InstanceType: "m5.large", Price: priced(), Span: at(0), CPU: 1930, Memory: 7168},
			{Name: "b", Pool: "apps", CapacityType: "spot", InstanceType: "c6i.large", Price: priced(), Span: at(31), CPU: 1930, Memory: 3072},
			{Name: "c", Pool: "empty", CapacityType: "spot", InstanceType: "c6i.large", Price: priced(), Span: at(0), CPU: 1930, Memory: 3072},
			{Name: "d", Price: priced(), Span: at(0), CPU: 1930, Memory: 3072},
			{Name: "NodeClaim/e", Pool: "apps", CapacityType: "spot", InstanceType: "c6i.large", Price: priced(), Span: at(50)},
			{Name: "f", Pool: "apps", CapacityType: "spot", InstanceType: "unknown.large", Span: at(0), CPU: 1930, Memory: 3072},
		},
		Volumes: []ledger.Volume{
			{Namespace: "shop", Workload: "PersistentVolumeClaim/data", Class: "gp3", Size: 1 + r.Int64N(100_000), Price: priced(), Span: at(0)},
			{Workload: "PersistentVolume/pvc-1", Class: "gp3", Size: 1 + r.Int64N(100_000), Price: priced(), Span: at(0)},
			{Namespace: "shop", Workload: "PersistentVolumeClaim/more", Size: 7, Price: priced(), Span: at(0)},
		},
		LoadBalancers: []ledger.LoadBalancer{{Namespace: "shop", Workload: "Service/web", Price: priced(), Span: at(-100)}},
		Owners: []ledger.Owner{
			{Namespace: "shop", Tenant: "shop", CostCode: "org1", Span: at(-100)}, {Namespace: "bank", Tenant: "bank", Span: at(-100)},
		},
	}
	for i := range r.IntN(12) {
		in.Pods = append(in.Pods, ledger.Pod{Namespace: []string{"shop", "bank", "kube-system"}[r.IntN(3)],
			Workload: fmt.Sprintf("Deployment/%d", i), Node: []string{"a", "b", "d", "f"}[r.IntN(4)],
			CPU: r.Int64N(300), Memory: r.Int64N(300), Span: at(r.IntN(100))})
	}
	return in
}

// exportHours returns the rows of two and a half hours by column, and the ledger's total.
func exportHours(t *testing.T, in ledger.Input) (header []string, rows []map[string]string, total money.Amount) {
	t.Helper()
	period := ledger.Span{From: evening, Until: evening.Add(150 * time.Minute)}
	var text bytes.Buffer
	w := focus.NewWriter(&text, "k8s.example.org", "EUR")
	if err := report.ListCharges(in, period, w.Write); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	l, err := ledger.New(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, span := range ledger.Split(period) {
		hour := l.Compute(span)
		total += hour.Nodes + hour.Volumes + hour.LoadBalancers
	}
	records, err := csv.NewReader(&text).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, record := range records[1:] {
		row := map[string]string{}
		for i, name := range records[0] {
			row[name] = record[i]
		}
		rows = append(rows, row)
	}
	return records[0], rows, total
}

// definition is a row of testdata/focus-1.2.csv: the content constraints of a column.
type definition struct {
	level, kind, format string
	nulls               bool
	allowed             []string
}

// readDefinitions reads the content constraints in specification/columns of the tag v1.2.
func readDefinitions(t *testing.T) map[string]definition {
	t.Helper()
	file, err := os.Open("testdata/focus-1.2.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	records, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]definition{}
	for _, r := range records[1:] {
		d := definition{level: r[1], nulls: r[2] == "True", kind: r[3], format: r[4]}
		if r[5] != "" {
			d.allowed = strings.Split(r[5], ";")
		}
		all[r[0]] = d
	}
	if len(all) < 60 {
		t.Fatalf("%d columns", len(all))
	}
	return all
}

// formats are the rules of specification/attributes, by data type and value format.
var formats = map[string]*regexp.Regexp{
	"String":                      regexp.MustCompile(`\S`),
	"Date/Time":                   regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`),
	"Decimal":                     regexp.MustCompile(`^-?\d+(\.\d+)?(E-?\d+)?$`),
	"JSON":                        regexp.MustCompile(`^\{`),
	"Currency Format":             regexp.MustCompile(`^[A-Z]{3}$`),
	"Non-Negative Numeric Format": regexp.MustCompile(`^\d`),
	"Unit Format":                 regexp.MustCompile(`^(\d+ )?((GiB|Core|Unit)-)?(Seconds|Hours|GiB|Units)$`),
}

// findProblem returns a violation of a column's constraints, or "".
func (d definition) findProblem(row map[string]string, value string) string {
	if value == "" {
		if d.nulls {
			return ""
		}
		return "is null"
	}
	for _, name := range []string{d.kind, d.format} {
		if format := formats[name]; format != nil && !format.MatchString(value) {
			return "is no " + name
		}
	}
	parent := row["ServiceCategory"] + ">" + value
	if d.allowed != nil && !slices.Contains(d.allowed, value) && !slices.Contains(d.allowed, parent) {
		return "is not allowed"
	}
	var pairs map[string]any
	if d.kind == "JSON" {
		if err := json.Unmarshal([]byte(value), &pairs); err != nil {
			return err.Error()
		}
	}
	for _, v := range pairs {
		switch v.(type) {
		case map[string]any, []any:
			return "has a nested value"
		}
	}
	return ""
}

// conditions are the rules of specification/columns that relate columns, for usage without corrections.
var conditions = map[string]func(row map[string]string) bool{
	"a quantity and its unit are null together": func(r map[string]string) bool {
		return (r["ConsumedQuantity"] == "") == (r["ConsumedUnit"] == "") && (r["PricingQuantity"] == "") == (r["PricingUnit"] == "")
	},
	"usage has quantities, a pricing category and a SKU": func(r map[string]string) bool {
		return r["ChargeCategory"] == "Usage" && r["ConsumedQuantity"] != "" && r["PricingQuantity"] != "" && r["PricingCategory"] != "" &&
			r["SkuId"] != "" && r["SkuPriceId"] != "" && r["SkuMeter"] != ""
	},
	"a resource has a type, and only a resource": func(r map[string]string) bool {
		return (r["ResourceId"] == "") == (r["ResourceType"] == "")
	},
	"a sub account has a name, and only a sub account": func(r map[string]string) bool {
		return (r["SubAccountId"] == "") == (r["SubAccountName"] == "")
	},
	"the charge period is in the billing period": func(r map[string]string) bool {
		return r["BillingPeriodStart"] <= r["ChargePeriodStart"] && r["ChargePeriodStart"] < r["ChargePeriodEnd"] &&
			r["ChargePeriodEnd"] <= r["BillingPeriodEnd"]
	},
	"a commitment has an identifier": func(r map[string]string) bool {
		return r["PricingCategory"] != "Committed" || r["CommitmentDiscountId"] != ""
	},
	"only a split cost has an allocated resource (1.3)": func(r map[string]string) bool {
		return r["AllocatedMethodId"] != "" || r["AllocatedResourceId"] == "" && r["AllocatedResourceName"] == ""
	},
}

// TestSpecification compares an export of all kinds of charges with the rules of FOCUS 1.2.
func TestSpecification(t *testing.T) {
	definitions := readDefinitions(t)
	header, rows, _ := exportHours(t, makeInput(3))
	if len(rows) < 20 {
		t.Fatalf("%d rows", len(rows))
	}
	for name, d := range definitions {
		if d.level == "Mandatory" && !slices.Contains(header, name) {
			t.Errorf("the column %s is missing", name)
		}
	}
	for i, name := range header {
		if _, defined := definitions[name]; !defined && !strings.HasPrefix(name, "x_") || slices.Contains(header[:i], name) {
			t.Errorf("the column %s is not defined, or exists twice", name)
		}
	}
	categories := map[string]string{}
	for _, row := range rows {
		for _, name := range header {
			if problem := definitions[name].findProblem(row, row[name]); problem != "" && !strings.HasPrefix(name, "x_") {
				t.Errorf("%s %q %s: %v", name, row[name], problem, row)
			}
		}
		for rule, condition := range conditions {
			if !condition(row) {
				t.Errorf("not true: %s: %v", rule, row)
			}
		}
		service, category := row["ServiceName"], row["ServiceCategory"]+" "+row["ServiceSubcategory"]
		if other, found := categories[service]; found && other != category {
			t.Errorf("%s is in %s and in %s", service, category, other)
		}
		categories[service] = category
	}
	if len(categories) != 3 {
		t.Errorf("services are %v", categories)
	}
}

// TestSum expects all cost columns to add up to the ledger's total, to the millionth.
func TestSum(t *testing.T) {
	for seed := range uint64(100) {
		_, rows, total := exportHours(t, makeInput(seed))
		for _, name := range []string{"EffectiveCost", "BilledCost", "ListCost", "ContractedCost"} {
			sum := new(big.Rat)
			for _, row := range rows {
				cost, ok := new(big.Rat).SetString(row[name])
				if !ok {
					t.Fatalf("%s is %q", name, row[name])
				}
				sum.Add(sum, cost)
			}
			if sum.FloatString(6) != total.String() || !sum.Mul(sum, big.NewRat(1_000_000, 1)).IsInt() {
				t.Fatalf("seed %d: the sum of %s is %s millionths, want %s", seed, name, sum, total)
			}
		}
	}
}

// TestQuantities expects exact quantities in the units of the columns.
func TestQuantities(t *testing.T) {
	var text bytes.Buffer
	w := focus.NewWriter(&text, "k8s.example.org", "EUR")
	for _, c := range []report.Charge{
		{Row: ledger.Row{Key: ledger.Key{Kind: ledger.Tenant, Resource: ledger.NodeResource}, CPU: 1_800_001, Memory: 3600,
			Weight: 1_800_001*9216 + 3600*1000, Cost: 1, Idle: 2}},
		{Row: ledger.Row{Key: ledger.Key{Kind: ledger.Tenant, Resource: ledger.VolumeResource}, Weight: 1, Cost: 1}},
		{Row: ledger.Row{Key: ledger.Key{Kind: ledger.Tenant, Resource: ledger.LoadBalancerResource}, Weight: 3600, Cost: 1}},
		{Row: ledger.Row{Key: ledger.Key{Kind: ledger.Tenant, Resource: ledger.LoadBalancerResource}, Unpriced: 3600}},
	} {
		if err := w.Write(&c); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	records, err := csv.NewReader(&text).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, record := range records {
		at := func(name string) string { return record[slices.Index(records[0], name)] }
		got = append(got, strings.Join([]string{at("ConsumedQuantity"), at("ConsumedUnit"), at("PricingQuantity"), at("PricingUnit"), at("EffectiveCost")}, " "))
	}
	want := []string{
		"ConsumedQuantity ConsumedUnit PricingQuantity PricingUnit EffectiveCost",
		// A CPU counts as 9 GiB: 1800.001 × 9 + 3600 / 1024.
		"1800.001 Core-Seconds 16203.524625 GiB-Seconds 0.000001", "0 Core-Seconds 16203.524625 GiB-Seconds 0.000002",
		"0.0009765625 GiB-Seconds 0.0009765625 GiB-Seconds 0.000001", "3600 Seconds 3600 Seconds 0.000001",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}
