package main

import (
	"strings"
	"testing"

	"croft.dev/croft/internal/diagnose/doctor"
	"croft.dev/croft/internal/prove/verify"
)

func TestWritePage(t *testing.T) {
	text, err := writePage([]row{
		{Version: "1.34.4", Placement: "Gatekeeper", Outcomes: map[verify.Outcome]int{verify.Held: 978, verify.NotTried: 239}},
		{
			Version: "1.36.3", Before: "1.35.4", Other: "1.35.4", Placement: "Native", Flags: "--feature-gates=A=true",
			Outcomes: map[verify.Outcome]int{verify.Held: 980, verify.Breached: 1, verify.BlockedElsewhere: 2}, Problems: []doctor.Finding{{}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"| 1.34.4 | new | Gatekeeper | none | 978 | 0 | 0 | 239 | 0 |",
		"| 1.36.3 | upgraded from 1.35.4, with a server of 1.35.4 | Native | `--feature-gates=A=true` | 980 | 1 | 2 | 0 | 1 |",
	} {
		if !strings.Contains(string(text), line+"\n") {
			t.Errorf("no line %s in\n%s", line, text)
		}
	}
}
