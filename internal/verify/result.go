package verify

import (
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"croft.dev/croft/internal/attack"
)

// Outcome is what became of an attack.
type Outcome string

const (
	// Held means that an attack was stopped by what should stop it, or that a
	// mirror went through.
	Held Outcome = "held"
	// Breached means that an attack went through, or a mirror was stopped.
	Breached Outcome = "BREACHED"
	// BlockedElsewhere means that an attack failed, or could not be made, but not by the
	// wall that claims to stop it: this proves nothing about the wall.
	BlockedElsewhere Outcome = "blocked elsewhere"
	// NotTried means that the attack has no object to be tried on here; the message says
	// why.
	NotTried Outcome = "not tried"
)

// Outcomes are all that an attack can come to, the best first.
var Outcomes = []Outcome{Held, Breached, BlockedElsewhere, NotTried}

// Result is what verify says of one attack.
type Result struct {
	Name string      `json:"name"`
	Wall string      `json:"wall"`
	Kind attack.Kind `json:"kind"`
	// Summary describes the attempt.
	Summary string  `json:"summary"`
	Result  Outcome `json:"result"`
	// StoppedBy names what stopped the attack, or should have.
	StoppedBy string `json:"stoppedBy,omitempty"`
	// Message is the message to the tenant, or the error.
	Message string `json:"message,omitempty"`
	// Variants is the number of requests or connections tried under this name, if more
	// than one.
	Variants int `json:"variants,omitempty"`
	// Breaches are all variants that went the wrong way; the message names only a
	// few.
	Breaches []string `json:"breaches,omitempty"`
}

// Good reports whether the result speaks for the wall.
func (r Result) Good() bool { return r.Result == Held || r.Result == NotTried }

// Tried is the number of requests or connections of the result.
func (r Result) Tried() int {
	if r.Result == NotTried {
		return 0
	}
	return max(1, r.Variants)
}

func resultOf(a attack.Attack, outcome Outcome, message string) Result {
	return Result{
		Name: a.Name, Wall: a.Wall, Kind: a.Kind, Summary: a.Summary,
		Result: outcome, StoppedBy: a.StoppedBy.Name, Message: message,
	}
}

// notTried is for attacks on objects that this cluster or this tenant does not have.
func notTried(a attack.Attack, err error) Result { return resultOf(a, NotTried, err.Error()) }

// unprepared is for objects that could not be prepared or read. That is no excuse: if the
// attack's object is missing, or the cluster does not answer, nothing proves that the
// wall holds. The only excuse is a kind that the cluster does not serve.
func unprepared(a attack.Attack, err error) Result {
	if reason := missingKind(err); reason != "" {
		return resultOf(a, NotTried, reason)
	}
	return resultOf(a, BlockedElsewhere, err.Error())
}

// answer is what came of a request.
type answer struct {
	err      error
	warnings []string
	// outcome is the error of the returned object.
	outcome error
}

// judge turns what came of a request into a result. Only the refusal of the very
// thing that should refuse counts for the wall, or its warning where it only
// warns.
func judge(a attack.Attack, got answer) Result {
	by := a.StoppedBy
	switch {
	case got.err != nil && missingKind(got.err) != "":
		return resultOf(a, NotTried, missingKind(got.err))
	case a.Kind == attack.Mirror && got.err != nil:
		return judgeRefusedMirror(a, got.err)
	case a.Kind == attack.Mirror && !a.Warned && slices.ContainsFunc(got.warnings, attack.WarnsOfCroft):
		return resultOf(a, Breached, got.warnings[slices.IndexFunc(got.warnings, attack.WarnsOfCroft)])
	case got.err != nil && (by.Refuses == nil || !by.Refuses(got.err)):
		return resultOf(a, BlockedElsewhere, got.err.Error())
	case got.err != nil:
		return resultOf(a, Held, got.err.Error())
	case got.outcome != nil:
		return resultOf(a, Breached, got.outcome.Error())
	case by.Warns != nil:
		if i := slices.IndexFunc(got.warnings, by.Warns); i >= 0 {
			return resultOf(a, Held, got.warnings[i])
		}
		return resultOf(a, Breached, "the request went through, and no warning came")
	case a.Kind == attack.Breach && by.Refuses != nil:
		return resultOf(a, Breached, "the request went through")
	default:
		return resultOf(a, Held, "")
	}
}

// judgeRefusedMirror turns the refusal of what should go through into a result.
func judgeRefusedMirror(a attack.Attack, err error) Result {
	switch {
	case unanswered(err):
		return resultOf(a, BlockedElsewhere, err.Error())
	case a.Unruled && !attack.RefusedByCroft(err):
		return notTried(a, fmt.Errorf("somebody else refuses it: %w", err))
	default:
		return resultOf(a, Breached, err.Error())
	}
}

// missingKind names the kind that the cluster does not serve, if the error is about one.
func missingKind(err error) string {
	if !meta.IsNoMatchError(err) {
		return ""
	}
	var kind *meta.NoKindMatchError
	if errors.As(err, &kind) {
		return "this cluster has no " + kind.GroupKind.String()
	}
	return "this cluster has no such kind: " + err.Error()
}

// unanswered reports an error that does not come from any rule of the cluster:
// the network broke, or the API server could not cope.
func unanswered(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	code := status.Status().Code
	return code == 429 || code >= 500
}
