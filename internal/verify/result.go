package verify

import "croft.dev/croft/internal/attack"

// Outcome is what became of an attack.
type Outcome string

const (
	// Held means that an attack was stopped by what should stop it, or that a
	// mirror went through.
	Held Outcome = "held"
	// Breached means that an attack went through, or a mirror was stopped.
	Breached Outcome = "BREACHED"
	// BlockedElsewhere means that an attack failed, or could not be made, but not
	// by the wall that claims to stop it: that says nothing about the wall.
	BlockedElsewhere Outcome = "blocked elsewhere"
	// NotTried means that there is nothing here to try the attack on; the message
	// says why.
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

func resultOf(a attack.Attack, outcome Outcome, message string) Result {
	return Result{
		Name: a.Name, Wall: a.Wall, Kind: a.Kind, Summary: a.Summary,
		Result: outcome, StoppedBy: a.StoppedBy.Name, Message: message,
	}
}

// notTried is for what this cluster or this tenant does not have, and so gives
// nothing to try.
func notTried(a attack.Attack, err error) Result { return resultOf(a, NotTried, err.Error()) }

// thwarted is for what could not be prepared or read. That is no excuse: if what
// an attack would change is gone, or the cluster does not answer, nothing speaks
// for the wall.
func thwarted(a attack.Attack, err error) Result { return resultOf(a, BlockedElsewhere, err.Error()) }

// judge turns what came of a request into a result. Only the refusal of the very
// thing that should refuse counts for the wall.
func judge(a attack.Attack, outcome error, err error) Result {
	switch {
	case a.Kind == attack.Mirror && err != nil:
		return resultOf(a, Breached, err.Error())
	case err != nil && (a.StoppedBy.Refuses == nil || !a.StoppedBy.Refuses(err)):
		return resultOf(a, BlockedElsewhere, err.Error())
	case err != nil:
		return resultOf(a, Held, err.Error())
	case outcome != nil:
		return resultOf(a, Breached, outcome.Error())
	case a.Kind == attack.Breach && a.StoppedBy.Refuses != nil:
		return resultOf(a, Breached, "the request went through")
	default:
		return resultOf(a, Held, "")
	}
}
