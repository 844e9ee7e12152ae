package why_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/diagnose/why"
	"croft.dev/croft/internal/network/boot"
)

// TestLatency expects the time that a Ready node took, starting with its NodeClaim if no
// pod is known. It expects no time for a node that is not Ready.
func TestLatency(t *testing.T) {
	created := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	at := func(seconds int) metav1.Time {
		return metav1.NewTime(created.Add(time.Duration(seconds) * time.Second))
	}
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", CreationTimestamp: at(0)},
		Spec: corev1.PodSpec{NodeName: "node-1"},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled,
			Status: corev1.ConditionTrue, LastTransitionTime: at(58)}}}}
	for name, c := range map[string]struct {
		ready corev1.ConditionStatus
		pods  []corev1.Pod
		want  string
	}{
		"with its pod": {corev1.ConditionTrue, []corev1.Pod{pod},
			"it took 57s from the pod that needed it to Ready; " +
				"22s of them in ready (network plugin starts, node turns Ready)"},
		"without": {corev1.ConditionTrue, nil,
			"it took 53s from its NodeClaim to Ready; " +
				"22s of them in ready (network plugin starts, node turns Ready)"},
		"not ready": {corev1.ConditionFalse, []corev1.Pod{pod}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			story := why.ExplainSnapshot(&why.Snapshot{
				Target: why.Target{Kind: "node", Name: "node-1"}, Pods: c.pods,
				Nodes: []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "node-1", CreationTimestamp: at(35)},
					Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady,
						Status: c.ready, LastTransitionTime: at(57)}}}}},
				Claims: []karpenterv1.NodeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "apps-1",
					CreationTimestamp: at(4)},
					Status: karpenterv1.NodeClaimStatus{NodeName: "node-1"}}},
			})
			if story.Latency != c.want {
				t.Errorf("got %q, want %q", story.Latency, c.want)
			}
		})
	}
}

// TestLatencyOfBoot expects the times that croft's agent recorded on the node.
func TestLatencyOfBoot(t *testing.T) {
	created := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	at := func(seconds int) metav1.Time {
		return metav1.NewTime(created.Add(time.Duration(seconds) * time.Second))
	}
	claim := karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "apps-1", CreationTimestamp: at(0)},
		Status: karpenterv1.NodeClaimStatus{NodeName: "node-1"}}
	claim.Status.Conditions = slices.Grow(claim.Status.Conditions, 1)[:1] // avoids the type's name: its module is not required by croft
	launched := &claim.Status.Conditions[0]
	launched.Type, launched.Status, launched.LastTransitionTime = karpenterv1.ConditionTypeLaunched, metav1.ConditionTrue, at(4)
	times := boot.Times{boot.VMInitialized: at(14).Time, boot.CloudInitFinalStart: at(20).Time, boot.CloudInitFinalFinish: at(42).Time}
	story := why.ExplainSnapshot(&why.Snapshot{
		Target: why.Target{Kind: "node", Name: "node-1"},
		Nodes: []corev1.Node{{
			ObjectMeta: metav1.ObjectMeta{Name: "node-1", CreationTimestamp: at(47),
				Annotations: map[string]string{v1alpha1.BootAnnotation: boot.Encode(times)}},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady,
				Status: corev1.ConditionTrue, LastTransitionTime: at(57)}}},
		}},
		Claims: []karpenterv1.NodeClaim{claim},
	})
	const want = "it took 57s from its NodeClaim to Ready; 43s of them in boot (instance boots, kubelet registers), " +
		"and 22s of these in user data (user data runs)"
	if story.Latency != want {
		t.Errorf("got %q, want %q", story.Latency, want)
	}
}
