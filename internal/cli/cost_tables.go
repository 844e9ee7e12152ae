package cli

import (
	"cmp"
	"encoding/csv"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/money"
	"croft.dev/croft/internal/cost/report"
)

func (a *app) printCost(r *report.Report, output format) error {
	switch output {
	case formatJSON, formatYAML:
		return output.print(a.out, r)
	case formatCSV:
		return a.printCostCSV(r)
	case formatSVG:
		_, err := io.WriteString(a.out, report.RenderSVG(r))
		return toFailure(err)
	default:
		a.printCostTable(r, output == formatWide)
		return nil
	}
}

// costTitles are the titles of the first column.
var costTitles = map[string]string{report.ByCostCode: "COST CODE", report.ByInstanceType: "INSTANCE TYPE"}

// formatGrouping returns the title of a grouping.
func formatGrouping(by string) string { return cmp.Or(costTitles[by], strings.ToUpper(by)) }

func (a *app) printCostTable(r *report.Report, wide bool) {
	printSafely(a.out, "from %s until %s, in %s\n\n", r.From.Format(time.RFC3339), r.Until.Format(time.RFC3339), r.Currency)
	header := []string{formatGrouping(r.By), "COST", "IDLE", "TOTAL", "NOW/HOUR"}
	if wide {
		header = append(header, "ESTIMATED", "CPU HOURS", "GIB HOURS", "CPU USED", "GIB USED", "MEASURED")
	}
	var rows [][]string
	for _, line := range append(r.Lines, r.Total) {
		row := []string{line.Name, markUnknown(line.Cost, line.CostUnknown), formatIdle(line),
			formatTotal(line), markUnknown(line.PerHourNow, line.NowUnknown)}
		if wide {
			row = append(row, line.Estimated.Format(4), strconv.FormatFloat(line.CPUHours, 'f', 2, 64),
				strconv.FormatFloat(line.MemoryHours, 'f', 2, 64))
			row = append(row, formatMeasured(line)...)
		}
		rows = append(rows, row)
	}
	printTable(a.out, header, rows)
	printSafely(a.out, "\n")
	for _, source := range r.PriceSources {
		printSafely(a.out, "price: %s for %s\n", source.Source, source.Cost.Format(4))
	}
	a.printMissingPrices(r.MissingPrices)
	for _, limit := range r.Limits {
		printSafely(a.out, "~ %s\n", limit)
	}
}

// formatMeasured formats usage and its measured share. Usage that was not measured is no zero. A minus sign stands for a line
// without pods.
func formatMeasured(line *report.Line) []string {
	switch {
	case line.MeasuredShare == nil:
		return []string{"-", "-", "-"}
	case line.CPUUsedHours == nil || line.MemoryUsedHours == nil:
		return []string{"?", "?", "0%"}
	default:
		return []string{strconv.FormatFloat(*line.CPUUsedHours, 'f', 2, 64), strconv.FormatFloat(*line.MemoryUsedHours, 'f', 2, 64),
			strconv.FormatFloat(*line.MeasuredShare*100, 'f', 0, 64) + "%"}
	}
}

// formatKnown formats a figure for CSV. An unknown one is empty.
func formatKnown(figure *float64) string {
	if figure == nil {
		return ""
	}
	return strconv.FormatFloat(*figure, 'f', 3, 64)
}

// formatTotal marks a total that is estimated or incomplete.
func formatTotal(line *report.Line) string {
	text := markUnknown(line.Total, line.UnknownSeconds > 0)
	if line.Estimated > 0 {
		return "~" + text
	}
	return text
}

// formatIdle formats idle cost. A minus sign stands for idle cost that is not shown.
func formatIdle(line *report.Line) string {
	switch text := markUnknown(line.Idle, line.IdleUnknown); {
	case line.IdleHidden && line.Idle == 0:
		return "-"
	case line.IdleHidden:
		return text + " + -"
	default:
		return text
	}
}

// markUnknown marks an amount with an unknown part. An amount without a known part is no zero.
func markUnknown(amount money.Amount, unknown bool) string {
	switch {
	case unknown && amount == 0:
		return "?"
	case unknown:
		return amount.Format(4) + " + ?"
	default:
		return amount.Format(4)
	}
}

func (a *app) printMissingPrices(missing []string) {
	for _, price := range missing {
		printSafely(a.out, "? no price: %s\n", price)
	}
	if len(missing) > 0 {
		printSafely(a.out, "? add missing prices to the file of --prices\n")
	}
}

// printCostCSV writes all lines without the total, with exact amounts.
func (a *app) printCostCSV(r *report.Report) error {
	w := csv.NewWriter(a.out)
	rows := [][]string{{"from", "until", "currency", r.By, "cost", "idle", "total", "estimated", "per_hour_now",
		"unknown_seconds", "cpu_hours", "memory_gib_hours", "cpu_used_hours", "memory_used_gib_hours", "measured_share"}}
	for _, line := range r.Lines {
		rows = append(rows, []string{r.From.Format(time.RFC3339), r.Until.Format(time.RFC3339), r.Currency, line.Name,
			line.Cost.String(), line.Idle.String(), line.Total.String(), line.Estimated.String(),
			line.PerHourNow.String(), strconv.FormatInt(line.UnknownSeconds, 10),
			strconv.FormatFloat(line.CPUHours, 'f', 3, 64), strconv.FormatFloat(line.MemoryHours, 'f', 3, 64),
			formatKnown(line.CPUUsedHours), formatKnown(line.MemoryUsedHours), formatKnown(line.MeasuredShare)})
	}
	return toFailure(w.WriteAll(rows))
}

// explainCost prints the divisions of the last complete hour of a period, or of its last part if it
// has none.
func (a *app) explainCost(in ledger.Input, period ledger.Span, currency string) error {
	l, err := ledger.New(in)
	if err != nil {
		return toFailure(err)
	}
	spans := ledger.Split(period)
	span := spans[len(spans)-1]
	for _, s := range spans {
		if s.Until.Sub(s.From) == time.Hour {
			span = s
		}
	}
	hour := l.Explain(span)
	printSafely(a.out, "from %s until %s, in %s\n\n", span.From.Format(time.RFC3339), span.Until.Format(time.RFC3339), currency)
	printSafely(a.out, "%s\n", ledger.WeightRule)
	for _, d := range hour.Divisions {
		printSafely(a.out, "\n%s = %s\n", d.Title, d.Amount)
		var rows [][]string
		for _, share := range d.Shares {
			extra, cost := "-", share.Amount
			if share.Extra {
				extra, cost = "1", cost+1
			}
			rows = append(rows, []string{formatOwner(share.Key), strconv.FormatInt(share.Weight, 10),
				share.Amount.String(), strconv.FormatUint(share.Remainder, 10), extra, cost.String()})
		}
		printTable(a.out, []string{"FOR", "WEIGHT", "ROUNDED DOWN", "REMAINDER", "EXTRA", "COST"}, rows)
	}
	a.printHourSums(&hour)
	missing := map[string]bool{}
	for i := range hour.Rows {
		if hour.Rows[i].Unpriced > 0 {
			missing[report.DescribeMissing(&hour.Rows[i])] = true
		}
	}
	a.printMissingPrices(slices.Sorted(maps.Keys(missing)))
	return nil
}

// formatOwner names the owner of a share.
func formatOwner(k ledger.Key) string {
	switch k.Kind {
	case ledger.Tenant:
		return strings.Join([]string{k.Tenant, k.Namespace, k.Workload}, " ")
	case ledger.Platform:
		return strings.Join([]string{"(platform)", k.Namespace, k.Workload}, " ")
	case ledger.Unallocated:
		return strings.TrimSpace("(unallocated) " + k.Workload)
	default:
		return "(idle)"
	}
}

// printHourSums prints both sides of the equation that holds for each hour.
func (a *app) printHourSums(hour *ledger.Hour) {
	sums := map[ledger.Kind]money.Amount{}
	for _, row := range hour.Rows {
		sums[row.Kind] += row.Cost
	}
	printSafely(a.out, "\ntenants %s + platform %s + idle %s + unallocated %s\n= nodes %s + volumes %s + load balancers %s = %s\n",
		sums[ledger.Tenant], sums[ledger.Platform], sums[ledger.Idle], sums[ledger.Unallocated],
		hour.Nodes, hour.Volumes, hour.LoadBalancers, hour.Nodes+hour.Volumes+hour.LoadBalancers)
}
