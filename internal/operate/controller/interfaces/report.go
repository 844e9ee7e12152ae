package interfaces

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/controller/event"
	"croft.dev/croft/internal/operate/controller/status"
)

// many is the maximum number of problems in a condition.
const many = 5

// writeConditions writes the condition InterfacesReady of each network: the problems that a retry is
// not expected to fix.
func (c *Controller) writeConditions(ctx context.Context, networks []*v1alpha1.SecondaryNetwork, r *Result, failed error) error {
	var errs []error
	for _, n := range networks {
		value, reason, message := metav1.ConditionTrue, v1alpha1.ReasonInterfacesKept, ""
		if failed != nil {
			value, reason, message = metav1.ConditionUnknown, v1alpha1.ReasonAccountUnreachable, shortenError(failed)
		} else if problems := listProblems(n.Name, r); len(problems) > 0 {
			value, reason, message = metav1.ConditionFalse, v1alpha1.ReasonInterfacesMissing, formatProblems(problems)
		}
		after := n.DeepCopy()
		status.Set(&after.Status, n.Generation, v1alpha1.ConditionInterfacesReady, value, reason, message)
		status.SetNetworkReady(&after.Status, n.Status.ObservedGeneration)
		written, err := c.patchStatus(ctx, n, after)
		if written && value != metav1.ConditionTrue {
			event.Emit(c.recorder, after, corev1.EventTypeWarning, reason, "Attach", message)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// removeConditions removes the condition from networks that no pool on AWS uses any more.
func (c *Controller) removeConditions(ctx context.Context, networks []*v1alpha1.SecondaryNetwork) error {
	var errs []error
	for _, n := range networks {
		if meta.FindStatusCondition(n.Status.Conditions, v1alpha1.ConditionInterfacesReady) == nil {
			continue
		}
		after := n.DeepCopy()
		meta.RemoveStatusCondition(&after.Status.Conditions, v1alpha1.ConditionInterfacesReady)
		status.SetNetworkReady(&after.Status, n.Status.ObservedGeneration)
		_, err := c.patchStatus(ctx, n, after)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// patchStatus writes a status if it has changed, and reports whether it did. Package
// secondarynetwork writes to the same list of conditions. On a conflict patch does nothing,
// and the next pass writes.
func (c *Controller) patchStatus(ctx context.Context, before, after *v1alpha1.SecondaryNetwork) (written bool, err error) {
	if equality.Semantic.DeepEqual(before.Status, after.Status) {
		return false, nil
	}
	err = c.client.Status().Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("patch status of secondary network %s: %w", before.Name, err)
	}
	return true, nil
}

// listProblems returns the problems of a network, for people.
func listProblems(network string, r *Result) []string {
	var all []string
	for _, p := range r.Plan.Problems {
		if slices.Contains(p.Networks, network) {
			all = append(all, "pool "+p.Pool+": "+p.Message)
		}
	}
	for _, f := range r.Failures {
		if f.Network == network {
			all = append(all, f.Object+": "+shortenError(f.Err))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func formatProblems(problems []string) string {
	if len(problems) <= many {
		return strings.Join(problems, "\n")
	}
	return fmt.Sprintf("%s\nand %d more", strings.Join(problems[:many], "\n"), len(problems)-many)
}

// shortenError removes the parts of an SDK error that differ with each call, so that the same
// failure does not change the condition.
func shortenError(err error) string {
	text := err.Error()
	if at := strings.LastIndex(text, "api error "); at >= 0 {
		text = text[at+len("api error "):]
	}
	text, _, _ = strings.Cut(text, " Encoded authorization failure message:")
	return text
}

// emitAttached emits an event for each node whose interfaces are all attached now, with the
// duration.
func (c *Controller) emitAttached(list []karpenterv1.NodeClaim, r *Result) {
	still := map[string]bool{}
	for _, uid := range r.Plan.Waiting {
		// A claim that only lacks a setting has its interfaces, and its node is informed of
		// them.
		still[uid] = r.Attached[uid] == nil
	}
	troubled := map[string]bool{}
	for _, p := range r.Plan.Problems {
		troubled[p.Claim] = true
	}
	for i := range list {
		n := &list[i]
		uid := string(n.UID)
		switch {
		case still[uid]:
			c.waiting[uid] = true
		case c.waiting[uid]:
			delete(c.waiting, uid)
			if n.DeletionTimestamp.IsZero() && !troubled[n.Name] {
				c.reportAttached(n)
			}
		}
	}
	for uid := range c.waiting {
		if !slices.ContainsFunc(list, func(n karpenterv1.NodeClaim) bool { return string(n.UID) == uid }) {
			delete(c.waiting, uid)
		}
	}
}

func (c *Controller) reportAttached(n *karpenterv1.NodeClaim) {
	took := c.clock.Since(getLaunchTime(n))
	pool := n.Labels[karpenterv1.NodePoolLabelKey]
	attachSeconds.WithLabelValues(pool).Observe(took.Seconds())
	event.Emit(c.recorder, n, corev1.EventTypeNormal, "NetworksAttached", "Attach",
		fmt.Sprintf("all network interfaces of secondary networks are attached, %s after the instance was launched", took.Round(100*time.Millisecond)))
}

// getLaunchTime returns when the instance of a NodeClaim was launched.
func getLaunchTime(n *karpenterv1.NodeClaim) time.Time {
	for _, condition := range n.Status.Conditions {
		if condition.Type == karpenterv1.ConditionTypeLaunched && condition.Status == metav1.ConditionTrue {
			return condition.LastTransitionTime.Time
		}
	}
	return n.CreationTimestamp.Time
}
