package main

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"k8s.io/client-go/rest"

	"croft.dev/croft/hack/internal/metrics"
)

// requests counts requests by method, or by the API server's verb.
type requests map[string]float64

// writeVerbs are the methods of requests that change something. In addition to HTTP's methods, the API
// server counts the verbs APPLY and DELETECOLLECTION.
var writeVerbs = []string{"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"}

// countWrites returns the number of requests that change something, including dry runs.
func (r requests) countWrites() float64 {
	sum := 0.0
	for _, method := range writeVerbs {
		sum += r[method]
	}
	return sum
}

// countReads returns the number of requests that change nothing, by the API server's verbs.
func (r requests) countReads() float64 { return r["GET"] + r["LIST"] + r["WATCH"] }

// subtractReviews subtracts reviews of the client's own rights: they are sent with POST, but the
// API server does not store them. croft's readiness check sends them. resources are all
// clients' requests in the same time, by resource; in a settled sandbox no other client sends
// reviews.
func (r requests) subtractReviews(resources requests) requests {
	rest := maps.Clone(r)
	rest["POST"] = max(0, rest["POST"]-resources["selfsubjectrulesreviews"]-resources["selfsubjectaccessreviews"])
	return rest
}

func (r requests) countAll() float64 {
	sum := 0.0
	for _, count := range r {
		sum += count
	}
	return sum
}

// subtract returns the difference from earlier counts.
func (r requests) subtract(earlier requests) requests {
	more := requests{}
	for method, count := range r {
		if count != earlier[method] {
			more[method] = count - earlier[method]
		}
	}
	return more
}

// scrapeCounter reads one counter from a metrics endpoint and sums it up by a label.
func scrapeCounter(ctx context.Context, c *http.Client, url, counter, label string) (requests, error) {
	sums, err := metrics.SumByLabel(ctx, c, url, counter, label)
	return requests(sums), err
}

// countWritesTo returns the number of all clients' requests to write objects of some resources. Dry runs are not
// counted, and refused requests are.
func countWritesTo(ctx context.Context, config *rest.Config, resources ...string) (float64, error) {
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		return 0, err
	}
	return metrics.SumSelected(ctx, c, config.Host+"/metrics", "apiserver_request_total", func(labels map[string]string) bool {
		return slices.Contains(resources, labels["resource"]) && slices.Contains(writeVerbs, labels["verb"]) && labels["dry_run"] == ""
	})
}
