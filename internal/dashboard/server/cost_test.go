package server

import (
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"croft.dev/croft/internal/dashboard/costs"
)

// startLedger serves answers as a ledger does.
func startLedger(t *testing.T, answer http.HandlerFunc) *costs.Ledger {
	t.Helper()
	server := httptest.NewTLSServer(answer)
	t.Cleanup(server.Close)
	authorities := x509.NewCertPool()
	authorities.AddCert(server.Certificate())
	ledger, err := costs.New(server.URL, authorities)
	if err != nil {
		t.Fatal(err)
	}
	return ledger
}

// formatHistory returns an answer of a ledger.
func formatHistory() string {
	month := time.Now().UTC().Format("2006-01") + "-01T00:00:00Z"
	return `{"now":"` + time.Now().UTC().Format(time.RFC3339) + `","currency":"USD","by":"workload","months":[{"from":"` + month + `","until":"2126-12-01T00:00:00Z","total":"12.500000"}],"days":[],` +
		`"thisMonth":[{"name":"shop Deployment/web <b>","cost":"10.000000","idle":"2.500000","total":"12.500000","estimated":"0.000000","perHourNow":"0.000000"}],"lastMonth":[],"missingPrices":[],"limits":["a limit"]}`
}

// TestCosts expects the costs that the ledger returns for the user's own token, and one answer for all
// namespaces whose cost the user may not read.
func TestCosts(t *testing.T) {
	a := startAPIServer(t)
	a.users["root-token"], a.admins["root"] = "root", true
	var asked []string
	status := http.StatusOK
	elsewhere := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the dashboard followed a redirect") }))
	defer elsewhere.Close()
	o := newOptions(t, a)
	o.Ledger = startLedger(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path+" "+r.URL.Query().Get("namespace")+" "+r.URL.Query().Get("by")+" "+strings.Join(r.Header.Values("Authorization"), ",")+r.Header.Get("Cookie"))
		if status != http.StatusOK {
			w.Header().Set("Location", elsewhere.URL)
			w.WriteHeader(status)
			return
		}
		_, _ = io.WriteString(w, formatHistory())
	})
	open := serveHandler(t, New(o))
	b, admin := open().logIn("ana-token"), open().logIn("root-token")
	missing := b.getPage("/namespaces/nowhere")
	for name, c := range map[string]struct {
		b            *browser
		path         string
		ledger, want int
		part, asks   string
	}{
		"a tenant":              {b, "/namespaces/shop/cost", 200, 200, "shop Deployment/web &lt;b&gt;", "GET /v1/history shop workload Bearer ana-token"},
		"another breakdown":     {b, "/namespaces/shop/cost?by=pool", 200, 200, "Cost of tenant shop", "GET /v1/history shop pool Bearer ana-token"},
		"an unknown breakdown":  {b, "/namespaces/shop/cost?by=x", 200, 200, "a limit", "GET /v1/history shop workload Bearer ana-token"},
		"another tenant":        {b, "/namespaces/bank/cost", 200, 404, "Not found", ""},
		"a right that is lost":  {b, "/namespaces/shop/cost", 403, 404, "Not found", "GET /v1/history shop workload Bearer ana-token"},
		"the platform":          {admin, "/costs", 200, 200, "Cost of the platform", "GET /v1/history  tenant Bearer root-token"},
		"the platform, refused": {b, "/costs", 403, 404, "Not found", "GET /v1/history  tenant Bearer ana-token"},
		"an old ledger":         {b, "/namespaces/shop/cost", 404, 200, "older than the dashboard", "GET /v1/history shop workload Bearer ana-token"},
		"an outage":             {b, "/namespaces/shop/cost", 503, 200, "The ledger did not answer", "GET /v1/history shop workload Bearer ana-token"},
		"an unknown token":      {b, "/namespaces/shop/cost", 401, 200, "The ledger does not accept your login", "GET /v1/history shop workload Bearer ana-token"},
		"a redirect":            {b, "/namespaces/shop/cost", 307, 200, "The ledger did not answer", "GET /v1/history shop workload Bearer ana-token"},
	} {
		t.Run(name, func(t *testing.T) {
			asked, status = nil, c.ledger
			got := c.b.getPage(c.path)
			if got.status != c.want || !strings.Contains(got.body, c.part) || strings.Join(asked, ";") != c.asks {
				t.Errorf("status %d, asked %q, want %d, %s and %q:\n%s", got.status, asked, c.want, c.part, c.asks, got.body)
			}
			if c.want == http.StatusNotFound && got.body != missing.body && c.b == b {
				t.Errorf("the page differs from a missing one:\n%s", got.body)
			}
		})
	}
	unset := startDashboard(t, a)().logIn("ana-token")
	for _, path := range []string{"/costs", "/namespaces/shop/cost"} {
		if got := unset.getPage(path); got.status != http.StatusOK || !strings.Contains(got.body, "Costs are not configured") {
			t.Errorf("%s without a ledger: status %d:\n%s", path, got.status, got.body)
		}
	}
}

// TestBudgets expects the budgets of the tenants that the user's own token may read, and no others. The ledger has no
// part in it.
func TestBudgets(t *testing.T) {
	a := startAPIServer(t)
	a.users["root-token"], a.admins["root"] = "root", true
	const tenant = `{"kind":"Tenant","apiVersion":"croft.dev/v1alpha1","metadata":{"name":"shop"},"status":{"budget":{"month":"2026-11","monthly":800,` +
		`"currency":"EUR","spent":"812.40","percent":101,"forecast":"990.00","stage":"DenyNewNodes"}}}`
	a.objects["/apis/croft.dev/v1alpha1/tenants/shop"] = tenant
	a.objects["/apis/croft.dev/v1alpha1/tenants"] = `{"kind":"TenantList","apiVersion":"croft.dev/v1alpha1","items":[` + tenant + `]}`
	open := startDashboard(t, a)
	ana, root := open().logIn("ana-token"), open().logIn("root-token")
	for name, c := range map[string]struct {
		b     *browser
		path  string
		shown bool
	}{
		"a tenant that the user may read":     {root, "/namespaces/shop/cost", true},
		"a tenant that the user may not read": {ana, "/namespaces/shop/cost", false},
		"a tenant that does not exist":        {root, "/namespaces/bank/cost", false},
		"all tenants":                         {root, "/costs", true},
		"all tenants, refused":                {ana, "/costs", false},
	} {
		got := c.b.getPage(c.path)
		if got.status != http.StatusOK || !strings.Contains(got.body, "Costs are not configured") ||
			strings.Contains(got.body, "812.40") != c.shown || strings.Contains(got.body, "-12.40") != c.shown || strings.Contains(got.body, "DenyNewNodes") != c.shown {
			t.Errorf("%s: status %d, want a budget: %t:\n%s", name, got.status, c.shown, got.body)
		}
	}
}

// TestLedgerURL expects only URLs at which no one else reads the tokens.
func TestLedgerURL(t *testing.T) {
	for _, address := range []string{"http://ledger.example.org", "ledger.example.org", "", "https://ana:secret@ledger.example.org", "https://ledger.example.org?a=b", ":"} {
		if _, err := costs.New(address, nil); err == nil {
			t.Errorf("%q is accepted", address)
		}
	}
}
