package server

import (
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
)

const (
	// MetricsPath is the path of the metrics with sums of costs.
	MetricsPath = "/v1/metrics"
	// MetricsSubresource is the subresource of costs.croft.dev whose `get` allows to read them.
	MetricsSubresource = "metrics"
)

var errNoMetrics = &refusal{http.StatusForbidden, "you may not read these metrics: they need the right to get costs.croft.dev/metrics in the whole cluster"}

// answerMetrics responds with metrics that contain the cost of all tenants together. In a shared pool, a tenant that
// knows them and its own cost knows the cost of its neighbour. So they need a right of their own, in the whole
// cluster, which gives no access to the cost of a single tenant.
func (s *server) answerMetrics(w http.ResponseWriter, r *http.Request) {
	s.respondBare(w, r, "", func(caller authenticationv1.UserInfo) error {
		allowed, err := s.mayGet(r.Context(), caller, "", MetricsSubresource)
		if err != nil {
			return err
		}
		if !allowed {
			return errNoMetrics
		}
		s.Metrics.ServeHTTP(w, r)
		return nil
	})
}
