package nodenetworks

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// plugins are the DaemonSets that pods with secondary networks need on each node, with
// their pods.
type plugins struct {
	sets []appsv1.DaemonSet
	// pods has the DaemonSets' pods by node and by the DaemonSet's UID.
	pods map[string]map[types.UID]*corev1.Pod
}

// newPlugins selects the DaemonSets whose pods match a selector. Plugins without a
// DaemonSet, as on platforms that manage them in another way, are not waited for.
func newPlugins(selector labels.Selector, sets []appsv1.DaemonSet, pods []corev1.Pod) *plugins {
	p := &plugins{pods: map[string]map[types.UID]*corev1.Pod{}}
	for i := range sets {
		if sets[i].DeletionTimestamp == nil && selector.Matches(labels.Set(sets[i].Spec.Template.Labels)) {
			p.sets = append(p.sets, sets[i])
		}
	}
	slices.SortFunc(p.sets, func(a, b appsv1.DaemonSet) int { return cmp.Compare(a.Name, b.Name) })
	for i := range pods {
		pod := &pods[i]
		owner := metav1.GetControllerOf(pod)
		if owner == nil || pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil {
			continue
		}
		if p.pods[pod.Spec.NodeName] == nil {
			p.pods[pod.Spec.NodeName] = map[types.UID]*corev1.Pod{}
		}
		p.pods[pod.Spec.NodeName][owner.UID] = pod
	}
	return p
}

// checkNode returns the names of the DaemonSets that a node needs, and the reasons why some are
// not Ready. A DaemonSet whose node selector or affinity excludes the node is not needed.
// One whose pods do not tolerate the node's taints is needed: without it no pod gets its
// networks.
func (p *plugins) checkNode(node *corev1.Node) (names, pending []string) {
	for i := range p.sets {
		set := &p.sets[i]
		template := &corev1.Pod{Spec: set.Spec.Template.Spec}
		if fits, err := nodeaffinity.GetRequiredNodeAffinity(template).Match(node); err == nil && !fits {
			continue
		}
		names = append(names, set.Name)
		if text := explainDaemonSet(set, p.pods[node.Name][set.UID], node); text != "" {
			pending = append(pending, "DaemonSet "+set.Namespace+"/"+set.Name+" "+text)
		}
	}
	return names, pending
}

// explainDaemonSet returns why a DaemonSet is not Ready on a node, or "".
func explainDaemonSet(set *appsv1.DaemonSet, pod *corev1.Pod, node *corev1.Node) string {
	if pod != nil {
		if isPodReady(pod) {
			return ""
		}
		return fmt.Sprintf("has a pod on the node that is not Ready: %s", pod.Name)
	}
	taint, untolerated := scheduling.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, set.Spec.Template.Spec.Tolerations, isLastingTaint, false)
	if untolerated {
		return fmt.Sprintf("has no pod on the node, since it does not tolerate the taint %s", taint.ToString())
	}
	return "has no pod on the node"
}

// isLastingTaint reports whether a taint keeps away a DaemonSet's pod that does not tolerate it.
// Kubernetes adds tolerations for the taints of node conditions to such pods.
func isLastingTaint(t *corev1.Taint) bool {
	return t.Effect != corev1.TaintEffectPreferNoSchedule && !strings.HasPrefix(t.Key, "node.kubernetes.io/")
}

func isPodReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
