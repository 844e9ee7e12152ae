package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/test/sandbox"
)

// scenarioLabel is the label of a pod with the scenario for which it was created.
const scenarioLabel = "bench.croft.dev/scenario"

// outage is the maximum time of refusals while an engine restarts.
const outage = 3 * time.Minute

// scenario is a way to kill the engine.
type scenario struct {
	id, description string
	line            int
	// engine is the component of the sandbox that is killed.
	engine   string
	webhooks webhookSettings
}

// listScenarios returns the scenarios of a comparison. If the API server is the engine, there is no
// other process to kill, so it is killed itself.
func listScenarios(name string) []scenario {
	if name == alone {
		return []scenario{
			{"alone-fail", "Gatekeeper alone, failurePolicy Fail", 2, sandbox.Gatekeeper, asRequired},
			{"alone-ignore", "Gatekeeper alone, failurePolicy Ignore (its chart's default)", 2, sandbox.Gatekeeper, asInstalled},
		}
	}
	return []scenario{
		{"croft-fail", "croft on Gatekeeper, failurePolicy Fail (what croft asks for)", 2, sandbox.Gatekeeper, asRequired},
		{"croft-ignore", "croft on Gatekeeper, failurePolicy Ignore (its chart's default)", 2, sandbox.Gatekeeper, asInstalled},
		{"no-policy", "no policy, the API server killed", 0, apiServer, webhookSettings{}},
		{"native", "croft native, the API server killed", 1, apiServer, webhookSettings{}},
	}
}

// killAll runs all scenarios in which an engine is killed. The API server's scenarios run last:
// afterwards Gatekeeper's watches reconnect with growing delays, and until then it misses
// writes.
func (c *comparison) killAll(ctx context.Context, engine string) ([]killResult, error) {
	var all []killResult
	for _, s := range listScenarios(c.lines[2].name) {
		if s.engine != engine || c.kills == 0 {
			continue
		}
		found, err := c.killRepeatedly(ctx, s)
		if err != nil {
			return all, fmt.Errorf("%s: %w", s.description, err)
		}
		all = append(all, found)
	}
	return all, nil
}

// killRepeatedly creates pods at a steady rate, kills the engine repeatedly meanwhile, and counts the
// outcomes. These pods are stored, so that the result is the cluster's content, independent of
// the responses to clients.
func (c *comparison) killRepeatedly(ctx context.Context, s scenario) (killResult, error) {
	k := killResult{Line: c.lines[s.line].name, Description: s.description, Tenants: len(c.lines[1].namespaces), Kills: c.kills, Reasons: map[string]int{}}
	for n := range c.kills {
		printProgress("%s: kill %d of %d", s.description, n+1, c.kills)
		// The sandbox has rewritten the webhooks since the last kill.
		if s.engine == sandbox.Gatekeeper {
			if err := c.narrowWebhooks(ctx, s.webhooks); err != nil {
				return k, err
			}
		}
		t := c.startTraffic(ctx, c.lines[s.line], s)
		ready, placing, err := c.killOnce(ctx, s, t)
		t.end()
		if err := errors.Join(err, t.failed); err != nil {
			return k, err
		}
		k.ReadySeconds = append(k.ReadySeconds, ready)
		k.PlacingSeconds = append(k.PlacingSeconds, placing)
		k.Asked += t.let + t.refused + t.unanswered
		k.Refused += t.refused
		k.Unanswered += t.unanswered
		for why, n := range t.reasons {
			k.Reasons[why] += n
		}
	}
	var pods corev1.PodList
	if err := c.admin.List(ctx, &pods, client.MatchingLabels{scenarioLabel: s.id}); err != nil {
		return k, err
	}
	for i := range pods.Items {
		k.Stored++
		if c.lines[s.line].checkPod(&pods.Items[i]) != nil {
			k.Unplaced++
		}
	}
	return k, nil
}

// killOnce kills the engine after some pods were admitted, and returns when it is back and more
// were admitted. It returns the seconds from the kill until the engine was ready, and until a
// pod was placed correctly.
func (c *comparison) killOnce(ctx context.Context, s scenario, t *traffic) (ready, placing float64, err error) {
	if err := t.waitPlaced(ctx, c.around); err != nil {
		return 0, 0, err
	}
	start := time.Now()
	if err := c.cluster.Kill(s.engine); err != nil {
		return 0, 0, err
	}
	if err := c.cluster.Start(s.engine); err != nil {
		return 0, 0, err
	}
	ready = time.Since(start).Seconds()
	if err := t.waitPlaced(ctx, 1); err != nil {
		return 0, 0, err
	}
	placing = time.Since(start).Seconds()
	return ready, placing, t.waitPlaced(ctx, c.around)
}

// traffic creates pods continuously.
type traffic struct {
	stop    context.CancelFunc
	clients sync.WaitGroup
	// ignored means that no pod may be refused because the webhook is unreachable.
	ignored bool

	lock                             sync.Mutex
	placed, let, refused, unanswered int
	// reasons counts the unplaced pods by reason.
	reasons map[string]int
	// last is the reason of the last unplaced pod, and failed a violation.
	last, failed error
}

// startTraffic creates pods at a steady rate. It uses several clients, so that a slow response
// does not block the others.
func (c *comparison) startTraffic(ctx context.Context, l *line, s scenario) *traffic {
	ctx, stop := context.WithCancel(ctx)
	t := &traffic{stop: stop, reasons: map[string]int{}, ignored: s.webhooks.failurePolicy == admissionv1.Ignore}
	pace := rate.NewLimiter(rate.Limit(c.rate), 1)
	for n := range c.clients {
		t.clients.Go(func() {
			for i := n; pace.Wait(ctx) == nil; i += c.clients {
				_, err := l.createPod(ctx, i, false, map[string]string{scenarioLabel: s.id})
				if ctx.Err() == nil {
					t.countResult(err)
				}
			}
		})
	}
	return t
}

// countResult records the outcome of a pod.
func (t *traffic) countResult(err error) {
	t.lock.Lock()
	defer t.lock.Unlock()
	var status apierrors.APIStatus
	var unplaced *unplacedError
	switch {
	case err == nil:
		t.placed++
		t.let++
		return
	case errors.As(err, &unplaced):
		t.let++
	case errors.As(err, &status):
		t.refused++
		if t.ignored && strings.Contains(err.Error(), "failed calling webhook") {
			t.failed = fmt.Errorf("failurePolicy Ignore has not taken effect: %w", err)
		}
	default:
		t.unanswered++
	}
	t.last = err
	t.reasons[shortenError(err)]++
}

// shortenError returns an error without the parts that differ between pods.
func shortenError(err error) string {
	return varying.ReplaceAllString(err.Error(), "…")
}

// varying matches the names of pods and of namespaces, addresses and times.
var varying = regexp.MustCompile(`"?\b(p|n|g|a)-[a-z0-9]+\b"?|[0-9.]+:[0-9]+|[0-9.]+m?s\b`)

// waitPlaced waits until more pods were placed.
func (t *traffic) waitPlaced(ctx context.Context, number int) error {
	seen := func() (int, error) {
		t.lock.Lock()
		defer t.lock.Unlock()
		return t.placed, t.last
	}
	before, _ := seen()
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, outage, true, func(context.Context) (bool, error) {
		now, _ := seen()
		return now-before >= number, nil
	})
	if err != nil {
		now, last := seen()
		return fmt.Errorf("%d of %d pods were placed: %w; the last that was not: %w", now-before, number, err, last)
	}
	return nil
}

func (t *traffic) end() {
	t.stop()
	t.clients.Wait()
}
