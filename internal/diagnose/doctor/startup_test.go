package doctor_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// TestStartupTaintBack fails if doctor does not report a startup taint of an initialized
// node, or reports one of a node that is still starting.
func TestStartupTaintBack(t *testing.T) {
	taint := corev1.Taint{Key: "node.cilium.io/agent-not-ready", Effect: corev1.TaintEffectNoExecute}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{karpenterv1.NodePoolLabelKey: "apps"}}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{taint}}}
	claim := &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", CreationTimestamp: metav1.NewTime(time.Now().Add(-time.Hour))}, Status: karpenterv1.NodeClaimStatus{NodeName: "n"}}
	claim.Spec.StartupTaints = []corev1.Taint{taint}
	if found := listFindings(t, "taints", node.DeepCopy(), claim.DeepCopy()); len(found) > 0 {
		t.Errorf("the node is starting, and it finds %q", found)
	}
	claim.StatusConditions().SetTrue(karpenterv1.ConditionTypeInitialized)
	const want = "Warning Node/n: it has the startup taint node.cilium.io/agent-not-ready:NoExecute again, after it was initialized"
	if found := listFindings(t, "taints", node, claim); !hasFinding(found, want) {
		t.Errorf("the taint is back, and it finds %q", found)
	}
}
