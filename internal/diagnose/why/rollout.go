package why

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"croft.dev/croft/internal/diagnose/catalog"
)

// rollout is the progress of a workload, as its controller reports it.
type rollout struct {
	// desired, available and existing are numbers of pods. updated is the number of pods
	// with the current template, and target the desired number of these.
	desired, available, existing, updated, target int32
	// steps are obstacles in the workload itself.
	steps []Step
	// isCurrent reports whether a pod has the current template.
	isCurrent func(*corev1.Pod) bool
	// allRevisions means that pods of earlier templates block the rollout, too.
	allRevisions bool
	// reports means that the controller reports pods that it cannot create in a condition.
	// refused is that report; nil if there is none.
	reports bool
	refused *refusedPod
	// delay is minReadySeconds.
	delay int32
}

func (r *rollout) isDone() bool {
	return len(r.steps) == 0 && r.refused == nil && r.isComplete() && r.existing <= r.desired
}

// isRolling reports whether pods of the current template are missing, or pods of earlier
// templates still exist in addition: a new pod counts as updated before it is ready.
func (r *rollout) isRolling() bool {
	return r.target > 0 && (r.updated < r.target || r.existing > r.desired && r.existing > r.updated)
}

// isComplete reports whether all desired pods have the current template, and are ready.
func (r *rollout) isComplete() bool { return !r.isRolling() && r.available >= r.desired }

func (r *rollout) summarize() string {
	text := fmt.Sprintf("%d of %d pods are ready", r.available, r.desired)
	switch {
	case r.desired == 0 && r.existing == 0:
		text = "it has no pods, and needs none"
	case r.isRolling():
		text += fmt.Sprintf(", and the rollout has not finished: %d of %d pods have the current template, and %d an earlier one", r.updated, r.target, r.existing-r.updated)
	}
	return text
}

// newRollout reads the state of the Snapshot's workload.
func newRollout(s *Snapshot) rollout {
	object := s.Target.String()
	switch o := s.Object.(type) {
	case *appsv1.Deployment:
		return newDeploymentRollout(s, o)
	case *appsv1.ReplicaSet:
		r := newSteadyRollout(ptr.Deref(o.Spec.Replicas, 1), o.Status.AvailableReplicas, o.Status.Replicas, o.Spec.MinReadySeconds)
		r.reports = true
		for _, c := range o.Status.Conditions {
			r.setReplicaFailure(s, string(c.Type), c.Status, c.Message, c.LastTransitionTime.Time)
		}
		r.checkObserved(object, o.Generation, o.Status.ObservedGeneration)
		return r
	case *corev1.ReplicationController:
		r := newSteadyRollout(ptr.Deref(o.Spec.Replicas, 1), o.Status.AvailableReplicas, o.Status.Replicas, o.Spec.MinReadySeconds)
		r.reports = true
		for _, c := range o.Status.Conditions {
			r.setReplicaFailure(s, string(c.Type), c.Status, c.Message, c.LastTransitionTime.Time)
		}
		r.checkObserved(object, o.Generation, o.Status.ObservedGeneration)
		return r
	case *appsv1.StatefulSet:
		return newStatefulSetRollout(s, o)
	case *appsv1.DaemonSet:
		return newDaemonSetRollout(s, o)
	default:
		return rollout{isCurrent: func(*corev1.Pod) bool { return true }}
	}
}

// newSteadyRollout returns the state of a workload that does not replace its pods.
func newSteadyRollout(desired, available, existing, delay int32) rollout {
	return rollout{
		desired: desired, available: available, existing: existing, updated: existing, target: 0, delay: delay,
		isCurrent: func(*corev1.Pod) bool { return true },
	}
}

// checkObserved adds a step if the controller has not processed the object's latest change.
func (r *rollout) checkObserved(object string, generation, observed int64) {
	if observed < generation {
		r.steps = append(r.steps, newWaitingStep(LinkRollout, object, "its controller has not processed the latest change yet: does kube-controller-manager run?"))
	}
}

func newDeploymentRollout(s *Snapshot, d *appsv1.Deployment) rollout {
	object, desired := s.Target.String(), ptr.Deref(d.Spec.Replicas, 1)
	r := rollout{
		desired: desired, available: d.Status.AvailableReplicas, existing: d.Status.Replicas, updated: d.Status.UpdatedReplicas, target: desired,
		isCurrent: s.hasMaker, reports: true, delay: d.Spec.MinReadySeconds,
	}
	r.checkObserved(object, d.Generation, d.Status.ObservedGeneration)
	if d.Spec.Paused && r.updated < r.target {
		r.steps = append(r.steps, newWaitingStep(LinkRollout, object, "spec.paused is true: the rollout waits for `kubectl rollout resume "+object+formatNamespaceFlag(s.Target)+"`"))
	}
	for _, c := range d.Status.Conditions {
		r.setReplicaFailure(s, string(c.Type), c.Status, c.Message, c.LastTransitionTime.Time)
		if c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse && !r.isComplete() {
			r.steps = append(r.steps, newBadStep(LinkRollout, object, catalog.FormatCondition(string(c.Type), string(c.Status), c.Reason, c.Message)))
		}
	}
	return r
}

func newStatefulSetRollout(s *Snapshot, set *appsv1.StatefulSet) rollout {
	object, desired := s.Target.String(), ptr.Deref(set.Spec.Replicas, 1)
	r := rollout{
		desired: desired, available: set.Status.AvailableReplicas, existing: set.Status.Replicas, updated: set.Status.UpdatedReplicas, target: desired,
		allRevisions: true, delay: set.Spec.MinReadySeconds,
		isCurrent: func(pod *corev1.Pod) bool {
			return pod.Labels[appsv1.ControllerRevisionHashLabelKey] == set.Status.UpdateRevision
		},
	}
	r.checkObserved(object, set.Generation, set.Status.ObservedGeneration)
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
		r.addOutdatedPods(s)
	}
	ordered := set.Spec.PodManagementPolicy == "" || set.Spec.PodManagementPolicy == appsv1.OrderedReadyPodManagement
	if ordered && r.existing < r.desired && r.available < r.existing {
		r.steps = append(r.steps, newWaitingStep(LinkRollout, object, "it creates its pods one after another: the next one when all others are ready"))
	}
	return r
}

func newDaemonSetRollout(s *Snapshot, set *appsv1.DaemonSet) rollout {
	r := rollout{
		desired: set.Status.DesiredNumberScheduled, available: set.Status.NumberAvailable, existing: set.Status.CurrentNumberScheduled,
		updated: set.Status.UpdatedNumberScheduled, target: set.Status.DesiredNumberScheduled, delay: set.Spec.MinReadySeconds,
		isCurrent: func(pod *corev1.Pod) bool {
			return pod.Labels["pod-template-generation"] == set.Annotations[appsv1.DeprecatedTemplateGeneration]
		},
	}
	r.checkObserved(s.Target.String(), set.Generation, set.Status.ObservedGeneration)
	if set.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
		r.addOutdatedPods(s)
	}
	return r
}

// addOutdatedPods adds the pods that keep an earlier template until they are deleted manually.
func (r *rollout) addOutdatedPods(s *Snapshot) {
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
		r.steps = append(r.steps, newWaitingStep(LinkRollout, s.Target.String(), "its updateStrategy is OnDelete: these pods keep the earlier template until you delete them: "+formatFirst(old)))
	}
}

// hasMaker reports whether one of the current Makers owns a pod.
func (s *Snapshot) hasMaker(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && slices.Contains(s.Makers, Maker{owner.Kind, owner.Name})
}
