// Package supervisor keeps a set of processes running: it starts them in the order of
// their dependencies, checks whether each is ready, restarts the ones that die, and makes
// sure that none outlives the supervisor.
//
// It knows nothing of Kubernetes, so that it can be tested with any process.
package supervisor

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Spec says how one component is run.
type Spec struct {
	// Name is unique within a supervisor.
	Name string
	// Needs names the components that must be ready before this one starts.
	// They have to come earlier in the list of specs.
	Needs []string
	// Log is the file that takes the component's output; it is appended to.
	Log string
	// Grace is the time between SIGTERM and SIGKILL.
	Grace time.Duration

	// Command is called for every start, so that values that may change between two
	// starts (a port, a certificate) are current.
	Command func() (*exec.Cmd, error)
	// Ready asks the component whether it can be used.
	Ready func(context.Context) error
	// Address tells where the component listens; optional.
	Address func() string

	// Prepare is a command that has to succeed once, before the first start;
	// optional. It is retried like a start, and logs to the same file.
	Prepare func() *exec.Cmd
	// Settle is done once, after the component first answers and before it
	// counts as ready; optional. It is retried until it succeeds, or fails with
	// what Permanent made.
	Settle func(context.Context) error
}

// State is where a component stands.
type State string

// The states of a component.
const (
	Waiting  State = "waiting"  // for its dependencies
	Starting State = "starting" // runs, but does not answer yet
	Ready    State = "ready"    // answers
	Unready  State = "unready"  // answered before, does not now
	Backoff  State = "backoff"  // died, will be restarted
	Stopping State = "stopping" // was told to go
	Stopped  State = "stopped"  // was told to go and is gone
)

// Status is the status of a component at one moment.
type Status struct {
	Name       string    `json:"component"`
	State      State     `json:"state"`
	PID        int       `json:"pid,omitempty"`
	Restarts   int       `json:"restarts"`
	ReadySince time.Time `json:"readySince,omitzero"`
	Address    string    `json:"address,omitempty"`
	// Took is the time from the start of the process to its being ready.
	Took time.Duration `json:"tookNanoseconds,omitempty"`
	// Failures counts the starts in a row that never became ready.
	Failures int `json:"failures,omitempty"`
	// Hopeless says that waiting for the component makes no sense.
	Hopeless bool `json:"hopeless,omitempty"`
	// Message says why the component is not ready.
	Message string `json:"message,omitempty"`
	// LastDeath is kept after the restart.
	LastDeath *Death `json:"lastDeath,omitempty"`
}

// Death is how a component ended that should not have.
type Death struct {
	At    time.Time `json:"at"`
	Cause string    `json:"cause"` // as in "exit status 1"
	// Tail holds the last lines of its log.
	Tail []string `json:"tail,omitempty"`
}

// Permanent marks an error of Settle that trying again will not mend.
func Permanent(err error) error { return backoff.Permanent(err) }

func validate(specs []Spec) error {
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
