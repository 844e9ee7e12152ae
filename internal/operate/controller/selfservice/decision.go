package selfservice

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
)

// facts are the input for the decision on a request.
type facts struct {
	anchor, name string
	platform     *v1alpha1.PlatformSpec
	// tenant is the tenant of the request's namespace.
	tenant *estate.Tenant
	// claimant is the tenant that declares the namespace or was granted it, or "".
	claimant string
	// known reports whether a Tenant with this name exists.
	known func(name string) bool
	// existing is the namespace with this name, or nil.
	existing *corev1.Namespace
	// used are the tenant's other namespaces that it does not declare.
	used map[string]bool
}

// decideRequest decides on a request that is not yet granted. It returns the condition's reason and
// message for a refusal, or "" for a grant.
func decideRequest(f facts) (reason, why string) {
	limit := f.tenant.MayRequest
	switch {
	case limit == 0:
		return v1alpha1.ReasonNotAllowed, "the tenant may not request namespaces: a platform admin allows them by selfService.namespaces"
	case !f.tenant.Declares(f.anchor):
		return v1alpha1.ReasonNotAllowed, "request it in a namespace that the Tenant declares: " + f.anchor + " was requested itself"
	}
	if reason, why = estate.CheckRequest(f.platform, f.tenant.Name, f.name, f.known); reason != "" {
		return reason, why
	}
	switch {
	case f.claimant == f.tenant.Name:
		return v1alpha1.ReasonNameTaken, "the tenant has " + f.name + " already"
	case f.claimant != "":
		return v1alpha1.ReasonNameNotAllowed, "the platform reserves this name: choose another"
	case f.existing != nil && !f.isRetained():
		return v1alpha1.ReasonNameTaken, "a namespace " + f.name + " exists already, and croft does not take it over: choose another name"
	case f.existing != nil && f.existing.DeletionTimestamp != nil:
		return v1alpha1.ReasonNameTaken, "the previous namespace " + f.name + " is still being deleted"
	case len(f.used) >= limit:
		return v1alpha1.ReasonLimitReached, fmt.Sprintf("the tenant has %d of the %d namespaces that the platform's "+
			"selfService.namespaces allows: %s", len(f.used), limit, strings.Join(slices.Sorted(maps.Keys(f.used)), ", "))
	}
	return "", ""
}

// isRetained reports whether croft created the existing namespace for an earlier, retained request
// with the same name and namespace. A tenant cannot get back a namespace that the platform
// has taken from it.
func (f facts) isRetained() bool {
	return f.existing.Labels[v1alpha1.TenantLabel] == f.tenant.Name &&
		f.existing.Annotations[v1alpha1.RequestedAnnotation] == f.anchor &&
		f.existing.Annotations[v1alpha1.CreatedAnnotation] == "true"
}
