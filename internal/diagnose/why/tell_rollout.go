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

// explainWorkload reports the refused pods and the pods that do not run.
func explainWorkload(s *Snapshot) Story {
	r := newRollout(s)
	story := Story{Target: s.Target, Summary: r.summarize()}
	astray := findAllMisplaced(s)
	if len(astray) > 0 {
		story.Summary += fmt.Sprintf("; %d run on a pool that the tenant may not use: restart them", len(astray))
		// The pods of one workload have the same cause, so it is reported once.
		story.Steps = astray[:1]
		if more := len(astray) - 1; more > 0 {
			story.Steps[0].Observation += fmt.Sprintf("; and %d more such", more)
		}
	}
	if r.isDone() {
		if len(astray) == 0 {
			story.Summary += ", and nothing is wrong" + describeUndrainable(s, s.Pods)
		}
		return conclude(story)
	}
	story.Steps = append(story.Steps, explainRefused(s, &r)...)
	story.Steps = append(story.Steps, explainPods(s, listUnfinished(s, &r))...)
	if story.Steps = append(story.Steps, r.steps...); len(story.Steps) == 0 {
		story.Steps = []Step{newWaitingStep(LinkPod, s.Target.String(), r.describeProgress())}
	}
	return conclude(story)
}

func (r *rollout) describeProgress() string {
	switch {
	case r.existing > r.desired:
		return fmt.Sprintf("%d of its pods are being deleted", r.existing-r.desired)
	case r.delay > 0:
		return fmt.Sprintf("its pods are being created, are starting, or are ready for less than minReadySeconds (%d s)", r.delay)
	default:
		return "its pods are being created, or are starting"
	}
}

// listUnfinished returns the pods that prevent a workload from being complete: the pods of its
// current template that are not ready, or, if there are none, all pods that are not ready.
func listUnfinished(s *Snapshot, r *rollout) []*corev1.Pod {
	var current, others []*corev1.Pod
	for i := range s.Pods {
		pod := &s.Pods[i]
		switch {
		case pod.DeletionTimestamp == nil && (isPodReady(pod) || pod.Status.Phase == corev1.PodSucceeded):
		case pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodFailed && (r.allRevisions || r.isCurrent(pod)):
			current = append(current, pod)
		default:
			others = append(others, pod)
		}
	}
	if len(current) == 0 || r.allRevisions {
		current = append(current, others...)
	}
	slices.SortStableFunc(current, func(a, b *corev1.Pod) int {
		return cmp.Or(parseOrdinal(a)-parseOrdinal(b), strings.Compare(a.Name, b.Name))
	})
	return current
}

// parseOrdinal returns the index of a StatefulSet's or an indexed Job's pod, and 0 for others.
func parseOrdinal(pod *corev1.Pod) int {
	n, _ := strconv.Atoi(cmp.Or(pod.Labels[appsv1.PodIndexLabel], "0"))
	return n
}

// explainPods reports each cause once: pods of one template usually have the same cause.
func explainPods(s *Snapshot, pods []*corev1.Pod) []Step {
	var steps []Step
	seen := map[string]bool{}
	for _, pod := range pods {
		one := explainPod(s, pod)
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
