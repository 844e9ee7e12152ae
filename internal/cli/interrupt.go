package cli

import (
	"context"
	"errors"
	"net/http"
	"strings"
)

// exitInterrupted is the exit status that shells use for a program ended by Ctrl-C.
const exitInterrupted = 130

// interruption names the action that was under way when the user ended the command.
type interruption struct{ message string }

func (i *interruption) Error() string { return i.message }

// newInterruption returns an interruption with a hint how to continue.
func newInterruption(hint string) error {
	return toFailure(&interruption{message: "interrupted" + hint})
}

// findInterruption returns the interruption that caused err, or nil if err has another cause.
// Errors that a library has rewritten are recognised by their text.
func findInterruption(ctx context.Context, err error) error {
	var interrupted *interruption
	var failed *failure
	switch {
	case ctx.Err() == nil:
		return nil
	case errors.As(err, &interrupted):
		return interrupted
	case errors.As(err, &failed) && failed.printed, strings.Contains(err.Error(), context.Canceled.Error()):
		return &interruption{message: "interrupted"}
	case failed != nil:
		return &interruption{message: "interrupted: " + err.Error()}
	default:
		return nil
	}
}

// untilInterrupted ends discovery requests when the command is interrupted. Libraries send
// them without a context and without a deadline, and an API server that does not answer
// would block the command for ever. Other requests have a context of their own, so that
// clean-up continues after an interruption.
type untilInterrupted struct {
	http.RoundTripper
	interrupt context.Context
}

// RoundTrip implements http.RoundTripper.
func (u untilInterrupted) RoundTrip(r *http.Request) (*http.Response, error) {
	if !isDiscovery(r.URL.Path) {
		return u.RoundTripper.RoundTrip(r)
	}
	ctx, cancel := context.WithCancel(r.Context())
	context.AfterFunc(u.interrupt, cancel)
	return u.RoundTripper.RoundTrip(r.WithContext(ctx))
}

// isDiscovery reports whether a path is a discovery path: /api, /apis, /version, and below
// those a group and its version, but no resource.
func isDiscovery(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch parts[0] {
	case "api":
		return len(parts) <= 2
	case "apis":
		return len(parts) <= 3
	case "version", "openapi":
		return true
	default:
		return false
	}
}
