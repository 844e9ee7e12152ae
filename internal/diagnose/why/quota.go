package why

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/quotaplan"
	"croft.dev/croft/internal/diagnose/catalog"
	"croft.dev/croft/internal/observe/events"
	"croft.dev/croft/internal/walls/wall/policy"
)

// gatherQuotas reads the division of the tenant's quota, if the quota refused an object.
func (g *gatherer) gatherQuotas(ctx context.Context) {
	if g.Rules == nil || !slices.ContainsFunc(g.Events, func(e corev1.Event) bool {
		_, refused := quotaplan.ParseRefusal(e.Message)
		return refused
	}) {
		return
	}
	g.Quotas = map[string]corev1.ResourceQuota{}
	for _, namespace := range g.Rules.Spec.Namespaces {
		var quota corev1.ResourceQuota
		if g.getObject(ctx, "resourcequota", namespace, policy.Name, &quota) {
			g.Quotas[namespace] = quota
		}
	}
	var tenant v1alpha1.Tenant
	g.getObject(ctx, "tenant", "", g.Rules.Spec.Tenant, &tenant)
	g.Minimums = tenant.Spec.QuotaMinimums
}

// settling is the time in which a share follows a refusal, with a margin.
const settling = time.Minute

// quotaState is the state of one resource in a tenant's namespaces.
type quotaState struct {
	// hard and used are sums over all namespaces. free is the unused part of this
	// namespace's share, and elsewhere the unused part of the other shares. reserved is the
	// part of elsewhere that the other namespaces' minimums reserve.
	hard, used, free, elsewhere, reserved resource.Quantity
}

func (s *Snapshot) sumQuota(name corev1.ResourceName) quotaState {
	var h quotaState
	for namespace, quota := range s.Quotas {
		hard, used := quota.Status.Hard[name], quota.Status.Used[name]
		h.hard.Add(hard)
		h.used.Add(used)
		left := subtractQuantity(hard, used)
		if namespace == s.Target.Namespace {
			h.free.Add(left)
			continue
		}
		h.elsewhere.Add(left)
		h.reserved.Add(subtractQuantity(s.Minimums[namespace][name], used))
	}
	return h
}

// subtractQuantity returns a - b, or zero if that is negative.
func subtractQuantity(a, b resource.Quantity) resource.Quantity {
	if a.Cmp(b) <= 0 {
		return resource.Quantity{Format: a.Format}
	}
	a.Sub(b)
	return a
}

// explainExceeded explains a refusal by the quota: either the tenant's quota is used up, or only
// the namespace's share.
func explainExceeded(s *Snapshot, refused *refusedPod, step Step) Step {
	r, ok := quotaplan.ParseRefusal(refused.message)
	if !ok || len(s.Quotas) == 0 || s.isHidden("resourcequota") || step.Finding == nil {
		return step
	}
	worst := -1
	for _, name := range slices.Sorted(maps.Keys(r.Requested)) {
		how, finding := s.evaluateResource(name, r.Requested[name], time.Since(refused.first))
		if how > worst {
			finding.Symptom, worst = step.Finding.Symptom, how
			step.Finding = finding
		}
	}
	return step
}

// findFirstRefusal returns the time of the first refusal by the quota for the same object.
func (s *Snapshot) findFirstRefusal(e *corev1.Event) time.Time {
	first := events.LastObserved(e)
	for _, other := range s.findEvents(e.InvolvedObject.Kind, e.InvolvedObject.Name, controllers[e.InvolvedObject.Kind]) {
		if _, ok := quotaplan.ParseRefusal(other.Message); !ok {
			continue
		}
		for _, t := range []time.Time{other.FirstTimestamp.Time, events.LastObserved(&other)} {
			if !t.IsZero() && t.Before(first) {
				first = t
			}
		}
	}
	return first
}

// evaluateResource evaluates one resource. A larger result requires more work to fix.
func (s *Snapshot) evaluateResource(name corev1.ResourceName, requested resource.Quantity, ago time.Duration) (int, *catalog.Finding) {
	h := s.sumQuota(name)
	all, others := h.free.DeepCopy(), subtractQuantity(h.elsewhere, h.reserved)
	all.Add(h.elsewhere)
	others.Add(h.free)
	message := fmt.Sprintf("%s: %s requested; %s left of this namespace's share", name, &requested, &h.free)
	if len(s.Quotas) > 1 {
		message += fmt.Sprintf(", and %s of the shares of %s", &h.elsewhere, strings.Join(s.listOtherNamespaces(), ", "))
	}
	switch {
	case requested.Cmp(all) > 0:
		return 3, newFinding("quota-exceeded", fmt.Sprintf("the tenant's quota is used up: %s (%s of %s are used)", message, &h.used, &h.hard))
	case requested.Cmp(h.free) <= 0:
		return 0, newFinding("quota-share", "the share was too small and has grown since: "+message)
	case requested.Cmp(others) > 0:
		return 2, newFinding("quota-reserved", fmt.Sprintf("the rest of the tenant's quota is reserved: %s, of which quotaMinimums reserve %s", message, &h.reserved))
	case s.isHidden("tenant") && ago > settling:
		// The minimums cannot be read, but otherwise the share would have moved.
		return 2, newFinding("quota-reserved", "other namespaces have the rest of the tenant's quota, and croft does not move it here: "+message)
	default:
		return 1, newFinding("quota-share", "only this namespace's share is used up, not the tenant's quota: "+message)
	}
}

func (s *Snapshot) listOtherNamespaces() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(s.Quotas)), func(name string) bool { return name == s.Target.Namespace })
}

// newFinding returns a row of the catalogue with a more detailed cause.
func newFinding(id, because string) *catalog.Finding {
	row := catalog.FindRow(id)
	f := row.ToFinding("")
	f.Cause = because
	return &f
}
