// Package metrics reads processes' Prometheus metrics.
package metrics

import (
	"context"
	"fmt"
	"net/http"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// SumByLabel reads a counter or a gauge from a metrics endpoint and sums it up by a label. Samples
// without the label are under "".
func SumByLabel(ctx context.Context, c *http.Client, url, name, label string) (map[string]float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	res, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, res.Status)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(res.Body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", url, err)
	}
	family, ok := families[name]
	if !ok {
		return nil, fmt.Errorf("%s: there is no %s", url, name)
	}
	sums := map[string]float64{}
	for _, metric := range family.GetMetric() {
		sums[findLabel(metric, label)] += metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
	}
	return sums, nil
}

func findLabel(metric *dto.Metric, name string) string {
	for _, pair := range metric.GetLabel() {
		if pair.GetName() == name {
			return pair.GetValue()
		}
	}
	return ""
}
