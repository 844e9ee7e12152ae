package report

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"croft.dev/croft/internal/cost/money"
	"croft.dev/croft/internal/declare/picture/picturetest"
)

var update = flag.Bool("update", false, "write docs/reference/cost.svg again")

func makeReport(lines ...*Line) *Report {
	from := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	return &Report{From: from, Until: from.AddDate(0, 0, 30), Currency: "USD", By: ByTenant, Lines: lines}
}

func makeLine(name string, cost, idle money.Amount) *Line {
	return &Line{Name: name, Cost: cost, Idle: idle, Total: cost + idle}
}

// TestRenderSVG compares docs/reference/cost.svg with the picture of an example.
func TestRenderSVG(t *testing.T) {
	shop, bank, platform, idle := makeLine("shop", 412_300_000, 121_900_000), makeLine("bank", 230_150_000, 64_000_000), makeLine("(platform)", 51_200_000, 22_800_000), makeLine("(idle)", 0, 31_700_000)
	shop.Estimated, bank.UnknownSeconds = 1, 3600
	got := RenderSVG(makeReport(shop, bank, platform, idle))
	picturetest.ExpectFile(t, got, "../../../docs/reference/cost.svg", *update)
	for _, text := range []string{">~534.20</text>", ">294.15 + ?</text>", ">cost 412.300000</title>", ">idle 31.700000</title>"} {
		if !strings.Contains(got, text) {
			t.Errorf("no %s", text)
		}
	}
	if strings.Contains(got, "cost 0.000000") {
		t.Error("a part without cost has a bar")
	}
}

// TestRenderSVGOfUnusualReports covers reports without lines and with many, small amounts, hidden idle cost
// and hostile names.
func TestRenderSVGOfUnusualReports(t *testing.T) {
	var many []*Line
	for i := range 50 {
		many = append(many, makeLine(fmt.Sprintf("t-%02d", i), money.Amount(i)*money.Unit, 0))
	}
	hidden := makeLine("</text><script>\u202e", 300, 20)
	hidden.IdleHidden = true
	for name, c := range map[string]struct {
		lines           []*Line
		want, forbidden string
	}{
		"none":    {nil, ">0.0000</text>", "NaN"},
		"zero":    {[]*Line{makeLine("free", 0, 0)}, ">free</text>", "NaN"},
		"many":    {many, "the most expensive 40 of 50", ">t-09</text>"},
		"hostile": {[]*Line{hidden}, ">0.0003 + -</text>", "<script>"},
	} {
		got := RenderSVG(makeReport(c.lines...))
		picturetest.ExpectWellFormed(t, got)
		if !strings.Contains(got, c.want) || strings.Contains(got, c.forbidden) {
			t.Errorf("%s: no %q, or %q: %s", name, c.want, c.forbidden, got)
		}
	}
}
