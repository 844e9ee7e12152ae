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

// verdict is the content of a Node's condition PodNetworksReady. The zero value is no
// condition.
type verdict struct {
	holds           corev1.ConditionStatus
	reason, message string
}

func waits(reason, message string) verdict { return verdict{corev1.ConditionFalse, reason, message} }

func (v verdict) ready() bool { return v.holds == corev1.ConditionTrue }

// judge returns the condition of a node: the first thing that pods must wait for. Once the
// node is released the condition stays True, because it only covers the time until then.
func judge(s *seen) verdict {
	listed := s.node.Annotations[v1alpha1.NodeNetworksAnnotation]
	switch {
	case !tainted(s.node) && s.node.Labels[karpenterv1.NodeRegisteredLabelKey] == "true":
		if before := verdictOf(s.node); before.ready() {
			return before
		}
		return verdict{corev1.ConditionTrue, v1alpha1.ReasonPodNetworksReady, "the node takes pods already"}
	case !registered(s.claim):
		return waits(v1alpha1.ReasonNotRegistered, "the node's NodeClaim is not registered")
	case s.gaveUp:
		return verdict{corev1.ConditionTrue, v1alpha1.ReasonNotAwaited, "the pool waits for its networks no more"}
	case len(s.attached) == 0 || listed != s.list():
		return waits(v1alpha1.ReasonInterfacesPending, "not all of the node's interfaces are attached")
	case !ready(s.node):
		return waits(v1alpha1.ReasonLinksPending, linksPending(s.node))
	case s.unread != "":
		return waits(v1alpha1.ReasonPluginsPending, s.unread)
	}
	names, pending := s.plugins.on(s.node)
	switch {
	case len(pending) > 0:
		return waits(v1alpha1.ReasonPluginsPending, strings.Join(pending, "; "))
	case len(names) == 0:
		return verdict{corev1.ConditionTrue, v1alpha1.ReasonPodNetworksReady, "no DaemonSet was waited for"}
	default:
		return verdict{corev1.ConditionTrue, v1alpha1.ReasonPodNetworksReady, strings.Join(names, ", ")}
	}
}

// linksPending returns the condition of croft's agent, or that the agent has not written
// one.
func linksPending(node *corev1.Node) string {
	if c := conditionOf(node, v1alpha1.ConditionNetworksReady); c != nil {
		return fmt.Sprintf("%s: %s", c.Reason, c.Message)
	}
	return "croft's agent has written nothing: it does not run on the node, or not yet"
}

func conditionOf(node *corev1.Node, kind corev1.NodeConditionType) *corev1.NodeCondition {
	i := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == kind })
	if i < 0 {
		return nil
	}
	return &node.Status.Conditions[i]
}

// verdictOf returns the current condition of a Node.
func verdictOf(node *corev1.Node) verdict {
	if c := conditionOf(node, v1alpha1.ConditionPodNetworksReady); c != nil {
		return verdict{c.Status, c.Reason, c.Message}
	}
	return verdict{}
}

// say writes the condition if it differs, and returns the Node with it. The patch contains
// only this condition.
func (c *Controller) say(ctx context.Context, node *corev1.Node, v verdict) (*corev1.Node, error) {
	before := verdictOf(node)
	if before == v {
		return node, nil
	}
	now := metav1.NewTime(c.now())
	condition := map[string]any{
		"type": v1alpha1.ConditionPodNetworksReady, "status": v.holds, "reason": v.reason, "message": v.message, "lastHeartbeatTime": now,
	}
	if before.holds != v.holds {
		condition["lastTransitionTime"] = now
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []any{condition}}})
	if err != nil {
		return nil, err
	}
	after := node.DeepCopy()
	return after, c.client.Status().Patch(ctx, after, client.RawPatch(types.StrategicMergePatchType, patch))
}
