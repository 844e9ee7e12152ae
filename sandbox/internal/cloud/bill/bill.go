// Package bill writes the bill of a simulated account: AWS's Cost and Usage Report 2.0 with hourly lines, as
// CSV. It contains the instances and their disks, a NAT gateway, which is another service, and a private discount.
package bill

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
	"unicode"

	"croft.dev/croft/sandbox/internal/cloud/account"
)

const (
	// least is the minimum time that AWS charges for an instance.
	least = time.Minute
	// diskSize is the size of an instance's disk in GiB, and diskPrice the price of a GiB for a month.
	diskSize, diskPrice = 20, 0.08
	// gatewayPrice is the price of an hour of a NAT gateway.
	gatewayPrice = 0.045
	// region precedes the usage types of us-west-2, whose prices the account has.
	region = "USW2-"
	second = int64(time.Second)
)

// Terms are the terms of a bill.
type Terms struct {
	// From and Until are the period, in whole hours.
	From, Until time.Time
	// TagKeys are the activated cost allocation tags: the bill contains no other tags.
	TagKeys []string
	// Discount is a private discount on everything, in percent.
	Discount int64
}

// amount is an amount of US dollars in units of the bill's last decimal.
type amount int64

const decimals = 10

func toAmount(price float64) amount { return amount(math.Round(price * math.Pow10(decimals))) }

// scale returns the amount for a part of an hour, rounded half up.
func (a amount) scale(used time.Duration) amount {
	const hour = amount(time.Hour / time.Second)
	return (a*amount(int64(used)/second)*2 + hour) / (2 * hour)
}

func (a amount) String() string {
	if a < 0 {
		return "-" + (-a).String()
	}
	unit := amount(math.Pow10(decimals))
	return fmt.Sprintf("%d.%0*d", a/unit, decimals, a%unit)
}

// header are the columns.
var header = []string{
	"line_item_line_item_type", "line_item_usage_start_date", "line_item_usage_end_date", "line_item_product_code", "line_item_usage_type",
	"line_item_resource_id", "line_item_usage_amount", "line_item_currency_code", "line_item_unblended_cost", "pricing_public_on_demand_cost",
	"resource_tags",
}

// item is the use of a resource in an hour.
type item struct {
	at                  time.Time
	usageType, resource string
	// amount is in hours, or in GiB and months.
	amount float64
	// cost is before the discount, list the cost at on-demand prices.
	cost, list amount
	tags       account.Tags
}

// writer writes the lines.
type writer struct {
	Terms
	rows *csv.Writer
}

// Write writes the bill of an account.
func Write(out io.Writer, a *account.Account, t Terms) error {
	w := &writer{Terms: t, rows: csv.NewWriter(out)}
	if err := w.rows.Write(header); err != nil {
		return err
	}
	for _, use := range a.ListUsage() {
		if err := w.writeUsage(a, use); err != nil {
			return err
		}
	}
	gateway := toAmount(gatewayPrice)
	for at := t.From; at.Before(t.Until); at = at.Add(time.Hour) {
		if err := w.writeItem(item{at: at, usageType: "NatGateway-Hours", resource: "nat-1", amount: 1, cost: gateway, list: gateway}); err != nil {
			return err
		}
	}
	w.rows.Flush()
	return w.rows.Error()
}

// writeUsage writes an instance and its disk. The price of a spot instance is the one at the beginning of each hour since
// it runs.
func (w *writer) writeUsage(a *account.Account, u account.Usage) error {
	from, until := u.From.Truncate(time.Second), u.Until.Truncate(time.Second)
	switch {
	case u.Until.IsZero():
		until = w.Until
	case until.Sub(from) < least:
		until = from.Add(least)
	}
	instanceType := account.FindType(u.Type)
	usageType := "BoxUsage:" + u.Type
	if u.Capacity == account.Spot {
		usageType = "SpotUsage:" + u.Type
	}
	for at := from; at.Before(until); {
		began := from.Add(at.Sub(from).Truncate(time.Hour))
		end := at.Truncate(time.Hour).Add(time.Hour)
		for _, earlier := range []time.Time{until, began.Add(time.Hour)} {
			if earlier.Before(end) {
				end = earlier
			}
		}
		used := end.Sub(at)
		instance := item{at: at.Truncate(time.Hour), usageType: usageType, resource: u.Instance, amount: used.Hours(), tags: u.Tags,
			cost: toAmount(a.FindPrice(instanceType, u.Capacity, began)).scale(used), list: toAmount(instanceType.Price).scale(used)}
		disk := w.buildDisk(instance, used)
		at = end
		if instance.at.Before(w.From) || !instance.at.Before(w.Until) {
			continue
		}
		if err := w.writeItem(instance); err != nil {
			return err
		}
		if err := w.writeItem(disk); err != nil {
			return err
		}
	}
	return nil
}

// buildDisk returns the disk of an instance, which has its tags.
func (w *writer) buildDisk(instance item, used time.Duration) item {
	month := time.Date(instance.at.Year(), instance.at.Month(), 1, 0, 0, 0, 0, time.UTC)
	months := used.Hours() / month.AddDate(0, 1, 0).Sub(month).Hours()
	cost := toAmount(diskSize * diskPrice * months)
	return item{at: instance.at, usageType: "EBS:VolumeUsage.gp3", resource: "vol-" + strings.TrimPrefix(instance.resource, "i-"),
		amount: diskSize * months, cost: cost, list: cost, tags: instance.tags}
}

// writeItem writes a line of usage, and one of its discount.
func (w *writer) writeItem(i item) error {
	if err := w.writeLine("Usage", i, i.list.String()); err != nil || w.Discount == 0 {
		return err
	}
	i.amount, i.cost = 0, -i.cost*amount(w.Discount)/100
	return w.writeLine("EdpDiscount", i, "")
}

func (w *writer) writeLine(lineType string, i item, list string) error {
	tags, err := json.Marshal(w.selectTags(i.tags))
	if err != nil {
		return err
	}
	return w.rows.Write([]string{
		lineType, i.at.UTC().Format(time.RFC3339), i.at.UTC().Add(time.Hour).Format(time.RFC3339), "AmazonEC2", region + i.usageType, i.resource,
		fmt.Sprintf("%.10f", i.amount), "USD", i.cost.String(), list, string(tags),
	})
}

// selectTags returns the activated tags, with the keys as the report has them: user_cost_code for CostCode.
func (w *writer) selectTags(tags account.Tags) map[string]string {
	selected := map[string]string{}
	for _, key := range w.TagKeys {
		value, found := tags[key]
		if !found {
			continue
		}
		name := "user"
		for i, c := range key {
			if i == 0 || unicode.IsUpper(c) {
				name += "_"
			}
			name += string(unicode.ToLower(c))
		}
		selected[name] = value
	}
	return selected
}
