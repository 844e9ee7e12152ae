package controller_test

import (
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// TestMetricsAreDocumented expects every metric of croft's in docs/metrics.md.
func TestMetricsAreDocumented(t *testing.T) {
	registry, ok := metrics.Registry.(prometheus.Collector)
	if !ok {
		t.Fatalf("%T", metrics.Registry)
	}
	descriptions := make(chan *prometheus.Desc, 1000)
	registry.Describe(descriptions)
	close(descriptions)
	docs, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for d := range descriptions {
		_, rest, _ := strings.Cut(d.String(), `fqName: "`)
		name, _, _ := strings.Cut(rest, `"`)
		if !strings.HasPrefix(name, "croft_") {
			continue
		}
		found++
		if !strings.Contains(string(docs), "`"+name+"`") {
			t.Errorf("docs/metrics.md does not have %s", name)
		}
	}
	if found < 2 {
		t.Errorf("%d metrics of croft's", found)
	}
}
