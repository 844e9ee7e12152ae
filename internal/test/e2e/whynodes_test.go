package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kwokv1alpha1 "sigs.k8s.io/karpenter/kwok/apis/v1alpha1"

	"croft.dev/croft/internal/diagnose/why"
)

func testWhyNodeClass(t *testing.T, c *faultyCluster) {
	pod := newNginxPod("classless", "pod")
	createObjects(t, c.newMemberClient(t, "team-classless"), pod)
	t.Cleanup(func() { c.deleteObjects(t, pod) })
	c.awaitCause(t, "node-class-not-found", "", "pod/pod", "-n", "classless")
	c.awaitCause(t, "node-class-not-found", "", "nodepool/classless")
	story := c.awaitCause(t, "no-pool", "team-classless", "pod/pod", "-n", "classless")
	if !slices.ContainsFunc(story.Steps, func(s why.Step) bool {
		return s.Verdict == why.Hidden && strings.Contains(s.Observation, "ask a platform admin")
	}) {
		t.Errorf("a tenant's story does not name whom to ask: %+v", story)
	}
}

func testWhyNotRegistered(t *testing.T, c *faultyCluster) {
	pod := newNginxPod("slow", "pod")
	createObjects(t, c.admin, pod)
	t.Cleanup(func() { c.deleteObjects(t, pod) })
	c.awaitStep(t, "not-registered", "pod/pod", "-n", "slow")
}

// agent is the key of a label and a startup taint of the platform's own NodePools. No agent
// removes the taint.
const agent = "example.org/agent"

func testWhyStartupTaint(t *testing.T, c *faultyCluster) {
	nodePool := newOwnPool()
	nodePool.Spec.Template.Spec.StartupTaints = []corev1.Taint{{Key: agent, Effect: corev1.TaintEffectNoSchedule}}
	pod := newNginxPod(metav1.NamespaceDefault, "platform", func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{agent: "own"} })
	createObjects(t, c.admin, nodePool, pod)
	t.Cleanup(func() { c.deleteObjects(t, pod, nodePool) })
	c.awaitStep(t, "startup-taint", "pod/platform", "-n", metav1.NamespaceDefault)
}

// testWhyUnregisteredTaint removes the taint with which nodes register, as a node image without
// support for Karpenter does.
func testWhyUnregisteredTaint(t *testing.T, c *faultyCluster) {
	nodePool := newOwnPool()
	nodePool.Name = "bare"
	nodePool.Spec.Template.Labels = map[string]string{agent: "bare"}
	policy := &admissionv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "bare"},
		Spec: admissionv1.MutatingAdmissionPolicySpec{
			ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionv1.MatchResources{
				ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{agent: "bare"}},
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"nodes"}},
				}}},
			},
			Mutations: []admissionv1.Mutation{{PatchType: admissionv1.PatchTypeJSONPatch, JSONPatch: &admissionv1.JSONPatch{
				Expression: `[JSONPatch{op: "remove", path: "/spec/taints"}]`,
			}}},
		},
	}
	binding := &admissionv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "bare"}, Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: "bare"},
	}
	createObjects(t, c.admin, policy, binding)
	t.Cleanup(func() { c.deleteObjects(t, binding, policy) })
	awaitCondition(t, moments, "the policy to hold", func(ctx context.Context) error {
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "dry", Labels: map[string]string{agent: "bare"}},
			Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: agent, Effect: corev1.TaintEffectNoSchedule}}},
		}
		if err := c.admin.Create(ctx, node, client.DryRunAll); err != nil {
			return err
		}
		if hasTaint(node, corev1.Taint{Key: agent, Effect: corev1.TaintEffectNoSchedule}) {
			return errors.New("a node keeps its taints")
		}
		return nil
	})
	// The pod is created after the removal: a pod that waits already could get a node at once.
	createObjects(t, c.admin, nodePool)
	t.Cleanup(func() { c.deleteObjects(t, nodePool) })
	pod := newNginxPod(metav1.NamespaceDefault, "bare", func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{agent: "bare"} })
	createObjects(t, c.admin, pod)
	t.Cleanup(func() { c.deleteObjects(t, pod) })
	claim := c.findNodeClaim(t, c.awaitRunning(t, pod).Spec.NodeName)
	c.awaitCause(t, "unregistered-taint-missing", "", "nodeclaim/"+claim.Name)
}

func testWhyNodeClassTerminating(t *testing.T, c *faultyCluster) {
	slow := &kwokv1alpha1.KWOKNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "slow"}}
	keep := func(finalizers string) {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": `+finalizers+`}}`))
		if err := c.admin.Patch(t.Context(), slow, patch); err != nil {
			t.Fatal(err)
		}
	}
	keep(`["example.org/kept"]`)
	c.deleteObjects(t, slow)
	c.awaitCause(t, "node-class-terminating", "", "nodepool/slow")
	keep(`null`)
}

func testWhyNodeClassUnknown(t *testing.T, c *faultyCluster) {
	slow := &kwokv1alpha1.KWOKNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "slow"}}
	unknown := fmt.Sprintf(`{"status": {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "AwaitingReconciliation", "message": "", "lastTransitionTime": %q}]}}`,
		metav1.Now().UTC().Format("2006-01-02T15:04:05Z"))
	if err := c.admin.Status().Patch(t.Context(), slow, client.RawPatch(types.MergePatchType, []byte(unknown))); err != nil {
		t.Fatal(err)
	}
	c.awaitCause(t, "node-class-unknown", "", "nodepool/slow")
}

// testWhyWithoutKubelet stops the simulated nodes, and writes the kubelets' status itself.
func testWhyWithoutKubelet(t *testing.T, c *faultyCluster) {
	deployment, _ := newNginxDeployment("tenant-a", 1)
	createObjects(t, c.newMemberClient(t, "team-a"), deployment)
	t.Cleanup(func() { c.deleteObjects(t, deployment) })
	node := c.awaitRunningPods(t, "tenant-a", 1)[0].Spec.NodeName
	if err := c.Stop("kwok"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Start("kwok"); err != nil {
			t.Error(err)
		}
	})
	scale := client.RawPatch(types.MergePatchType, []byte(`{"spec": {"replicas": 2}}`))
	if err := c.admin.Patch(t.Context(), &appsv1.Deployment{ObjectMeta: deployment.ObjectMeta}, scale); err != nil {
		t.Fatal(err)
	}
	var pod *corev1.Pod
	awaitCondition(t, patience, "a pod to be placed", func(ctx context.Context) error {
		var pods corev1.PodList
		if err := c.admin.List(ctx, &pods, client.InNamespace("tenant-a")); err != nil {
			return err
		}
		for i := range pods.Items {
			if pods.Items[i].Spec.NodeName == node && pods.Items[i].Status.Phase == corev1.PodPending {
				pod = &pods.Items[i]
				return nil
			}
		}
		return fmt.Errorf("none of %d is", len(pods.Items))
	})
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "nginx", State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: `Back-off pulling image "nginx:alpine"`},
	}}}
	if err := c.admin.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	c.awaitCause(t, "image-pull", "team-a", "pod/"+pod.Name, "-n", "tenant-a")
	c.awaitCause(t, "image-pull", "team-a", "deployment/nginx", "-n", "tenant-a")

	var live corev1.Node
	c.getObject(t, "", node, &live)
	for i := range live.Status.Conditions {
		if live.Status.Conditions[i].Type == corev1.NodeReady {
			live.Status.Conditions[i].Status, live.Status.Conditions[i].Reason = corev1.ConditionFalse, "KubeletNotReady"
			live.Status.Conditions[i].Message = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized"
		}
	}
	if err := c.admin.Status().Update(t.Context(), &live); err != nil {
		t.Fatal(err)
	}
	c.awaitCause(t, "cni-not-initialized", "", "node/"+node)
}
