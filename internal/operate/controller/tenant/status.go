package tenant

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/controller/declared"
	"croft.dev/croft/internal/operate/controller/outcome"
	"croft.dev/croft/internal/operate/controller/status"
)

// observation is the result of one reconcile of a tenant. The status is computed from
// it alone.
type observation struct {
	entry       declared.Entry[estate.Tenant]
	hasPlatform bool

	// applied reports whether the walls were written or found in place, with these changes
	// and this error. wasInPlace reports whether they had been in place before for the same
	// declaration.
	applied, wasInPlace bool
	changes             []apply.Change
	err                 error
	// unserved is set if the cluster lacks Flux for the tenant's sources, or Multus for its
	// networks. The walls do not depend on them.
	unserved error

	// enforced reports whether the walls are known to be enforced, and caveat the limits of
	// that knowledge. If they are not, and if probed is set, reason and message explain it, and
	// since is when the first probe failed.
	enforced, probed        bool
	reason, message, caveat string
	since                   time.Time

	// deleting reports whether the tenant is being deleted. remainingNamespaces lists its namespaces
	// that still exist.
	deleting bool
	// finalizerRemoved reports whether the finalizer was removed.
	finalizerRemoved bool
	// awaitsCount reports that a new tenant waits for the count of its quota, which usually takes so little time that a
	// status in between is not worth its request.
	awaitsCount bool
	// maybeDeleted reports that the tenant may have been deleted. croft did nothing, so the
	// status stays unchanged.
	maybeDeleted        bool
	remainingNamespaces []string
}

// kindsWithoutRules are kinds of a tenant's objects that do not influence how API servers admit the pods of a
// probe. A LimitRange does.
var kindsWithoutRules = []string{"ConfigMap", "NetworkPolicy", "RoleBinding"}

// hasWrittenRules reports whether anything was written that may change how the API servers admit pods.
func (s *observation) hasWrittenRules() bool {
	return slices.ContainsFunc(s.changes, func(c apply.Change) bool {
		return c.HasWritten() && !slices.Contains(kindsWithoutRules, c.Kind)
	})
}

// writeStatus writes the status after a reconcile that ended with err, and emits events. It
// returns Ready if that has changed and is written.
func (c *Controller) writeStatus(ctx context.Context, before, tenant *v1alpha1.Tenant, s *observation, err error) (*metav1.Condition, error) {
	if s.finalizerRemoved || s.maybeDeleted || s.awaitsCount || c.retries.IsRacing(tenant.Name, err) {
		return nil, nil
	}
	s.computeStatus(tenant)
	c.emitConditions(before, tenant)
	if err := c.status.Patch(ctx, before, tenant); err != nil {
		return nil, err
	}
	return status.FindChanged(&before.Status.Status, &tenant.Status.Status, v1alpha1.ConditionReady), nil
}

// computeStatus computes the tenant's status.
func (s *observation) computeStatus(tenant *v1alpha1.Tenant) {
	st, generation := &tenant.Status.Status, tenant.Generation
	if s.deleting {
		s.reportDeletion(tenant)
		return
	}
	if status.Accept(st, generation, s.hasPlatform, s.entry.Problems) && s.entry.Value != nil {
		tenant.Status.Pool, tenant.Status.Pools = s.entry.Value.Pools[0], s.entry.Value.Pools
		tenant.Status.Domains = s.listDomainsInForce(tenant.Status.Domains)
		tenant.Status.Consents = s.entry.Value.Consents
		reportConsents(st, generation, s.entry.Value)
	}
	if s.applied {
		tenant.Status.Namespaces = s.listOwned()
		if err := errors.Join(s.err, s.unserved); err == nil {
			status.Set(st, generation, v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied, "")
		} else {
			status.Set(st, generation, v1alpha1.ConditionApplied, metav1.ConditionFalse, outcome.Reason(err), err.Error())
		}
	}
	switch {
	case len(s.listUnowned()) > 0:
		status.Set(st, generation, v1alpha1.ConditionEnforced, metav1.ConditionFalse, v1alpha1.ReasonNamespaceNotOwned,
			"no policy selects the pods of "+strings.Join(s.listUnowned(), ", ")+": the namespace does not belong to the tenant")
	case s.enforced:
		status.Set(st, generation, v1alpha1.ConditionEnforced, metav1.ConditionTrue, v1alpha1.ReasonEnforced, s.caveat)
	case s.probed:
		status.Set(st, generation, v1alpha1.ConditionEnforced, metav1.ConditionFalse, s.reason, s.message)
	}
	status.SetReady(st, generation, v1alpha1.ConditionAccepted, v1alpha1.ConditionApplied, v1alpha1.ConditionEnforced)
	status.SetProgress(st, generation, s.unserved != nil || outcome.NeedsPerson(s.err))
}

// reportConsents reports whether the tenant's callers and calls are open connections.
func reportConsents(st *v1alpha1.Status, generation int64, t *estate.Tenant) {
	switch {
	case len(t.Pending) > 0:
		status.Set(st, generation, v1alpha1.ConditionAgreed, metav1.ConditionFalse, v1alpha1.ReasonConsentPending, strings.Join(t.Pending, "; "))
	case len(t.Connections) > 0:
		status.Set(st, generation, v1alpha1.ConditionAgreed, metav1.ConditionTrue, v1alpha1.ReasonAgreed, "")
	default:
		meta.RemoveStatusCondition(&st.Conditions, v1alpha1.ConditionAgreed)
	}
}

func (s *observation) reportDeletion(tenant *v1alpha1.Tenant) {
	message := "people's access is being removed"
	switch {
	case s.err != nil:
		message = s.err.Error()
	case len(s.remainingNamespaces) > 0:
		message = "waiting until these namespaces are deleted: " + strings.Join(s.remainingNamespaces, ", ")
	}
	status.SetNotReady(&tenant.Status.Status, tenant.Generation, v1alpha1.ReasonDeleting, message)
	status.SetProgress(&tenant.Status.Status, tenant.Generation, outcome.NeedsPerson(s.err))
}

// listDomainsInForce returns the domains that the tenant's walls may allow, and that no other tenant
// gets: the declared ones and, until all namespaces have the new rules, the previous ones.
func (s *observation) listDomainsInForce(previous []string) []string {
	if s.hasRules() {
		return s.entry.Value.Domains
	}
	return mergeDomains(previous, s.entry.Value.Domains)
}

// hasRules reports whether all namespaces of the tenant have the rules of its declaration.
func (s *observation) hasRules() bool {
	done := map[string]bool{}
	for _, change := range s.changes {
		var notOwned *apply.NamespaceNotOwnedError
		if change.Kind == "Namespace" && (change.Err == nil || errors.As(change.Err, &notOwned)) {
			done[change.Name] = true
		}
	}
	return !slices.ContainsFunc(s.entry.Value.Namespaces, func(name string) bool { return !done[name] })
}

// mergeDomains returns the previous domains, followed by the new ones.
func mergeDomains(previous, declared []string) []string {
	all := slices.Clone(previous)
	for _, domain := range declared {
		if !slices.Contains(all, domain) {
			all = append(all, domain)
		}
	}
	return all
}

// claimDomains records the domains that the tenant is about to get, before its walls allow them: a
// recorded domain stays with the tenant if croft is killed. The derived domains need no record,
// because no other tenant can claim them.
func (c *Controller) claimDomains(ctx context.Context, before, tenant *v1alpha1.Tenant) error {
	merged := mergeDomains(tenant.Status.Domains, tenant.Spec.Domains)
	if len(merged) == len(tenant.Status.Domains) {
		return nil
	}
	tenant.Status.Domains = merged
	if err := c.status.Patch(ctx, before, tenant); err != nil {
		return err
	}
	tenant.DeepCopyInto(before)
	return nil
}

// listOwned returns the declared namespaces that belong to the tenant.
func (s *observation) listOwned() []string {
	refused := map[string]bool{}
	for _, change := range s.changes {
		if change.Kind == "Namespace" && change.Action == apply.Failed {
			refused[change.Name] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(s.entry.Value.Namespaces), func(name string) bool { return refused[name] })
}

// listUnowned returns the declared namespaces that do not belong to the tenant. No wall
// protects the workloads there.
func (s *observation) listUnowned() []string {
	var names []string
	for _, change := range s.changes {
		var notOwned *apply.NamespaceNotOwnedError
		if errors.As(change.Err, &notOwned) {
			names = append(names, change.Name)
		}
	}
	return names
}

const (
	// patienceLeast is about the time until a policy takes effect.
	patienceLeast = 500 * time.Millisecond
	patienceMost  = 30 * time.Second
)

// getProbeDelay returns the time until the next probe. It grows with the time since the first
// probe failed.
func (s *observation) getProbeDelay(now time.Time) time.Duration {
	if s.since.IsZero() {
		return patienceLeast
	}
	return min(max(now.Sub(s.since)/4, patienceLeast), patienceMost)
}

// notEnforcedSince returns when the tenant's walls were first found not to be enforced.
func notEnforcedSince(tenant *v1alpha1.Tenant) time.Time {
	condition := meta.FindStatusCondition(tenant.Status.Conditions, v1alpha1.ConditionEnforced)
	if condition == nil || condition.Status == metav1.ConditionTrue {
		return time.Time{}
	}
	return condition.LastTransitionTime.Time
}
