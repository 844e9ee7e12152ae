package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"croft.dev/croft/hack/internal/machine"
	"croft.dev/croft/internal/test/sandbox"
)

// operatorComponent is the sandbox's name for croft's operator.
const operatorComponent = "croft"

const (
	// atRest is the time without writes after which the operator is considered at rest.
	atRest = 2 * time.Second
	// restTimeout is the time limit for the operator to come to rest.
	restTimeout = 3 * time.Minute
	restPoll    = 200 * time.Millisecond
)

// operator is a process of croft's operator.
type operator struct {
	pid int
	// metrics is the URL of its /metrics.
	metrics string
}

// findOperator finds the operator of a sandbox. croft-sandbox reports the address of its
// readiness probe only; the address of its metrics is in the arguments of the process.
func findOperator(ctx context.Context, c *sandbox.Cluster) (*operator, error) {
	binary, err := sandbox.FindBinary()
	if err != nil {
		return nil, err
	}
	status, err := exec.CommandContext(ctx, binary, "--dir", c.Dir, "status", "--output", "json").Output()
	if err != nil {
		return nil, fmt.Errorf("croft-sandbox status: %w", err)
	}
	var components []struct {
		Name string `json:"component"`
		PID  int    `json:"pid"`
	}
	if err := json.Unmarshal(status, &components); err != nil {
		return nil, fmt.Errorf("croft-sandbox status: %w", err)
	}
	for _, component := range components {
		if component.Name == operatorComponent && component.PID != 0 {
			return readOperator(component.PID)
		}
	}
	return nil, fmt.Errorf("the sandbox in %s runs no operator", c.Dir)
}

func readOperator(pid int) (*operator, error) {
	address, err := readArgument(pid, "--metrics-addr")
	if err != nil {
		return nil, err
	}
	return &operator{pid: pid, metrics: "http://" + address + "/metrics"}, nil
}

// readArgument returns the value of an argument of a process, such as --metrics-addr.
func readArgument(pid int, name string) (string, error) {
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return "", err
	}
	for arg := range strings.SplitSeq(string(args), "\x00") {
		if value, ok := strings.CutPrefix(arg, name+"="); ok {
			return value, nil
		}
	}
	return "", fmt.Errorf("process %d has no argument %s", pid, name)
}

// countRequests returns the number of requests that the operator has sent to the API server, by
// method: all requests that its client counts, including dry runs.
func (o *operator) countRequests(ctx context.Context) (requests, error) {
	return scrapeCounter(ctx, http.DefaultClient, o.metrics, "rest_client_requests_total", "method")
}

// waitIdle waits until the operator has not written anything for a while, and returns the requests
// that it has sent until then.
func (o *operator) waitIdle(ctx context.Context) (requests, error) {
	return o.waitIdleFor(ctx, restTimeout)
}

// waitIdleFor is waitIdle with a time limit.
func (o *operator) waitIdleFor(ctx context.Context, limit time.Duration) (requests, error) {
	var (
		sent  requests
		last  = -1.0
		since time.Time
	)
	err := wait.PollUntilContextTimeout(ctx, restPoll, limit, true, func(ctx context.Context) (_ bool, err error) {
		if sent, err = o.countRequests(ctx); err != nil {
			return false, err
		}
		if writes := sent.countWrites(); writes != last {
			last, since = writes, time.Now()
		}
		return time.Since(since) >= atRest, nil
	})
	if ctx.Err() == nil && wait.Interrupted(err) {
		return nil, fmt.Errorf("the operator still wrote objects after %s", limit)
	}
	return sent, err
}

// readResident returns the operator's current and maximum resident memory.
func (o *operator) readResident() (now, most float64, err error) { return machine.ReadResident(o.pid) }
