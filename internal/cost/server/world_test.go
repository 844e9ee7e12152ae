package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/cost/collect"
	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/money"
	"croft.dev/croft/internal/cost/report"
	"croft.dev/croft/internal/cost/store"
	"croft.dev/croft/internal/declare/budget"
)

var now = time.Date(2026, 11, 26, 12, 30, 0, 0, time.UTC)

// The users of these tests, by their tokens, and the namespaces in which they may read costs. "*" is the
// cluster.
var users = map[string]struct {
	name       string
	namespaces []string
}{
	"ana-token":     {"ana", []string{"shop-prod", "shop-dev"}},
	"dev-token":     {"dev", []string{"shop-dev"}},
	"bob-token":     {"bob", []string{"bank"}},
	"robot-token":   {"system:serviceaccount:shop-dev:ci", []string{"shop-dev"}},
	"sre-token":     {"sre", []string{"kube-system"}},
	"gone-token":    {"gone", []string{"deleted"}},
	"auditor-token": {"auditor", []string{"*"}},
	"none-token":    {"none", nil},
	"nameless":      {"", []string{"*"}},
	"root-token":    {root, []string{"*"}},
	"scraper-token": {scraper, nil},
	// These tokens are for the audience of the ledger.
	"operator-token":       {operator, nil},
	"auditor-ledger-token": {"auditor", []string{"*"}},
	"robot-ledger-token":   {"system:serviceaccount:shop-dev:ci", []string{"shop-dev"}},
}

// operator is the user with the right to read budgets, scraper the one with the right to read metrics, and root may do everything.
const (
	root     = "root"
	operator = "system:serviceaccount:croft-system:croft"
	scraper  = "system:serviceaccount:monitoring:prometheus"
)

// reviews answers as an API server would.
type reviews struct {
	count  int
	failed error
}

func (r *reviews) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	r.count++
	switch review := o.(type) {
	case *authenticationv1.TokenReview:
		user, known := users[review.Spec.Token]
		ofLedger := review.Spec.Token == "operator-token" || strings.HasSuffix(review.Spec.Token, "-ledger-token")
		if known = known && ofLedger == slices.Contains(review.Spec.Audiences, budget.Audience); known {
			review.Status.Audiences = review.Spec.Audiences
			review.Status.Authenticated, review.Status.User.Username = true, user.name
		}
	case *authorizationv1.SubjectAccessReview:
		attributes := review.Spec.ResourceAttributes
		for _, user := range users {
			asked := attributes.Namespace
			if asked == "" {
				asked = "*"
			}
			if user.name == review.Spec.User && attributes.Verb == "get" && attributes.Group == "croft.dev" &&
				attributes.Resource == "costs" && attributes.Subresource == "" && (slices.Contains(user.namespaces, asked) || slices.Contains(user.namespaces, "*")) {
				review.Status.Allowed = true
			}
		}
		if attributes.Subresource == budget.Subresource && review.Spec.User == operator && attributes.Namespace == "" ||
			attributes.Subresource == MetricsSubresource && review.Spec.User == scraper && attributes.Namespace == "" ||
			review.Spec.User == root {
			review.Status.Allowed = true
		}
	}
	return r.failed
}

// world is the content of a ledger. Shop and bank share the pool apps, and have the pools solo and vault for
// themselves. The namespace shop-dev belonged to the bank until an hour ago, and so did the pool solo.
type world struct {
	view    collect.View
	records []store.Record
}

// Read returns a view that ignores selections, since the filters alone must hide rows. A view with a function that
// selects keeps it.
func (w *world) Read(time.Time) (collect.View, error) {
	v := w.view
	if v.Select == nil {
		v.Select = func(store.Selection) (*store.Reading, error) { return store.NewReading(w.records), nil }
	}
	return v, nil
}

// makeView returns a view of one record, which is also the next one.
func makeView(r store.Record) collect.View {
	w := &world{view: collect.View{Next: r, Now: now}, records: []store.Record{r}}
	v, _ := w.Read(now) // no error
	return v
}

// newRow returns a row of a workload, with its cost and its share of idle cost.
func newRow(kind ledger.Kind, tenant, namespace, workload, pool string, cost, idle money.Amount) ledger.Row {
	return ledger.Row{Key: ledger.Key{Kind: kind, Resource: ledger.NodeResource, Pool: pool, CapacityType: "on-demand",
		InstanceType: pool + ".large", Tenant: tenant, Namespace: namespace, Workload: workload, CostCode: tenant + "-code",
		PriceSource: "prices of " + pool}, CPU: 3_600_000, Memory: 3600, Cost: cost, Idle: idle}
}

func newWorld() *world {
	hours := func(from, until int) ledger.Span {
		at := now.Truncate(time.Hour)
		return ledger.Span{From: at.Add(time.Duration(from) * time.Hour), Until: at.Add(time.Duration(until) * time.Hour)}
	}
	volume := newRow(ledger.Tenant, "bank", "bank", "PersistentVolumeClaim/ledger", "", 5_555_555, 0)
	volume.Resource, volume.InstanceType = ledger.VolumeResource, "secret-class"
	common := []ledger.Row{
		newRow(ledger.Idle, "", "", "", "apps", 7_777_777, 0), newRow(ledger.Idle, "", "", "", "vault", 6_666_666, 0),
		newRow(ledger.Unallocated, "", "", "PersistentVolume/lost", "apps", 3_333_333, 0),
		newRow(ledger.Platform, "", "kube-system", "DaemonSet/proxy", "apps", 1_212_121, 1_313_131),
		newRow(ledger.Tenant, "shop", "shop-prod", "Deployment/web", "apps", 1_000_000, 2_222_222),
		newRow(ledger.Tenant, "bank", "bank", "Deployment/api", "apps", 4_444_444, 8_888_888),
		newRow(ledger.Tenant, "bank", "bank", "Deployment/secret", "vault", 9_999_999, 1_111_111),
		volume,
	}
	before := append(slices.Clone(common), newRow(ledger.Tenant, "bank", "shop-dev", "Job/secret", "apps", 4_141_414, 0),
		newRow(ledger.Tenant, "bank", "bank", "Job/solo", "solo", 4_242_424, 4_343_434),
		newRow(ledger.Tenant, "shop", "shop-old", "Job/old", "apps", 50_000, 60_000))
	after := append(slices.Clone(common), newRow(ledger.Tenant, "shop", "shop-dev", "Job/test", "solo", 200_000, 300_000))
	vault := store.Exclusive{Pool: "vault", Tenant: "bank"}
	record := func(span ledger.Span, rows []ledger.Row, solo string) store.Record {
		return store.Record{Span: span, Currency: "USD", Holder: "pod-of-ledger", Nodes: 123_456_789, Volumes: 5_555_555,
			LoadBalancers: 98_765, Rows: rows, Exclusive: []store.Exclusive{{Pool: "solo", Tenant: solo}, vault}}
	}
	w := &world{view: collect.View{Now: now, Tenants: map[string]string{
		"shop-prod": "shop", "shop-dev": "shop", "bank": "bank", "kube-system": ""}}}
	w.records = []store.Record{record(hours(-2, -1), before, "bank"), record(hours(-1, 0), after, "shop")}
	w.view.Next = record(ledger.Span{From: now, Until: now.Add(time.Hour)}, after, "shop")
	return w
}

func newTestServer() (*server, *reviews) {
	r := &reviews{}
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, sumOfAll) })
	return newServer(Options{Source: newWorld(), Reviews: r, Metrics: metrics, Log: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return now }}), r
}

// sendRequest sends a request: "METHOD TARGET", a user's token, and further headers as "Name:
// value".
func sendRequest(s *server, request, token string, headers ...string) (status int, body string) {
	method, target, _ := strings.Cut(request, " ")
	r := httptest.NewRequest(method, target, nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Add(name, value)
	}
	w := httptest.NewRecorder()
	s.newRoutes().ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// TestAnswers compares the answers that the users may get.
func TestAnswers(t *testing.T) {
	s, _ := newTestServer()
	for _, c := range []struct {
		request, token string
		want           []string
	}{
		{"GET /v1/costs", "auditor-token", []string{`"name":"bank"`, `"name":"shop"`, `"name":"(idle)"`}},
		{"GET /v1/costs?by=pool&since=2h", "auditor-token", []string{`"name":"apps"`, `"name":"vault"`}},
		// 2 × web + test + old; test's idle cost alone is visible.
		{"GET /v1/costs?namespace=shop-prod", "ana-token", []string{`"name":"shop","cost":"2.250000","idle":"0.300000"`, `"idleHidden":true`,
			"idle cost of pools that other tenants may use is not shown", `"perHourNow":"1.500000"`}},
		{"GET /v1/costs?namespace=shop-dev&by=namespace", "ana-token", []string{`"name":"shop-old"`, `"name":"shop-dev","cost":"0.200000","idle":"0.300000"`}},
		{"GET /v1/costs?namespace=shop-dev&by=workload", "dev-token", []string{`"lines":[{"name":"shop-dev Job/test","cost":"0.200000","idle":"0.300000","total":"0.500000"`}},
		{"GET /v1/costs?namespace=shop-dev&by=costCode", "robot-token", []string{`"lines":[{"name":"shop-code","cost":"0.200000"`}},
		{"GET /v1/costs?namespace=kube-system", "sre-token", []string{`"name":"(platform)","cost":"2.424242","idle":"0.000000"`}},
		{"GET /v1/costs?namespace=bank", "auditor-token", []string{`"name":"bank"`, `"idle":"24.343432"`}},
	} {
		status, body := sendRequest(s, c.request, c.token)
		if status != http.StatusOK {
			t.Errorf("%s as %s: %d %s", c.request, c.token, status, body)
		}
		for _, part := range c.want {
			if !strings.Contains(body, part) {
				t.Errorf("%s as %s lacks %s: %s", c.request, c.token, part, body)
			}
		}
	}
}

// TestFailures expects no answer without the API server.
func TestFailures(t *testing.T) {
	s, r := newTestServer()
	r.failed = errors.New("connection refused by 10.0.0.1")
	if status, body := sendRequest(s, "GET /v1/costs", "auditor-token"); status != http.StatusServiceUnavailable || strings.Contains(body, "10.0.0.1") {
		t.Errorf("%d %s", status, body)
	}
	s, r = newTestServer()
	for range 2 * reviewBurst {
		if _, body := sendRequest(s, "GET /v1/costs", "guess"); strings.Contains(body, "busy") {
			break
		}
	}
	if r.count > reviewBurst+reviewsPerSecond {
		t.Errorf("%d reviews of guessed tokens", r.count)
	}
	for i, header := range []string{"Cache-Control", "X-Content-Type-Options"} {
		w := httptest.NewRecorder()
		s.newRoutes().ServeHTTP(w, httptest.NewRequest(http.MethodGet, fmt.Sprint("/", i), nil))
		if w.Header().Get(header) == "" {
			t.Errorf("no header %s", header)
		}
	}
}

// TestCharges expects the report, and the rows that add up to its total.
func TestCharges(t *testing.T) {
	for _, c := range []struct {
		query, token string
		rows         int
	}{
		{"", "auditor-token", 20}, {"?namespace=bank", "auditor-token", 8}, {"?namespace=shop-prod", "ana-token", 4},
		{"?namespace=shop-dev", "dev-token", 1}, {"?namespace=kube-system", "sre-token", 2},
	} {
		s, _ := newTestServer()
		status, body := sendRequest(s, "GET "+ChargesPath+c.query, c.token)
		lines := strings.Split(strings.TrimSpace(body), "\n")
		var r report.Report
		if err := json.Unmarshal([]byte(lines[0]), &r); err != nil || status != http.StatusOK {
			t.Fatalf("%s: %d %v: %s", c.query, status, err, body)
		}
		var sum money.Amount
		for _, line := range lines[1:] {
			var charge report.Charge
			if err := json.Unmarshal([]byte(line), &charge); err != nil {
				t.Fatal(err)
			}
			sum += charge.Total()
			if charge.Until.Sub(charge.From) != time.Hour {
				t.Errorf("%s: %s", c.query, line)
			}
		}
		if len(lines)-1 != c.rows || sum != r.Total.Total {
			t.Errorf("%s: %d rows with a sum of %s, want %d with %s: %s", c.query, len(lines)-1, sum, c.rows, r.Total.Total, body)
		}
	}
}
