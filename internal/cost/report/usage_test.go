package report

import (
	"encoding/json"
	"strings"
	"testing"

	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/store"
)

// TestUsage expects usage next to the part of the time in which it was measured. Without such a part it is unknown, and not 0.
func TestUsage(t *testing.T) {
	row := func(workload string, measured, unmeasured, cpu, memory int64) ledger.Row {
		return ledger.Row{Key: ledger.Key{Kind: ledger.Tenant, Resource: ledger.NodeResource, Tenant: "shop", Namespace: "shop", Workload: workload},
			Measured: measured, Unmeasured: unmeasured, UsedCPU: cpu, UsedMemory: memory}
	}
	span := ledger.Span{From: now, Until: now}
	records := store.NewReading([]store.Record{{Span: span, Rows: []ledger.Row{
		row("unknown", 0, 3600, 0, 0), row("zero", 3600, 0, 0, 0), row("part", 2700, 900, 1800, 3600), row("part", 3600, 0, 1800, 0),
		{Key: ledger.Key{Kind: ledger.Idle, Resource: ledger.NodeResource}},
	}}})
	r, err := BuildStored(Stored{From: now, Now: now, Records: records.Records, EachRow: records.EachRow}, ByWorkload)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"shop unknown": `"measuredShare":0,`, "shop zero": `"measuredShare":1,"cpuUsedHours":0,"memoryUsedGiBHours":0,`,
		"shop part": `"measuredShare":0.875,"cpuUsedHours":1,"memoryUsedGiBHours":1,`, "(idle)": "",
		"total": `"measuredShare":0.6875,"cpuUsedHours":1,"memoryUsedGiBHours":1,`,
	}
	for _, line := range append(r.Lines, r.Total) {
		text, err := json.Marshal(line)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), `"memoryGiBHours":0,`)
		if got, _, _ := strings.Cut(rest, `"unknownSeconds"`); got != want[line.Name] {
			t.Errorf("%s: %s, want %s", line.Name, got, want[line.Name])
		}
		delete(want, line.Name)
	}
	if len(want) > 0 {
		t.Errorf("no lines for %v", want)
	}
}
