package main

import (
	"context"
	"maps"
	"net/http"

	"croft.dev/croft/hack/internal/metrics"
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

// withoutReviews leaves out questions about one's own rights: they are sent as creations, and
// the API server stores none. croft's readiness check asks them. resources are everybody's
// requests by resource, in the same time; in a settled sandbox nobody else asks.
func (r requests) withoutReviews(resources requests) requests {
	rest := maps.Clone(r)
	rest["POST"] = max(0, rest["POST"]-resources["selfsubjectrulesreviews"]-resources["selfsubjectaccessreviews"])
	return rest
}

func (r requests) all() float64 {
	sum := 0.0
	for _, count := range r {
		sum += count
	}
	return sum
}

// since returns the difference to earlier counts.
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
	sums, err := metrics.Sums(ctx, c, url, counter, label)
	return requests(sums), err
}
