// Package launches decides when Karpenter may launch nodes of a pool whose launches the cloud
// refuses. It does no I/O.
//
// Karpenter decides about no node of any pool while a NodeClaim has no instance
// (state.Cluster.Synced in v1.14). It repeats a refused launch for five minutes, deletes the
// NodeClaim and creates the next one. So croft deletes such a NodeClaim at once and holds the pool's
// launches, for longer after each refused attempt.
package launches

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
)

const (
	// shortest is the first hold. Each further one is twice as long, up to longest. An attempt
	// delays all other pools by some seconds.
	shortest, longest = time.Minute, 5 * time.Minute
	// grace is the time that Karpenter has to repeat a launch that may soon succeed.
	grace = 15 * time.Second
)

// passing are reasons for which a launch may succeed within seconds: EC2 limits requests, another
// controller has not created or validated a resource yet, or the reason is unknown.
var passing = []string{
	"RequestLimitExceeded", "InternalError", "LaunchTemplateNotFound", "NodeClassReadinessUnknown",
	"InstanceTypeResolutionFailed", "SubnetResolutionFailed", "LaunchFailed",
}

// undecided is the reason before the first attempt.
const undecided = "AwaitingReconciliation"

// Refusal is the record of a pool's refused launches, in an annotation of its NodePool.
type Refusal struct {
	// Reason and Message are of a NodeClaim's condition Launched.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Attempts counts the refused attempts since the last success or change.
	Attempts int `json:"attempts"`
	// At is the time of the last one, and Until the end of the hold after it.
	At    time.Time `json:"at"`
	Until time.Time `json:"until"`
	// Version identifies the content of the NodePool and its node class at that time.
	Version string `json:"version"`
}

// Explain explains the refusal and the hold to a platform admin.
func (r *Refusal) Explain() string {
	return fmt.Sprintf("the cloud refuses to launch nodes of the pool: %s: %s; %s", r.Reason, r.Message, r.ExplainHold())
}

// ExplainHold explains when Karpenter may launch nodes of the pool again.
func (r *Refusal) ExplainHold() string {
	return "an attempt delays the nodes of all other pools, so croft lets Karpenter try again only after " +
		r.Until.UTC().Format(time.RFC3339) + ", or when the Pool or its node class changes"
}

// ReadRefusal returns the record in a NodePool, or nil if it has none.
func ReadRefusal(pool *karpenterv1.NodePool) *Refusal {
	r := &Refusal{}
	if err := json.Unmarshal([]byte(pool.Annotations[v1alpha1.RefusedLaunchesAnnotation]), r); err != nil {
		return nil
	}
	return r
}

// IsHeld reports whether Karpenter may launch no nodes of the pool.
func IsHeld(pool *karpenterv1.NodePool) bool {
	_, held := pool.Spec.Limits[corev1.ResourceName(v1alpha1.HoldLimit)]
	return held
}

// State is the state of a pool.
type State struct {
	Claims  []karpenterv1.NodeClaim
	Version string
	// Refusal and Held are of the NodePool.
	Refusal *Refusal
	Held    bool
}

// Decision is the desired state of a pool.
type Decision struct {
	// Refusal is the desired record, or nil for none.
	Refusal *Refusal
	Held    bool
	// Refused are the NodeClaims to delete.
	Refused []*karpenterv1.NodeClaim
	// Next is the time of the next decision if nothing happens, or zero.
	Next time.Time
}

// Decide returns the desired state of a pool.
func Decide(s *State, now time.Time) Decision {
	last := s.Refusal
	if last != nil && last.Version != s.Version {
		last = nil
	}
	refused, next := findRefused(s.Claims, now)
	isHolding := last != nil && s.Held && now.Before(last.Until)
	switch {
	case isHolding:
		// Karpenter may create a NodeClaim before it reads the limit.
		return Decision{Refusal: last, Held: true, Refused: refused, Next: findEarliest(next, last.Until)}
	case len(refused) > 0:
		r := recordRefusal(refused[0], last, now)
		r.Version = s.Version
		return Decision{Refusal: r, Held: true, Refused: refused, Next: findEarliest(next, r.Until)}
	case last == nil, hasLaunched(s.Claims, last.At), !now.Before(last.Until.Add(longest)):
		return Decision{Next: next}
	default:
		// The hold has ended, or an admin has removed the limit. The record remains for the next
		// attempt, which comes at once if pods still wait for the pool.
		return Decision{Refusal: last, Next: findEarliest(next, last.Until.Add(longest))}
	}
}

// findEarliest returns the earlier of two times. The first may be zero, for none.
func findEarliest(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

func recordRefusal(claim *karpenterv1.NodeClaim, last *Refusal, now time.Time) *Refusal {
	condition, now := findLaunched(claim), now.UTC().Truncate(time.Second)
	r := &Refusal{Reason: condition.Reason, Message: condition.Message, Attempts: 1, At: now}
	if last != nil {
		r.Attempts = last.Attempts + 1
	}
	hold := shortest
	for i := 1; i < r.Attempts && hold < longest; i++ {
		hold = min(2*hold, longest)
	}
	r.Until = now.Add(hold)
	return r
}

// findRefused returns the NodeClaims whose launch the cloud refuses, and when the next one counts
// as refused.
func findRefused(claims []karpenterv1.NodeClaim, now time.Time) (refused []*karpenterv1.NodeClaim, next time.Time) {
	for i := range claims {
		claim := &claims[i]
		reason := ReadReason(claim)
		if reason == "" {
			continue
		}
		due := claim.CreationTimestamp.Add(grace)
		if !slices.Contains(passing, reason) || !now.Before(due) {
			refused = append(refused, claim)
		} else {
			next = findEarliest(next, due)
		}
	}
	return refused, next
}

// ReadReason returns the reason for which the last attempt to launch a NodeClaim failed, or "".
// After a lack of capacity, Karpenter itself deletes the NodeClaim.
func ReadReason(claim *karpenterv1.NodeClaim) string {
	condition := findLaunched(claim)
	if condition == nil || condition.Status == metav1.ConditionTrue || condition.Reason == undecided ||
		claim.Status.ProviderID != "" || !claim.DeletionTimestamp.IsZero() {
		return ""
	}
	return condition.Reason
}

func findLaunched(claim *karpenterv1.NodeClaim) *metav1.Condition {
	for i := range claim.Status.Conditions {
		if c := &claim.Status.Conditions[i]; c.Type == karpenterv1.ConditionTypeLaunched {
			return (*metav1.Condition)(c)
		}
	}
	return nil
}

func hasLaunched(claims []karpenterv1.NodeClaim, since time.Time) bool {
	return slices.ContainsFunc(claims, func(c karpenterv1.NodeClaim) bool {
		return c.Status.ProviderID != "" && c.CreationTimestamp.After(since)
	})
}
