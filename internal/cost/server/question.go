package server

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"croft.dev/croft/internal/cost/report"
)

// maxSince is the age of the oldest record.
const maxSince = 396 * 24 * time.Hour

// question is a valid request.
type question struct {
	since         time.Duration
	by, namespace string
}

// check is a requirement for requests. find returns a refusal, or nil.
type check struct {
	name string
	find func(*http.Request) *refusal
}

// checks are evaluated before any request to the API server, in this order.
var checks = []check{
	{"method", func(r *http.Request) *refusal {
		if r.Method != http.MethodGet {
			return &refusal{http.StatusMethodNotAllowed, "write a GET request"}
		}
		return nil
	}},
	// The API server would impersonate. An answer for the holder of the token could mislead.
	{"impersonation", func(r *http.Request) *refusal {
		for name := range r.Header {
			if strings.HasPrefix(name, "Impersonate-") || strings.HasPrefix(name, "X-Remote-") {
				return &refusal{http.StatusBadRequest, "the ledger does not support " + name}
			}
		}
		return nil
	}},
	{"parameters", checkParameters},
	{"grouping", func(r *http.Request) *refusal {
		if by := r.URL.Query().Get("by"); r.URL.Query().Has("by") && !slices.Contains(report.Groupings(), by) {
			return &refusal{http.StatusBadRequest, "by: write one of " + strings.Join(report.Groupings(), "|")}
		}
		return nil
	}},
	{"period", func(r *http.Request) *refusal {
		since, err := report.ParseSince(r.URL.Query().Get("since"))
		if r.URL.Query().Has("since") && (err != nil || since < time.Second || since > maxSince) {
			return &refusal{http.StatusBadRequest, "since: write a duration of 396 days at most, such as 24h or 30d"}
		}
		return nil
	}},
	// An empty namespace would be the whole cluster.
	{"namespace", func(r *http.Request) *refusal {
		if q := r.URL.Query(); q.Has("namespace") && len(validation.IsDNS1123Label(q.Get("namespace"))) > 0 {
			return &refusal{http.StatusBadRequest, "namespace: write the name of a namespace"}
		}
		return nil
	}},
}

// bareChecks are evaluated before the other checks of a resource without parameters.
var bareChecks = []check{
	{"no parameters", func(r *http.Request) *refusal {
		if r.URL.RawQuery != "" {
			return &refusal{http.StatusBadRequest, r.URL.Path + " has no parameters"}
		}
		return nil
	}},
}

// checkParameters refuses unknown and repeated parameters: a filter that the ledger ignores would mislead.
func checkParameters(r *http.Request) *refusal {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return &refusal{http.StatusBadRequest, "the query is malformed"}
	}
	for name, list := range values {
		if len(list) != 1 || !slices.Contains([]string{"since", "by", "namespace"}, name) {
			return &refusal{http.StatusBadRequest, "the parameters are since, by and namespace, each once"}
		}
	}
	return nil
}

// findToken returns the bearer token, or "". There must be one header.
func findToken(r *http.Request) string {
	headers := r.Header.Values("Authorization")
	if len(headers) != 1 {
		return ""
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	if !strings.EqualFold(scheme, "Bearer") || strings.ContainsAny(token, " ,") {
		return ""
	}
	return token
}

func parseQuestion(r *http.Request) question {
	values := r.URL.Query()
	q := question{since: 24 * time.Hour, by: report.ByTenant, namespace: values.Get("namespace")}
	if since, err := report.ParseSince(values.Get("since")); err == nil {
		q.since = since
	}
	if by := values.Get("by"); by != "" {
		q.by = by
	}
	return q
}
