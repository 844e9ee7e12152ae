package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/internal/declare/estate"
)

// newNginxPod returns a pod without placement.
func newNginxPod(namespace, name string, edits ...func(*corev1.PodSpec)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx:alpine"}}},
	}
	for _, edit := range edits {
		edit(&pod.Spec)
	}
	return pod
}

// tolerateEverything adds a toleration that is forbidden to pods of tenants.
func tolerateEverything(spec *corev1.PodSpec) {
	spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
}

// requireInstanceType requires an instance type by node affinity.
func requireInstanceType(name string) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: []string{name}},
				}}},
			},
		}}
	}
}

// newNginxDeployment returns a Deployment and its Service.
func newNginxDeployment(namespace string, replicas int32) (*appsv1.Deployment, *corev1.Service) {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "nginx", Labels: map[string]string{"app": "nginx"}}
	return &appsv1.Deployment{
			ObjectMeta: meta,
			Spec: appsv1.DeploymentSpec{
				Replicas: ptr.To(replicas),
				Selector: &metav1.LabelSelector{MatchLabels: meta.Labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels},
					Spec:       newNginxPod(namespace, "").Spec,
				},
			},
		}, &corev1.Service{
			ObjectMeta: meta,
			Spec:       corev1.ServiceSpec{Selector: meta.Labels, Ports: []corev1.ServicePort{{Port: 8080}}},
		}
}

// awaitRunningPods waits until n pods of a namespace run, and no others exist.
func (c *cluster) awaitRunningPods(t testing.TB, namespace string, n int) []corev1.Pod {
	t.Helper()
	var found []corev1.Pod
	seen := map[string]corev1.Pod{} // by name
	awaitCondition(t, patience, fmt.Sprintf("%d pods to run in %s", n, namespace), func(ctx context.Context) error {
		var pods corev1.PodList
		if err := c.admin.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
			return err
		}
		found = pods.Items
		for _, pod := range found {
			seen[pod.Name] = pod
		}
		for name, pod := range seen {
			if slices.ContainsFunc(found, func(p corev1.Pod) bool { return p.Name == name }) {
				continue
			}
			if err := c.recreateEvicted(ctx, &pod); err != nil {
				return err
			}
		}
		if len(pods.Items) != n {
			return fmt.Errorf("there are %d", len(pods.Items))
		}
		for i := range pods.Items {
			if err := checkRunning(&pods.Items[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return found
}

// awaitRunning waits until a pod runs, and returns it.
func (c *cluster) awaitRunning(t testing.TB, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	var last, live *corev1.Pod
	awaitCondition(t, patience, "a pod to run", func(ctx context.Context) error {
		live = &corev1.Pod{}
		if err := c.admin.Get(ctx, client.ObjectKeyFromObject(pod), live); err != nil {
			if apierrors.IsNotFound(err) && last != nil {
				err = errors.Join(err, c.recreateEvicted(ctx, last))
			}
			return err
		}
		last = live
		return checkRunning(live)
	})
	return live
}

// recreateEvicted re-creates a pod without a controller that kube-controller-manager
// evicted: it may observe a pod on a new node before it observes that Karpenter has removed the
// taint karpenter.sh/unregistered. A user would re-create it, too.
func (c *cluster) recreateEvicted(ctx context.Context, pod *corev1.Pod) error {
	if len(pod.OwnerReferences) > 0 {
		return nil
	}
	var evictions corev1.EventList
	err := c.admin.List(ctx, &evictions, client.InNamespace(pod.Namespace),
		client.MatchingFields{"involvedObject.uid": string(pod.UID), "reason": "TaintManagerEviction"})
	if err != nil || len(evictions.Items) == 0 {
		return err
	}
	again := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, Labels: pod.Labels, Annotations: pod.Annotations},
		Spec:       *pod.Spec.DeepCopy(),
	}
	again.Spec.NodeName = ""
	return c.admin.Create(ctx, again)
}

// checkRunning returns an error unless the pod runs.
func checkRunning(pod *corev1.Pod) error {
	if pod.DeletionTimestamp != nil {
		return fmt.Errorf("pod %s/%s is being deleted", pod.Namespace, pod.Name)
	}
	if pod.Status.Phase == corev1.PodRunning {
		return nil
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return fmt.Errorf("pod %s/%s is not scheduled: %s", pod.Namespace, pod.Name, condition.Message)
		}
	}
	return fmt.Errorf("pod %s/%s is %s", pod.Namespace, pod.Name, pod.Status.Phase)
}

// expectPlacement fails the test if a pod was not placed on the pool at its creation.
func expectPlacement(t testing.TB, pod *corev1.Pod, key, pool string) {
	t.Helper()
	if err := checkPlacement(pod, key, pool); err != nil {
		t.Errorf("pod %s/%s: %v", pod.Namespace, pod.Name, err)
	}
}

// awaitPlacement waits until the API server places the pods of a namespace. It reads policies and
// their bindings some moments after they are stored, and refuses pods that it does not place
// until then: a test that changes one waits for this before it creates pods.
func (c *cluster) awaitPlacement(t testing.TB, namespace, key, pool string) {
	t.Helper()
	awaitCondition(t, patience, "pods to be placed in "+namespace, func(ctx context.Context) error {
		pod := newNginxPod(namespace, "probe")
		if err := c.admin.Create(ctx, pod, client.DryRunAll); err != nil {
			return err
		}
		return checkPlacement(pod, key, pool)
	})
}

func checkPlacement(pod *corev1.Pod, key, pool string) error {
	if got := pod.Spec.NodeSelector[key]; got != pool {
		return fmt.Errorf("its nodeSelector has %s=%q, want %q", key, got, pool)
	}
	want := corev1.Toleration{Key: key, Operator: corev1.TolerationOpEqual, Value: pool}
	if !slices.Contains(pod.Spec.Tolerations, want) {
		return fmt.Errorf("its tolerations %+v lack %+v", pod.Spec.Tolerations, want)
	}
	return nil
}

// expectPool fails the test unless Karpenter created the pod's node for the pool, with an instance
// type that the pool allows, and with taints that keep all other pods off.
func (c *cluster) expectPool(t testing.TB, e *estate.Estate, pod *corev1.Pod, pool string) *corev1.Node {
	t.Helper()
	key, node := e.Platform.NodePoolKey, &corev1.Node{}
	c.getObject(t, "", pod.Spec.NodeName, node)
	if got := node.Labels[key]; got != pool {
		t.Errorf("pod %s/%s runs on node %s with the label %s=%q, want %q", pod.Namespace, pod.Name, node.Name, key, got, pool)
	}
	for _, effect := range []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute} {
		if want := (corev1.Taint{Key: key, Value: pool, Effect: effect}); !hasTaint(node, want) {
			t.Errorf("node %s has the taints %v, without %s", node.Name, node.Spec.Taints, want.ToString())
		}
	}
	instances := e.FindPool(pool).Instances
	if got := node.Labels[corev1.LabelInstanceTypeStable]; len(instances.InstanceTypes) > 0 && !slices.Contains(instances.InstanceTypes, got) {
		t.Errorf("node %s is a %s, want one of %v", node.Name, got, instances.InstanceTypes)
	}
	if got := getCapacityType(node); !slices.Contains(instances.CapacityTypes, got) {
		t.Errorf("node %s is %s, want one of %v", node.Name, got, instances.CapacityTypes)
	}
	c.awaitClaimedNode(t, node, pool)
	return node
}

func hasTaint(node *corev1.Node, want corev1.Taint) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Key == want.Key && taint.Value == want.Value && taint.Effect == want.Effect
	})
}

// awaitClaimedNode fails the test if Karpenter did not create the node for the NodePool. A pod may
// run on a node a moment before the NodeClaim's status names it.
func (c *cluster) awaitClaimedNode(t testing.TB, node *corev1.Node, pool string) {
	t.Helper()
	awaitCondition(t, moments, fmt.Sprintf("a NodeClaim of NodePool %s to name node %s", pool, node.Name), func(ctx context.Context) error {
		var claims karpenterv1.NodeClaimList
		err := c.admin.List(ctx, &claims, client.MatchingLabels{karpenterv1.NodePoolLabelKey: pool})
		named := slices.ContainsFunc(claims.Items, func(claim karpenterv1.NodeClaim) bool { return claim.Status.NodeName == node.Name })
		if err == nil && !named {
			err = fmt.Errorf("none of its %d NodeClaims does: Karpenter did not make the node", len(claims.Items))
		}
		return err
	})
}
