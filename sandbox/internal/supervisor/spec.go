// Package supervisor keeps a set of processes running: it starts them in the order of
// their dependencies, checks whether each is ready, restarts the ones that die, and makes
// sure that none outlives the supervisor.
//
// It does not depend on Kubernetes, so that tests can run any process.
package supervisor

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Spec defines how one component is run.
type Spec struct {
	// Name is unique within a supervisor.
	Name string
	// Needs names the components that must be ready before this one starts.
	// They have to come earlier in the list of specs.
	Needs []string
	// Log is the file to which the component's output is appended.
	Log string
	// Grace is the time between SIGTERM and SIGKILL.
	Grace time.Duration

	// Command is called for every start, so that values that may change between two
	// starts (a port, a certificate) are current.
	Command func() (*exec.Cmd, error)
	// Ready returns an error while the component cannot be used.
	Ready func(context.Context) error
	// Address returns the address on which the component listens; optional.
	Address func() string

	// Prepare is a command that has to succeed once, before the first start;
	// optional. It is retried like a start, and logs to the same file.
	Prepare func() *exec.Cmd
	// Settle runs once, after the component first answers and before its state
	// becomes Ready; optional. It is retried until it succeeds, or returns an error
	// that is marked as permanent.
	Settle func(context.Context) error
}

// State is the state of a component.
type State string

// The states of a component.
const (
	Waiting  State = "waiting"  // for its dependencies
	Starting State = "starting" // runs, but does not answer yet
	Ready    State = "ready"    // answers
	Unready  State = "unready"  // answered before, does not now
	Backoff  State = "backoff"  // died, will be restarted
	Stopping State = "stopping" // was asked to stop, has not ended yet
	Stopped  State = "stopped"  // was stopped, or not started yet
)

// Status is the status of a component at one moment.
type Status struct {
	Name       string    `json:"component"`
	State      State     `json:"state"`
	PID        int       `json:"pid,omitempty"`
	Restarts   int       `json:"restarts"`
	ReadySince time.Time `json:"readySince,omitzero"`
	Address    string    `json:"address,omitempty"`
	// Took is the time from the start of the process until it was ready.
	Took time.Duration `json:"tookNanoseconds,omitempty"`
	// Failures counts the starts in a row that never became ready.
	Failures int `json:"failures,omitempty"`
	// Hopeless reports that the component cannot become ready.
	Hopeless bool `json:"hopeless,omitempty"`
	// Message explains why the component is not ready.
	Message string `json:"message,omitempty"`
	// LastDeath is the last unexpected end. It is kept after the restart.
	LastDeath *Death `json:"lastDeath,omitempty"`
}

// Death describes the unexpected end of a component.
type Death struct {
	At    time.Time `json:"at"`
	Cause string    `json:"cause"` // as in "exit status 1"
	// Tail is the last lines of its log.
	Tail []string `json:"tail,omitempty"`
}

// MarkPermanent marks an error of Settle that must not be retried.
func MarkPermanent(err error) error { return backoff.Permanent(err) }

func validateSpecs(specs []Spec) error {
	var seen []string
	for _, s := range specs {
		if s.Command == nil || s.Ready == nil {
			return fmt.Errorf("component %q: Command and Ready must be set", s.Name)
		}
		if slices.Contains(seen, s.Name) {
			return fmt.Errorf("component %q is listed twice", s.Name)
		}
		for _, need := range s.Needs {
			if !slices.Contains(seen, need) {
				return fmt.Errorf("component %q needs %q, which is not listed before it", s.Name, need)
			}
		}
		seen = append(seen, s.Name)
	}
	return nil
}
