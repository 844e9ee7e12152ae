package main

import (
	"context"
	"fmt"
	"net/http"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// requests counts requests by method, or by the API server's verb.
type requests map[string]float64

// writes counts those that change something, or would if they were not dry runs.
func (r requests) writes() float64 {
	sum := 0.0
	// The API server has two verbs more than HTTP has methods.
	for _, method := range []string{"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"} {
		sum += r[method]
	}
	return sum
}

func (r requests) all() float64 {
	sum := 0.0
	for _, count := range r {
		sum += count
	}
	return sum
}

// since returns what was counted since an earlier time.
func (r requests) since(earlier requests) requests {
	more := requests{}
	for method, count := range r {
		if count != earlier[method] {
			more[method] = count - earlier[method]
		}
	}
	return more
}

// scrape reads one counter from a metrics endpoint and sums it up by a label.
func scrape(ctx context.Context, c *http.Client, url, counter, label string) (requests, error) {
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
	family, ok := families[counter]
	if !ok {
		return nil, fmt.Errorf("%s: there is no %s", url, counter)
	}
	sums := requests{}
	for _, metric := range family.GetMetric() {
		sums[labelOf(metric, label)] += metric.GetCounter().GetValue()
	}
	return sums, nil
}

func labelOf(metric *dto.Metric, name string) string {
	for _, pair := range metric.GetLabel() {
		if pair.GetName() == name {
			return pair.GetValue()
		}
	}
	return ""
}
