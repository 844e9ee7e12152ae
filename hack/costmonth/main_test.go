package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/money"
	"croft.dev/croft/internal/cost/price"
)

const prices = `
instances:
  t3a.large: {on-demand: 0.0752}
  m5.large: {on-demand: 0.096}
  c6i.2xlarge: {on-demand: 0.34}
volumes: {gp3: 0.08}
loadBalancerHour: 0.0225
`

// TestMonth expects that every hour has a cost for both teams and no unknown prices, and that team-b's cost
// grows.
func TestMonth(t *testing.T) {
	list, err := price.Parse("prices.yaml", []byte(prices))
	if err != nil {
		t.Fatal(err)
	}
	until := time.Date(2026, 11, 27, 18, 0, 0, 0, time.UTC)
	period := ledger.Span{From: until.Add(-days * day), Until: until}
	l, err := ledger.New(simulateObjects(period, list))
	if err != nil {
		t.Fatal(err)
	}
	spans := ledger.Split(period)
	if len(spans) != days*24 {
		t.Fatalf("%d hours", len(spans))
	}
	weeks := make([]week, 5)
	for i, span := range spans {
		w := &weeks[i/(weekDays*24)]
		if w.byTenant == nil {
			w.byTenant = map[string]money.Amount{}
		}
		record := computeRecord(l, span, "USD")
		w.addRecord(&record)
		byTenant := map[string]money.Amount{}
		for _, row := range record.Rows {
			byTenant[row.Tenant] += row.Cost
			if row.Unpriced > 0 {
				t.Fatalf("%s: %+v has no price", span.From, row.Key)
			}
		}
		if byTenant[webTeam.tenant] == 0 || byTenant[jobTeam.tenant] == 0 {
			t.Fatalf("%s: %v", span.From, byTenant)
		}
	}
	for i := range weeks {
		w := &weeks[i]
		if sum := w.byTenant[webTeam.tenant] + w.byTenant[jobTeam.tenant]; sum != w.total {
			t.Errorf("week %d: the teams cost %s of %s", i+1, sum, w.total)
		}
		if i > 0 && i < 4 && w.byTenant[jobTeam.tenant] <= weeks[i-1].byTenant[jobTeam.tenant] {
			t.Errorf("week %d: team-b's cost does not grow", i+1)
		}
	}
}

// TestExistingLedger expects that the records of a ledger are not overwritten.
func TestExistingLedger(t *testing.T) {
	directory := t.TempDir()
	if err := os.WriteFile(filepath.Join(directory, "leader.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := run(io.Discard, directory, "prices.yaml", time.Now())
	if err == nil || !strings.Contains(err.Error(), "the directory is not empty") {
		t.Errorf("got %v", err)
	}
}
