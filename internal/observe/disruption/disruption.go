// Package disruption finds the PodDisruptionBudgets that keep pods from being evicted, and so
// their nodes from being removed. It evaluates budgets as the API server's eviction subresource
// does; no I/O.
package disruption

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

// Cause classifies a block. It is the ID of a row of the catalogue.
type Cause string

const (
	// Overlap is more than one budget for a pod: the API server never evicts such a pod.
	Overlap Cause = "budgets-overlap"
	// Never is a budget that requires as many ready pods as there are.
	Never Cause = "budget-never-allows"
	// Uncounted is a budget whose pods the disruption controller cannot count.
	Uncounted Cause = "budget-uncounted"
	// NotNow is a budget that allows evictions again when more pods are ready.
	NotNow Cause = "node-held"
)

// Block is a refusal to evict pods of one namespace. Pods and Budgets are names, sorted.
type Block struct {
	Namespace string
	Pods      []string
	Budgets   []string
	Cause     Cause
	// Text is a sentence about the cause that names the budgets, not the pods.
	Text string
}

// IsPersistent reports whether the block remains until a user changes a budget, a label or the number
// of replicas.
func (b *Block) IsPersistent() bool { return b.Cause != NotNow }

// Budgets are the budgets by namespace, with their compiled selectors.
type Budgets map[string][]budget

type budget struct {
	*policyv1.PodDisruptionBudget
	selector labels.Selector
}

// New indexes budgets. The API server ignores budgets with an invalid selector, and so does
// New.
func New(list []policyv1.PodDisruptionBudget) Budgets {
	all := Budgets{}
	for i := range list {
		selector, err := metav1.LabelSelectorAsSelector(list[i].Spec.Selector)
		if err == nil {
			all[list[i].Namespace] = append(all[list[i].Namespace], budget{&list[i], selector})
		}
	}
	return all
}

// FindBlocks returns the blocks of several pods, ordered by namespace and budgets. Pods that are
// blocked for the same cause are in one Block.
func (b Budgets) FindBlocks(pods []corev1.Pod) []Block {
	found := map[string]*Block{}
	for i := range pods {
		block := b.FindBlock(&pods[i])
		if block == nil {
			continue
		}
		key := block.Namespace + "/" + strings.Join(block.Budgets, ",") + "/" + block.Text
		if known := found[key]; known != nil {
			known.Pods = append(known.Pods, block.Pods...)
			continue
		}
		found[key] = block
	}
	var all []Block
	for _, key := range slices.Sorted(maps.Keys(found)) {
		slices.Sort(found[key].Pods)
		all = append(all, *found[key])
	}
	return all
}

// FindBlock returns the refusal to evict a pod, or nil if the API server would evict it.
func (b Budgets) FindBlock(pod *corev1.Pod) *Block {
	if ignoresBudgets(pod) {
		return nil
	}
	var matching []budget
	for _, candidate := range b[pod.Namespace] {
		if candidate.selector.Matches(labels.Set(pod.Labels)) {
			matching = append(matching, candidate)
		}
	}
	if len(matching) == 0 {
		return nil
	}
	block := &Block{Namespace: pod.Namespace, Pods: []string{pod.Name}}
	for _, m := range matching {
		block.Budgets = append(block.Budgets, m.Name)
	}
	if len(matching) == 1 {
		block.Cause, block.Text = explainRefusal(matching[0].PodDisruptionBudget, pod)
	} else {
		slices.Sort(block.Budgets)
		block.Cause = Overlap
		block.Text = "PodDisruptionBudgets " + strings.Join(block.Budgets, " and ") + " select the same pod, and the API server never evicts a pod with more than one budget"
	}
	if block.Cause == "" {
		return nil
	}
	return block
}

// ignoresBudgets reports whether the API server evicts a pod regardless of budgets.
func ignoresBudgets(pod *corev1.Pod) bool {
	switch pod.Status.Phase {
	case corev1.PodPending, corev1.PodSucceeded, corev1.PodFailed:
		return true
	case corev1.PodRunning, corev1.PodUnknown:
	}
	return pod.DeletionTimestamp != nil
}

// explainRefusal returns why a pod's only budget does not allow its eviction, or "" if it does.
func explainRefusal(b *policyv1.PodDisruptionBudget, pod *corev1.Pod) (Cause, string) {
	name, s := "PodDisruptionBudget "+b.Name, b.Status
	unready := !isReady(pod)
	if unready && (ptr.Deref(b.Spec.UnhealthyPodEvictionPolicy, "") == policyv1.AlwaysAllow || s.CurrentHealthy >= s.DesiredHealthy && s.DesiredHealthy > 0) {
		return "", ""
	}
	hint := ""
	if unready {
		hint = "; the pod is not ready, and unhealthyPodEvictionPolicy: AlwaysAllow allows the eviction of such pods"
	}
	failed := meta.FindStatusCondition(s.Conditions, policyv1.DisruptionAllowedCondition)
	switch {
	case s.ObservedGeneration < b.Generation:
		return NotNow, "the disruption controller of kube-controller-manager has not processed " + name + " yet"
	case s.DisruptionsAllowed > 0:
		return "", ""
	case failed != nil && failed.Status == metav1.ConditionFalse && failed.Reason == policyv1.SyncFailedReason:
		return Uncounted, name + " allows no eviction, since its pods cannot be counted: " + cmp.Or(failed.Message, failed.Reason) + hint
	case s.ExpectedPods == 0 && metav1.GetControllerOf(pod) == nil:
		return Uncounted, name + " allows no eviction: it counts pods by their controllers, and the pod has none" + hint
	case s.ExpectedPods > 0 && s.DesiredHealthy >= s.ExpectedPods:
		return Never, fmt.Sprintf("%s requires %d ready pods of %d, and so it never allows an eviction%s", name, s.DesiredHealthy, s.ExpectedPods, hint)
	default:
		return NotNow, fmt.Sprintf("%s allows no eviction now: it requires %d ready pods of %d, and %d are ready%s", name, s.DesiredHealthy, s.ExpectedPods, s.CurrentHealthy, hint)
	}
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
