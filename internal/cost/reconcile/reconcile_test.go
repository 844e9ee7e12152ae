package reconcile

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"croft.dev/croft/internal/cost/bill"
	"croft.dev/croft/internal/cost/focus"
	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/money"
	"croft.dev/croft/internal/cost/report"
)

var november = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

const header = "EffectiveCost,ListCost,BillingCurrency,ChargePeriodStart,ChargePeriodEnd,ChargeCategory,ServiceName,ServiceCategory,ServiceSubcategory,Tags\n"

// entry is a row of a bill in the form of FOCUS.
type entry struct {
	effective, list, charge, service, code, pool string
}

// kinds are the services of a bill.
var kinds = map[string]string{
	"nodes": "Virtual Machines,Compute,Virtual Machines", "volumes": "Disks,Storage,Block Storage",
	"balancer": "Load Balancer,Networking,Application Networking", "traffic": "Bandwidth,Networking,Network Connectivity", "": "Other,Other,Other (Other)",
}

func writeBill(entries []entry) string {
	text := header
	for _, e := range entries {
		tags := ""
		if e.code != "" || e.pool != "" {
			tags = fmt.Sprintf(`"{""CostCode"":""%s"",""NodePool"":""%s""}"`, e.code, e.pool)
		}
		text += strings.Join([]string{e.effective, e.list, "USD", "2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z", e.charge, kinds[e.service], tags}, ",") + "\n"
	}
	return text
}

// newCharge returns a charge of the first day.
func newCharge(resource ledger.Resource, code, pool string, cost, idle money.Amount) report.Charge {
	return report.Charge{From: november, Until: november.Add(day), Row: ledger.Row{
		Key: ledger.Key{Kind: ledger.Tenant, Resource: resource, CostCode: code, Pool: pool}, Cost: cost, Idle: idle}}
}

// compareBill compares a bill with charges, and returns the lines as text.
func compareBill(t *testing.T, text string, o bill.Options, charges []report.Charge) []string {
	t.Helper()
	b, err := bill.Read("bill.csv", strings.NewReader(text), o)
	if err != nil {
		t.Fatal(err)
	}
	period, err := FindPeriod(b, november.AddDate(0, 1, 0))
	if err != nil {
		t.Fatal(err)
	}
	c := New(b, period)
	for i := range charges {
		if err := c.Add(&charges[i]); err != nil {
			t.Fatal(err)
		}
	}
	r := c.Finish(nil)
	var all []string
	var sum Line
	for _, line := range append(r.Lines, r.Total) {
		explained := money.Amount(0)
		text1 := fmt.Sprintf("%s %s %s:", line.CostCode, line.Bill.Format(2), line.Croft.Format(2))
		for _, cause := range line.Causes {
			explained += cause.Amount
			text1 += fmt.Sprintf(" %s %s", cause.Cause, cause.Amount.Format(2))
		}
		if explained != line.Difference || line.Croft-line.Bill != line.Difference {
			t.Errorf("%s: the causes add up to %s, not %s", line.CostCode, explained, line.Difference)
		}
		if line != r.Total {
			sum.Bill += line.Bill
			sum.Croft += line.Croft
		}
		all = append(all, text1)
	}
	if sum.Bill != r.Total.Bill || sum.Croft != r.Total.Croft {
		t.Errorf("the lines add up to %+v, the total is %+v", sum, r.Total)
	}
	return all
}

// TestCauses compares each cause of a difference with the result by hand.
func TestCauses(t *testing.T) {
	const node, volume, balancer = ledger.NodeResource, ledger.VolumeResource, ledger.LoadBalancerResource
	for name, c := range map[string]struct {
		bill    []entry
		charges []report.Charge
		want    []string
	}{
		"no difference": {
			[]entry{{"10", "10", "Usage", "nodes", "org1", "apps"}},
			[]report.Charge{newCharge(node, "org1", "apps", 6_000_000, 4_000_000)},
			[]string{"org1 10.00 10.00:", "total 10.00 10.00:"},
		},
		"rounding": {
			[]entry{{"10.0000012", "10.0000012", "Usage", "nodes", "org1", "apps"}},
			[]report.Charge{newCharge(node, "org1", "apps", 10_000_000, 0)},
			[]string{"org1 10.00 10.00: rounding 0.00", "total 10.00 10.00: rounding 0.00"},
		},
		"a discount that croft's prices lack": {
			[]entry{{"7", "10", "Usage", "nodes", "org1", "apps"}, {"-1", "", "Credit", "", "org1", ""}},
			[]report.Charge{newCharge(node, "org1", "apps", 10_000_000, 0)},
			[]string{"org1 6.00 10.00: discount 4.00", "total 6.00 10.00: discount 4.00"},
		},
		"a discount that croft's prices have": {
			[]entry{{"7", "10", "Usage", "nodes", "org1", "apps"}},
			[]report.Charge{newCharge(node, "org1", "apps", 7_000_000, 0)},
			[]string{"org1 7.00 7.00:", "total 7.00 7.00:"},
		},
		"other services, and disks of nodes": {
			[]entry{{"10", "10", "Usage", "nodes", "org1", "apps"}, {"2", "2", "Usage", "traffic", "org1", ""}, {"1", "1", "Tax", "", "", ""},
				{"0.5", "0.5", "Usage", "volumes", "org1", "apps"}},
			[]report.Charge{newCharge(node, "org1", "apps", 10_000_000, 0)},
			[]string{"org1 12.50 10.00: other services -2.00 disks of nodes -0.50", "(no cost code) 1.00 0.00: other services -1.00",
				"total 13.50 10.00: other services -3.00 disks of nodes -0.50"},
		},
		"untagged volumes and load balancers": {
			[]entry{{"10", "10", "Usage", "nodes", "org1", "apps"}, {"3", "3", "Usage", "volumes", "", ""}, {"2", "2", "Usage", "balancer", "", ""}},
			[]report.Charge{newCharge(node, "org1", "apps", 10_000_000, 0), newCharge(volume, "org1", "", 2_000_000, 0), newCharge(volume, "", "", 1_000_000, 0),
				newCharge(balancer, "org2", "", 2_000_000, 0)},
			[]string{"org1 10.00 12.00: untagged 2.00", "org2 0.00 2.00: untagged 2.00", "(no cost code) 5.00 1.00: untagged -4.00", "total 15.00 15.00:"},
		},
		"a shared pool": {
			[]entry{{"10", "10", "Usage", "nodes", "org1", "apps"}},
			[]report.Charge{newCharge(node, "org1", "apps", 4_000_000, 1_000_000), newCharge(node, "org2", "apps", 3_000_000, 1_000_000),
				newCharge(node, "", "apps", 1_000_000, 0)},
			[]string{"org1 10.00 5.00: shared pools -5.00", "org2 0.00 4.00: shared pools 4.00", "(no cost code) 0.00 1.00: shared pools 1.00",
				"total 10.00 10.00:"},
		},
		"another cluster": {
			[]entry{{"10", "10", "Usage", "nodes", "org1", "apps"}, {"20", "20", "Usage", "nodes", "org9", "other"}},
			[]report.Charge{newCharge(node, "org1", "apps", 10_000_000, 0)},
			[]string{"org9 20.00 0.00: other services -20.00", "org1 10.00 10.00:", "total 30.00 10.00: other services -20.00"},
		},
		"instances without tags": {
			[]entry{{"10", "10", "Usage", "nodes", "", ""}},
			[]report.Charge{newCharge(node, "", "", 4_000_000, 0)},
			[]string{"(no cost code) 10.00 4.00: untagged -6.00", "total 10.00 4.00: untagged -6.00"},
		},
		"volumes without tags that the ledger lacks, and a discount": {
			[]entry{{"10", "10", "Usage", "nodes", "", ""}, {"1", "1", "Usage", "volumes", "", ""}, {"-0.6", "", "Credit", "", "", ""}},
			[]report.Charge{newCharge(node, "", "", 10_000_000, 0)},
			[]string{"(no cost code) 10.40 10.00: untagged -1.00 discount 0.60", "total 10.40 10.00: untagged -1.00 discount 0.60"},
		},
		"no cause": {
			[]entry{{"10", "10", "Usage", "nodes", "org1", "apps"}, {"10", "12", "Usage", "nodes", "org2", "jobs"}},
			[]report.Charge{newCharge(node, "org1", "apps", 9_000_000, 0), newCharge(node, "org2", "jobs", 15_000_000, 0)},
			[]string{"org1 10.00 9.00: unexplained -1.00", "org2 10.00 15.00: unexplained 3.00 discount 2.00",
				"total 20.00 24.00: discount 2.00 unexplained 2.00"},
		},
	} {
		if got := compareBill(t, writeBill(c.bill), bill.Options{CostCodeTag: "CostCode", PoolTag: "NodePool"}, c.charges); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// TestOwnExport expects no difference between croft's figures and their export in the form of FOCUS.
func TestOwnExport(t *testing.T) {
	charges := []report.Charge{
		newCharge(ledger.NodeResource, "org1", "apps", 1_234_567, 7_654_321), newCharge(ledger.NodeResource, "", "apps", 3, 0),
		newCharge(ledger.VolumeResource, "org1", "", 5, 0), newCharge(ledger.LoadBalancerResource, "org2", "", 22_500, 0),
	}
	var text bytes.Buffer
	w := focus.NewWriter(&text, "k8s.example.org", "USD")
	for i := range charges {
		if err := w.Write(&charges[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	got := compareBill(t, text.String(), bill.Options{CostCodeTag: "costCode"}, charges)
	want := []string{"org1 8.89 8.89:", "org2 0.02 0.02:", "(no cost code) 0.00 0.00:", "total 8.91 8.91:"}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// TestPeriod expects whole days, until today, and a limit that names the rest.
func TestPeriod(t *testing.T) {
	row := func(from, until string) string {
		return "1,1,USD," + from + "," + until + ",Usage," + kinds["nodes"] + ",\n"
	}
	text := header + row("2026-10-31T12:00:00Z", "2026-10-31T13:00:00Z") + row("2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z") +
		row("2026-11-03T10:00:00Z", "2026-11-03T11:00:00Z")
	b, err := bill.Read("bill.csv", strings.NewReader(text), bill.Options{CostCodeTag: "CostCode", PoolTag: "NodePool"})
	if err != nil {
		t.Fatal(err)
	}
	for now, want := range map[string]string{
		"2026-12-01T00:00:00Z": "2026-11-01 2026-11-03 <nil>", "2026-11-02T07:00:00Z": "2026-11-01 2026-11-02 <nil>",
		"2026-11-01T23:00:00Z": "2026-11-01 2026-11-01 the bill has no complete day before today: it contains usage from 2026-10-31T12:00:00Z until 2026-11-03T11:00:00Z",
	} {
		at, err := time.Parse(time.RFC3339, now)
		if err != nil {
			t.Fatal(err)
		}
		period, err := FindPeriod(b, at)
		if got := fmt.Sprintf("%s %s %v", period.From.Format(time.DateOnly), period.Until.Format(time.DateOnly), err); got != want {
			t.Errorf("at %s: %s, want %s", now, got, want)
		}
	}
	c := New(b, ledger.Span{From: november, Until: november.Add(2 * day)})
	early, late := newCharge(ledger.NodeResource, "", "", 1, 0), newCharge(ledger.NodeResource, "", "", 1, 0)
	early.From, late.Until = november.Add(-time.Hour), november.Add(3*day)
	for _, outside := range []*report.Charge{&early, &late} {
		if err := c.Add(outside); err != nil {
			t.Fatal(err)
		}
	}
	r := c.Finish([]string{"a limit"})
	want := []string{"a limit", "2.0000 of the bill is for times outside of these days, and is not compared"}
	if r.Total.Bill != money.Unit || r.Total.Croft != 0 || !slices.Equal(r.Limits, want) {
		t.Errorf("%+v: %q", r.Total, r.Limits)
	}
	if err := c.CheckCurrency("EUR"); err == nil || c.CheckCurrency("USD") != nil {
		t.Errorf("the currency EUR: %v", err)
	}
}
