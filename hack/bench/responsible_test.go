package main

import (
	"encoding/json"
	"strings"
	"testing"

	"croft.dev/croft/internal/diagnose/doctor"
	"croft.dev/croft/internal/prove/flood"
)

// TestIsNamed expects a finding of the check load about the tenant, in the command's format.
func TestIsNamed(t *testing.T) {
	for name, test := range map[string]struct {
		check, object string
		want          bool
	}{
		"the tenant":     {"load", "Tenant/neighbour", true},
		"another tenant": {"load", "Tenant/neighbour-2", false},
		"a user":         {"load", "User/neighbour", false},
		"another check":  {"quotas", "Tenant/neighbour", false},
	} {
		output, err := json.Marshal(map[string]any{"checks": []doctor.Result{
			{Check: "walls", Summary: "all exist"}, {Check: test.check, Findings: []doctor.Finding{{Object: "Tenant/other"}, {Object: test.object}}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := isNamed(output, neighbourTeam); err != nil || got != test.want {
			t.Errorf("%s: %t (%v)", name, got, err)
		}
	}
	if _, err := isNamed([]byte("connection refused"), neighbourTeam); err == nil {
		t.Error("no report, and no error")
	}
}

func TestCompareNaming(t *testing.T) {
	for name, test := range map[string]struct {
		naming naming
		note   string
	}{
		"named":  {naming{Seconds: 7, Runs: 2, Named: true}, "compared with the target; from the start of the flood; runs of the command, one after the other: 2"},
		"never":  {naming{Seconds: 60, Runs: 9}, "NOT NAMED; compared with the target"},
		"failed": {naming{Seconds: 60, Runs: 9, Failure: "no connection"}, "; the last one failed: no connection"},
	} {
		rows := floodResult{Result: flood.Result{Flood: "pods"}, Naming: &test.naming}.compareNaming()
		if len(rows) != 1 || rows[0].Name != "pods: until croft doctor names the tenant" || rows[0].Croft != test.naming.Seconds ||
			rows[0].Alternative != 30 || !strings.Contains(rows[0].Note, test.note) {
			t.Errorf("%s: %+v", name, rows)
		}
	}
	if rows := (floodResult{Result: flood.Result{Flood: "lists"}}).compareNaming(); len(rows) > 0 {
		t.Errorf("not measured: %+v", rows)
	}
}

func TestCompareStorage(t *testing.T) {
	r := floodResult{Result: flood.Result{Flood: "sizes"}, Storage: &storage{Before: 20 << 20, After: 400 << 20}}
	if rows := r.compareStorage(nil); len(rows) != 1 || rows[0].Croft != 400<<20 || rows[0].Alternative != 20<<20 {
		t.Errorf("with croft: %+v", rows)
	}
	rows := r.compareStorage(&floodResult{Storage: &storage{Before: 10 << 20, After: 800 << 20}})
	if len(rows) != 2 || rows[1].Croft != 400<<20 || rows[1].Alternative != 800<<20 {
		t.Errorf("and without croft: %+v", rows)
	}
	if rows := (floodResult{Result: flood.Result{Flood: "lists"}}).compareStorage(&floodResult{}); len(rows) > 0 {
		t.Errorf("not measured: %+v", rows)
	}
}
