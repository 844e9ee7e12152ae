package benchnodes

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Criterion is the number of seconds by which a node with two extra interfaces may be later
// than a node without them.
const Criterion = 3.0

// Report is the result of one run.
type Report struct {
	Assumptions []Assumption `json:"assumptions"`
	Alone       Alone        `json:"alone"`
	Crowds      []Crowd      `json:"crowds"`
}

// Formats are the formats of Write.
var Formats = []string{"table", "markdown", "json"}

// Write writes a report as tables, or as JSON with every sample.
func (r Report) Write(w io.Writer, format string) error {
	switch format {
	case "json":
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(r)
	case "markdown":
		return r.writeTables(w, printMarkdown)
	default:
		return r.writeTables(w, printText)
	}
}

// table has names in the first column, and figures in the others.
type table struct {
	title string
	head  []string
	rows  [][]string
}

func (r Report) writeTables(w io.Writer, print func(io.Writer, table) error) error {
	tables := []table{r.Alone.buildTable()}
	for _, c := range r.Crowds {
		tables = append(tables, c.buildTable())
	}
	assumed := table{title: "Assumed", head: []string{"time", "value", "from"}}
	for _, a := range r.Assumptions {
		assumed.rows = append(assumed.rows, []string{a.What, a.Value, a.Source})
	}
	for _, t := range append(tables, assumed) {
		if err := print(w, t); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(w, r.Alone.describeCriterion())
	return err
}

func printText(w io.Writer, t table) error {
	// Flush reports the errors of all writes before.
	out := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintf(out, "%s\n\n%s\n", t.title, strings.ToUpper(strings.Join(t.head, "\t")))
	for _, row := range t.rows {
		_, _ = fmt.Fprintln(out, strings.Join(row, "\t"))
	}
	_, _ = fmt.Fprintln(out)
	return out.Flush()
}

func printMarkdown(w io.Writer, t table) error {
	rule := "|---|" + strings.Repeat("---:|", len(t.head)-1)
	if t.title == "Assumed" {
		rule = strings.ReplaceAll(rule, ":", "")
	}
	lines := []string{t.title + ":", "", "| " + strings.Join(t.head, " | ") + " |", rule}
	for _, row := range t.rows {
		lines = append(lines, "| "+strings.Join(row, " | ")+" |")
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n")+"\n")
	return err
}

// buildTable compares the ways to one node.
func (a Alone) buildTable() table {
	t := table{
		title: fmt.Sprintf("One node at a time, %d in each way, until it is Ready and takes pods that use both networks", a.Nodes),
		head:  []string{"", "from launched", "p99", "from pod created", "ratio", "later", "p99", "most", "incomplete"},
	}
	if len(a.Ways) == 0 {
		return t
	}
	baseline := findPercentile(50, a.Ways[0].Launched)
	for _, y := range a.Ways {
		median := findPercentile(50, y.Launched)
		row := []string{y.Name, formatSeconds(median), formatSeconds(findPercentile(99, y.Launched)), formatSeconds(median + untilLaunched.Seconds()),
			fmt.Sprintf("%.2f×", median/baseline), "", "", "", ""}
		if y.Name != Without {
			for i, p := range []float64{50, 99, 100} {
				row[5+i] = formatSeconds(findPercentile(p, y.Later))
			}
			row[8] = fmt.Sprint(y.Incomplete)
		}
		t.rows = append(t.rows, row)
	}
	return t
}

// describeCriterion reports how many nodes of croft meet the criterion.
func (a Alone) describeCriterion() string {
	for _, y := range a.Ways {
		if y.Name != Croft {
			continue
		}
		over := 0
		for _, s := range y.Later {
			if s > Criterion {
				over++
			}
		}
		return fmt.Sprintf("With croft, %d of %d nodes are later than without networks by at most %.0f s; 99 of 100 by at most %s.",
			a.Nodes-over, a.Nodes, Criterion, formatSeconds(findPercentile(99, y.Later)))
	}
	return ""
}

// buildTable compares the sides of a crowd.
func (c Crowd) buildTable() table {
	t := table{
		title: fmt.Sprintf("%d nodes at once", c.Nodes),
		head: []string{
			"", "complete", "median", "the last after", "calls", "of them reads", "throttled", "wasted twice", "incomplete", "interfaces left over",
		},
	}
	if c.Others > 0 {
		t.title += fmt.Sprintf(", while others make %g calls a second of each of the actions", c.Others)
	}
	for _, s := range c.Sides {
		t.rows = append(t.rows, []string{
			s.Name, fmt.Sprintf("%d of %d", len(s.Seconds), c.Nodes),
			formatSeconds(findPercentile(50, s.Seconds)), formatSeconds(findPercentile(100, s.Seconds)),
			fmt.Sprint(s.Calls.Made), fmt.Sprint(s.Calls.Reads), fmt.Sprint(s.Calls.Throttled), fmt.Sprint(s.Calls.WastedTwice),
			fmt.Sprint(s.Incomplete), fmt.Sprint(s.Loose),
		})
	}
	return t
}

// formatSeconds formats seconds for readers; NaN, which means no sample, as "-".
func formatSeconds(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return formatDuration(time.Duration(v * float64(time.Second)))
}

// findPercentile returns the smallest sample that p percent of all samples do not exceed; NaN if
// there are none.
func findPercentile(p float64, samples []float64) float64 {
	if len(samples) == 0 {
		return math.NaN()
	}
	rank := int(math.Ceil(p / 100 * float64(len(samples))))
	return slices.Sorted(slices.Values(samples))[max(rank, 1)-1]
}
