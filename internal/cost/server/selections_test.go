package server

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/report"
	"croft.dev/croft/internal/cost/store"
	"croft.dev/croft/internal/declare/budget"
)

// storeWorld returns the world with its records in a store, of which answers read only the rows that they select.
func storeWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld()
	s, err := store.Open(t.TempDir(), func(file string, err error) { t.Errorf("%s: %v", file, err) })
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Lead(store.Leader{Identity: "test"}); err != nil {
		t.Fatal(err)
	}
	for i := range w.records {
		if err := s.WriteHour(w.records[i]); err != nil {
			t.Fatal(err)
		}
	}
	period := ledger.Span{From: w.records[0].From, Until: now}
	w.view.Select = func(selection store.Selection) (*store.Reading, error) { return s.Select(period, selection) }
	return w
}

// TestSelections expects the same answers from the rows that they select as from all rows.
func TestSelections(t *testing.T) {
	requests := [][2]string{{budget.Path, "operator-token"}}
	for _, path := range []string{Path, ChargesPath, HistoryPath} {
		for _, by := range report.Groupings() {
			for _, reader := range [][2]string{
				{"", "auditor-token"}, {"&namespace=bank", "auditor-token"}, {"&namespace=kube-system", "auditor-token"},
				{"&namespace=shop-prod", "ana-token"}, {"&namespace=shop-dev", "dev-token"}, {"&namespace=kube-system", "sre-token"},
			} {
				requests = append(requests, [2]string{path + "?by=" + by + reader[0], reader[1]})
			}
		}
	}
	all, stored := newWorld(), storeWorld(t)
	for _, request := range requests {
		target, token := request[0], request[1]
		read := func(source Source) string {
			s, _ := newTestServer()
			s.Source = source
			status, body := sendRequest(s, "GET "+target, token)
			if status != http.StatusOK {
				t.Fatalf("%s as %s: %d %s", target, token, status, body)
			}
			lines := strings.Split(body, "\n")
			slices.Sort(lines) // the charges of a day have no order
			return strings.Join(lines, "\n")
		}
		if got, want := read(stored), read(all); got != want {
			t.Errorf("%s as %s: from the selected rows\n%s\nwant\n%s", target, token, got, want)
		}
	}
}
