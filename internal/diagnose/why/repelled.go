package why

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/wording"
	"croft.dev/croft/internal/diagnose/catalog"
)

// Anti-affinity works in both directions: a running pod keeps away every later pod that its
// required terms select, in any namespace. The messages of the scheduler and Karpenter are
// about the waiting pod, and do not name the running one.

const repelledID = "anti-affinity-of-others"

// everybodysPods is the entry in Hidden if the caller may not read pods of other
// namespaces.
const everybodysPods = "pods of other namespaces"

// gatherRepellents reads the pods that keep one of the pods away, if the scheduler or Karpenter
// reports anti-affinity. Users who may not read all pods of the cluster get the pods of
// their own tenant.
func (g *gatherer) gatherRepellents(ctx context.Context) {
	i := slices.IndexFunc(g.Pods, func(p corev1.Pod) bool { return reportsRepelled(g.Snapshot, &p) })
	if i < 0 {
		return
	}
	pod := &g.Pods[i]
	var namespace corev1.Namespace
	g.getObject(ctx, "namespace", "", pod.Namespace, &namespace)
	var all corev1.PodList
	g.listObjects(ctx, everybodysPods, &all)
	if g.isHidden(everybodysPods) {
		namespaces := []string{pod.Namespace}
		if g.Rules != nil {
			namespaces = g.Rules.Spec.Namespaces
		}
		for _, name := range namespaces {
			var list corev1.PodList
			g.listObjects(ctx, "pod", &list, client.InNamespace(name))
			all.Items = append(all.Items, list.Items...)
		}
	}
	for i := range all.Items {
		if repelsPod(&all.Items[i], pod, namespace.Labels) {
			g.Repellents = append(g.Repellents, all.Items[i])
		}
	}
}

// reportsRepelled reports whether the scheduler or Karpenter reports an anti-affinity that may
// be another pod's.
func reportsRepelled(s *Snapshot, pod *corev1.Pod) bool {
	if pod.Spec.NodeName != "" {
		return false
	}
	c := findFirst(pod.Status.Conditions, func(c *corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })
	if c != nil && isRepelled(c.Message) {
		return true
	}
	steps, _ := readKarpenterMessage(s, pod)
	return slices.ContainsFunc(steps, func(step Step) bool { return isRepelled(step.Observation) })
}

func isRepelled(text string) bool {
	return strings.Contains(text, "existing pods anti-affinity rules") || strings.Contains(text, "constraint for pod anti-affinity")
}

// repelsPod reports whether the anti-affinity of a pod with a node keeps another pod away, as
// evaluated by kube-scheduler.
func repelsPod(other, pod *corev1.Pod, namespaceLabels map[string]string) bool {
	finished := other.Status.Phase == corev1.PodSucceeded || other.Status.Phase == corev1.PodFailed
	same := other.Namespace == pod.Namespace && other.Name == pod.Name
	if other.Spec.NodeName == "" || finished || same {
		return false
	}
	return slices.ContainsFunc(listAntiAffinity(other), func(term corev1.PodAffinityTerm) bool {
		inScope := slices.Contains(term.Namespaces, pod.Namespace) || matchesSelector(term.NamespaceSelector, namespaceLabels)
		if len(term.Namespaces) == 0 && term.NamespaceSelector == nil {
			inScope = other.Namespace == pod.Namespace
		}
		return inScope && matchesSelector(term.LabelSelector, pod.Labels)
	})
}

// listAntiAffinity returns a pod's required terms.
func listAntiAffinity(pod *corev1.Pod) []corev1.PodAffinityTerm {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAntiAffinity == nil {
		return nil
	}
	return pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

func matchesSelector(selector *metav1.LabelSelector, values map[string]string) bool {
	compiled, err := metav1.LabelSelectorAsSelector(selector) // nil selects nothing
	return err == nil && compiled.Matches(labels.Set(values))
}

// nameRepellents replaces the messages of the scheduler and Karpenter by the names of the pods
// that keep a pod away. For a tenant, it reports that another tenant's pod does, without
// its name.
func nameRepellents(s *Snapshot, pod *corev1.Pod, steps []Step) []Step {
	var names []string
	for i := range s.Repellents {
		names = append(names, s.Repellents[i].Namespace+"/"+s.Repellents[i].Name)
	}
	for i, step := range steps {
		if step.Verdict != Bad || !isRepelled(step.Observation) {
			continue
		}
		// Karpenter's message is the same for the pod's own anti-affinity and for other
		// pods'.
		others := len(listAntiAffinity(pod)) == 0 || strings.Contains(step.Observation, "existing pods")
		switch {
		case len(names) > 0:
			steps[i] = newRepelledStep(s, step, "the anti-affinity of pod "+formatFirst(names)+" keeps it away")
		case others && s.isHidden(everybodysPods):
			steps[i] = newRepelledStep(s, step, "the anti-affinity of a pod outside of its tenant keeps it away")
		}
	}
	if len(names) == 0 && s.isHidden(everybodysPods) {
		steps = append(steps, newHiddenStep(LinkPod, "pods of other tenants", "croft why pod/"+pod.Name+" -n "+pod.Namespace))
	}
	return steps
}

// newRepelledStep returns the step with another message. Only callers who may read NodePools get the
// original message, too, since it contains the number of other tenants' nodes.
func newRepelledStep(s *Snapshot, step Step, seen string) Step {
	if !s.isHidden("nodepool") {
		seen += ": " + step.Observation
	}
	finding := catalog.FindRow(repelledID).ToFinding(seen)
	return Step{Link: step.Link, Object: step.Object, Verdict: Bad, Observation: seen, Finding: &finding}
}

// formatFirst lists the first names, and the number of the others.
func formatFirst(names []string) string {
	slices.Sort(names)
	return wording.FormatFirst(names, maxNamed)
}

const maxNamed = 5
