package latency_test

import (
	"encoding/json"
	"testing"

	"croft.dev/croft/internal/diagnose/latency"
)

// TestCompare tests the differences and ratios of the phases that both sides have.
func TestCompare(t *testing.T) {
	nodes := func(phases ...map[latency.Phase]float64) (all []latency.Timeline) {
		for _, p := range phases {
			all = append(all, latency.Timeline{Phases: p})
		}
		return all
	}
	before := nodes(map[latency.Phase]float64{latency.Boot: 40, latency.Decision: 0, latency.Start: 3},
		map[latency.Phase]float64{latency.Boot: 50, latency.Decision: 0})
	after := nodes(map[latency.Phase]float64{latency.Boot: 10, latency.Decision: 2, latency.UserData: 5},
		map[latency.Phase]float64{latency.Boot: 75, latency.Decision: 2})
	got, err := json.Marshal(latency.Compare(before, after))
	if err != nil {
		t.Fatal(err)
	}
	const want = `[` +
		`{"phase":"decision","before":{"count":2,"p50":0,"p90":0,"p99":0},"after":{"count":2,"p50":2,"p90":2,"p99":2},` +
		`"p50":{"seconds":2},"p90":{"seconds":2}},` +
		`{"phase":"boot","before":{"count":2,"p50":40,"p90":50,"p99":50},"after":{"count":2,"p50":10,"p90":75,"p99":75},` +
		`"p50":{"seconds":-30,"ratio":0.25},"p90":{"seconds":25,"ratio":1.5}},` +
		`{"phase":"start","before":{"count":1,"p50":3,"p90":3,"p99":3}},` +
		`{"phase":"user_data","after":{"count":1,"p50":5,"p90":5,"p99":5}}]`
	if string(got) != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}
