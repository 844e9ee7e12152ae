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
	a.section("Stays as it is, and could not be written anew:", []string{"OBJECT", "WHY"}, rows)
	a.printBeside(p, o)
	rows = nil
	for _, t := range p.Traffic {
		what := "begins"
		if t.Ends {
			what = "ENDS"
		}
		rows = append(rows, []string{t.From, t.To, what})
	}
	a.section("Connections that change:", []string{"FROM", "TO", "THEN"}, rows)
	rows = nil
	for _, pool := range p.Pools {
		rows = append(rows, []string{pool.Name, pool.Is})
	}
	a.section("Node pools:", []string{"POOL", "WHAT BECOMES OF IT"}, rows)
	rows = nil
	for _, e := range p.Quota {
		rows = append(rows, []string{e.Resource, e.Used, e.Hard})
	}
	a.section("More than the quota allows; what runs goes on, and nothing more is let in:", []string{"RESOURCE", "USED", "QUOTA"}, rows)
	for _, why := range p.Blocking {
		say(a.out, "\nTo be put right first: %s\n", why)
	}
	return nil
}

func (a *app) printNamespaces(p *adopt.Plan) {
	states := map[adopt.NamespaceState]string{
		adopt.Missing: "is made", adopt.Free: "is taken over as it is", adopt.Taken: "is the tenant's already", adopt.Foreign: "is another tenant's",
	}
	say(a.out, "Tenant %s\n", p.Tenant)
	for _, n := range p.Namespaces {
		state := states[n.State]
		if n.State == adopt.Kept {
			state = fmt.Sprintf("was kept from tenant %s, which has given it up, and is taken over", n.From)
		}
		say(a.out, "  namespace %s %s\n", n.Name, state)
	}
}

func (a *app) printPods(p *adopt.Plan) {
	title := "Pods, and where they land when they are made anew:"
	if !p.Tried {
		title = "Pods, and where they land when they are made anew (worked out from the file; the rules can be tried when the Platform stands, which is the first step):"
	}
	var rows [][]string
	for _, w := range p.Pods {
		next := "stays on " + w.Next
		switch {
		case w.Refused != "":
			next = "IS REFUSED: " + w.Refused
		case w.Waits != "":
			next = "WAITS: no new node of " + w.Next + " is as it asks: " + w.Waits
		case w.Moves():
			next = "MOVES to " + w.Next
		case len(w.Now) == 0:
			next = w.Next
		}
		if w.Note != "" {
			next += " (" + w.Note + ")"
		}
		rows = append(rows, []string{w.Namespace, w.Name, fmt.Sprint(w.Pods), dash(strings.Join(w.Now, ",")), fmt.Sprint(len(w.Nodes)), next})
	}
	a.section(title, []string{"NAMESPACE", "WORKLOAD", "PODS", "POOL NOW", "NODES", "NEXT TIME"}, rows)
	if len(p.Pods) == 0 {
		say(a.out, "\nNo pods run.\n")
	}
}

func (a *app) printBeside(p *adopt.Plan, o *adoptOptions) {
	var rows [][]string
	for _, b := range p.Beside {
		what := "stays"
		switch {
		case b.Taken:
			what = "written over"
		case b.Replaced && o.removeOld:
			what = "goes"
		case b.Replaced:
			what = "goes with --remove-old"
		}
		rows = append(rows, []string{b.Object, what, b.Why})
	}
	a.section("Beside the walls:", []string{"OBJECT", "THEN", "WHY"}, rows)
}

// section prints a table with a title. It prints nothing without rows.
func (a *app) section(title string, header []string, rows [][]string) {
	if len(rows) > 0 {
		say(a.out, "\n%s\n", title)
		table(a.out, header, rows)
	}
}
