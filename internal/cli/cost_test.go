package cli_test

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// serveCluster serves the objects of docs/explanation/cost.md, and forbids lists of the given kinds.
func serveCluster(t *testing.T, forbidden ...string) (kubeconfig string) {
	t.Helper()
	return serveLists(t, "../cost/objects/testdata/cluster.yaml", forbidden,
		"Node", "nodes", "Pod", "pods", "Namespace", "namespaces", "PersistentVolume", "persistentvolumes", "Service", "services")
}

const costPrices = "volumes: {gp3: 0.08}\nloadBalancerHour: 0.0225\n"

// cutPeriod removes the first line, which has the time of the run.
func cutPeriod(t *testing.T, stdout string) string {
	t.Helper()
	period, rest, _ := strings.Cut(stdout, "\n\n")
	if !regexp.MustCompile(`^from \S+Z until \S+Z, in USD$`).MatchString(period) {
		t.Errorf("the first line is %q", period)
	}
	return rest
}

// TestCost compares the output for the example cluster with docs/how-to/cost.md, and its arithmetic with
// docs/explanation/cost.md.
func TestCost(t *testing.T) {
	kubeconfig := serveCluster(t)
	howTo, explanation := readDoc(t, "docs/how-to/cost.md"), readDoc(t, "docs/explanation/cost.md")
	golden, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.WriteFile("prices.yaml", []byte(costPrices), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ args, page string }{
		"cost": {"", howTo}, "cost-wide": {"-o wide", ""}, "cost-pool": {"--by pool", ""}, "cost-workload": {"--by workload", ""},
		"cost-explain": {"--explain --since 3h", explanation},
	} {
		args := append(strings.Fields("cost --since 1h --prices prices.yaml --kubeconfig "+kubeconfig), strings.Fields(c.args)...)
		status, stdout, stderr := runCroft(t, "", args...)
		if status != 0 || stderr != "" {
			t.Fatalf("%s: exit status %d: %s", name, status, stderr)
		}
		stdout = cutPeriod(t, stdout)
		assertGolden(t, filepath.Join(golden, name+".golden.txt"), stdout)
		if c.page != "" && !strings.Contains(c.page, stdout) {
			t.Errorf("no page shows testdata/%s.golden.txt", name)
		}
	}
}

// TestCostAsData expects exact amounts that add up.
func TestCostAsData(t *testing.T) {
	kubeconfig := serveCluster(t)
	metrics := writeConfig(t, `karpenter_cloudprovider_instance_type_offering_price_estimate{capacity_type="spot",instance_type="c6i.large",zone="us-east-1b"} 0.0341`)
	_, stdout, stderr := runCroft(t, costPrices, "cost", "--since", "1h", "--prices", "-", "--karpenter-metrics", metrics,
		"--by", "costCode", "-o", "json", "--kubeconfig", kubeconfig)
	var got struct {
		Currency string
		Lines    []struct {
			Name, Cost, Idle, Total, Estimated, PerHourNow string
			UnknownSeconds                                 int
		}
		Total         struct{ PerHourNow string }
		MissingPrices []string
		Limits        []string
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatalf("%v: %s%s", err, stdout, stderr)
	}
	// 0.096 and 0.0341 for nodes, 0.0225 for the load balancer, and 110 GiB × 0.08 / 730.
	if got.Total.PerHourNow != "0.164655" || got.Currency != "USD" || len(got.MissingPrices) != 0 || len(got.Limits) < 3 {
		t.Errorf("total %s %s an hour; without a price: %v; limits: %v", got.Total.PerHourNow, got.Currency,
			got.MissingPrices, got.Limits)
	}
	var names []string
	for _, line := range got.Lines {
		names = append(names, line.Name)
		if line.UnknownSeconds != 0 {
			t.Errorf("%s has an unknown cost", line.Name)
		}
	}
	if want := []string{"org2", "org1", "(platform)", "(idle)", "(unallocated)"}; !slices.Equal(names, want) {
		t.Errorf("lines are %v, want %v", names, want)
	}
	_, stdout, _ = runCroft(t, "", "cost", "-o", "csv", "--kubeconfig", kubeconfig)
	rows, err := csv.NewReader(strings.NewReader(stdout)).ReadAll()
	if err != nil || len(rows) != 6 || rows[0][3] != "tenant" {
		t.Errorf("-o csv: %v: %s", err, stdout)
	}
	status, stdout, _ := runCroft(t, "", "cost", "-o", "svg", "--kubeconfig", kubeconfig)
	if status != 0 || !strings.HasPrefix(stdout, "<svg ") || !strings.Contains(stdout, ">(unallocated)</text>") || !strings.HasSuffix(stdout, "</svg>\n") {
		t.Errorf("-o svg: exit status %d: %s", status, stdout)
	}
}

// TestCostRights expects one line that names all missing rights.
func TestCostRights(t *testing.T) {
	for _, forbidden := range [][]string{{"nodeclaims"}, {"namespaces", "persistentvolumes", "services"}} {
		status, stdout, stderr := runCroft(t, "", "cost", "--kubeconfig", serveCluster(t, forbidden...))
		names := strings.Replace(strings.Join(forbidden, ", "), "nodeclaims", "nodeclaims.karpenter.sh", 1)
		want := "croft: you may not read " + names +
			": ask a platform admin for the right to list them in all namespaces\n"
		if status != 1 || stdout != "" || stderr != want {
			t.Errorf("without %s: exit status %d: %s%s", names, status, stdout, stderr)
		}
	}
}

// TestCostRefuses expects one line for each mistake in files and flags.
func TestCostRefuses(t *testing.T) {
	kubeconfig := serveCluster(t)
	bad := writeConfig(t, "volumes:\n  gp3: cheap\n")
	for args, want := range map[string]string{
		"--since 0":               "croft: --since 0s: write a positive duration, such as 24h",
		"--by team":               "croft: --by team: unknown grouping: write one of tenant|namespace|workload|pool|costCode|instanceType",
		"--prices nowhere.yaml":   "croft: --prices nowhere.yaml: there is no such file",
		"--prices " + bad:         bad + `:2: volumes.gp3: the text "cheap": must be a number, such as 0.0225`,
		"--explain -o json":       "croft: --explain prints one hour as text: leave out --by and --output",
		"--explain --by workload": "croft: --explain prints one hour as text: leave out --by and --output",
		"--karpenter-metrics no":  "croft: --karpenter-metrics no: there is no such file",
		"--karpenter-metrics " + bad: "croft: --karpenter-metrics " + bad + ": the file has no metric " +
			"karpenter_cloudprovider_instance_type_offering_price_estimate; write the output of Karpenter's /metrics to it",
		"--prices - --karpenter-metrics -": "croft: --prices and --karpenter-metrics cannot both be standard input: name a file for one",
	} {
		args := append(strings.Fields("cost --kubeconfig "+kubeconfig), strings.Fields(args)...)
		status, stdout, stderr := runCroft(t, "", args...)
		if status != 2 || stdout != "" || stderr != want+"\n" {
			t.Errorf("%s: exit status %d: %s%s", args, status, stdout, stderr)
		}
	}
}
