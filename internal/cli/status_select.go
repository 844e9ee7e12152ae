package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/wording"
)

// selection selects the objects to show.
type selection struct {
	tenants, pools []string
	notReady, all  bool
	// printedTable means that a table was printed before.
	printedTable bool
}

// mostRows is the maximum number of pools, tenants or namespaces in a table, unless they
// were selected by name.
const mostRows = 30

func (s *selection) addFlags(c *cobra.Command) {
	c.Flags().StringSliceVar(&s.tenants, "tenant", nil, "only these tenants, with the use of each of their namespaces")
	c.Flags().BoolVar(&s.notReady, "not-ready", false, "only pools and tenants that are not Ready")
	c.Flags().BoolVar(&s.all, "all", false, fmt.Sprintf("all pools and tenants, even if there are more than %d", mostRows))
	run := c.RunE
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if err := s.parseArgs(args); err != nil {
			return err
		}
		return run(cmd, args)
	}
}

// parseArgs accepts tenant/NAME and pool/NAME, and kubectl's other spellings of the kinds.
func (s *selection) parseArgs(args []string) error {
	for _, arg := range args {
		kind, name, _ := strings.Cut(arg, "/")
		switch {
		case name == "" || strings.Contains(name, "/"):
			return fmt.Errorf("%s: write tenant/NAME or pool/NAME", arg)
		case slices.Contains([]string{"tenant", "tenants", "tenants.croft.dev"}, kind):
			s.tenants = append(s.tenants, name)
		case slices.Contains([]string{"pool", "pools", "pools.croft.dev"}, kind):
			s.pools = append(s.pools, name)
		default:
			return fmt.Errorf("%s: status does not support the kind %s: write tenant/NAME or pool/NAME", arg, kind)
		}
	}
	return nil
}

// hasNames reports whether objects were selected by name.
func (s *selection) hasNames() bool { return len(s.tenants)+len(s.pools) > 0 }

// applySelection keeps only the selected pools and tenants. An unknown name is bad input.
func (o *overview) applySelection() error {
	for _, name := range o.tenants {
		if !slices.ContainsFunc(o.Tenants, func(t v1alpha1.Tenant) bool { return t.Name == name }) {
			return fmt.Errorf("there is no tenant %s: `croft status --all` lists the tenants", name)
		}
	}
	for _, name := range o.pools {
		if !slices.ContainsFunc(o.Pools, func(p v1alpha1.Pool) bool { return p.Name == name }) {
			return fmt.Errorf("there is no pool %s: `croft status --all` lists the pools", name)
		}
	}
	o.Tenants = slices.DeleteFunc(slices.Clone(o.Tenants), func(t v1alpha1.Tenant) bool {
		return o.hasNames() && !slices.Contains(o.tenants, t.Name) || o.notReady && o.isTenantReady(&t)
	})
	o.Pools = slices.DeleteFunc(slices.Clone(o.Pools), func(p v1alpha1.Pool) bool {
		return o.hasNames() && !slices.Contains(o.pools, p.Name) || o.notReady && o.isPoolReady(&p)
	})
	return nil
}

// row is a table row of an object that is Ready or not.
type row struct {
	ready bool
	cells []string
}

// printRows prints a table with at most mostRows rows. If there are more, objects that are not
// Ready come first, and the number of rows left out follows.
func (a *app) printRows(s *selection, noun string, header []string, all []row) {
	shown := all
	if len(all) > mostRows && !s.all && !s.hasNames() {
		shown = slices.Clone(all)
		slices.SortStableFunc(shown, func(x, y row) int { return rankRow(x) - rankRow(y) })
		shown = shown[:mostRows]
	}
	cells := make([][]string, len(shown))
	for i, r := range shown {
		cells[i] = r.cells
	}
	if s.printedTable || !s.hasNames() {
		printSafely(a.out, "\n")
	}
	s.printedTable = true
	printTable(a.out, header, cells)
	if len(shown) == len(all) {
		return
	}
	bad := 0
	for _, r := range all {
		bad += 1 - rankRow(r)
	}
	printSafely(a.out, "%d of %s, %d of them not Ready: --not-ready lists those, --all lists all\n", len(shown), wording.FormatCount(len(all), noun), bad)
}

// rankRow sorts rows that are not Ready first.
func rankRow(r row) int {
	if r.ready {
		return 1
	}
	return 0
}

// shortenNames lists a few names and the number of the others.
func shortenNames(names []string) string {
	const most = 4
	if len(names) <= most {
		return strings.Join(names, ",")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most-1], ","), len(names)-most+1)
}
