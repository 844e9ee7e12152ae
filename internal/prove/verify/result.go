package verify

import (
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"croft.dev/croft/internal/rules/attack"
)

// Outcome is the outcome of an attack.
type Outcome string

const (
	// Held means that the expected rule refused an attack, or that a mirror was allowed.
	Held Outcome = "held"
	// Breached means that an attack succeeded, or a mirror was refused.
	Breached Outcome = "BREACHED"
	// BlockedElsewhere means that an attack failed or could not be made for another reason than
	// the rule of the wall that should refuse it: this proves nothing about the wall.
	BlockedElsewhere Outcome = "blocked elsewhere"
	// NotTried means that there is no object here on which to try the attack; the message gives
	// the reason.
	NotTried Outcome = "not tried"
)

// Outcomes are all outcomes, the best first.
var Outcomes = []Outcome{Held, Breached, BlockedElsewhere, NotTried}

// Result is the result of one attack.
type Result struct {
	Name string      `json:"name"`
	Wall string      `json:"wall"`
	Kind attack.Kind `json:"kind"`
	// Summary describes the attack.
	Summary string  `json:"summary"`
	Result  Outcome `json:"result"`
	// StoppedBy names the rule that refused the attack, or should have.
	StoppedBy string `json:"stoppedBy,omitempty"`
	// Message is the message that the tenant gets, or the error.
	Message string `json:"message,omitempty"`
	// Variants is the number of requests or connections tried under this name, if more than
	// one.
	Variants int `json:"variants,omitempty"`
	// Breaches are all variants with the wrong outcome; the message names only a few.
	Breaches []string `json:"breaches,omitempty"`
}

// IsGood reports whether the result does not count against the wall.
func (r Result) IsGood() bool { return r.Result == Held || r.Result == NotTried }

// CountRequests returns the number of requests or connections of the result.
func (r Result) CountRequests() int {
	if r.Result == NotTried {
		return 0
	}
	return max(1, r.Variants)
}

func newResult(a attack.Attack, outcome Outcome, message string) Result {
	return Result{
		Name: a.Name, Wall: a.Wall, Kind: a.Kind, Summary: a.Summary,
		Result: outcome, StoppedBy: a.StoppedBy.Name, Message: message,
	}
}

// newNotTried returns a result for an attack on objects that this cluster or tenant does not have.
func newNotTried(a attack.Attack, err error) Result { return newResult(a, NotTried, err.Error()) }

// newUnprepared returns a result for objects that could not be prepared or read. If the attack's
// object is missing or the cluster does not respond, nothing proves that the wall works, so the
// result is not good. The only exception is a kind that the cluster does not serve.
func newUnprepared(a attack.Attack, err error) Result {
	if reason := explainMissingKind(err); reason != "" {
		return newResult(a, NotTried, reason)
	}
	return newResult(a, BlockedElsewhere, err.Error())
}

// answer is the response to a request.
type answer struct {
	err      error
	warnings []string
	// outcome is the error that Outcome of the attack found in the returned object.
	outcome error
}

// classifyAnswer returns the result for the response to a request. Only a refusal by the expected rule
// counts for the wall, or its warning if the rule only warns.
func classifyAnswer(a attack.Attack, got answer) Result {
	stopper := a.StoppedBy
	switch {
	case got.err != nil && explainMissingKind(got.err) != "":
		return newResult(a, NotTried, explainMissingKind(got.err))
	case isBeyondBudget(got.err):
		return newResult(a, NotTried, "the tenant has spent its budget: "+got.err.Error())
	case a.Kind == attack.Mirror && got.err != nil:
		return classifyRefusedMirror(a, got.err)
	case a.Kind == attack.Mirror && !a.ExpectsWarning && slices.ContainsFunc(got.warnings, attack.IsCroftWarning):
		return newResult(a, Breached, got.warnings[slices.IndexFunc(got.warnings, attack.IsCroftWarning)])
	case got.err != nil && (stopper.IsRefusal == nil || !stopper.IsRefusal(got.err)):
		return newResult(a, BlockedElsewhere, got.err.Error())
	case got.err != nil:
		return newResult(a, Held, got.err.Error())
	case got.outcome != nil:
		return newResult(a, Breached, got.outcome.Error())
	case stopper.IsWarning != nil:
		if i := slices.IndexFunc(got.warnings, stopper.IsWarning); i >= 0 {
			return newResult(a, Held, got.warnings[i])
		}
		return newResult(a, Breached, "the request succeeded without a warning")
	case a.Kind == attack.Breach && stopper.IsRefusal != nil:
		return newResult(a, Breached, "the request succeeded")
	default:
		return newResult(a, Held, "")
	}
}

// classifyRefusedMirror returns the result of a refused mirror.
func classifyRefusedMirror(a attack.Attack, err error) Result {
	switch {
	case isUnanswered(err):
		return newResult(a, BlockedElsewhere, err.Error())
	case a.OutsideTenants && !attack.IsCroftRefusal(err):
		return newNotTried(a, fmt.Errorf("something other than croft refuses it: %w", err))
	default:
		return newResult(a, Breached, err.Error())
	}
}

// explainMissingKind names the kind that the cluster does not serve, if that is the error.
func explainMissingKind(err error) string {
	if !meta.IsNoMatchError(err) {
		return ""
	}
	var kind *meta.NoKindMatchError
	if errors.As(err, &kind) {
		return "this cluster has no " + kind.GroupKind.String()
	}
	return "this cluster has no such kind: " + err.Error()
}

// isUnanswered reports whether an error does not come from any rule of the cluster: the network
// failed, or the API server was overloaded.
func isUnanswered(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	code := status.Status().Code
	return code == 429 || code >= 500
}
