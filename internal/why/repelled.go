package why

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/catalog"
)

// Anti-affinity works in both directions: a running pod keeps away every later pod that its
// required terms select, in any namespace. The messages of the scheduler and Karpenter are
// about the waiting pod, and do not name the running one.

const repelledID = "anti-affinity-of-others"

// everybodysPods is the entry in Hidden if the caller may not read pods of other
// namespaces.
const everybodysPods = "pods of other namespaces"

// repellents reads the pods that keep one of the pods away, if the scheduler or Karpenter
// reports anti-affinity. Users who may not read all pods of the cluster get the pods of
// their own tenant.
func (g *gatherer) repellents(ctx context.Context) error {
	i := slices.IndexFunc(g.Pods, func(p corev1.Pod) bool { return saysRepelled(g.Snapshot, &p) })
	if i < 0 {
		return nil
	}
	pod := &g.Pods[i]
	var namespace corev1.Namespace
	if _, err := g.get(ctx, "namespace", "", pod.Namespace, &namespace); err != nil {
		return err
	}
	var all corev1.PodList
	if err := g.list(ctx, everybodysPods, &all); err != nil {
		return err
	}
	if g.hidden(everybodysPods) {
		own := []string{pod.Namespace}
		if g.Rules != nil {
			own = g.Rules.Spec.Namespaces
		}
		for _, name := range own {
			var list corev1.PodList
			if err := g.list(ctx, "pod", &list, client.InNamespace(name)); err != nil {
				return err
			}
			all.Items = append(all.Items, list.Items...)
		}
	}
	for i := range all.Items {
		if repels(&all.Items[i], pod, namespace.Labels) {
			g.Repellents = append(g.Repellents, all.Items[i])
		}
	}
	return nil
}

// saysRepelled reports whether the scheduler or Karpenter reports an anti-affinity that may
// be another pod's.
func saysRepelled(s *Snapshot, pod *corev1.Pod) bool {
	if pod.Spec.NodeName != "" {
		return false
	}
	c := find(pod.Status.Conditions, func(c *corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })
	if c != nil && isRepelled(c.Message) {
		return true
	}
	steps, _ := karpenterSays(s, pod)
	return slices.ContainsFunc(steps, func(step Step) bool { return isRepelled(step.Seen) })
}

func isRepelled(text string) bool {
	return strings.Contains(text, "existing pods anti-affinity rules") || strings.Contains(text, "constraint for pod anti-affinity")
}

// repels reports whether the anti-affinity of a pod with a node keeps another pod away, as
// evaluated by kube-scheduler.
func repels(other, pod *corev1.Pod, namespaceLabels map[string]string) bool {
	finished := other.Status.Phase == corev1.PodSucceeded || other.Status.Phase == corev1.PodFailed
	same := other.Namespace == pod.Namespace && other.Name == pod.Name
	if other.Spec.NodeName == "" || finished || same {
		return false
	}
	return slices.ContainsFunc(antiAffinity(other), func(term corev1.PodAffinityTerm) bool {
		in := slices.Contains(term.Namespaces, pod.Namespace) || selects(term.NamespaceSelector, namespaceLabels)
		if len(term.Namespaces) == 0 && term.NamespaceSelector == nil {
			in = other.Namespace == pod.Namespace
		}
		return in && selects(term.LabelSelector, pod.Labels)
	})
}

// antiAffinity returns a pod's required terms.
func antiAffinity(pod *corev1.Pod) []corev1.PodAffinityTerm {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAntiAffinity == nil {
		return nil
	}
	return pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

func selects(selector *metav1.LabelSelector, of map[string]string) bool {
	compiled, err := metav1.LabelSelectorAsSelector(selector) // nil selects nothing
	return err == nil && compiled.Matches(labels.Set(of))
}

// inTheWay replaces the messages of the scheduler and Karpenter by the names of the pods
// that keep a pod away. For a tenant, it reports that another tenant's pod does, without
// its name.
func inTheWay(s *Snapshot, pod *corev1.Pod, steps []Step) []Step {
	var names []string
	for i := range s.Repellents {
		names = append(names, s.Repellents[i].Namespace+"/"+s.Repellents[i].Name)
	}
	for i, step := range steps {
		if step.Verdict != Bad || !isRepelled(step.Seen) {
			continue
		}
		// Karpenter's message is the same for the pod's own anti-affinity and for other
		// pods'.
		others := len(antiAffinity(pod)) == 0 || strings.Contains(step.Seen, "existing pods")
		switch {
		case len(names) > 0:
			steps[i] = repelled(s, step, "the anti-affinity of pod "+firstOf(names)+" keeps it away")
		case others && s.hidden(everybodysPods):
			steps[i] = repelled(s, step, "the anti-affinity of a pod that is not its tenant's keeps it away")
		}
	}
	if len(names) == 0 && s.hidden(everybodysPods) {
		steps = append(steps, askAdmin(LinkPod, "pods of other tenants", "croft why pod/"+pod.Name+" -n "+pod.Namespace))
	}
	return steps
}

// repelled returns the step with another message. Only callers who may read NodePools get the
// original message, too, since it contains the number of other tenants' nodes.
func repelled(s *Snapshot, step Step, seen string) Step {
	if !s.hidden("nodepool") {
		seen += ": " + step.Seen
	}
	finding := catalog.Lookup(repelledID).Finding(seen)
	return Step{Link: step.Link, Object: step.Object, Verdict: Bad, Seen: seen, Finding: &finding}
}

// firstOf lists the first names, and the number of the others.
func firstOf(names []string) string {
	slices.Sort(names)
	if more := len(names) - maxNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), more)
	}
	return strings.Join(names, ", ")
}

const maxNamed = 5
