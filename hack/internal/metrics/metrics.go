// Package metrics reads processes' Prometheus metrics.
package metrics

import (
	"context"
	"fmt"
	"net/http"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// SumByLabel reads a metric from a metrics endpoint and sums it up by a label: the value of a counter or a
// gauge, the sum of a histogram. Samples without the label are under "".
func SumByLabel(ctx context.Context, c *http.Client, url, name, label string) (map[string]float64, error) {
	sums := map[string]float64{}
	err := readSamples(ctx, c, url, name, func(labels map[string]string, value float64) { sums[labels[label]] += value })
	if err != nil {
		return nil, err
	}
	return sums, nil
}

// SumSelected reads a metric from a metrics endpoint, as SumByLabel does, and sums up the samples whose labels a
// function selects.
func SumSelected(ctx context.Context, c *http.Client, url, name string, selects func(labels map[string]string) bool) (sum float64, err error) {
	err = readSamples(ctx, c, url, name, func(labels map[string]string, value float64) {
		if selects(labels) {
			sum += value
		}
	})
	return sum, err
}

// readSamples calls a function with the labels and the value of each sample of a metric.
func readSamples(ctx context.Context, c *http.Client, url, name string, add func(labels map[string]string, value float64)) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := c.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, res.Status)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(res.Body)
	if err != nil {
		return fmt.Errorf("%s: %w", url, err)
	}
	family, ok := families[name]
	if !ok {
		return fmt.Errorf("%s: there is no %s", url, name)
	}
	for _, metric := range family.GetMetric() {
		labels := map[string]string{}
		for _, pair := range metric.GetLabel() {
			labels[pair.GetName()] = pair.GetValue()
		}
		add(labels, metric.GetCounter().GetValue()+metric.GetGauge().GetValue()+metric.GetHistogram().GetSampleSum())
	}
	return nil
}
