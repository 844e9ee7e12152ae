package why

import (
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/internal/observe/events"
)

// refusedPod is the API server's refusal of a pod that a controller creates.
type refusedPod struct {
	maker   Maker
	message string
	// first and last are the times of its first and last observation.
	first, last time.Time
}

// setReplicaFailure evaluates the condition ReplicaFailure, which Deployments, ReplicaSets and
// ReplicationControllers share.
func (r *rollout) setReplicaFailure(s *Snapshot, kind string, status corev1.ConditionStatus, message string, since time.Time) {
	if kind != string(appsv1.DeploymentReplicaFailure) || status != corev1.ConditionTrue {
		return
	}
	if r.refused = s.findRefusal(); r.refused == nil { // the events have expired, or are hidden
		r.refused = &refusedPod{message: message, first: since, last: since}
		if len(s.Makers) > 0 {
			r.refused.maker = s.Makers[0]
		}
	}
}

// findRefusal returns the newest event about a pod that a current Maker could not create.
func (s *Snapshot) findRefusal() *refusedPod {
	for _, maker := range s.Makers {
		for _, e := range s.findEvents(maker.Kind, maker.Name, controllers[maker.Kind]) {
			if e.Reason == "FailedCreate" {
				return &refusedPod{maker, e.Message, s.findFirstRefusal(&e), events.LastObserved(&e)}
			}
		}
	}
	return nil
}

// explainRefused explains pods that were never created.
func explainRefused(s *Snapshot, r *rollout) []Step {
	refused := r.refused
	if !r.reports {
		if r.countCurrent(s.Pods) >= r.desired {
			return nil
		}
		if s.isHidden("event") {
			return []Step{newHiddenStep(LinkAdmission, "events of "+s.Target.String(), "croft why "+s.Target.String()+formatNamespaceFlag(s.Target))}
		}
		// If the controller has created a pod since the event, the event is obsolete.
		if refused = s.findRefusal(); refused != nil && findNewestPod(s.Pods).After(refused.last) {
			refused = nil
		}
	}
	if refused == nil {
		return nil
	}
	step := newBadStep(LinkAdmission, strings.ToLower(refused.maker.Kind)+"/"+refused.maker.Name, refused.message)
	return []Step{explainExceeded(s, refused, step)}
}

// countCurrent counts the pods that have the current template.
func (r *rollout) countCurrent(pods []corev1.Pod) int32 {
	var n int32
	for i := range pods {
		if r.isCurrent(&pods[i]) {
			n++
		}
	}
	return n
}

func findNewestPod(pods []corev1.Pod) time.Time {
	var newest time.Time
	for i := range pods {
		if t := pods[i].CreationTimestamp.Time; t.After(newest) {
			newest = t
		}
	}
	return newest
}
