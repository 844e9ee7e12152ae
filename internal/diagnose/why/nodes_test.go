package why_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/internal/diagnose/why"
)

// TestPodsThatBlockDraining expects the pods that prevent Karpenter from draining a node, with
// a row of the catalogue for each.
func TestPodsThatBlockDraining(t *testing.T) {
	now := time.Now()
	budget := func(name, namespace string) policyv1.PodDisruptionBudget {
		return policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: 1},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
			Status:     policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, CurrentHealthy: 1, DesiredHealthy: 1, ExpectedPods: 1},
		}
	}
	owner := func(kind string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: "x", Controller: ptr.To(true)}}
		}
	}
	annotated := func(value string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Annotations = map[string]string{karpenterv1.DoNotDisruptAnnotationKey: value}
			p.Status.StartTime = ptr.To(metav1.NewTime(now.Add(-time.Hour)))
		}
	}
	tolerating := func(t corev1.Toleration) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{t} }
	}
	one := []policyv1.PodDisruptionBudget{budget("web", "shop")}
	for name, c := range map[string]struct {
		pod     func(*corev1.Pod)
		budgets []policyv1.PodDisruptionBudget
		node    func(*corev1.Node)
		row     string
		text    string
	}{
		"no budget":                                   {owner("ReplicaSet"), nil, nil, "", ""},
		"a budget of all pods":                        {owner("ReplicaSet"), one, nil, "budget-never-allows", "pod shop/web-1: PodDisruptionBudget web requires 1 ready pods of 1"},
		"two budgets":                                 {owner("ReplicaSet"), append(one, budget("all", "shop")), nil, "budgets-overlap", "PodDisruptionBudgets all and web"},
		"a budget of another namespace":               {owner("ReplicaSet"), []policyv1.PodDisruptionBudget{budget("web", "bank")}, nil, "", ""},
		"of a DaemonSet, which Karpenter drains":      {owner("DaemonSet"), one, nil, "budget-never-allows", ""},
		"of the node, which Karpenter does not drain": {owner("Node"), one, nil, "", ""},
		"a pod that tolerates the drain":              {tolerating(corev1.Toleration{Key: karpenterv1.DisruptedTaintKey, Operator: corev1.TolerationOpExists}), one, nil, "", ""},
		"a pod that tolerates all":                    {tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists}), one, nil, "", ""},
		"a pod that tolerates another":                {tolerating(corev1.Toleration{Key: "x", Operator: corev1.TolerationOpExists}), one, nil, "budget-never-allows", ""},
		"an annotated pod":                            {annotated("true"), nil, nil, "node-held", "pod shop/web-1: it is annotated karpenter.sh/do-not-disrupt"},
		"an annotated pod, for a while":               {annotated("2h"), nil, nil, "node-held", "annotated"},
		"an annotated pod, for a past while":          {annotated("30m"), nil, nil, "", ""},
		"an annotation that is none":                  {annotated("yes"), nil, nil, "", ""},
		"a pod that has ended":                        {func(p *corev1.Pod) { annotated("true")(p); p.Status.Phase = corev1.PodFailed }, one, nil, "", ""},
		"a pod on another node":                       {func(p *corev1.Pod) { p.Spec.NodeName = "node-2" }, one, nil, "", ""},
		"an annotated node": {owner("ReplicaSet"), nil, func(n *corev1.Node) {
			n.Annotations = map[string]string{karpenterv1.DoNotDisruptAnnotationKey: "true"}
		}, "node-held", "it is annotated"},
		"an annotated node that is deleted": {owner("ReplicaSet"), nil, func(n *corev1.Node) {
			n.Annotations = map[string]string{karpenterv1.DoNotDisruptAnnotationKey: "true"}
			n.DeletionTimestamp = ptr.To(metav1.Now())
		}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
			if c.node != nil {
				c.node(node)
			}
			pod := corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", Labels: map[string]string{"app": "web"}}, Spec: corev1.PodSpec{NodeName: "node-1"},
				Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
			}
			c.pod(&pod)
			got := why.FindHolders(now, node, []corev1.Pod{pod}, c.budgets)
			if c.row == "" {
				if len(got) > 0 {
					t.Errorf("want none: %+v", got)
				}
				return
			}
			if !slices.ContainsFunc(got, func(h why.Holder) bool { return h.Row == c.row && strings.Contains(h.Text, c.text) }) || len(got) != 1 {
				t.Errorf("want %s, %q: %+v", c.row, c.text, got)
			}
		})
	}
}

// TestUndrainable expects healthy pods, workloads and nodes to be reported as healthy,
// together with the budgets that never allow their eviction. A budget that only blocks now
// is left out.
func TestUndrainable(t *testing.T) {
	pod := newPod("web-1", "ReplicaSet", "web", setReady, addLabel("app", "web"))
	node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
	budget := func(name string, desired, expected int32) policyv1.PodDisruptionBudget {
		return policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: pod.Labels}},
			Status: policyv1.PodDisruptionBudgetStatus{CurrentHealthy: desired, DesiredHealthy: desired, ExpectedPods: expected},
		}
	}
	for name, c := range map[string]struct {
		budgets  []policyv1.PodDisruptionBudget
		wantText string
	}{
		"none":             {nil, ""},
		"of all":           {[]policyv1.PodDisruptionBudget{budget("web", 1, 1)}, "; but its nodes cannot be drained: PodDisruptionBudget web requires 1 ready pods of 1"},
		"two":              {[]policyv1.PodDisruptionBudget{budget("web", 1, 2), budget("all", 1, 2)}, "; but its nodes cannot be drained: PodDisruptionBudgets all and web select"},
		"used up just now": {[]policyv1.PodDisruptionBudget{budget("web", 1, 2)}, ""},
	} {
		for kind, object := range map[string]client.Object{"pod": &pod, "deployment": newDeployment(), "node": &node} {
			t.Run(name+" "+kind, func(t *testing.T) {
				story := why.ExplainSnapshot(&why.Snapshot{
					Target: why.Target{Kind: kind, Namespace: "shop", Name: object.GetName()}, Object: object, Pods: []corev1.Pod{pod}, Budgets: c.budgets, Nodes: []corev1.Node{node},
				})
				if story.Verdict != why.Good || !strings.Contains(story.Summary, c.wantText) || c.wantText == "" && strings.Contains(story.Summary, "drained") {
					t.Errorf("want good and %q: %+v", c.wantText, story)
				}
			})
		}
	}
}
