package verify

import "croft.dev/croft/internal/attack"

// Outcome is what became of an attack.
type Outcome string

const (
	// Held means that an attack was stopped by what should stop it, or a mirror went through.
	Held Outcome = "held"
	// Breached means that an attack went through, or a mirror was stopped.
	Breached Outcome = "BREACHED"
	// BlockedElsewhere means that an attack failed, but not by the wall that claims it, which
	// says nothing about the wall.
	BlockedElsewhere Outcome = "blocked elsewhere"
	// NotTried means that the attack could not be tried; the message says why.
	NotTried Outcome = "not tried"
)

// Result is what verify says of one attack.
type Result struct {
	Name string      `json:"name"`
	Wall string      `json:"wall"`
	Kind attack.Kind `json:"kind"`
	// Summary says what was tried.
	Summary string  `json:"summary"`
	Result  Outcome `json:"result"`
	// StoppedBy names what stopped the attack, or should have.
	StoppedBy string `json:"stoppedBy,omitempty"`
	// Message is what the tenant saw, or what went wrong.
	Message string `json:"message,omitempty"`
}

// Good reports whether the result speaks for the wall.
func (r Result) Good() bool { return r.Result == Held || r.Result == NotTried }

// judge turns what came of a request into a result. Only the refusal of the very
// thing that should refuse counts for the wall.
func judge(a attack.Attack, outcome error, err error) Result {
	r := Result{Name: a.Name, Wall: a.Wall, Kind: a.Kind, Summary: a.Summary, StoppedBy: a.StoppedBy.Name, Result: Held}
	if err != nil {
		r.Message = err.Error()
	}
	switch {
	case a.Kind == attack.Mirror && err != nil:
		r.Result = Breached
	case a.Kind == attack.Breach && err != nil && (a.StoppedBy.Refuses == nil || !a.StoppedBy.Refuses(err)):
		r.Result = BlockedElsewhere
	case a.Kind == attack.Breach && err == nil && a.StoppedBy.Refuses != nil:
		r.Result, r.Message = Breached, "the request went through"
	case err == nil && outcome != nil:
		r.Result, r.Message = Breached, outcome.Error()
	}
	return r
}
