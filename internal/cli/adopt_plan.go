package cli

import (
	"fmt"
	"strings"

	"croft.dev/croft/internal/adopt"
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
	for _, r := range p.Refused {
		rows = append(rows, []string{r.Object, r.Why})
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
		rows = append(rows, []string{pool.Name, pool.Is})
	}
	a.printSection("Node pools:", []string{"POOL", "CHANGE"}, rows)
	rows = nil
	for _, e := range p.Quota {
		rows = append(rows, []string{e.Resource, e.Used, e.Hard})
	}
	a.printSection("Usage above the quota; running pods stay, and new ones are refused:", []string{"RESOURCE", "USED", "QUOTA"}, rows)
	for _, why := range p.Blocking {
		printSafely(a.out, "\nTo fix first: %s\n", why)
	}
	return nil
}

func (a *app) printNamespaces(p *adopt.Plan) {
	states := map[adopt.NamespaceState]string{
		adopt.Missing: "will be created", adopt.Free: "will be adopted unchanged", adopt.Taken: "already belongs to the tenant", adopt.Foreign: "belongs to another tenant",
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
	if !p.Tried {
		title = "Pods, and their pools when they are re-created (computed from the file; dry runs become possible when the Platform exists, after the first step):"
	}
	var rows [][]string
	for _, w := range p.Pods {
		next := "stays on " + w.Next
		switch {
		case w.Refused != "":
			next = "IS REFUSED: " + w.Refused
		case w.Waits != "":
			next = "WAITS: no new node of " + w.Next + " meets its requirements: " + w.Waits
		case w.Moves():
			next = "MOVES to " + w.Next
		case len(w.Now) == 0:
			next = w.Next
		}
		if w.Note != "" {
			next += " (" + w.Note + ")"
		}
		rows = append(rows, []string{w.Namespace, w.Name, fmt.Sprint(w.Pods), dashIfEmpty(strings.Join(w.Now, ",")), fmt.Sprint(len(w.Nodes)), next})
	}
	a.printSection(title, []string{"NAMESPACE", "WORKLOAD", "PODS", "CURRENT POOL", "NODES", "NEXT POOL"}, rows)
	if len(p.Pods) == 0 {
		printSafely(a.out, "\nNo pods run.\n")
	}
}

func (a *app) printOverlaps(p *adopt.Plan, o *adoptOptions) {
	var rows [][]string
	for _, b := range p.Beside {
		what := "stays"
		switch {
		case b.Taken:
			what = "overwritten"
		case b.Replaced && o.removeOld:
			what = "deleted"
		case b.Replaced:
			what = "deleted with --remove-old"
		}
		rows = append(rows, []string{b.Object, what, b.Why})
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
