package flood

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// Stopped is the error of a measurement that stopped before it harmed the cluster.
type Stopped struct {
	// Flood is the last flood, or "" if none had started.
	Flood  string `json:"flood,omitempty"`
	Reason string `json:"reason"`
}

// Error describes when the measurement stopped, and why.
func (s *Stopped) Error() string {
	if s.Flood == "" {
		return "stopped before the first flood: " + s.Reason
	}
	return fmt.Sprintf("stopped at the flood %s: %s", s.Flood, s.Reason)
}

// Measure measures the victim alone, during each flood, and alone again. It stops at once if a request of the
// victim fails, or if the API server is slow; the error is then a Stopped. The results include the flood that ran.
func (n *Neighbours) Measure(ctx context.Context, floods []Flood) (results []Result, err error) {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	reasons := make(chan error, 1)
	n.stop = func(reason error) {
		select {
		case reasons <- reason: // the first one
			cancel()
		default:
		}
	}
	since, err := n.readLatencies(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the API server's metrics, to stop when it becomes slow: %w", err)
	}
	watching.Go(func() { n.watchLatencies(ctx, since) })
	var last Flood
	defer func() {
		select {
		case reason := <-reasons:
			err = &Stopped{last.Name, reason.Error()}
		default:
		}
	}()
	n.Report("the victim alone")
	alone, err := n.ObserveAlone(ctx)
	if err != nil {
		return nil, err
	}
	for _, f := range floods {
		n.Report("%s: %s", f.Name, f.Summary)
		last = f
		r := Result{Flood: f.Name, Summary: f.Summary, Before: alone}
		running, err := n.StartFlood(ctx, f)
		if err != nil {
			return results, err
		}
		r.During, r.Requests = running.Observe(ctx), running.Requests
		err = running.Stop(ctx)
		if err == nil {
			r.After, err = n.ObserveAlone(ctx)
			alone = r.After
		}
		results = append(results, r)
		if err != nil {
			return results, fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return results, nil
}

const (
	// latencyInterval is the time between two reads of the API server's metrics, and latencyTimeout the time limit of one.
	latencyInterval, latencyTimeout = 2 * time.Second, 5 * time.Second
	// fewestRequests is the smallest number of requests with a p99 other than the maximum.
	fewestRequests = 100
)

// watchLatencies stops the measurement when the API server's p99 is too long, or when it does not answer.
func (n *Neighbours) watchLatencies(ctx context.Context, since latencies) {
	for pause(ctx, latencyInterval); ctx.Err() == nil; pause(ctx, latencyInterval) {
		limited, cancel := context.WithTimeout(ctx, latencyTimeout)
		now, err := n.readLatencies(limited)
		cancel()
		switch {
		case ctx.Err() != nil:
		case err != nil:
			n.stop(fmt.Errorf("the API server's metrics could not be read: %w", err))
		case now.all < since.all: // another API server answered
			since = now
		case now.all-since.all >= fewestRequests:
			all, slow := now.all-since.all, now.slow-since.slow
			if slow > all/100 {
				n.stop(fmt.Errorf("%.0f of the API server's last %.0f requests for single objects took longer than %s", slow, all, n.StopAbove))
			}
			since = now
		}
	}
}

// latencies counts an API server's requests for single objects since its start.
type latencies struct{ all, slow float64 }

func (n *Neighbours) readLatencies(ctx context.Context) (latencies, error) {
	c, err := rest.HTTPClientFor(n.config)
	if err != nil {
		return latencies{}, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, n.config.Host+"/metrics", http.NoBody)
	if err != nil {
		return latencies{}, err
	}
	response, err := c.Do(r)
	if err != nil {
		return latencies{}, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return latencies{}, errors.New("/metrics: " + response.Status)
	}
	return parseLatencies(response.Body, n.StopAbove)
}

// latencyMetric is a histogram without the time in webhooks, and without the time in the queues of priority and fairness,
// which delay a flood's own requests.
const latencyMetric = "apiserver_request_sli_duration_seconds_bucket{"

// latencyBucket matches the upper bound and the count of a bucket.
var latencyBucket = regexp.MustCompile(`le="([^"]+)".*} (\S+)$`)

// parseLatencies reads the counts from metrics. Lists and watches are left out, because their duration
// depends on their size. Slow requests are above the smallest bound of a bucket that is not below the limit.
func parseLatencies(metrics io.Reader, limit time.Duration) (latencies, error) {
	counts := map[float64]float64{}
	lines := bufio.NewScanner(metrics)
	for lines.Scan() {
		line := lines.Text()
		if !strings.HasPrefix(line, latencyMetric) || !strings.Contains(line, `scope="resource"`) ||
			strings.Contains(line, `verb="WATCH"`) || strings.Contains(line, `verb="CONNECT"`) {
			continue
		}
		parts := latencyBucket.FindStringSubmatch(line)
		if parts == nil {
			return latencies{}, fmt.Errorf("/metrics: unexpected line %s", line)
		}
		bound, err := strconv.ParseFloat(parts[1], 64)
		if err != nil {
			return latencies{}, fmt.Errorf("/metrics: %w", err)
		}
		count, err := strconv.ParseFloat(parts[2], 64)
		if err != nil {
			return latencies{}, fmt.Errorf("/metrics: %w", err)
		}
		counts[bound] += count
	}
	if err := lines.Err(); err != nil {
		return latencies{}, err
	}
	within := math.Inf(1)
	for bound := range counts {
		if bound >= limit.Seconds() {
			within = min(within, bound)
		}
	}
	if len(counts) == 0 {
		return latencies{}, errors.New("/metrics: there is no " + strings.TrimSuffix(latencyMetric, "{"))
	}
	return latencies{all: counts[math.Inf(1)], slow: counts[math.Inf(1)] - counts[within]}, nil
}
