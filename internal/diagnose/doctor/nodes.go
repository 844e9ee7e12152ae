package doctor

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/internal/diagnose/catalog"
	"croft.dev/croft/internal/diagnose/why"
)

const (
	// lingers is the time for which a budget may block a node's removal while a pod's
	// replacement starts.
	lingers = 5 * time.Minute
	// stays is the time that the removal of a node may take: pods terminate, and
	// replacements start.
	stays = 15 * time.Minute
	// recent is the age up to which a refused launch is reported.
	recent = 15 * time.Minute
)

// FindLaunchProblems returns the findings of `croft doctor` about launches: NodeClaims that are not
// initialized in time, and events about launches that the cloud refused.
func FindLaunchProblems(claims []karpenterv1.NodeClaim, refusals []corev1.Event, now time.Time) []Finding {
	return checkLaunches(&Snapshot{Now: now, Claims: claims, Refusals: refusals})
}

// RefusedLaunch is the reason of Karpenter's events about launches that the cloud refused.
const RefusedLaunch = "InsufficientCapacityError"

// checkLaunches reports NodeClaims that are not initialized in time, and refused launches.
func checkLaunches(s *Snapshot) []Finding {
	var all []Finding
	for i := range s.Claims {
		claim := &s.Claims[i]
		if claim.DeletionTimestamp != nil {
			continue
		}
		for _, kind := range []string{karpenterv1.ConditionTypeLaunched, karpenterv1.ConditionTypeRegistered, karpenterv1.ConditionTypeInitialized} {
			c := findCondition(claim, kind)
			if c.Status == metav1.ConditionTrue {
				continue
			}
			text := catalog.FormatCondition(kind, string(c.Status), c.Reason, c.Message)
			refused := kind == karpenterv1.ConditionTypeLaunched && len(catalog.FindMatches(text)) > 0
			if refused || s.Now.Sub(claim.CreationTimestamp.Time) > why.Usual {
				all = append(all, newProblem("NodeClaim/"+claim.Name, text, "`croft why nodeclaim/"+claim.Name+"` shows more"))
			}
			break
		}
	}
	return append(all, findRefusedLaunches(s)...)
}

// findRefusedLaunches reports launches that the cloud refused: the NodeClaim is deleted at once, and
// only its event remains. Each cause is reported once per pool.
func findRefusedLaunches(s *Snapshot) []Finding {
	reported := map[string]bool{}
	var all []Finding
	for _, e := range s.Refusals {
		at := e.LastTimestamp.Time
		if at.IsZero() {
			at = e.CreationTimestamp.Time
		}
		pool := e.InvolvedObject.Name
		if cut := strings.LastIndex(pool, "-"); cut > 0 {
			pool = pool[:cut]
		}
		for _, f := range catalog.FindMatches(e.Message) {
			if key := pool + f.ID; s.Now.Sub(at) < recent && !reported[key] {
				reported[key] = true
				all = append(all, newProblem("NodePool/"+pool, e.Message, ""))
			}
		}
	}
	return all
}

func findCondition(claim *karpenterv1.NodeClaim, kind string) metav1.Condition {
	for _, c := range claim.Status.Conditions {
		if c.Type == kind {
			return metav1.Condition(c)
		}
	}
	return metav1.Condition{Type: kind, Status: metav1.ConditionUnknown}
}

// checkTaints reports taints of nodes that Karpenter does not expect.
func checkTaints(s *Snapshot) []Finding {
	var all []Finding
	for i := range s.Nodes {
		node := &s.Nodes[i]
		claim := s.findClaim(node)
		if claim == nil || node.DeletionTimestamp != nil || claim.DeletionTimestamp != nil {
			continue
		}
		if stray := why.FindUndeclaredTaint(node, claim); stray != nil {
			all = append(all, newFinding("undeclared-taint", Problem, "Node/"+node.Name, "it has the taint "+stray.ToString()+", which pool "+claim.Labels[karpenterv1.NodePoolLabelKey]+" does not declare"))
		}
		if back := why.FindReturnedStartupTaint(node, claim); back != nil {
			all = append(all, newFinding("startup-taint", Warning, "Node/"+node.Name, "it has the startup taint "+back.ToString()+" again, after it was initialized: no new pod can start there"))
		}
	}
	return all
}

func (s *Snapshot) findClaim(node *corev1.Node) *karpenterv1.NodeClaim {
	i := slices.IndexFunc(s.Claims, func(c karpenterv1.NodeClaim) bool { return c.Status.NodeName == node.Name })
	if i < 0 {
		return nil
	}
	return &s.Claims[i]
}

// checkRemovals checks nodes that are to be removed. It reports the obstacles to the removal,
// and nodes without an obstacle that still exist after stays.
func checkRemovals(s *Snapshot) []Finding {
	var all []Finding
	for i := range s.Nodes {
		node := &s.Nodes[i]
		claim := s.findClaim(node)
		if claim == nil {
			continue
		}
		going, since := why.FindRemovalReason(s.Now, node, claim)
		if going == "" {
			continue
		}
		object := "Node/" + node.Name
		var holders []string
		for _, h := range why.FindHolders(s.Now, node, s.Pods, s.Budgets) {
			holders = append(holders, h.Text)
		}
		waited := s.Now.Sub(since)
		if len(holders) > 0 && waited > lingers {
			severity := Problem
			if claim.Spec.TerminationGracePeriod != nil {
				severity = Warning // the grace period ends it
			}
			all = append(all, newFinding("node-held", severity, object, "it is "+going+", and kept by: "+formatSome(holders)))
		} else if len(holders) == 0 && waited > stays {
			f := newFinding("node-outdated", Warning, object, "it is "+going+", and still exists")
			f.Run = "croft why node/" + node.Name
			all = append(all, f)
		}
	}
	return all
}
