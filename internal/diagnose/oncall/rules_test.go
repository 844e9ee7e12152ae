package oncall_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"croft.dev/croft/internal/diagnose/oncall"
	"croft.dev/croft/internal/operate/metric"
)

// TestAlertsAreComplete fails if an alert lacks a field, or if its link leads to no runbook.
func TestAlertsAreComplete(t *testing.T) {
	docs, err := os.ReadFile("../../../docs/reference/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`^Croft[A-Z][A-Za-z]+$`)
	seen := map[string]bool{}
	for _, a := range oncall.Alerts() {
		switch {
		case !name.MatchString(a.Name) || seen[a.Name]:
			t.Errorf("%q is not a valid name, or not unique", a.Name)
		case a.Summary == "" || a.Meaning == "" || a.Fix == "" || a.Run == "":
			t.Errorf("%s: a field is empty", a.Name)
		case !slices.Contains([]oncall.Severity{oncall.Critical, oncall.Warning, oncall.Info}, a.Severity):
			t.Errorf("%s: severity %q", a.Name, a.Severity)
		case strings.HasSuffix(a.Meaning, ".") || strings.HasSuffix(a.Fix, "."):
			t.Errorf("%s: the page adds the full stop", a.Name)
		}
		seen[a.Name] = true
		if _, anchor, _ := strings.Cut(a.Runbook(), "#"); anchor != strings.ToLower(a.Name) {
			t.Errorf("%s: its runbook is at %s", a.Name, a.Runbook())
		}
		if !strings.Contains(string(docs), "\n### "+a.Name+"\n") {
			t.Errorf("docs/reference/troubleshooting.md has no %s: run `make generate`", a.Name)
		}
	}
}

// listQueries returns the queries of all rules and dashboards, by their names.
func listQueries() map[string]string {
	all := map[string]string{}
	for _, g := range oncall.Groups() {
		for _, r := range g.Records {
			all[r.Name] = r.Expr
		}
		for _, a := range g.Alerts {
			all[a.Name] = a.Expr
		}
	}
	for _, d := range oncall.Dashboards() {
		for _, p := range d.Panels {
			for _, q := range p.Queries {
				all[d.Name+": "+p.Title+" "+q.Legend] = q.Expr
			}
		}
	}
	return all
}

var (
	quoted   = regexp.MustCompile(`"[^"]*"`)
	selector = regexp.MustCompile(`([a-zA-Z_:][a-zA-Z0-9_:]*)\{([^}]*)\}`)
	matcher  = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)`)
	lists    = regexp.MustCompile(`\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)`)
	ranges   = regexp.MustCompile(`\[[^\]]*\]`)
	word     = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*\(?`)
)

// listUsedMetrics returns the metrics in a query.
func listUsedMetrics(expr string) []string {
	expr = quoted.ReplaceAllString(expr, "")
	expr = selector.ReplaceAllString(expr, "$1")
	expr = ranges.ReplaceAllString(lists.ReplaceAllString(expr, ""), "")
	var names []string
	for _, w := range word.FindAllString(expr, -1) {
		if !strings.HasSuffix(w, "(") && !slices.Contains([]string{"or", "and", "unless", "bool", "offset", "sum", "max", "min", "count", "by"}, w) {
			names = append(names, w)
		}
	}
	return names
}

// TestMetricsExist fails if a rule or a dashboard uses a metric that no process serves, or
// selects by a label that the metric does not have.
func TestMetricsExist(t *testing.T) {
	labels := map[string][]string{}
	for _, m := range metric.All() {
		for _, series := range m.Series() {
			labels[series] = append(m.LabelNames(), "le")
		}
	}
	for _, g := range oncall.Groups() {
		for _, r := range g.Records {
			labels[r.Name] = []string{"status", "reason", "policy", "wall", "error_type", "controller", "action"}
		}
	}
	for where, expr := range listQueries() {
		names := listUsedMetrics(expr)
		if len(names) == 0 {
			t.Errorf("%s uses no metric: %s", where, expr)
		}
		for _, name := range names {
			if _, ok := labels[name]; !ok {
				t.Errorf("%s: no process serves %s", where, name)
			}
		}
		for _, s := range selector.FindAllStringSubmatch(expr, -1) {
			for _, m := range matcher.FindAllStringSubmatch(quoted.ReplaceAllString(s[2], ""), -1) {
				if !slices.Contains(labels[s[1]], m[1]) {
					t.Errorf("%s: %s has no label %s", where, s[1], m[1])
				}
			}
		}
	}
}

// TestListUsedMetrics fails if TestMetricsExist overlooks a metric.
func TestListUsedMetrics(t *testing.T) {
	got := listUsedMetrics(`absent(a_b{c=~"d|e"}) or time() - max by (f, g) (h:i * on (j) group_left () k[5m]) > 2 * l`)
	if want := []string{"a_b", "h:i", "k", "l"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestDashboards fails if a metric of croft's is neither on a dashboard nor in an alert: an
// unused metric need not be served.
func TestDashboards(t *testing.T) {
	var names []string
	for _, expr := range listQueries() {
		names = append(names, listUsedMetrics(expr)...)
	}
	for _, m := range metric.Own() {
		if !slices.ContainsFunc(m.Series(), func(s string) bool { return slices.Contains(names, s) }) {
			t.Errorf("no alert and no dashboard uses %s", m.Name)
		}
	}
}
