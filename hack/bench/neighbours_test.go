package main

import (
	"encoding/json"
	"strings"
	"testing"

	"croft.dev/croft/internal/prove/flood"
)

// TestCompareFloods expects a row with the ratio to alone for each operation, and one with the ratio to the
// flood without croft if it was measured. Failures alone are in the notes, too.
func TestCompareFloods(t *testing.T) {
	repeat := func(seconds float64) flood.Phase {
		p := flood.Phase{}
		for _, o := range flood.Operations {
			p[o.Name] = &flood.Observation{Seconds: []float64{seconds, seconds, seconds}}
		}
		return p
	}
	result := func(name string, alone, during float64) floodResult {
		return floodResult{Result: flood.Result{
			Flood: name, Summary: "a flood", Before: repeat(alone), During: repeat(during), After: repeat(alone), Requests: &flood.RequestCount{Sent: 7, Refused: 2},
		}}
	}
	with := []floodResult{result("lists", 0.002, 0.003), result("pods", 0.002, 0.004)}
	without := result("lists", 0.001, 0.012)
	for _, alone := range []*flood.Observation{with[1].After["list pods"], without.Before["list pods"]} {
		alone.Failures, alone.Failure = 1, "refused"
	}
	with[0].Naming, with[1].Storage, without.Storage = &naming{Named: true}, &storage{}, &storage{}
	rows := compareFloods(with, []floodResult{without})
	if want := 2*len(flood.Operations) + len(flood.Operations) + 2; len(rows) != want {
		t.Fatalf("%d rows, want %d", len(rows), want)
	}
	for i, want := range map[int]struct {
		name               string
		croft, alternative float64
		note               string
	}{
		0:  {"lists: create a pod, p99", 0.003, 0.002, "a flood: 7 requests, 2 of them refused"},
		1:  {"  and without croft", 0.003, 0.012, "there 12.00× of 1 ms alone; p50 there 12 ms, alone 1 ms; the flood there: 7 requests, 2 of them refused"},
		2:  {"lists: list pods, p99", 0.003, 0.002, "target 1.5×; p50 3 ms, alone 2 ms; p99 alone before 2 ms, after 2 ms; 3 samples, alone 6"},
		3:  {"  and without croft", 0.003, 0.012, "; there alone before 1 of 3 FAILED: refused"},
		8:  {"lists: until croft doctor names the tenant", 0, 30, "from the start of the flood"},
		9:  {"pods: create a pod, p99", 0.004, 0.002, "a flood"},
		10: {"pods: list pods, p99", 0.004, 0.002, "; alone after 1 of 3 FAILED: refused"},
		13: {"pods: etcd's database", 0, 0, "compared with before"},
	} {
		r := rows[i]
		if r.Name != want.name || r.Croft != want.croft || r.Alternative != want.alternative || !strings.Contains(r.Note, want.note) {
			t.Errorf("row %d: %+v", i, r)
		}
	}
	raw, err := json.Marshal(rows[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"croft":{"flood":"lists"`, `"withoutCroft":{"flood":"lists"`, `"seconds":[0.003,0.003,0.003]`, `"ratio":1.5`} {
		if !strings.Contains(string(raw), part) {
			t.Errorf("the raw data lacks %s: %s", part, raw)
		}
	}
}
