package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// newBudget returns a PodDisruptionBudget of tenant-b for pods with the label app=NAME.
func newBudget(app, name string, edits ...func(*policyv1.PodDisruptionBudgetSpec)) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-b", Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
		},
	}
	for _, edit := range edits {
		edit(&b.Spec)
	}
	return b
}

// testHeldNode deletes the node of a pod, and expects `croft why` to name the budgets that block
// the deletion. The node is deleted once the budgets are.
func (c *faultyCluster) testHeldNode(t *testing.T, id, text string, pod *corev1.Pod, budgets ...client.Object) {
	t.Helper()
	pod.Labels = map[string]string{"app": pod.Name}
	createObjects(t, c.newMemberClient(t, "team-b"), append(budgets, pod)...)
	t.Cleanup(func() { c.deleteObjects(t, append(budgets, pod)...) })
	pod = c.awaitRunning(t, pod)
	claim := c.findNodeClaim(t, pod.Spec.NodeName)
	c.deleteObjects(t, claim)
	story := c.awaitCause(t, id, "", "node/"+pod.Spec.NodeName)
	if !strings.Contains(story.First.Symptom, text) {
		t.Errorf("the symptom does not name what blocks it: %s", story.First.Symptom)
	}
	c.awaitCause(t, id, "", "nodeclaim/"+claim.Name)
	c.deleteObjects(t, budgets...)
	c.awaitDeletion(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: pod.Spec.NodeName}})
}

func testWhyHeld(t *testing.T, c *faultyCluster) {
	c.testHeldNode(t, "budget-never-allows", "PodDisruptionBudget held requires 1 ready pods of 1", newNginxPod("tenant-b", "held"), newBudget("held", "held"))
}

// testWhyBudgetsOverlap tests two budgets that both allow an eviction.
func testWhyBudgetsOverlap(t *testing.T, c *faultyCluster) {
	none := func(s *policyv1.PodDisruptionBudgetSpec) { s.MinAvailable = ptr.To(intstr.FromInt32(0)) }
	c.testHeldNode(t, "budgets-overlap", "PodDisruptionBudgets one and two select the same pod", newNginxPod("tenant-b", "twice"), newBudget("twice", "one", none), newBudget("twice", "two", none))
}

// testWhyBudgetUncounted tests a budget with a percentage for a pod without a controller.
func testWhyBudgetUncounted(t *testing.T, c *faultyCluster) {
	half := func(s *policyv1.PodDisruptionBudgetSpec) {
		s.MinAvailable, s.MaxUnavailable = nil, ptr.To(intstr.FromString("50%"))
	}
	c.testHeldNode(t, "budget-uncounted", "PodDisruptionBudget alone allows no eviction", newNginxPod("tenant-b", "alone"), newBudget("alone", "alone", half))
}

// testWhyDeletion blocks the deletion of a namespace with a finalizer and with an APIService
// without a server.
func testWhyDeletion(t *testing.T, c *faultyCluster) {
	service := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1.nobody.example.org"},
		"spec": map[string]any{
			"group": "nobody.example.org", "version": "v1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100), "insecureSkipTLSVerify": true,
			"service": map[string]any{"namespace": "kube-system", "name": "nobody"},
		},
	}}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "leaving"}}
	held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "leaving", Name: "held", Finalizers: []string{"example.org/x"}}}
	createObjects(t, c.admin, namespace, held, service)
	t.Cleanup(func() { c.deleteObjects(t, service) })
	c.deleteObjects(t, namespace)
	c.awaitStep(t, "api-unavailable", "namespace/leaving")
	if story, _ := c.explainAs(t, "", "namespace/leaving"); !strings.Contains(fmt.Sprint(story.Steps), "apiservice/v1.nobody.example.org") {
		t.Errorf("the APIService is not named: %+v", story.Steps)
	}
	c.deleteObjects(t, service)
	c.awaitStep(t, "finalizer-held", "namespace/leaving")
	awaitCondition(t, patience, "croft why to name the object", func(context.Context) error {
		story, out := c.explainAs(t, "", "namespace/leaving")
		if !strings.Contains(fmt.Sprint(story.Steps), "configmaps/held in leaving") {
			return fmt.Errorf("it prints %s", out)
		}
		return nil
	})
	c.awaitStep(t, "deletion-waits", "namespace/leaving")
	c.awaitStep(t, "finalizer-held", "configmap/held", "-n", "leaving")
	if err := c.admin.Patch(t.Context(), held, client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`))); err != nil {
		t.Fatal(err)
	}
	c.awaitDeletion(t, namespace)
}

// findNodeClaim returns the NodeClaim of a node.
func (c *cluster) findNodeClaim(t testing.TB, node string) *karpenterv1.NodeClaim {
	t.Helper()
	var found *karpenterv1.NodeClaim
	awaitCondition(t, moments, "the NodeClaim of "+node, func(ctx context.Context) error {
		var claims karpenterv1.NodeClaimList
		if err := c.admin.List(ctx, &claims); err != nil {
			return err
		}
		for i := range claims.Items {
			if claims.Items[i].Status.NodeName == node {
				found = &claims.Items[i]
				return nil
			}
		}
		return fmt.Errorf("none of %d is", len(claims.Items))
	})
	return found
}
