package platform

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/controller/outcome"
	"croft.dev/croft/internal/operate/controller/status"
)

// writeStatus writes the status after a reconcile that ended with err. It returns Ready if
// that has changed and is written.
func (c *Controller) writeStatus(ctx context.Context, before, platform *v1alpha1.Platform, err error) (*metav1.Condition, error) {
	if c.retries.IsRacing(platform.Name, err) {
		return nil, nil
	}
	summarizeConditions(platform, err)
	if err := c.status.Patch(ctx, before, platform); err != nil {
		return nil, err
	}
	return status.FindChanged(&before.Status.Status, &platform.Status.Status, v1alpha1.ConditionReady), nil
}

// summarizeConditions sets the conditions that follow from the others, and from the error of the
// reconcile.
func summarizeConditions(platform *v1alpha1.Platform, err error) {
	st := &platform.Status.Status
	status.SetReady(st, platform.Generation, v1alpha1.ConditionAccepted, v1alpha1.ConditionPlacementReady, v1alpha1.ConditionApplied)
	status.SetProgress(st, platform.Generation, outcome.NeedsPerson(err))
}

// reportApplied sets Applied to the result of the writes.
func reportApplied(platform *v1alpha1.Platform, err error) {
	value, reason, message := metav1.ConditionTrue, v1alpha1.ReasonApplied, ""
	if err != nil {
		value, reason, message = metav1.ConditionFalse, outcome.Reason(err), err.Error()
	}
	status.Set(&platform.Status.Status, platform.Generation, v1alpha1.ConditionApplied, value, reason, message)
}
