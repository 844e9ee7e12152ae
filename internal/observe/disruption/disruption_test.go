package disruption_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"croft.dev/croft/internal/diagnose/catalog"
	"croft.dev/croft/internal/observe/disruption"
)

var web = map[string]string{"app": "web"}

// newRunningPod returns a ready pod of a controller, with the label app=web.
func newRunningPod(name string, edits ...func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, Labels: web,
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", Controller: ptr.To(true)}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	for _, edit := range edits {
		edit(&p)
	}
	return p
}

func setUnready(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }

// newBudget returns a budget for app=web that the disruption controller has processed.
func newBudget(name string, healthy, desired, expected, allowed int32, edits ...func(*policyv1.PodDisruptionBudget)) policyv1.PodDisruptionBudget {
	b := policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Generation: 1},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: web}},
		Status: policyv1.PodDisruptionBudgetStatus{
			ObservedGeneration: 1, CurrentHealthy: healthy, DesiredHealthy: desired, ExpectedPods: expected, DisruptionsAllowed: allowed,
		},
	}
	for _, edit := range edits {
		edit(&b)
	}
	return b
}

func setAlwaysAllow(b *policyv1.PodDisruptionBudget) {
	b.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.AlwaysAllow)
}

func TestFindBlock(t *testing.T) {
	everything := func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector = &metav1.LabelSelector{} }
	for name, c := range map[string]struct {
		pod     corev1.Pod
		budgets []policyv1.PodDisruptionBudget
		cause   disruption.Cause
		text    string
	}{
		"no budget":                  {newRunningPod("web-1"), nil, "", ""},
		"one that allows":            {newRunningPod("web-1"), []policyv1.PodDisruptionBudget{newBudget("web", 3, 2, 3, 1)}, "", ""},
		"two, although both allow":   {newRunningPod("web-1"), []policyv1.PodDisruptionBudget{newBudget("web", 3, 1, 3, 2), newBudget("all", 3, 1, 3, 2, everything)}, disruption.Overlap, "PodDisruptionBudgets all and web select the same pod"},
		"two, of an unready pod":     {newRunningPod("web-1", setUnready), []policyv1.PodDisruptionBudget{newBudget("a", 0, 1, 1, 0, setAlwaysAllow), newBudget("b", 0, 1, 1, 0, setAlwaysAllow)}, disruption.Overlap, "a and b"},
		"minAvailable of all":        {newRunningPod("web-1"), []policyv1.PodDisruptionBudget{newBudget("web", 1, 1, 1, 0)}, disruption.Never, "PodDisruptionBudget web requires 1 ready pods of 1"},
		"minAvailable of more":       {newRunningPod("web-1"), []policyv1.PodDisruptionBudget{newBudget("web", 2, 5, 2, 0)}, disruption.Never, "requires 5 ready pods of 2"},
		"too few are ready":          {newRunningPod("web-1"), []policyv1.PodDisruptionBudget{newBudget("web", 2, 2, 3, 0)}, disruption.NotNow, "requires 2 ready pods of 3, and 2 are ready"},
		"unready, and too few are":   {newRunningPod("web-1", setUnready), []policyv1.PodDisruptionBudget{newBudget("web", 1, 2, 3, 0)}, disruption.NotNow, "AlwaysAllow allows the eviction of such pods"},
		"unready, and enough are":    {newRunningPod("web-1", setUnready), []policyv1.PodDisruptionBudget{newBudget("web", 2, 2, 3, 0)}, "", ""},
		"unready, and always let go": {newRunningPod("web-1", setUnready), []policyv1.PodDisruptionBudget{newBudget("web", 0, 1, 1, 0, setAlwaysAllow)}, "", ""},
		"unready, of a budget of 0":  {newRunningPod("web-1", setUnready), []policyv1.PodDisruptionBudget{newBudget("web", 0, 0, 0, 0)}, disruption.NotNow, "allows no eviction now"},
		"ready, AlwaysAllow":         {newRunningPod("web-1"), []policyv1.PodDisruptionBudget{newBudget("web", 1, 1, 1, 0, setAlwaysAllow)}, disruption.Never, "never allows"},
		"not processed yet": {newRunningPod("web-1"), []policyv1.PodDisruptionBudget{newBudget("web", 3, 2, 3, 1, func(b *policyv1.PodDisruptionBudget) { b.Generation = 2 })},
			disruption.NotNow, "has not processed PodDisruptionBudget web yet"},
		"its pods have controllers without a scale": {newRunningPod("web-1"), []policyv1.PodDisruptionBudget{newBudget("web", 0, 0, 0, 0, func(b *policyv1.PodDisruptionBudget) {
			b.Status.Conditions = []metav1.Condition{{Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason, Message: `found no controllers for pod "web-1"`}}
		})}, disruption.Uncounted, `found no controllers for pod "web-1"`},
		"its pods have no controller": {newRunningPod("web-1", func(p *corev1.Pod) { p.OwnerReferences = nil }), []policyv1.PodDisruptionBudget{newBudget("web", 1, 0, 0, 0)},
			disruption.Uncounted, "counts pods by their controllers, and the pod has none"},
		"a pod that has not started": {newRunningPod("web-1", func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }), []policyv1.PodDisruptionBudget{newBudget("web", 0, 1, 1, 0)}, "", ""},
		"a pod that has finished":    {newRunningPod("web-1", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), []policyv1.PodDisruptionBudget{newBudget("web", 0, 1, 1, 0)}, "", ""},
		"a pod that is being deleted": {newRunningPod("web-1", func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(metav1.Now()) }),
			[]policyv1.PodDisruptionBudget{newBudget("web", 0, 1, 1, 0)}, "", ""},
		"of another namespace": {newRunningPod("web-1"), []policyv1.PodDisruptionBudget{newBudget("web", 1, 1, 1, 0, func(b *policyv1.PodDisruptionBudget) { b.Namespace = "bank" })}, "", ""},
		"of other labels":      {newRunningPod("web-1", func(p *corev1.Pod) { p.Labels = map[string]string{"app": "db"} }), []policyv1.PodDisruptionBudget{newBudget("web", 1, 1, 1, 0)}, "", ""},
		"with no selector":     {newRunningPod("web-1"), []policyv1.PodDisruptionBudget{newBudget("web", 1, 1, 1, 0, func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector = nil })}, "", ""},
		"a pod without labels": {newRunningPod("web-1", func(p *corev1.Pod) { p.Labels = nil }), []policyv1.PodDisruptionBudget{newBudget("web", 1, 1, 1, 0, everything)}, disruption.Never, "web"},
		"with a wrong selector": {newRunningPod("web-1"), []policyv1.PodDisruptionBudget{newBudget("ok", 3, 2, 3, 1), newBudget("wrong", 1, 1, 1, 0, func(b *policyv1.PodDisruptionBudget) {
			b.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Like"}}}
		})}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := disruption.New(c.budgets).FindBlock(&c.pod)
			if (got == nil) != (c.cause == "") {
				t.Fatalf("want %q, got %+v", c.cause, got)
			}
			if got == nil {
				return
			}
			if got.Cause != c.cause || !strings.Contains(got.Text, c.text) || got.IsPersistent() == (c.cause == disruption.NotNow) {
				t.Errorf("want %s and %q: %+v", c.cause, c.text, got)
			}
			if catalog.FindRow(string(got.Cause)) == nil {
				t.Errorf("the catalogue has no row %s", got.Cause)
			}
		})
	}
}

// TestFind expects pods with the same budgets and cause in one block.
func TestFind(t *testing.T) {
	other := newBudget("db", 1, 1, 1, 0, func(b *policyv1.PodDisruptionBudget) { b.Namespace = "bank" })
	pods := []corev1.Pod{
		newRunningPod("web-2"), newRunningPod("web-1"), newRunningPod("web-3", setUnready),
		newRunningPod("db", func(p *corev1.Pod) { p.Namespace = "bank" }), newRunningPod("free", func(p *corev1.Pod) { p.Namespace = "free" }),
	}
	var got []string
	for _, b := range disruption.New([]policyv1.PodDisruptionBudget{newBudget("web", 2, 3, 3, 0), other}).FindBlocks(pods) {
		got = append(got, b.Namespace+" "+strings.Join(b.Pods, ",")+" "+strings.Join(b.Budgets, ","))
	}
	if want := []string{"bank db db", "shop web-1,web-2 web", "shop web-3 web"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
