package cli_test

import (
	"encoding/csv"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"croft.dev/croft/internal/cost/money"
)

// startChargesLedger starts a ledger that answers with the given charges, as JSON without their times: each is for
// one of the last days. It returns the flags for it.
func startChargesLedger(t *testing.T, total string, charges ...string) (flags string, first time.Time) {
	t.Helper()
	first = time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -len(charges))
	var answer strings.Builder
	_, _ = fmt.Fprintf(&answer, `{"currency": "USD", "by": "tenant", "lines": [], "total": {"name": "total", "total": %q},
"limits": ["from 2026-11-24T10:00:00Z until 2026-11-24T11:00:00Z the cost is unknown: no ledger ran, or its files are damaged"], "missingPrices": ["load balancers (loadBalancerHour)"]}`+"\n", total)
	for i, charge := range charges {
		from := first.AddDate(0, 0, i)
		_, _ = fmt.Fprintf(&answer, `{"from": %q, "until": %q, %s}`+"\n", from.Format(time.RFC3339), from.AddDate(0, 0, 1).Format(time.RFC3339), charge)
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/v1/charges" || r.URL.Query().Get("by") != "tenant":
			http.NotFound(w, r)
		case r.Header.Get("Authorization") != "Bearer admin-token":
			w.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprint(w, `{"error": "refused"}`)
		default:
			_, _ = fmt.Fprint(w, answer.String())
		}
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	authority := filepath.Join(dir, "ca.crt")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(authority, block, 0o600); err != nil {
		t.Fatal(err)
	}
	return " --ledger " + server.URL + " --certificate-authority " + authority, first
}

// writeTokenKubeconfig returns a kubeconfig with a token.
func writeTokenKubeconfig(t *testing.T, token string) string {
	t.Helper()
	return writeConfig(t, fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: here,
contexts: [{name: here, context: {cluster: here, user: me}}], users: [{name: me, user: {token: %q}}],
clusters: [{name: here, cluster: {server: "https://k8s.example.org:6443"}}]}`, token))
}

const (
	onApps  = `"kind": "tenant", "resource": "node", "pool": "apps", "tenant": "shop", "costCode": "org1", "namespace": "shop", "workload": "Deployment/web", "cpu": 86400000, "weight": 1, "cost": "6.000000", "idle": "4.000000"`
	balance = `"kind": "tenant", "resource": "loadBalancer", "tenant": "bank", "costCode": "org2", "namespace": "bank", "workload": "Service/web", "weight": 86400, "cost": "0.540000", "idle": "0.000000"`
)

// TestCostAsFocus expects the rows of the ledger, and its limits on standard error.
func TestCostAsFocus(t *testing.T) {
	flags, first := startChargesLedger(t, "10.540000", onApps, balance)
	args := strings.Fields("cost -o focus --since 2d" + flags + " --kubeconfig " + writeTokenKubeconfig(t, "admin-token"))
	status, stdout, stderr := runCroft(t, "", args...)
	if want := "~ from 2026-11-24T10:00:00Z until 2026-11-24T11:00:00Z the cost is unknown: no ledger ran, or its files are damaged\n? no price, and no row: load balancers (loadBalancerHour)\n"; status != 0 || stderr != want {
		t.Fatalf("exit status %d: %s%s", status, stdout, stderr)
	}
	rows, err := csv.NewReader(strings.NewReader(stdout)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, row := range rows[1:] {
		var cells []string
		for _, name := range []string{"ChargePeriodStart", "BillingAccountId", "SubAccountId", "EffectiveCost", "Tags"} {
			cells = append(cells, row[slices.Index(rows[0], name)])
		}
		got = append(got, strings.Join(cells, " "))
	}
	day, next := first.Format(time.RFC3339), first.AddDate(0, 0, 1).Format(time.RFC3339)
	const tags = ` {"costCode":"org1","namespace":"shop","pool":"apps","tenant":"shop"}`
	want := []string{day + " k8s.example.org:6443 shop 6.000000" + tags, day + " k8s.example.org:6443 shop 4.000000" + tags,
		next + ` k8s.example.org:6443 bank 0.540000 {"costCode":"org2","namespace":"bank","tenant":"bank"}`}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// TestFocusOfCluster expects the export of the objects to add up to the report, and an account of one's own.
func TestFocusOfCluster(t *testing.T) {
	kubeconfig := serveCluster(t)
	status, stdout, stderr := runCroft(t, "", "cost", "-o", "focus", "--since", "3h", "--billing-account", "prod", "--kubeconfig", kubeconfig)
	rows, err := csv.NewReader(strings.NewReader(stdout)).ReadAll()
	if err != nil || status != 0 || len(rows) < 10 || !strings.Contains(stderr, "? no price, and no row: spot nodes of type c6i.large") {
		t.Fatalf("exit status %d, %v: %s%s", status, err, stdout, stderr)
	}
	var sum money.Decimal
	for _, row := range rows[1:] {
		var cost money.Decimal
		if err := cost.Parse(row[slices.Index(rows[0], "EffectiveCost")]); err != nil || !slices.Contains(row, "prod") {
			t.Errorf("%v: %v", err, row)
		}
		sum.Add(&cost)
	}
	// The node of pool apps alone has a price: 3 hours of 0.096.
	if sum.Round().String() != "0.288000" {
		t.Errorf("the sum is %s", sum.Round())
	}
}

// TestCostAsOpenCost expects the ledger's rows as OpenCost's allocations, which add up to its total, and the limits on
// standard error.
func TestCostAsOpenCost(t *testing.T) {
	flags, first := startChargesLedger(t, "10.540000", onApps, balance)
	args := strings.Fields("cost -o opencost --since 2d" + flags + " --kubeconfig " + writeTokenKubeconfig(t, "admin-token"))
	status, stdout, stderr := runCroft(t, "", args...)
	if want := "~ from 2026-11-24T10:00:00Z until 2026-11-24T11:00:00Z the cost is unknown: no ledger ran, or its files are damaged\n? no price, and no cost: load balancers (loadBalancerHour)\n"; status != 0 || stderr != want {
		t.Fatalf("exit status %d: %s%s", status, stdout, stderr)
	}
	var got struct {
		Code int
		Data []map[string]struct {
			Start                                                      time.Time
			Properties                                                 struct{ Cluster, Namespace, ControllerKind string }
			CPUCost, CPUCostIdle, RAMCost, LoadBalancerCost, TotalCost json.Number
		}
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || got.Code != 200 || len(got.Data) != 1 || len(got.Data[0]) != 2 {
		t.Fatalf("%v: %s", err, stdout)
	}
	// The rows have no memory: all of it is for CPU.
	web, balancer := got.Data[0]["shop/shop/deployment/web"], got.Data[0]["bank/bank/service/web"]
	if !web.Start.Equal(first) || web.Properties.Cluster != "k8s.example.org:6443" || web.Properties.ControllerKind != "deployment" ||
		web.CPUCost != "10.000000" || web.CPUCostIdle != "4.000000" || web.RAMCost != "0.000000" || web.TotalCost != "10.000000" {
		t.Errorf("%+v", web)
	}
	if balancer.LoadBalancerCost != "0.540000" || balancer.TotalCost != "0.540000" || balancer.Properties.Namespace != "bank" {
		t.Errorf("%+v", balancer)
	}
}

// TestOpenCostOfCluster expects the allocations of the objects to add up to the report.
func TestOpenCostOfCluster(t *testing.T) {
	status, stdout, stderr := runCroft(t, "", "cost", "-o", "opencost", "--since", "3h", "--kubeconfig", serveCluster(t))
	var got struct {
		Data []map[string]struct{ TotalCost json.Number }
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || status != 0 || len(got.Data) != 1 || !strings.Contains(stderr, "? no price, and no cost: spot nodes of type c6i.large") {
		t.Fatalf("exit status %d, %v: %s%s", status, err, stdout, stderr)
	}
	var sum money.Decimal
	for name, allocation := range got.Data[0] {
		var cost money.Decimal
		if err := cost.Parse(allocation.TotalCost.String()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		sum.Add(&cost)
	}
	// The node of pool apps alone has a price: 3 hours of 0.096.
	if sum.Round().String() != "0.288000" {
		t.Errorf("the sum is %s: %s", sum.Round(), stdout)
	}
}

// TestIncompleteCharges expects a failure if the answer of a ledger ends early.
func TestIncompleteCharges(t *testing.T) {
	kubeconfig := writeTokenKubeconfig(t, "admin-token")
	for name, c := range map[string]struct{ total, charge, want string }{
		"a missing row": {"11.000000", onApps, "the ledger's answer is incomplete: its rows add up to 10.000000, not 11.000000: try again"},
		"a broken row":  {"10.000000", onApps + `, "x": `, "the ledger's answer ends early"},
	} {
		flags, _ := startChargesLedger(t, c.total, c.charge)
		status, _, stderr := runCroft(t, "", strings.Fields("cost -o focus"+flags+" --kubeconfig "+kubeconfig)...)
		if status != 1 || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit status %d: %s", name, status, stderr)
		}
	}
}

// writeCUR writes a bill of two days, from the given day on.
func writeCUR(t *testing.T, first time.Time) string {
	t.Helper()
	text := "line_item_line_item_type,line_item_unblended_cost,line_item_currency_code,line_item_usage_start_date,line_item_usage_end_date," +
		"line_item_product_code,line_item_usage_type,pricing_public_on_demand_cost,resource_tags\n"
	for i, row := range []string{
		`Usage,8,USD,%s,%s,AmazonEC2,BoxUsage:m5.large,10,"{""user_cost_code"":""org1"",""user_node_pool"":""apps""}"`,
		`Usage,0.54,USD,%s,%s,AWSELB,LoadBalancerUsage,0.54,`,
		`Usage,3,USD,%s,%s,AmazonS3,TimedStorage-ByteHrs,,"{""user_cost_code"":""org1""}"`,
	} {
		from := first.AddDate(0, 0, i%2)
		text += fmt.Sprintf(row, from.Format(time.RFC3339), from.AddDate(0, 0, 1).Format(time.RFC3339)) + "\n"
	}
	return writeConfig(t, text)
}

// TestReconcile compares a bill with the ledger.
func TestReconcile(t *testing.T) {
	flags, first := startChargesLedger(t, "10.540000", onApps, balance)
	args := strings.Fields("cost" + flags + " --reconcile " + writeCUR(t, first) + " --kubeconfig " + writeTokenKubeconfig(t, "admin-token"))
	status, stdout, stderr := runCroft(t, "", args...)
	want := "from " + first.Format(time.RFC3339) + " until " + first.AddDate(0, 0, 2).Format(time.RFC3339) + ", in USD, a bill in the form AWS CUR 2.0\n" + `
COST CODE        BILL      CROFT     DIFFERENCE   CAUSE
org1             11.0000   10.0000   -1.0000      other services -3.0000, discount 2.0000
org2             0.0000    0.5400    0.5400       untagged 0.5400
(no cost code)   0.5400    0.0000    -0.5400      untagged -0.5400
total            11.5400   10.5400   -1.0000      other services -3.0000, discount 2.0000

~ from 2026-11-24T10:00:00Z until 2026-11-24T11:00:00Z the cost is unknown: no ledger ran, or its files are damaged
~ no price, and no cost: load balancers (loadBalancerHour)
`
	if status != 0 || stdout != want || stderr != "" {
		t.Errorf("exit status %d: %s%s\nwant %s", status, stdout, stderr, want)
	}
	if _, table, _ := strings.Cut(want, "\n"); !strings.Contains(readDoc(t, "docs/how-to/cost.md"), table) {
		t.Error("docs/how-to/cost.md has another table")
	}
	_, stdout, _ = runCroft(t, "", append(args, "-o", "json")...)
	var got struct {
		Lines []struct {
			CostCode, Difference string
			Causes               []struct{ Cause, Amount string }
		}
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || len(got.Lines) != 3 || got.Lines[0].Difference != "-1.000000" ||
		got.Lines[0].Causes[1].Amount != "2.000000" {
		t.Errorf("%v: %s", err, stdout)
	}
}

// TestReconcileCluster compares a bill with the objects in the cluster.
func TestReconcileCluster(t *testing.T) {
	first := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -2)
	status, stdout, stderr := runCroft(t, "", "cost", "--reconcile", writeCUR(t, first), "--kubeconfig", serveCluster(t))
	// Two days of a node of 0.096 an hour.
	if status != 0 || stderr != "" || !regexp.MustCompile(`(?m)^total +11\.5400 +4\.6080 +-6\.9320 `).MatchString(stdout) {
		t.Errorf("exit status %d: %s%s", status, stdout, stderr)
	}
}

// TestReconcileRefuses expects one line for bad bills, and for users who may not read the cluster's cost.
func TestReconcileRefuses(t *testing.T) {
	flags, first := startChargesLedger(t, "10.540000", onApps, balance)
	admin, tenant := " --kubeconfig "+writeTokenKubeconfig(t, "admin-token"), " --kubeconfig "+writeTokenKubeconfig(t, "tenant-token")
	unknown, cur := writeConfig(t, "a,b\n"), writeCUR(t, first)
	euros := writeConfig(t, strings.ReplaceAll(readFileText(t, cur), "USD", "EUR"))
	for args, c := range map[string]struct {
		status int
		want   string
	}{
		"--reconcile nowhere.csv":               {2, "croft: --reconcile nowhere.csv: there is no such file"},
		"--reconcile " + unknown:                {2, "unknown columns: write a bill as AWS CUR 2.0"},
		"--reconcile - --prices -":              {2, "croft: --reconcile and prices cannot both be standard input"},
		flags + admin + " --reconcile " + euros: {2, "the bill is in EUR, and croft's prices are in USD"},
		flags + tenant + " --reconcile " + cur:  {1, "croft: you may not read the cost of the whole cluster"},
	} {
		status, stdout, stderr := runCroft(t, "", strings.Fields("cost "+args)...)
		if status != c.status || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit status %d: %s%s\nwant %s", args, status, stdout, stderr, c.want)
		}
	}
}

func readFileText(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestCostForecast expects the cost of the month so far, and the mean of the complete days for its rest.
func TestCostForecast(t *testing.T) {
	flags, first := startChargesLedger(t, "41.080000", onApps, balance, onApps, onApps, balance, onApps)
	args := strings.Fields("cost --forecast --by costCode" + flags + " --kubeconfig " + writeTokenKubeconfig(t, "admin-token"))
	status, stdout, stderr := runCroft(t, "", args...)
	period := fmt.Sprintf("the mean cost of the 6 complete days from %s until %s\n", first.Format(time.RFC3339), first.AddDate(0, 0, 6).Format(time.RFC3339))
	if status != 0 || stderr != "" || !strings.Contains(stdout, period) || !regexp.MustCompile(`(?m)^org1 +\S+ +6\.6667 +\d+\.\d{4}$`).MatchString(stdout) {
		t.Errorf("exit status %d: %s%s\nwant %s", status, stdout, stderr, period)
	}
	if status, _, stderr := runCroft(t, "", append(args, "--by", "team")...); status != 2 || !strings.Contains(stderr, "--by team: unknown grouping") {
		t.Errorf("exit status %d: %s", status, stderr)
	}
}
