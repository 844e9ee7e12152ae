package nodenetworks

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
)

// nodeCondition is the content of a Node's condition PodNetworksReady. The zero value is no
// condition.
type nodeCondition struct {
	status          corev1.ConditionStatus
	reason, message string
}

func newWaiting(reason, message string) nodeCondition {
	return nodeCondition{corev1.ConditionFalse, reason, message}
}

func (v nodeCondition) isTrue() bool { return v.status == corev1.ConditionTrue }

// evaluateNode returns the condition of a node: the first thing that pods must wait for. Once the
// node is released the condition stays True, because it only covers the time until then.
func evaluateNode(s *observation) nodeCondition {
	listed := s.node.Annotations[v1alpha1.NodeNetworksAnnotation]
	switch {
	case !hasNetworksTaint(s.node) && s.node.Labels[karpenterv1.NodeRegisteredLabelKey] == "true":
		if before := readCondition(s.node); before.isTrue() {
			return before
		}
		return nodeCondition{corev1.ConditionTrue, v1alpha1.ReasonPodNetworksReady, "the node accepts pods already"}
	case !isRegistered(s.claim):
		return newWaiting(v1alpha1.ReasonNotRegistered, "the node's NodeClaim is not registered")
	case s.gaveUp:
		return nodeCondition{corev1.ConditionTrue, v1alpha1.ReasonNotAwaited, "the pool no longer waits for its networks"}
	case len(s.attached) == 0 || listed != s.getAnnotation():
		return newWaiting(v1alpha1.ReasonInterfacesPending, "not all of the node's interfaces are attached")
	case !hasReadyNetworks(s.node):
		return newWaiting(v1alpha1.ReasonLinksPending, explainLinks(s.node))
	case s.unreadableReason != "":
		return newWaiting(v1alpha1.ReasonPluginsPending, s.unreadableReason)
	}
	names, pending := s.plugins.checkNode(s.node)
	switch {
	case len(pending) > 0:
		return newWaiting(v1alpha1.ReasonPluginsPending, strings.Join(pending, "; "))
	case len(names) == 0:
		return nodeCondition{corev1.ConditionTrue, v1alpha1.ReasonPodNetworksReady, "there was no DaemonSet to wait for"}
	default:
		return nodeCondition{corev1.ConditionTrue, v1alpha1.ReasonPodNetworksReady, strings.Join(names, ", ")}
	}
}

// explainLinks returns the condition of croft's agent, or that the agent has not written
// one.
func explainLinks(node *corev1.Node) string {
	if c := findCondition(node, v1alpha1.ConditionNetworksReady); c != nil {
		return fmt.Sprintf("%s: %s", c.Reason, c.Message)
	}
	return "croft's agent has reported nothing: it does not run on the node, or has not started yet"
}

func findCondition(node *corev1.Node, kind corev1.NodeConditionType) *corev1.NodeCondition {
	i := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == kind })
	if i < 0 {
		return nil
	}
	return &node.Status.Conditions[i]
}

// readCondition returns the current condition of a Node.
func readCondition(node *corev1.Node) nodeCondition {
	if c := findCondition(node, v1alpha1.ConditionPodNetworksReady); c != nil {
		return nodeCondition{c.Status, c.Reason, c.Message}
	}
	return nodeCondition{}
}

// writeCondition writes the condition if it differs, and returns the Node with it. The patch contains
// only this condition.
func (c *Controller) writeCondition(ctx context.Context, node *corev1.Node, v nodeCondition) (*corev1.Node, error) {
	before := readCondition(node)
	if before == v {
		return node, nil
	}
	now := metav1.NewTime(c.clock.Now())
	condition := map[string]any{
		"type": v1alpha1.ConditionPodNetworksReady, "status": v.status, "reason": v.reason, "message": v.message, "lastHeartbeatTime": now,
	}
	if before.status != v.status {
		condition["lastTransitionTime"] = now
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []any{condition}}})
	if err != nil {
		return nil, err
	}
	after := node.DeepCopy()
	return after, c.client.Status().Patch(ctx, after, client.RawPatch(types.StrategicMergePatchType, patch))
}
