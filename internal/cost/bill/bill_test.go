package bill

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

var tagNames = Options{CostCodeTag: "CostCode", PoolTag: "NodePool"}

// reportHeader has the columns of CUR 2.0 that are read, and one that is not.
const reportHeader = "identity_line_item_id,line_item_line_item_type,line_item_unblended_cost,line_item_currency_code," +
	"line_item_usage_start_date,line_item_usage_end_date,line_item_product_code,line_item_usage_type,pricing_public_on_demand_cost," +
	"savings_plan_savings_plan_effective_cost,savings_plan_total_commitment_to_date,savings_plan_used_commitment," +
	"reservation_effective_cost,reservation_unused_amortized_upfront_fee_for_billing_period,reservation_unused_recurring_fee,resource_tags\n"

const (
	hour0 = ",USD,2026-11-01T00:00:00.000Z,2026-11-01T01:00:00.000Z,"
	org1  = `,"{""user_cost_code"":""org1"",""user_node_pool"":""apps""}"` + "\n"
)

const reportRows = "1,Usage,0.0960000000" + hour0 + "AmazonEC2,BoxUsage:m5.large,0.0960000000,,,,,," + org1 +
	"2,Usage,0.0300000000" + hour0 + "AmazonEC2,EUC1-SpotUsage:m5.large,0.0000000000,,,,,," + org1 +
	"2,Usage,0.0300000000" + hour0 + "AmazonEC2,EUC1-SpotUsage:m5.large,0.0960000000,,,,,," + org1 +
	"3,SavingsPlanCoveredUsage,0.0960000000" + hour0 + "AmazonEC2,EUC1-BoxUsage:m5.large,0.0960000000,0.07,,,,," + org1 +
	"4,SavingsPlanNegation,-0.0960000000" + hour0 + "AmazonEC2,EUC1-BoxUsage:m5.large,,,,,,,,\n" +
	"5,SavingsPlanRecurringFee,1" + hour0 + "ComputeSavingsPlans,ComputeSP:1yrNoUpfront,,,1,0.9,,,,\n" +
	"6,DiscountedUsage,0" + hour0 + "AmazonEC2,EUC1-BoxUsage:m5.large,0.0960000000,,,,0.05,," + org1 +
	"7,RIFee,72" + hour0 + "AmazonEC2,EUC1-HeavyUsage:m5.large,,,,,,0.1,0.2,\n" +
	"8,Usage,0.01" + hour0 + "AmazonEC2,EUC1-EBS:VolumeUsage.gp3,0.01,,,,,,,\n" +
	"9,Usage,0.02" + hour0 + "AmazonEC2,EUC1-EBS:VolumeUsage.gp3,0.02,,,,,," + org1 +
	"10,Usage,0.0225" + hour0 + "AWSELB,EUC1-LoadBalancerUsage,0.0225,,,,,,,\"{\"\"CostCode\"\":\"\"org2\"\",\"\"cost-code\"\":\"\"org3\"\"}\"\n" +
	"11,Usage,0.5" + hour0 + "AmazonEC2,EUC1-DataTransfer-Out-Bytes,,,,,,," + org1 +
	"12,EdpDiscount,-0.04" + hour0 + "AmazonEC2,EUC1-BoxUsage:m5.large,,,,,,," + org1 +
	"13,Tax,0.1,USD,2026-11-01T00:00:00Z,2026-12-01T00:00:00Z,AmazonEC2,,,,,,,,,\n"

const focusRows = "BilledCost,EffectiveCost,ListCost,BillingCurrency,ChargePeriodStart,ChargePeriodEnd,ChargeCategory,ServiceName," +
	"ServiceCategory,ServiceSubcategory,CommitmentDiscountStatus,Tags\n" +
	"1,0.7,1,EUR,2026-11-01T00:00:00Z,2026-11-01T01:00:00Z,Usage,Virtual Machines,Compute,Virtual Machines,Used,\"{\"\"CostCode\"\":\"\"org1\"\"}\"\n" +
	"0,0.3,,EUR,2026-11-01T00:00Z,2026-11-01T01:00Z,Usage,Virtual Machines,Compute,Virtual Machines,Unused,\n" +
	"1,1E-7,1,EUR,2026-11-01T00:00:00Z,2026-11-01T01:00:00Z,Usage,Disks,Storage,Block Storage,,\n" +
	"2,2,2,EUR,2026-11-01 00:00:00,2026-11-01 01:00:00,Usage,Load Balancer,Networking,Application Networking,,\"{\"\"CostCode\"\":null}\"\n" +
	"-3,-3,-3,EUR,2026-11-01,2026-12-01,Credit,Credits,Other,Other (Other),,\n" +
	"9,0,9,EUR,2026-11-01,2026-12-01,Purchase,Savings,Compute,Virtual Machines,,\n" +
	"4,4,4,EUR,2026-11-01,2026-12-01,Tax,Tax,Other,Other (Other),,\n"

// listSums returns the sums as "cost code/pool/class effective list", sorted.
func listSums(b *Bill) []string {
	var all []string
	for key, s := range b.Sums {
		all = append(all, fmt.Sprintf("%s/%s/%s %s %s", key.CostCode, key.Pool, key.Class, s.Effective.Round(), s.List.Round()))
	}
	slices.Sort(all)
	return all
}

// TestRead compares the sums of both forms with the sums by hand.
func TestRead(t *testing.T) {
	for name, c := range map[string]struct {
		text, form, currency string
		want                 []string
	}{
		"CUR 2.0": {reportHeader + reportRows, "AWS CUR 2.0", "USD", []string{
			"//other services 0.100000 0.100000", // the tax, for the month
			"//other services 0.400000 0.400000", // 1 - 0.9 of the savings plan, 0.1 + 0.2 of the reservation
			"//volumes 0.010000 0.010000", "org1/apps/discounts -0.040000 -0.040000",
			"org1/apps/disks of nodes 0.020000 0.020000",
			"org1/apps/nodes 0.276000 0.348000", // 0.096 + 2 × 0.03 + 0.07 + 0.05; the list price of a spot instance is its price
			"org1/apps/other services 0.500000 0.500000", "org2//load balancers 0.022500 0.022500",
		}},
		"FOCUS": {focusRows, "FOCUS 1.2", "EUR", []string{
			"//discounts -3.000000 -3.000000", "//load balancers 2.000000 2.000000", "//other services 0.300000 0.300000",
			"//other services 4.000000 4.000000", "//volumes 0.000000 1.000000", "org1//nodes 0.700000 1.000000",
		}},
	} {
		var zipped bytes.Buffer
		w := gzip.NewWriter(&zipped)
		_, _ = w.Write([]byte(c.text))
		_ = w.Close()
		for form, text := range map[string]string{"": c.text, "with a mark": "\ufeff" + c.text, "with CRLF": strings.ReplaceAll(c.text, "\n", "\r\n"),
			"compressed": zipped.String()} {
			b, err := Read("bill.csv", strings.NewReader(text), tagNames)
			if err != nil {
				t.Fatalf("%s %s: %v", name, form, err)
			}
			until := time.Date(2026, 11, 1, 1, 0, 0, 0, time.UTC)
			if got := listSums(b); !slices.Equal(got, c.want) || b.Form != c.form || b.Currency != c.currency || !b.Until.Equal(until) {
				t.Errorf("%s %s: %s in %s until %s:\n%s\nwant\n%s", name, form, b.Form, b.Currency, b.Until, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		}
	}
}

// TestSingleTags reads a report whose query selects single tags.
func TestSingleTags(t *testing.T) {
	header := strings.Replace(reportHeader, "resource_tags", "resource_tags_user_cost_code,resource_tags.user_node_pool", 1)
	b, err := Read("bill.csv", strings.NewReader(header+"1,Usage,0.096"+hour0+"AmazonEC2,BoxUsage:m5.large,0.096,,,,,,,org1,apps\n"), tagNames)
	if err != nil {
		t.Fatal(err)
	}
	if got := listSums(b); !slices.Equal(got, []string{"org1/apps/nodes 0.096000 0.096000"}) {
		t.Errorf("%v", got)
	}
}

// TestRefuses expects one line with the file, the line, the column and a fix.
func TestRefuses(t *testing.T) {
	row := "1,Usage,0.096" + hour0 + "AmazonEC2,BoxUsage:m5.large,0.096,,,,,,"
	for text, want := range map[string]string{
		"":                     "bill.csv: the file is empty",
		"a,b\n1,2\n":           "bill.csv: unknown columns: write a bill as AWS CUR 2.0 (with line_item_unblended_cost) or FOCUS 1.2 (with EffectiveCost)",
		"PAR1\x15\x04":         "bill.csv: the file is in the Parquet format: export CSV",
		"lineItem/UsageType\n": "bill.csv: the bill is a Cost and Usage Report of version 1: export version 2.0 with AWS Data Exports",
		"BilledCost,Tags\n":    "bill.csv: the bill is in the form FOCUS 1.2, without the columns EffectiveCost, BillingCurrency, ChargePeriodStart, ChargePeriodEnd, ChargeCategory, ServiceName, ServiceCategory: add them to the export",
		strings.Replace(reportHeader, ",resource_tags", "", 1): "bill.csv: the bill is in the form AWS CUR 2.0, without the columns resource_tags: add them to the export",
		reportHeader:           "bill.csv: the bill has no usage of instances, volumes and load balancers",
		reportHeader + "1,2\n": "bill.csv:2: the row has another number of fields than the header",
		reportHeader + row + ",\n" + row + ",no\n":                                                                                                              `bill.csv:3: resource_tags: "no" must be a JSON object, such as {"CostCode": "org1"}`,
		reportHeader + strings.Replace(row, "0.096", "many", 1) + ",\n":                                                                                         `bill.csv:2: line_item_unblended_cost: "many" must be a decimal number, such as 0.0225`,
		reportHeader + strings.Replace(row, "2026-11-01T01", "today", 1) + ",\n":                                                                                `bill.csv:2: line_item_usage_end_date: "today:00:00.000Z" must be a time, such as 2026-11-01T00:00:00Z`,
		reportHeader + strings.Replace(row, "2026-11-01T01", "2026-10-01T01", 1) + ",\n":                                                                        `bill.csv:2: line_item_usage_end_date: is before line_item_usage_start_date`,
		reportHeader + row + ",\n" + strings.Replace(row, "USD", "EUR", 1) + ",\n":                                                                              `bill.csv:3: currency: "EUR" differs from "USD" of earlier lines: split the bill by currency`,
		reportHeader + "1,\"" + strings.Repeat("x", 2*maxRow):                                                                                                   "the row is longer than 1048576 bytes: a quote may be missing",
		strings.Replace(reportHeader, "savings_plan_savings_plan_effective_cost", "x", 1) + strings.Replace(row, "Usage", "SavingsPlanCoveredUsage", 1) + ",\n": "bill.csv:2: savings_plan_savings_plan_effective_cost: lines of the type SavingsPlanCoveredUsage need this column: add it to the export",
		"\x1f\x8bnot gzip": "bill.csv: gzip: invalid header",
	} {
		_, err := Read("bill.csv", strings.NewReader(text), tagNames)
		if err == nil || !strings.HasSuffix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

// repeatedBill is a bill of many rows, which is generated while it is read.
type repeatedBill struct {
	rest  string
	rows  int
	lines int
}

func (b *repeatedBill) Read(p []byte) (int, error) {
	if b.rest == "" {
		if b.rows == 0 {
			return 0, io.EOF
		}
		b.rows--
		b.lines++
		b.rest = fmt.Sprintf("%d,Usage,0.0960000001%sAmazonEC2,BoxUsage:m5.large,0.096,,,,,,%s", b.rows, hour0,
			fmt.Sprintf(`,"{""user_cost_code"":""org%d"",""user_ticket"":""%d""}"`+"\n", b.rows%7, b.rows))
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// TestMemory expects the memory not to grow with the bill: each row has other tags.
func TestMemory(t *testing.T) {
	const rows = 200_000 // 35 MB
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	b, err := Read("bill.csv", &repeatedBill{rest: reportHeader, rows: rows}, tagNames)
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if b.Lines != rows || after.HeapSys > before.HeapSys+16<<20 {
		t.Errorf("%d lines: the heap grew from %d to %d bytes", b.Lines, before.HeapSys, after.HeapSys)
	}
	var sum string
	for _, s := range b.Sums {
		sum = s.Effective.Round().String()
	}
	if len(b.Sums) != 7 || sum == "" {
		t.Errorf("%d sums", len(b.Sums))
	}
}

// FuzzRead expects each bill to end in sums or in one line, and the sums not to depend on the order of the rows.
func FuzzRead(f *testing.F) {
	f.Add([]byte(reportHeader + reportRows))
	f.Add([]byte(focusRows))
	f.Add([]byte("\ufeffBilledCost,Tags\r\n"))
	f.Add([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := Read("bill.csv", bytes.NewReader(text), tagNames)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "bill.csv:") {
				t.Errorf("%v", err)
			}
			return
		}
		if b.Lines == 0 || len(b.Sums) == 0 || b.Until.Before(b.From) {
			t.Errorf("%+v", b)
		}
		header, rows, _ := bytes.Cut(text, []byte("\n"))
		lines := bytes.SplitAfter(rows, []byte("\n"))
		if bytes.ContainsAny(rows, "\"\r\x1f") || !bytes.HasSuffix(rows, []byte("\n")) || bytes.Contains(header, []byte(`"`)) {
			return
		}
		slices.Reverse(lines)
		again, err := Read("bill.csv", bytes.NewReader(append(append(header, '\n'), bytes.Join(lines, nil)...)), tagNames)
		if err != nil || !slices.Equal(listSums(again), listSums(b)) || again.From != b.From || again.Until != b.Until {
			t.Errorf("%v: %v, and in reverse order %v", err, listSums(b), listSums(again))
		}
	})
}
