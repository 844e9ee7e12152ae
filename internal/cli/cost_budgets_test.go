package cli_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
)

// serveTenants serves Tenants, or forbids them.
func serveTenants(t *testing.T, forbidden bool, tenants ...v1alpha1.Tenant) (kubeconfig string) {
	t.Helper()
	version := metav1.GroupVersionForDiscovery{GroupVersion: "croft.dev/v1alpha1", Version: "v1alpha1"}
	list := v1alpha1.TenantList{TypeMeta: metav1.TypeMeta{APIVersion: "croft.dev/v1alpha1", Kind: "TenantList"}, Items: tenants}
	answers := map[string]any{
		"/api":                             metav1.APIVersions{Versions: []string{"v1"}},
		"/api/v1":                          makeResourceList("v1"),
		"/apis":                            metav1.APIGroupList{Groups: []metav1.APIGroup{{Name: "croft.dev", Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version}}},
		"/apis/croft.dev/v1alpha1":         makeResourceList("croft.dev/v1alpha1", "Tenant", "tenants"),
		"/apis/croft.dev/v1alpha1/tenants": list,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, found := answers[r.URL.Path]
		w.Header().Set("Content-Type", "application/json")
		switch {
		case forbidden && strings.HasSuffix(r.URL.Path, "/tenants"):
			w.WriteHeader(http.StatusForbidden)
			answer = metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden}
		case !found:
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	config := "apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {server: '" + server.URL + "'}}]\n" +
		"contexts: [{name: a, context: {cluster: a}}]\ncurrent-context: a\n"
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestCostBudgets compares the table with docs/how-to/budgets.md.
func TestCostBudgets(t *testing.T) {
	tenant := func(name string, s *v1alpha1.TenantBudgetStatus) v1alpha1.Tenant {
		return v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1alpha1.TenantStatus{Budget: s}}
	}
	kubeconfig := serveTenants(t, false,
		tenant("bank", &v1alpha1.TenantBudgetStatus{Month: "2026-11", Monthly: 300, Currency: "EUR", Spent: "120.10", Percent: 40, Forecast: "145.90"}),
		tenant("lab", nil),
		tenant("shop", &v1alpha1.TenantBudgetStatus{Month: "2026-11", Monthly: 800, Currency: "EUR", Spent: "812.40", Percent: 101, Forecast: "990.00",
			Stage: v1alpha1.BudgetDenyNewNodes, StagePercent: 100, StageSpent: "800.20"}),
		tenant("tools", &v1alpha1.TenantBudgetStatus{Month: "2026-11", Monthly: 100, Currency: "USD", Problem: "the ledger's currency is EUR, not USD: write the budget in EUR"}),
	)
	status, stdout, stderr := runCroft(t, "", "cost", "--budgets", "--kubeconfig", kubeconfig)
	if status != 0 || stderr != "" {
		t.Fatalf("exit status %d: %s", status, stderr)
	}
	assertGolden(t, "testdata/cost-budgets.golden.txt", stdout)
	if !strings.Contains(readDoc(t, "docs/how-to/budgets.md"), stdout) {
		t.Error("docs/how-to/budgets.md does not show testdata/cost-budgets.golden.txt")
	}
	status, stdout, _ = runCroft(t, "", "cost", "--budgets", "-o", "json", "--kubeconfig", kubeconfig)
	var lines []struct{ Tenant, Month, Left, Stage string }
	if err := json.Unmarshal([]byte(stdout), &lines); err != nil || status != 0 || len(lines) != 3 ||
		lines[1].Tenant != "shop" || lines[1].Left != "-12.40" || lines[1].Stage != "DenyNewNodes" || lines[1].Month != "2026-11" {
		t.Errorf("exit status %d, %v: %s", status, err, stdout)
	}
	if status, stdout, stderr := runCroft(t, "", "cost", "--budgets", "--kubeconfig", serveTenants(t, false)); status != 0 || stdout != "" || !strings.Contains(stderr, "no tenant has a budget") {
		t.Errorf("without budgets: exit status %d: %s%s", status, stdout, stderr)
	}
	if status, _, stderr := runCroft(t, "", "cost", "--budgets", "--kubeconfig", serveTenants(t, true)); status != 1 || !strings.Contains(stderr, "you may not read tenants.croft.dev") {
		t.Errorf("without the right: exit status %d: %s", status, stderr)
	}
}
