package cli

import (
	"fmt"
	"strings"

	"croft.dev/croft/internal/adoption/adopt"
)

// printPlan prints the plan of an adoption: the namespaces, pods and objects that it
// changes.
func (a *app) printPlan(p *adopt.Plan, o *adoptOptions) error {
	if o.output != formatTable {
		return o.output.print(a.out, p)
	}
	a.printNamespaces(p)
	a.printPods(p)
	var rows [][]string
	for _, r := range p.Refusals {
		rows = append(rows, []string{r.Object, r.Reason})
	}
	a.printSection("Objects that stay, and whose re-creation would be refused:", []string{"OBJECT", "REASON"}, rows)
	a.printOverlaps(p, o)
	rows = nil
	for _, t := range p.Traffic {
		what := "begins"
		if t.Ends {
			what = "ENDS"
		}
		rows = append(rows, []string{t.From, t.To, what})
	}
	a.printSection("Connections that change:", []string{"FROM", "TO", "CHANGE"}, rows)
	rows = nil
	for _, pool := range p.Pools {
		rows = append(rows, []string{pool.Name, pool.State})
	}
	a.printSection("Node pools:", []string{"POOL", "CHANGE"}, rows)
	rows = nil
	for _, e := range p.Quota {
		rows = append(rows, []string{e.Resource, e.Used, e.Hard})
	}
	a.printSection("Usage above the quota; running pods stay, and new ones are refused:", []string{"RESOURCE", "USED", "QUOTA"}, rows)
	for _, why := range p.Blockers {
		printSafely(a.out, "\nTo fix first: %s\n", why)
	}
	return nil
}

func (a *app) printNamespaces(p *adopt.Plan) {
	states := map[adopt.NamespaceState]string{
		adopt.Missing: "will be created", adopt.Free: "will be adopted unchanged", adopt.Owned: "already belongs to the tenant", adopt.Foreign: "belongs to another tenant",
	}
	printSafely(a.out, "Tenant %s\n", p.Tenant)
	for _, n := range p.Namespaces {
		state := states[n.State]
		if n.State == adopt.Kept {
			state = fmt.Sprintf("was released or retained by tenant %s, and will be adopted", n.From)
		}
		printSafely(a.out, "  namespace %s %s\n", n.Name, state)
	}
}

func (a *app) printPods(p *adopt.Plan) {
	title := "Pods, and their pools when they are re-created:"
	if !p.Evaluated {
		title = "Pods, and their pools when they are re-created (computed from the file; dry runs become possible when the Platform exists, after the first step):"
	}
	var rows [][]string
	for _, w := range p.Pods {
		next := "stays on " + w.NextPool
		switch {
		case w.Refusal != "":
			next = "IS REFUSED: " + w.Refusal
		case w.PendingReason != "":
			next = "WAITS: no new node of " + w.NextPool + " meets its requirements: " + w.PendingReason
		case w.Moves():
			next = "MOVES to " + w.NextPool
		case len(w.CurrentPools) == 0:
			next = w.NextPool
		}
		if w.Note != "" {
			next += " (" + w.Note + ")"
		}
		rows = append(rows, []string{w.Namespace, w.Name, fmt.Sprint(w.Pods), dashIfEmpty(strings.Join(w.CurrentPools, ",")), fmt.Sprint(len(w.Nodes)), next})
	}
	a.printSection(title, []string{"NAMESPACE", "WORKLOAD", "PODS", "CURRENT POOL", "NODES", "NEXT POOL"}, rows)
	if len(p.Pods) == 0 {
		printSafely(a.out, "\nNo pods run.\n")
	}
}

func (a *app) printOverlaps(p *adopt.Plan, o *adoptOptions) {
	var rows [][]string
	for _, b := range p.Overlaps {
		what := "stays"
		switch {
		case b.Overwritten:
			what = "overwritten"
		case b.Replaced && o.removeOld:
			what = "deleted"
		case b.Replaced:
			what = "deleted with --remove-old"
		}
		rows = append(rows, []string{b.Object, what, b.Reason})
	}
	a.printSection("Objects that overlap with the walls:", []string{"OBJECT", "ACTION", "REASON"}, rows)
}

// printSection prints a table with a title. It prints nothing without rows.
func (a *app) printSection(title string, header []string, rows [][]string) {
	if len(rows) > 0 {
		printSafely(a.out, "\n%s\n", title)
		printTable(a.out, header, rows)
	}
}
