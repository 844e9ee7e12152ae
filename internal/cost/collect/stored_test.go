package collect

import (
	"slices"
	"testing"
	"time"

	"croft.dev/croft/internal/cost/money"
	"croft.dev/croft/internal/cost/store"
)

// TestStoredHours expects one call for each stored hour, also after a restart, and the end of the stored hours.
func TestStoredHours(t *testing.T) {
	c := newCluster(t)
	if _, _, err := New(Options{}).GetLatest(); err == nil {
		t.Error("a collector that observes nothing has a state")
	}
	var stored []string
	begin := func() {
		c.startProcess()
		c.collector.OnStored = func(r *store.Record) { stored = append(stored, r.From.UTC().Format(time.TimeOnly)) }
	}
	begin()
	if end, _, err := c.collector.GetLatest(); err != nil || !end.Equal(noon) {
		t.Errorf("before the first hour is stored: %s %v, want %s", end, err, noon)
	}
	c.addNode("a", "apps")
	// The third hour is final ten minutes after its end.
	c.passTime(3*time.Hour + 9*time.Minute)
	c.killProcess()
	begin()
	c.passTime(time.Minute)
	if want := []string{"12:00:00", "13:00:00", "14:00:00"}; !slices.Equal(stored, want) {
		t.Errorf("stored %q, want %q", stored, want)
	}
	end, next, err := c.collector.GetLatest()
	var cost money.Amount
	for i := range next.Rows {
		cost += next.Rows[i].Cost
	}
	if err != nil || !end.Equal(noon.Add(3*time.Hour)) || cost != 360_000 || next.Currency != "USD" {
		t.Errorf("until %s, and %s %s an hour: %v", end, cost, next.Currency, err)
	}
}
