package why

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"croft.dev/croft/internal/catalog"
	"croft.dev/croft/internal/events"
)

// rollout is how far a workload is, as its controller reports it.
type rollout struct {
	// desired, available and existing are numbers of pods. updated are those of the current
	// template; of these, target are desired.
	desired, available, existing, updated, target int32
	// steps are obstacles in the workload itself.
	steps []Step
	// isCurrent reports whether a pod has the current template.
	isCurrent func(*corev1.Pod) bool
	// anyRevision says that pods of earlier templates hold the workload up, too.
	anyRevision bool
	// reports says that the controller reports pods that it cannot create in a condition,
	// which is refused; nil if there are none.
	reports bool
	refused *refusedPod
	// delay is minReadySeconds.
	delay int32
}

// refusedPod is the API server's answer to a controller that creates a pod.
type refusedPod struct {
	maker   Maker
	message string
	// first and last are when it was observed.
	first, last time.Time
}

func (r *rollout) done() bool {
	return len(r.steps) == 0 && r.refused == nil && r.complete() && r.existing <= r.desired
}

// rolling reports whether pods of the current template are missing, or those of earlier
// ones still exist in addition: a new pod counts as updated before it is ready.
func (r *rollout) rolling() bool {
	return r.target > 0 && (r.updated < r.target || r.existing > r.desired && r.existing > r.updated)
}

// complete reports whether all desired pods have the current template, and are ready.
func (r *rollout) complete() bool { return !r.rolling() && r.available >= r.desired }

func (r *rollout) summary() string {
	text := fmt.Sprintf("%d of %d pods are ready", r.available, r.desired)
	switch {
	case r.desired == 0 && r.existing == 0:
		text = "it has no pods, and needs none"
	case r.rolling():
		text += fmt.Sprintf(", and the rollout has not finished: %d of %d pods have the current template, and %d an earlier one", r.updated, r.target, r.existing-r.updated)
	}
	return text
}

// rolloutOf reads the state of the Snapshot's workload.
func rolloutOf(s *Snapshot) rollout {
	object := s.Target.String()
	switch o := s.Object.(type) {
	case *appsv1.Deployment:
		return rolloutOfDeployment(s, o)
	case *appsv1.ReplicaSet:
		r := steady(ptr.Deref(o.Spec.Replicas, 1), o.Status.AvailableReplicas, o.Status.Replicas, o.Spec.MinReadySeconds)
		r.reports = true
		for _, c := range o.Status.Conditions {
			r.reportFailure(s, string(c.Type), c.Status, c.Message, c.LastTransitionTime.Time)
		}
		r.await(object, o.Generation, o.Status.ObservedGeneration)
		return r
	case *corev1.ReplicationController:
		r := steady(ptr.Deref(o.Spec.Replicas, 1), o.Status.AvailableReplicas, o.Status.Replicas, o.Spec.MinReadySeconds)
		r.reports = true
		for _, c := range o.Status.Conditions {
			r.reportFailure(s, string(c.Type), c.Status, c.Message, c.LastTransitionTime.Time)
		}
		r.await(object, o.Generation, o.Status.ObservedGeneration)
		return r
	case *appsv1.StatefulSet:
		return rolloutOfStatefulSet(s, o)
	case *appsv1.DaemonSet:
		return rolloutOfDaemonSet(s, o)
	default:
		return rollout{isCurrent: func(*corev1.Pod) bool { return true }}
	}
}

// steady is the state of a workload that changes no pods.
func steady(desired, available, existing, delay int32) rollout {
	return rollout{
		desired: desired, available: available, existing: existing, updated: existing, target: 0, delay: delay,
		isCurrent: func(*corev1.Pod) bool { return true },
	}
}

// await adds that the controller has not processed the object's latest change.
func (r *rollout) await(object string, generation, observed int64) {
	if observed < generation {
		r.steps = append(r.steps, waiting(LinkRollout, object, "its controller has not processed the latest change yet: does kube-controller-manager run?"))
	}
}

// reportFailure reads the condition ReplicaFailure, which Deployments, ReplicaSets and
// ReplicationControllers share.
func (r *rollout) reportFailure(s *Snapshot, kind string, status corev1.ConditionStatus, message string, since time.Time) {
	if kind != string(appsv1.DeploymentReplicaFailure) || status != corev1.ConditionTrue {
		return
	}
	if r.refused = s.refusedBy(); r.refused == nil { // the events have expired, or are hidden
		r.refused = &refusedPod{message: message, first: since, last: since}
		if len(s.Makers) > 0 {
			r.refused.maker = s.Makers[0]
		}
	}
}

func rolloutOfDeployment(s *Snapshot, d *appsv1.Deployment) rollout {
	object, desired := s.Target.String(), ptr.Deref(d.Spec.Replicas, 1)
	r := rollout{
		desired: desired, available: d.Status.AvailableReplicas, existing: d.Status.Replicas, updated: d.Status.UpdatedReplicas, target: desired,
		isCurrent: s.isMade, reports: true, delay: d.Spec.MinReadySeconds,
	}
	r.await(object, d.Generation, d.Status.ObservedGeneration)
	if d.Spec.Paused && r.updated < r.target {
		r.steps = append(r.steps, waiting(LinkRollout, object, "spec.paused is true: the rollout waits for `kubectl rollout resume "+object+flag(s.Target)+"`"))
	}
	for _, c := range d.Status.Conditions {
		r.reportFailure(s, string(c.Type), c.Status, c.Message, c.LastTransitionTime.Time)
		if c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse && !r.complete() {
			r.steps = append(r.steps, bad(LinkRollout, object, catalog.Condition(string(c.Type), string(c.Status), c.Reason, c.Message)))
		}
	}
	return r
}

func rolloutOfStatefulSet(s *Snapshot, set *appsv1.StatefulSet) rollout {
	object, desired := s.Target.String(), ptr.Deref(set.Spec.Replicas, 1)
	r := rollout{
		desired: desired, available: set.Status.AvailableReplicas, existing: set.Status.Replicas, updated: set.Status.UpdatedReplicas, target: desired,
		anyRevision: true, delay: set.Spec.MinReadySeconds,
		isCurrent: func(pod *corev1.Pod) bool {
			return pod.Labels[appsv1.ControllerRevisionHashLabelKey] == set.Status.UpdateRevision
		},
	}
	r.await(object, set.Generation, set.Status.ObservedGeneration)
	if set.Status.UpdateRevision == set.Status.CurrentRevision {
		r.target = 0
	} else if u := set.Spec.UpdateStrategy.RollingUpdate; u != nil && u.Partition != nil {
		first := int32(0)
		if set.Spec.Ordinals != nil {
			first = set.Spec.Ordinals.Start
		}
		r.target = max(0, first+desired-max(first, *u.Partition))
	}
	if set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		r.onDelete(s)
	}
	ordered := set.Spec.PodManagementPolicy == "" || set.Spec.PodManagementPolicy == appsv1.OrderedReadyPodManagement
	if ordered && r.existing < r.desired && r.available < r.existing {
		r.steps = append(r.steps, waiting(LinkRollout, object, "it creates its pods one after another: the next one when all others are ready"))
	}
	return r
}

func rolloutOfDaemonSet(s *Snapshot, set *appsv1.DaemonSet) rollout {
	r := rollout{
		desired: set.Status.DesiredNumberScheduled, available: set.Status.NumberAvailable, existing: set.Status.CurrentNumberScheduled,
		updated: set.Status.UpdatedNumberScheduled, target: set.Status.DesiredNumberScheduled, delay: set.Spec.MinReadySeconds,
		isCurrent: func(pod *corev1.Pod) bool {
			return pod.Labels["pod-template-generation"] == set.Annotations[appsv1.DeprecatedTemplateGeneration]
		},
	}
	r.await(s.Target.String(), set.Generation, set.Status.ObservedGeneration)
	if set.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
		r.onDelete(s)
	}
	return r
}

// onDelete adds the pods that keep an earlier template until somebody deletes them.
func (r *rollout) onDelete(s *Snapshot) {
	if r.updated >= r.target {
		return
	}
	var old []string
	for i := range s.Pods {
		if !r.isCurrent(&s.Pods[i]) {
			old = append(old, s.Pods[i].Name)
		}
	}
	if len(old) > 0 {
		r.steps = append(r.steps, waiting(LinkRollout, s.Target.String(), "its updateStrategy is OnDelete: these pods keep the earlier template until you delete them: "+firstOf(old)))
	}
}

// isMade reports whether one of the current creators owns a pod.
func (s *Snapshot) isMade(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && slices.Contains(s.Makers, Maker{owner.Kind, owner.Name})
}

// refusedBy is the newest event about a pod that a current creator could not create.
func (s *Snapshot) refusedBy() *refusedPod {
	for _, maker := range s.Makers {
		for _, e := range s.about(maker.Kind, maker.Name, controllers[maker.Kind]) {
			if e.Reason == "FailedCreate" {
				return &refusedPod{maker, e.Message, s.refusedSince(&e), events.Last(&e)}
			}
		}
	}
	return nil
}

// refusedSteps are pods that were never created.
func refusedSteps(s *Snapshot, r *rollout) []Step {
	refused := r.refused
	if !r.reports {
		if r.countCurrent(s.Pods) >= r.desired {
			return nil
		}
		if s.hidden("event") {
			return []Step{askAdmin(LinkAdmission, "events of "+s.Target.String(), "croft why "+s.Target.String()+flag(s.Target))}
		}
		// A controller that has created a pod since has tried again.
		if refused = s.refusedBy(); refused != nil && newestPod(s.Pods).After(refused.last) {
			refused = nil
		}
	}
	if refused == nil {
		return nil
	}
	step := bad(LinkAdmission, strings.ToLower(refused.maker.Kind)+"/"+refused.maker.Name, refused.message)
	return []Step{exceeded(s, refused, step)}
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

func newestPod(pods []corev1.Pod) time.Time {
	var newest time.Time
	for i := range pods {
		if t := pods[i].CreationTimestamp.Time; t.After(newest) {
			newest = t
		}
	}
	return newest
}

// ofWorkload tells of the pods that were refused, and of those that do not run.
func ofWorkload(s *Snapshot) Story {
	r := rolloutOf(s)
	story := Story{Target: s.Target, Summary: r.summary()}
	astray := straysOf(s)
	if len(astray) > 0 {
		story.Summary += fmt.Sprintf("; %d run where they may not: restart them", len(astray))
		// Pods of one workload lack the same: it is told once.
		story.Steps = astray[:1]
		if more := len(astray) - 1; more > 0 {
			story.Steps[0].Seen += fmt.Sprintf("; and %d more such", more)
		}
	}
	if r.done() {
		if len(astray) == 0 {
			story.Summary += ", and nothing is wrong" + undrainable(s, s.Pods)
		}
		return conclude(story)
	}
	story.Steps = append(story.Steps, refusedSteps(s, &r)...)
	story.Steps = append(story.Steps, stepsOfPods(s, unfinished(s, &r))...)
	if story.Steps = append(story.Steps, r.steps...); len(story.Steps) == 0 {
		story.Steps = []Step{waiting(LinkPod, s.Target.String(), r.underWay())}
	}
	return conclude(story)
}

func (r *rollout) underWay() string {
	switch {
	case r.existing > r.desired:
		return fmt.Sprintf("%d of its pods are being deleted", r.existing-r.desired)
	case r.delay > 0:
		return fmt.Sprintf("its pods are being created, are starting, or are ready for less than minReadySeconds (%d s)", r.delay)
	default:
		return "its pods are being created, or are starting"
	}
}

// unfinished are the pods that keep a workload from being complete: those of its current
// template that are not ready; if there are none, all that are not.
func unfinished(s *Snapshot, r *rollout) []*corev1.Pod {
	var current, others []*corev1.Pod
	for i := range s.Pods {
		pod := &s.Pods[i]
		switch {
		case pod.DeletionTimestamp == nil && (ready(pod) || pod.Status.Phase == corev1.PodSucceeded):
		case pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodFailed && (r.anyRevision || r.isCurrent(pod)):
			current = append(current, pod)
		default:
			others = append(others, pod)
		}
	}
	if len(current) == 0 || r.anyRevision {
		current = append(current, others...)
	}
	slices.SortStableFunc(current, func(a, b *corev1.Pod) int { return cmp.Or(ordinal(a)-ordinal(b), strings.Compare(a.Name, b.Name)) })
	return current
}

// ordinal is the number of a StatefulSet's or an indexed Job's pod; 0 for others.
func ordinal(pod *corev1.Pod) int {
	n, _ := strconv.Atoi(cmp.Or(pod.Labels[appsv1.PodIndexLabel], "0"))
	return n
}

// stepsOfPods tells each cause once: pods of one template mostly lack the same.
func stepsOfPods(s *Snapshot, pods []*corev1.Pod) []Step {
	var steps []Step
	seen := map[string]bool{}
	for _, pod := range pods {
		one := ofPod(s, pod)
		key := one.Summary
		if one.First != nil {
			key = one.First.ID
		}
		if !seen[key] {
			seen[key] = true
			steps = append(steps, one.Steps...)
		}
	}
	return steps
}
