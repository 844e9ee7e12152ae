package why

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/diagnose/catalog"
	"croft.dev/croft/internal/observe/events"
)

// isInitialized reports whether a NodeClaim is initialized.
func isInitialized(claim *karpenterv1.NodeClaim) bool {
	return slices.ContainsFunc(listClaimConditions(claim), func(c condition) bool { return c.kind == karpenterv1.ConditionTypeInitialized && c.status == "True" })
}

// evaluateClaim evaluates a NodeClaim: the first of its three conditions that is not True, and
// its node.
func evaluateClaim(s *Snapshot, claim *karpenterv1.NodeClaim) []Step {
	object := "nodeclaim/" + claim.Name
	all := listClaimConditions(claim)
	var steps []Step
	for _, kind := range []string{karpenterv1.ConditionTypeLaunched, karpenterv1.ConditionTypeRegistered, karpenterv1.ConditionTypeInitialized} {
		c := findFirst(all, func(c *condition) bool { return c.kind == kind })
		if c != nil && c.status == "True" {
			continue
		}
		step := newWaitingStep(LinkClaim, object, kind+": not yet")
		if c != nil {
			step = newBadStep(LinkClaim, object, c.String())
			if strings.Contains(step.Observation, `"`+v1alpha1.NetworksTaint) { // croft's operator removes this taint
				step = newCatalogStep(LinkClaim, object, step.Observation, networksPending)
			}
			if step.Finding == nil || isStillStarting(claim, step.Finding.ID) {
				step.Verdict = Waiting
			}
		}
		steps = append(steps, step)
		break
	}
	steps = append(steps, findClaimWarning(s, claim)...)
	if node := s.findNode(claim.Status.NodeName); node != nil {
		steps = append(steps, dropGood(evaluateNode(s, node))...)
	}
	if len(steps) == 0 {
		steps = []Step{newGoodStep(LinkClaim, object, "it is launched, registered and initialized")}
	}
	return steps
}

// Usual is the normal time for a node to register, and to lose its startup taints.
const Usual = 3 * time.Minute

// isStillStarting reports whether a finding is normal for a node that is starting, given the claim's
// age. The limit fits any cloud.
func isStillStarting(claim *karpenterv1.NodeClaim, id string) bool {
	return slices.Contains([]string{"not-registered", "startup-taint", networksPending}, id) && time.Since(claim.CreationTimestamp.Time) < Usual
}

// findFailedLaunch returns the newest launch of a pool that the cloud refused. Karpenter
// deletes such a NodeClaim at once, and only the event remains. A NodeClaim's name is its
// pool's name, a hyphen and a generated word.
func findFailedLaunch(s *Snapshot, pool string) []Step {
	var newest *corev1.Event
	for i := range s.Events {
		e := &s.Events[i]
		cut := strings.LastIndex(e.InvolvedObject.Name, "-")
		if e.InvolvedObject.Kind == "NodeClaim" && e.Reason == "InsufficientCapacityError" && cut > 0 && e.InvolvedObject.Name[:cut] == pool &&
			events.IsWrittenBy(e, karpenter) && (newest == nil || events.LastObserved(e).After(events.LastObserved(newest))) {
			newest = e
		}
	}
	if newest == nil {
		return nil
	}
	return []Step{newBadStep(LinkClaim, "nodeclaim/"+newest.InvolvedObject.Name, newest.Message)}
}

// findClaimWarning returns the last warning about a NodeClaim that is in the catalogue. Warnings are
// obsolete once the node is initialized, except for warnings about its registration, which
// will recur with the next node.
func findClaimWarning(s *Snapshot, claim *karpenterv1.NodeClaim) []Step {
	for _, e := range s.findEvents("NodeClaim", claim.Name, karpenter) {
		found := catalog.FindMatches(e.Message)
		if e.Type != corev1.EventTypeWarning || len(found) == 0 || isInitialized(claim) && found[0].ID != "unregistered-taint-missing" {
			continue
		}
		return []Step{newBadStep(LinkClaim, "nodeclaim/"+claim.Name, e.Message)}
	}
	return nil
}
