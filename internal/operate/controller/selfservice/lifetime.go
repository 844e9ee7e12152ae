package selfservice

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/operate/controller/event"
	"croft.dev/croft/internal/operate/controller/status"
)

// The times before the end at which the team gets an event. firstNotice is also the least time between a
// change of the limit by the platform and an end that follows from it.
const (
	firstNotice = 24 * time.Hour
	lastNotice  = time.Hour
)

// findEnd returns the end of a namespace, or the zero time if it has none. limited is set if the end
// that the team wrote is later than the limit.
func findEnd(request *v1alpha1.TenantNamespace, maxLifetime time.Duration, now time.Time) (end time.Time, limited bool) {
	if request.Spec.Until != nil {
		end = request.Spec.Until.Time
	}
	if maxLifetime == 0 {
		return end, false
	}
	limit := request.CreationTimestamp.Add(maxLifetime)
	if request.Status.Tenant != "" {
		limit = postponeLimit(limit, request.Status.Until, now)
	}
	if end.IsZero() || end.After(limit) {
		return limit, !end.IsZero()
	}
	return end, false
}

// postponeLimit returns the limit of a namespace that exists. A lower limit ends no namespace without
// both notices: it is postponed to firstNotice from now, but not beyond the earlier end.
func postponeLimit(limit time.Time, before *metav1.Time, now time.Time) time.Time {
	earliest := now.Add(firstNotice)
	if before != nil && before.Time.Before(earliest) {
		earliest = before.Time
	}
	if limit.Before(earliest) {
		return earliest.Truncate(time.Second) // the API server stores seconds
	}
	return limit
}

// findNextStep returns the time until the next notice or the end, or 0 if there is no end.
func findNextStep(end, now time.Time) time.Duration {
	if end.IsZero() {
		return 0
	}
	for _, notice := range []time.Duration{firstNotice, lastNotice} {
		if wait := end.Add(-notice).Sub(now); wait > 0 {
			return wait
		}
	}
	return end.Sub(now)
}

// setEnding sets the condition Ending within 24 hours of the end, and removes it otherwise.
func setEnding(request *v1alpha1.TenantNamespace, end, now time.Time) {
	left := end.Sub(now)
	if end.IsZero() || left > firstNotice {
		meta.RemoveStatusCondition(&request.Status.Conditions, v1alpha1.ConditionEnding)
		return
	}
	reason := v1alpha1.ReasonEndsWithinDay
	if left <= lastNotice {
		reason = v1alpha1.ReasonEndsWithinHour
	}
	status.Set(&request.Status.Status, request.Generation, v1alpha1.ConditionEnding, metav1.ConditionTrue, reason, fmt.Sprintf(
		"namespace %s is deleted with everything in it at %s: to keep it longer, write a later spec.until into TenantNamespace %s/%s",
		request.Name, formatTime(end), request.Namespace, request.Name))
}

func explainLimit(end time.Time) string {
	return "spec.until is later than the platform's selfService.maxLifetime allows: the namespace ends at " + formatTime(end)
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// toTime returns nil for the zero time.
func toTime(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t}
}

// endNamespace deletes a namespace whose end has passed, and then its request. The request is deleted only
// as it was read, so that an extension that arrives at the same time wins.
func (c *Controller) endNamespace(ctx context.Context, request *v1alpha1.TenantNamespace, tenant *estate.Tenant) error {
	current := &client.Preconditions{UID: &request.UID, ResourceVersion: &request.ResourceVersion}
	if err := c.live.Delete(ctx, request, current, client.DryRunAll); err != nil {
		return client.IgnoreNotFound(err)
	}
	namespace := &corev1.Namespace{}
	err := c.live.Get(ctx, client.ObjectKey{Name: request.Name}, namespace)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read Namespace %s: %w", request.Name, err)
	}
	if err == nil && (facts{anchor: request.Namespace, tenant: tenant, existing: namespace}).isRetained() {
		if _, err := c.applier.Withdraw(ctx, namespace, tenant.Name, v1alpha1.DeletionDelete); err != nil {
			return err
		}
	}
	if err := c.live.Delete(ctx, request, current); err != nil {
		return client.IgnoreNotFound(err)
	}
	event.Emit(c.recorder, request, corev1.EventTypeNormal, v1alpha1.ReasonEnded, "Request", "namespace "+request.Name+" has ended and is deleted")
	log.FromContext(ctx).Info("deleted a namespace at its end", "tenant", tenant.Name, "namespace", request.Name)
	return nil
}
