package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"croft.dev/croft/sandbox/internal/control"
	"croft.dev/croft/sandbox/internal/home"
	"croft.dev/croft/sandbox/internal/supervisor"
)

// hopeless is the number of consecutive failed starts of a component after which awaitReady
// gives up.
const hopeless = 5

// awaitReady waits until all components that pick returns are ready. It calls ready once for
// each of them.
func awaitReady(
	ctx context.Context, client *control.Client, h home.Home, timeout time.Duration,
	pick func([]supervisor.Status) []supervisor.Status, ready func(supervisor.Status),
) error {
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	reported := map[string]bool{}
	var last []supervisor.Status
	err := client.Watch(waiting, func(all []supervisor.Status) (bool, error) {
		last = pick(all)
		done := true
		for _, s := range last {
			if s.State == supervisor.Ready && !reported[s.Name] {
				reported[s.Name] = true
				ready(s)
			}
			if s.Hopeless {
				return false, fmt.Errorf("%s cannot become ready: %s", s.Name, s.Message)
			}
			if s.LastDeath != nil && s.Failures >= hopeless {
				return false, fmt.Errorf("%s failed to start %d times (%s)%s\nsee %s",
					s.Name, s.Failures, s.LastDeath.Cause, indentLines(s.LastDeath.Tail), h.Log(s.Name))
			}
			done = done && s.State == supervisor.Ready
		}
		return done, nil
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fmt.Errorf("not ready after %s: %s; see the logs in %s, or allow more with --timeout",
			timeout, strings.Join(listUnready(last), "; "), h.Path("logs"))
	}
	return err
}

func listUnready(statuses []supervisor.Status) []string {
	var out []string
	for _, s := range statuses {
		if s.State != supervisor.Ready {
			out = append(out, strings.TrimSuffix(fmt.Sprintf("%s is %s: %s", s.Name, s.State, s.Message), ": "))
		}
	}
	return out
}

// indentLines indents lines of a log that follow a message.
func indentLines(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return "\n  " + strings.Join(lines, "\n  ")
}
