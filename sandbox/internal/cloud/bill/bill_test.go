package bill_test

import (
	"bytes"
	"encoding/csv"
	"strings"
	"testing"
	"time"

	"croft.dev/croft/sandbox/internal/cloud/bill"
)

// TestBill compares lines with amounts by hand: m5.large costs 0.102 an hour, r5.large 0.126, and c5.large 0.09 on demand.
// An instance runs between 9 and 10 seconds after its launch.
func TestBill(t *testing.T) {
	w := newWorld(t)
	for _, step := range []struct {
		group
		at   time.Duration
		life time.Duration
		// price is the price of spot instances a quarter of an hour later.
		price float64
	}{
		{groups[0], 10 * time.Minute, 20 * time.Second, 0},
		{groups[0], 30 * time.Minute, 59*time.Minute + time.Second, 0},
		{groups[1], 150 * time.Minute, 2 * time.Hour, 0.04},
		{groups[2], 5 * time.Hour, 0, 0},
	} {
		w.advance(begin.Add(step.at))
		id := w.launch(step.group)
		if step.price > 0 {
			w.advance(begin.Add(step.at + 15*time.Minute))
			w.setSpotPrice(step.price)
		}
		if step.life > 0 {
			w.advance(begin.Add(step.at + step.life))
			w.check(w.Terminate(id))
		}
	}
	w.advance(begin.Add(6 * time.Hour))
	var text bytes.Buffer
	w.check(bill.Write(&text, w.Account, bill.Terms{From: begin, Until: begin.Add(6 * time.Hour), TagKeys: []string{"CostCode"}, Discount: 10}))
	rows, err := csv.NewReader(&text).ReadAll()
	w.check(err)
	got := ""
	for _, row := range rows[1:] {
		if !strings.Contains(row[4], "VolumeUsage") && !strings.Contains(row[4], "Gateway") {
			got += strings.Join([]string{row[0], row[1][11:16], row[4], row[8], row[9], row[10]}, " ") + "\n"
		}
	}
	const want = `Usage 00:00 USW2-BoxUsage:m5.large 0.0017000000 0.0017000000 {"user_cost_code":"org1"}
EdpDiscount 00:00 USW2-BoxUsage:m5.large -0.0001700000  {"user_cost_code":"org1"}
Usage 00:00 USW2-BoxUsage:m5.large 0.0507450000 0.0507450000 {"user_cost_code":"org1"}
EdpDiscount 00:00 USW2-BoxUsage:m5.large -0.0050745000  {"user_cost_code":"org1"}
Usage 01:00 USW2-BoxUsage:m5.large 0.0493283333 0.0493283333 {"user_cost_code":"org1"}
EdpDiscount 01:00 USW2-BoxUsage:m5.large -0.0049328333  {"user_cost_code":"org1"}
Usage 02:00 USW2-SpotUsage:c5.large 0.0156712500 0.0447750000 {"user_cost_code":"org2"}
EdpDiscount 02:00 USW2-SpotUsage:c5.large -0.0015671250  {"user_cost_code":"org2"}
Usage 03:00 USW2-SpotUsage:c5.large 0.0158287500 0.0452250000 {"user_cost_code":"org2"}
EdpDiscount 03:00 USW2-SpotUsage:c5.large -0.0015828750  {"user_cost_code":"org2"}
Usage 03:00 USW2-SpotUsage:c5.large 0.0199000000 0.0447750000 {"user_cost_code":"org2"}
EdpDiscount 03:00 USW2-SpotUsage:c5.large -0.0019900000  {"user_cost_code":"org2"}
Usage 04:00 USW2-SpotUsage:c5.large 0.0200000000 0.0450000000 {"user_cost_code":"org2"}
EdpDiscount 04:00 USW2-SpotUsage:c5.large -0.0020000000  {"user_cost_code":"org2"}
Usage 05:00 USW2-BoxUsage:r5.large 0.1256850000 0.1256850000 {}
EdpDiscount 05:00 USW2-BoxUsage:r5.large -0.0125685000  {}
`
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
