package why

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// ofWorkload reports the refused pods and the pods that do not run.
func ofWorkload(s *Snapshot) Story {
	r := rolloutOf(s)
	story := Story{Target: s.Target, Summary: r.summary()}
	astray := straysOf(s)
	if len(astray) > 0 {
		story.Summary += fmt.Sprintf("; %d run where they may not: restart them", len(astray))
		// The pods of one workload have the same cause, so it is reported once.
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

// unfinished returns the pods that prevent a workload from being complete: the pods of its
// current template that are not ready, or, if there are none, all pods that are not ready.
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

// ordinal returns the index of a StatefulSet's or an indexed Job's pod, and 0 for others.
func ordinal(pod *corev1.Pod) int {
	n, _ := strconv.Atoi(cmp.Or(pod.Labels[appsv1.PodIndexLabel], "0"))
	return n
}

// stepsOfPods reports each cause once: pods of one template usually have the same cause.
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
