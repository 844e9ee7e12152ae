package agent

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/secondary"
)

// Condition is the content of a Node's condition NetworksReady.
type Condition struct {
	Status          corev1.ConditionStatus
	Reason, Message string
}

func newUnknownCondition() Condition {
	return Condition{corev1.ConditionFalse, v1alpha1.ReasonInterfacesUnknown, "croft's operator has not listed the node's interfaces: not all of them are attached yet"}
}

// newFailedCondition returns the verdict for a failed change.
func newFailedCondition(errs ...error) Condition {
	return Condition{corev1.ConditionFalse, v1alpha1.ReasonLinkFailed, joinLines(errors.Join(errs...))}
}

// evaluateLinks returns the verdict when no more changes are possible now.
func evaluateLinks(networks []secondary.NodeNetwork, p Plan, errs []error) Condition {
	switch {
	case len(errs) > 0:
		return newFailedCondition(errs...)
	case len(p.Missing) > 0:
		return Condition{corev1.ConditionFalse, v1alpha1.ReasonLinkMissing, "the node has no interface for " + strings.Join(p.Missing, ", ")}
	case len(p.Steps) > 0:
		return Condition{corev1.ConditionFalse, v1alpha1.ReasonLinkFailed, "another program on the node reverts this: " + p.Steps[0].String()}
	}
	names := make([]string, len(networks))
	for i, n := range networks {
		names[i] = secondary.LinkName(n.Network)
	}
	return Condition{corev1.ConditionTrue, v1alpha1.ReasonLinksReady, strings.Join(names, ", ")}
}

// readCondition returns the current verdict of a Node, or an empty one.
func readCondition(node *corev1.Node) Condition {
	i := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == v1alpha1.ConditionNetworksReady })
	if i < 0 {
		return Condition{}
	}
	c := &node.Status.Conditions[i]
	return Condition{c.Status, c.Reason, c.Message}
}

// buildPatch returns the strategic merge patch of a Node's status that changes the verdict. It
// contains only this condition.
func buildPatch(before, after Condition, now time.Time) ([]byte, error) {
	condition := map[string]any{
		"type": v1alpha1.ConditionNetworksReady, "status": after.Status, "reason": after.Reason, "message": after.Message,
		"lastHeartbeatTime": metav1.NewTime(now),
	}
	if before.Status != after.Status {
		condition["lastTransitionTime"] = metav1.NewTime(now)
	}
	return json.Marshal(map[string]any{"status": map[string]any{"conditions": []any{condition}}})
}

func joinLines(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
