package secondarynetwork

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/secondary"
	"croft.dev/croft/internal/operate/controller/event"
	"croft.dev/croft/internal/operate/controller/status"
)

const (
	// settle is the delay after a change of an IPPool. Each pod that is created or deleted
	// changes one, so changes within that time are handled together.
	settle = 5 * time.Second
	// absent is the interval of checks for whereabouts.
	absent = 30 * time.Second
)

// updateAddresses writes the number of used addresses of a network to its status and the metrics.
// Without whereabouts it writes nothing. again is the time until the next check for
// whereabouts, or zero if IPPools are watched.
func (c *Controller) updateAddresses(ctx context.Context, n *v1alpha1.SecondaryNetwork) (again time.Duration, err error) {
	watched, err := c.pools.Look(ctx)
	if err != nil {
		return absent, err
	}
	if len(watched) == 0 {
		meta.RemoveStatusCondition(&n.Status.Conditions, v1alpha1.ConditionAddressesAvailable)
		deleteMetrics(n.Name)
		return absent, nil
	}
	pools := &unstructured.UnstructuredList{}
	pools.SetGroupVersionKind(secondary.IPPool)
	if err := c.client.List(ctx, pools); err != nil {
		return absent, fmt.Errorf("list IPPools: %w", err)
	}
	uses := secondary.CountUse(n.Name, &n.Spec, pools.Items)
	updateMetrics(n.Name, uses)
	value, reason, message := evaluateAddresses(uses)
	status.Set(&n.Status, n.Generation, v1alpha1.ConditionAddressesAvailable, value, reason, message)
	return 0, nil
}

// evaluateAddresses returns the condition for the used addresses of a network. The message contains
// numbers only if addresses run out: otherwise every pod would change the status.
func evaluateAddresses(uses []secondary.Use) (value metav1.ConditionStatus, reason, message string) {
	value, reason = metav1.ConditionTrue, v1alpha1.ReasonAddressesAvailable
	var lines []string
	for _, u := range uses {
		switch {
		case u.IsFull():
			value, reason = metav1.ConditionFalse, v1alpha1.ReasonRangeFull
		case !u.IsNearlyFull():
			continue
		case value == metav1.ConditionTrue:
			reason = v1alpha1.ReasonRangeNearlyFull
		}
		lines = append(lines, u.String())
	}
	if len(lines) == 0 {
		return value, reason, ""
	}
	return value, reason, strings.Join(append(lines, secondary.MoreAddresses), "\n")
}

// emitCondition emits an event when addresses begin to run out, or have run out.
func (c *Controller) emitCondition(before, after *v1alpha1.SecondaryNetwork) {
	was := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionAddressesAvailable)
	is := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionAddressesAvailable)
	if is == nil || is.Reason == v1alpha1.ReasonAddressesAvailable || was != nil && was.Reason == is.Reason {
		return
	}
	event.Emit(c.recorder, after, corev1.EventTypeWarning, is.Reason, "Allocate", is.Message)
}
