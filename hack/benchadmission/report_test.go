package main

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"croft.dev/croft/hack/internal/machine"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// makeReport returns an example report: native adds 1 ms for any number of tenants, and croft on
// Gatekeeper adds more with each of them.
func makeReport() report {
	pods := func(base float64) []float64 {
		all := make([]float64, 100)
		for i := range all {
			all[i] = base + float64(i%10)/10
		}
		return all
	}
	compare := func(name string, each float64, kills ...killResult) comparisonResult {
		c := comparisonResult{Name: name, Kills: kills}
		for _, tenants := range []int{1, 100, 1000} {
			c.Sizes = append(c.Sizes, sizeResult{
				Tenants: tenants,
				Lines: []lineResult{
					{Name: noPolicy, Milliseconds: pods(2), PodsPerSecond: 800},
					{Name: native, Milliseconds: pods(3), PodsPerSecond: 500},
					{Name: name, Milliseconds: pods(5 + each*float64(tenants)), PodsPerSecond: 100},
				},
				Memory: memory{APIServer: 500 << 20, Gatekeeper: 100 << 20, Before: 100 << 20, AfterNative: 101 << 20, AfterGatekeeper: 110 << 20},
			})
		}
		return c
	}
	grow := func(tenants int, by float64) growthResult {
		return growthResult{
			Tenants: tenants,
			Few:     []lineResult{{Name: noPolicy, Milliseconds: pods(2)}, {Name: native, Milliseconds: pods(3)}},
			Many:    []lineResult{{Name: noPolicy, Milliseconds: pods(2.5)}, {Name: native, Milliseconds: pods(3.5 + by)}},
		}
	}
	return report{
		Machine: machine.Machine{OS: "linux/amd64", Cores: 2, MemoryBytes: 8 << 30, Load: "0.05", Go: "go1.26.6",
			Sandbox: map[string]string{"kubernetes": "v1.36.3", "karpenter": "v1.14.1"}},
		Gatekeeper: "v3.23.1", Started: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), Seconds: 600,
		Rounds: 100, Pods: 400, Clients: 8, Rate: 50,
		Growth: []growthResult{grow(1, -0.1), grow(1, 0.1), grow(100, 0), grow(1000, 0.05)},
		Comparisons: []comparisonResult{
			compare(onGatekeeper, 0.1, killResult{
				Line: onGatekeeper, Description: "killed", Tenants: 100, Kills: 2, Asked: 300, Refused: 100, Stored: 200,
				ReadySeconds: []float64{1, 2}, PlacingSeconds: []float64{2, 3},
			}),
			compare(alone, 0.01, killResult{
				Line: alone, Description: "killed, and ignored", Tenants: 100, Kills: 2, Asked: 300, Stored: 300, Unplaced: 100,
				ReadySeconds: []float64{1, 2}, PlacingSeconds: []float64{2, 3},
			}),
		},
	}
}

func assertGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is not as it was; if it is better now, run the test with -update:\n%s", path, diff)
	}
}

func TestMarkdown(t *testing.T) { assertGolden(t, "admission.md", makeReport().renderMarkdown()) }

func TestVerdicts(t *testing.T) {
	slower := func(m *lineResult, by float64) {
		for i := range m.Milliseconds {
			m.Milliseconds[i] += by
		}
	}
	grows := makeReport()
	slower(&grows.Growth[3].Many[1], 0.1)
	dearer := makeReport()
	slower(&dearer.Comparisons[0].Sizes[2].Lines[1], 50)
	unmeasured := makeReport()
	unmeasured.Growth = nil
	slipped := makeReport()
	slipped.Comparisons[0].Kills[0].Unplaced = 1
	for name, c := range map[string]struct {
		report report
		want   []string
	}{
		"as promised":             {makeReport(), []string{"holds", "holds", "beside", "holds"}},
		"native grows":            {grows, []string{"**does not hold**", "holds", "beside", "holds"}},
		"native is dearer":        {dearer, []string{"holds", "**does not hold**", "beside", "holds"}},
		"a pod got through":       {slipped, []string{"holds", "holds", "beside", "**does not hold**"}},
		"growth was not measured": {unmeasured, []string{"holds", "beside", "holds"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, verdict := range c.report.listVerdicts() {
				word, _, _ := strings.Cut(verdict, ":")
				got = append(got, word)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s\n%s", diff, strings.Join(c.report.listVerdicts(), "\n"))
			}
		})
	}
}

func TestCostComparesPodsOfOneRound(t *testing.T) {
	// In every other round, the machine is ten times slower.
	s := sizeResult{Lines: []lineResult{
		{Name: noPolicy, Milliseconds: []float64{2, 20, 2, 20, 2}},
		{Name: native, Milliseconds: []float64{3, 21, 3, 21, 3}},
	}}
	if got := s.computeCost(native); got != (cost{1, 1, 1}) {
		t.Errorf("got %+v, want 1 ms however slow the machine was", got)
	}
}

func TestPublishKeepsOtherText(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, textFile)
	if err := os.WriteFile(path, []byte("before\n"+begins+"\nold\n"+ends+"\nafter\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := makeReport()
	// A second run changes nothing.
	for range 2 {
		if err := r.publish(dir); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if want := "before\n" + begins + "\n\n" + r.renderMarkdown() + "\n" + ends + "\nafter\n"; string(text) != want {
			t.Errorf("got\n%s\nwant\n%s", text, want)
		}
	}
	again, err := loadReport(filepath.Join(dir, dataFile))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, again); diff != "" {
		t.Errorf("what was kept is not what was found:\n%s", diff)
	}
}

func TestPublishWithoutMarkers(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, textFile), []byte("no lines\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := makeReport().publish(dir); err == nil || !strings.Contains(err.Error(), "lacks the lines ") {
		t.Errorf("got %v, want an error that names what to write", err)
	}
	if _, err := os.Stat(filepath.Join(dir, plotFile)); err == nil {
		t.Error("half of it was written")
	}
}

func TestSizes(t *testing.T) {
	for text, ok := range map[string]bool{"1": true, "1, 100,500": true, "": false, "0": false, "2,1": false, "1,1": false, "x": false} {
		if _, err := parseSizes(text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := json.Marshal(makeReport()); err != nil {
		t.Error(err)
	}
}

func TestKillSize(t *testing.T) {
	for _, c := range []struct {
		sizes []int
		want  int
	}{{[]int{1, 100, 500}, 100}, {[]int{1, 20}, 20}, {[]int{500}, 500}} {
		if got := (options{sizes: c.sizes, killAt: 100}).getKillSize(); got != c.want {
			t.Errorf("%v: %d, want %d", c.sizes, got, c.want)
		}
	}
}
