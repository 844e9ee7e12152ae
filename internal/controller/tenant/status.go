package tenant

import (
	"errors"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/apply"
	"croft.dev/croft/internal/controller/declared"
	"croft.dev/croft/internal/controller/status"
	"croft.dev/croft/internal/estate"
)

// sighting is what one reconcile has seen of a tenant. Its status is computed
// from this alone.
type sighting struct {
	entry       declared.Entry[estate.Tenant]
	hasPlatform bool

	// applied says that the walls were gone through, with these changes and this
	// error; stood, that they had stood before, for the same declaration.
	applied, stood bool
	changes        []apply.Change
	err            error

	// enforced says that a pod is known to be placed. If it is not: why not, if
	// it was probed, and since when.
	enforced, probed bool
	why              string
	since            time.Time

	// deleting says that the tenant is on its way out, with the namespaces that
	// are leaving; gone, that it may go.
	deleting, gone bool
	leaving        []string
}

// wrote reports whether anything was written.
func (s *sighting) wrote() bool {
	return slices.ContainsFunc(s.changes, apply.Change.Wrote)
}

// report computes the tenant's status.
func (s *sighting) report(tenant *v1alpha1.Tenant) {
	st, generation := &tenant.Status.Status, tenant.Generation
	if s.deleting {
		s.reportDeletion(tenant)
		return
	}
	if status.Accept(st, generation, s.hasPlatform, s.entry.Problems) && s.entry.Value != nil {
		tenant.Status.Pool = s.entry.Value.Pools[0]
		tenant.Status.Domains = s.entry.Value.Domains
	}
	if s.applied {
		tenant.Status.Namespaces = s.kept()
		if s.err == nil {
			status.Set(st, generation, v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied, "")
		} else {
			status.Set(st, generation, v1alpha1.ConditionApplied, metav1.ConditionFalse, reasonFor(s.err), s.err.Error())
		}
	}
	switch {
	case s.enforced:
		status.Set(st, generation, v1alpha1.ConditionEnforced, metav1.ConditionTrue, v1alpha1.ReasonEnforced, "")
	case s.probed:
		status.Set(st, generation, v1alpha1.ConditionEnforced, metav1.ConditionFalse, v1alpha1.ReasonNotEnforcedYet, s.why)
	}
	status.Sum(st, generation, v1alpha1.ConditionAccepted, v1alpha1.ConditionApplied, v1alpha1.ConditionEnforced)
}

func (s *sighting) reportDeletion(tenant *v1alpha1.Tenant) {
	message := "people's access is being taken away"
	switch {
	case s.err != nil:
		message = s.err.Error()
	case len(s.leaving) > 0:
		message = "waiting for namespaces to go: " + strings.Join(s.leaving, ", ")
	}
	tenant.Status.ObservedGeneration = tenant.Generation
	status.Set(&tenant.Status.Status, tenant.Generation, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonDeleting, message)
}

// kept are the declared namespaces that were to be had.
func (s *sighting) kept() []string {
	refused := map[string]bool{}
	for _, change := range s.changes {
		if change.Kind == "Namespace" && change.Action == apply.Failed {
			refused[change.Name] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(s.entry.Value.Namespaces), func(name string) bool { return refused[name] })
}

// reasonFor puts what a platform admin can settle first.
func reasonFor(err error) string {
	var notOwned *apply.NamespaceNotOwnedError
	if errors.As(err, &notOwned) {
		return v1alpha1.ReasonNamespaceNotOwned
	}
	return v1alpha1.ReasonApplyFailed
}

const (
	// patienceLeast is about how long a policy takes to take effect.
	patienceLeast = 500 * time.Millisecond
	patienceMost  = 30 * time.Second
)

// patience is how long to wait before probing again: the longer, the longer it
// has been in vain.
func (s *sighting) patience() time.Duration {
	if s.since.IsZero() {
		return patienceLeast
	}
	return min(max(time.Since(s.since)/4, patienceLeast), patienceMost)
}

// inVainSince is when the tenant's walls were first found not to hold.
func inVainSince(tenant *v1alpha1.Tenant) time.Time {
	condition := meta.FindStatusCondition(tenant.Status.Conditions, v1alpha1.ConditionEnforced)
	if condition == nil || condition.Status == metav1.ConditionTrue {
		return time.Time{}
	}
	return condition.LastTransitionTime.Time
}
