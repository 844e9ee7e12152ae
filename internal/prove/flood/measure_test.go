package flood

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
)

// formatMetrics returns the metrics of an API server that answered some requests within the bounds of three buckets.
func formatMetrics(within50ms, within1s, all int) string {
	const labels = `component="apiserver",group="",resource="pods",scope="%s",subresource="",verb="%s",version="v1",le="%s"`
	var b strings.Builder
	b.WriteString("# TYPE apiserver_request_sli_duration_seconds histogram\n")
	for _, series := range []struct {
		scope, verb string
		counts      []int
	}{
		{"resource", "POST", []int{within50ms, within1s, all}},
		{"resource", "GET", []int{10, 10, 10}},
		{"namespace", "LIST", []int{0, 0, 5000}},
		{"resource", "WATCH", []int{0, 0, 5000}},
	} {
		for i, bound := range []string{"0.05", "1", "+Inf"} {
			fmt.Fprintf(&b, "apiserver_request_sli_duration_seconds_bucket{"+labels+"} %d\n", series.scope, series.verb, bound, series.counts[i])
		}
		fmt.Fprintf(&b, "apiserver_request_sli_duration_seconds_sum{%s} 1\n", series.verb)
	}
	return b.String()
}

func TestParseLatencies(t *testing.T) {
	for _, test := range []struct {
		limit time.Duration
		want  latencies
	}{
		{50 * time.Millisecond, latencies{all: 1010, slow: 100}},
		{51 * time.Millisecond, latencies{all: 1010, slow: 20}},
		{time.Second, latencies{all: 1010, slow: 20}},
		{time.Minute, latencies{all: 1010, slow: 0}},
	} {
		got, err := parseLatencies(strings.NewReader(formatMetrics(900, 980, 1000)), test.limit)
		if err != nil || got != test.want {
			t.Errorf("above %s: %+v, want %+v (%v)", test.limit, got, test.want, err)
		}
	}
	for _, metrics := range []string{"", "apiserver_request_sli_duration_seconds_bucket{scope=\"resource\",le=\"1\"} many\n"} {
		if got, err := parseLatencies(strings.NewReader(metrics), time.Second); err == nil {
			t.Errorf("%q: %+v", metrics, got)
		}
	}
}

// answers answers requests with the given bodies, one after the other. "" is a failure. The last one is repeated.
type answers struct{ bodies []string }

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	body := a.bodies[0]
	if len(a.bodies) > 1 {
		a.bodies = a.bodies[1:]
	}
	response := &http.Response{StatusCode: http.StatusOK, Status: "200 OK", Request: r, Body: io.NopCloser(strings.NewReader(body))}
	if body == "" {
		response.StatusCode, response.Status = http.StatusServiceUnavailable, "503 Service Unavailable"
	}
	return response, nil
}

// TestStopWhenSlow expects the measurement to stop when more than 1% of at least 100 requests are slow, or when the API
// server does not answer.
func TestStopWhenSlow(t *testing.T) {
	for name, test := range map[string]struct {
		bodies []string
		want   string
	}{
		"slow":                {[]string{formatMetrics(1000, 1198, 1200)}, ""},
		"slower":              {[]string{formatMetrics(1000, 1197, 1200)}, "3 of the API server's last 200 requests for single objects took longer than 1s"},
		"few requests":        {[]string{formatMetrics(1000, 1000, 1099)}, ""},
		"slow at last":        {[]string{formatMetrics(1100, 1100, 1100), formatMetrics(1100, 1100, 1300)}, "200 of the API server's last 200"},
		"another server":      {[]string{formatMetrics(0, 0, 500), formatMetrics(0, 0, 550)}, ""},
		"no answer":           {[]string{""}, "could not be read: /metrics: 503 Service Unavailable"},
		"no such metrics":     {[]string{"up 1\n"}, "there is no apiserver_request_sli_duration_seconds_bucket"},
		"nothing has changed": {[]string{formatMetrics(1000, 1000, 1000)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				reason := ""
				n := &Neighbours{
					Options: Options{StopAbove: time.Second}, config: &rest.Config{Host: "https://api.example.org", Transport: &answers{test.bodies}},
					stop: func(err error) { reason = err.Error(); cancel() },
				}
				n.watchLatencies(ctx, latencies{all: 1010})
				if (reason == "") != (test.want == "") || !strings.Contains(reason, test.want) {
					t.Errorf("stopped: %q, want %q", reason, test.want)
				}
			})
		})
	}
}

func TestCompare(t *testing.T) {
	seconds := func(from, to int) (all []float64) {
		for i := from; i <= to; i++ {
			all = append(all, float64(i))
		}
		return all
	}
	r := Result{
		Before: Phase{"list pods": {Seconds: seconds(1, 100)}},
		During: Phase{
			"list pods":    {Seconds: seconds(52, 151)},
			"get a Secret": {Seconds: []float64{1, 30}, Failures: 1, Failure: "refused"},
		},
		After: Phase{"list pods": {Seconds: seconds(1, 100), Failures: 2, Failure: "timeout"}, "get a Secret": {Seconds: []float64{30}}},
	}
	want := map[string]Comparison{
		"create a pod": {Target: 1.5},
		"list pods": {
			Alone: Summary{P50: 50, P99: 99, Samples: 200, Failures: 2, Failure: "timeout"}, During: Summary{P50: 101, P99: 150, Samples: 100},
			Ratio: 150.0 / 99, Target: 1.5,
		},
		"get a Secret": {
			Alone: Summary{P50: 30, P99: 30, Samples: 1}, During: Summary{P50: 1, P99: 30, Samples: 2, Failures: 1, Failure: "refused"}, Ratio: 1, Target: 1.5,
		},
		"pending to Running": {Target: 2},
	}
	good := map[string]bool{"create a pod": true, "pending to Running": true}
	for _, c := range r.Compare() {
		if c.IsGood() != good[c.Operation] {
			t.Errorf("%s is good: %t", c.Operation, c.IsGood())
		}
		name := c.Operation
		c.Operation = ""
		if diff := cmp.Diff(want[name], c); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
	if c := (Comparison{Ratio: 1.5, Target: 1.5}); !c.IsGood() {
		t.Error("the target itself is not good")
	}
}
