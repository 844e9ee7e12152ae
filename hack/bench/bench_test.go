package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"croft.dev/croft/hack/internal/tenants"
	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/store"
	"croft.dev/croft/internal/walls/wall"
)

func TestGeneratedTenantsAreValid(t *testing.T) {
	built, err := tenants.Build(tenants.Platform + tenants.RenderText("tenant", 3))
	if err != nil {
		t.Fatal(err)
	}
	if len(built.Tenants) != 3 || built.Tenants[2].Name != tenants.Name("tenant", 2) {
		t.Fatalf("tenants: %v", built.Tenants)
	}
	tenants, err := buildTenantObjects(tenants.Platform + tenants.RenderText("tenant", 3))
	if err != nil {
		t.Fatal(err)
	}
	if len(tenants) != 3 || len(tenants[0]) != len(wall.TenantObjects(&built.Platform, built.Tenants[0])) {
		t.Errorf("the bare client does not write what the walls want")
	}
	if first := tenants[0][0].GetKind(); first != "Namespace" {
		t.Errorf("the first object is a %s: nothing can be written before its namespace", first)
	}
}

func TestScrapeSumsUpByLabel(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`# TYPE sent_total counter
sent_total{code="200",method="GET"} 4
sent_total{code="200",method="PATCH"} 1
sent_total{code="201",method="PATCH"} 2
sent_total{code="201",method="POST"} 8
`))
	}))
	defer server.Close()
	got, err := scrapeCounter(t.Context(), server.Client(), server.URL, "sent_total", "method")
	if err != nil {
		t.Fatal(err)
	}
	if want := (requests{"GET": 4, "PATCH": 3, "POST": 8}); !reflect.DeepEqual(got, want) {
		t.Errorf("requests: %v, want %v", got, want)
	}
	if got.countWrites() != 11 {
		t.Errorf("writes: %g, want 11", got.countWrites())
	}
	if more := got.subtract(requests{"GET": 4, "POST": 7}); !reflect.DeepEqual(more, requests{"PATCH": 3, "POST": 1}) {
		t.Errorf("since: %v", more)
	}
	if _, err := scrapeCounter(t.Context(), server.Client(), server.URL, "received_total", "method"); err == nil {
		t.Error("a counter that is not there counts nothing, instead of being an error")
	}
}

// TestCountWritesOmitsReviews counts the requests of a minute of an idle operator, and of one
// that writes.
func TestCountWritesOmitsReviews(t *testing.T) {
	resources := requests{"selfsubjectrulesreviews": 15, "leases": 20}
	for _, test := range []struct{ posts, writes float64 }{{15, 6}, {16, 7}, {14, 6}} {
		sent := requests{"GET": 3, "POST": test.posts, "PUT": 6}
		if got := sent.subtractReviews(resources).countWrites(); got != test.writes {
			t.Errorf("of %v, %g are writes, not %g", sent, got, test.writes)
		}
		if sent["POST"] != test.posts {
			t.Error("the counts were changed")
		}
	}
}

func TestListMoved(t *testing.T) {
	got := listMoved(map[string]string{"stays": "1", "goes": "2", "moves": "3"}, map[string]string{"stays": "1", "moves": "4", "comes": "5"})
	if want := []string{"comes", "goes", "moves"}; !reflect.DeepEqual(got, want) {
		t.Errorf("moved: %v, want %v", got, want)
	}
}

// TestFillLedger expects records without gaps, as the ledger continues them.
func TestFillLedger(t *testing.T) {
	directory := t.TempDir()
	until := time.Date(2026, 11, 27, 3, 0, 0, 0, time.UTC)
	if err := fillLedger(t.Context(), directory, 2, until.AddDate(0, 0, -2), until); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(directory, func(file string, err error) { t.Errorf("%s: %v", file, err) })
	if err != nil {
		t.Fatal(err)
	}
	period := ledger.Span{From: until.Truncate(24*time.Hour).AddDate(0, 0, -2), Until: until}
	records, err := s.Read(period)
	if err != nil {
		t.Fatal(err)
	}
	// The sum of a day, the hours of yesterday, and three hours of today.
	if missing := store.FindMissing(period, records); len(missing) > 0 || len(records) != 1+24+3 {
		t.Errorf("%d records, without %v", len(records), missing)
	}
	for i := range records {
		if len(records[i].Rows) != 2*namespacesPerTenant*workloadsPerNamespace {
			t.Errorf("%s: %d rows", records[i].From, len(records[i].Rows))
		}
	}
	if size, err := sumSizes(directory); err != nil || size < 1000 {
		t.Errorf("%g bytes: %v", size, err)
	}
}

func TestReport(t *testing.T) {
	r := report{Comparisons: []comparison{
		{Name: "fast", Unit: inSeconds, Croft: 3, Alternative: 0.5},
		{Name: "quiet", Unit: inWrites, Croft: 0, Alternative: 0},
	}}
	var table bytes.Buffer
	if err := r.print(&table); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"fast 3.00 s 500 ms 6.00×", "quiet 0 writes 0 writes -"} {
		if !strings.Contains(strings.Join(strings.Fields(table.String()), " "), line) {
			t.Errorf("the table lacks %q:\n%s", line, table.String())
		}
	}
	data, err := json.Marshal(r.Comparisons)
	if err != nil {
		t.Fatal(err)
	}
	var raw []map[string]any
	if err := json.Unmarshal(data, &raw); err != nil {
		t.Fatal(err)
	}
	if raw[0]["ratio"] != 6.0 || raw[0]["unit"] != "seconds" || raw[1]["ratio"] != nil {
		t.Errorf("raw data: %s", data)
	}
}
