package apply

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"croft.dev/croft/api/v1alpha1"
)

// ObjectError is an error concerning one object.
type ObjectError struct {
	Ref
	Err error
}

// Error implements error.
func (e *ObjectError) Error() string {
	switch {
	case e.IsKindPending():
		return fmt.Sprintf("%s: Gatekeeper has not created this kind from its ConstraintTemplate %s yet: kubectl get constrainttemplate %s -o yaml shows the reason",
			e.Ref, strings.ToLower(e.Kind), strings.ToLower(e.Kind))
	case meta.IsNoMatchError(e.Err):
		return fmt.Sprintf("%s: this cluster does not know the kind %s (%s): install its CustomResourceDefinition", e.Ref, e.Kind, e.GroupVersion())
	case e.Kind == "NodePool" && apierrors.IsInvalid(e.Err) && strings.Contains(e.Err.Error(), "between static"):
		return fmt.Sprintf("%s: it has replicas, and Karpenter does not allow their removal: give the pool another name, such as %s-dynamic, or delete the NodePool when its nodes are empty", e.Ref, e.Name)
	case strings.HasPrefix(e.Name, "croft-role-") && isPatchForbidden(e.Err):
		return fmt.Sprintf("%s: croft's operator may not write this role yet: a cluster administrator must run `croft install` again", e.Ref)
	default:
		return fmt.Sprintf("%s: %v", e.Ref, e.Err)
	}
}

// IsKindPending reports whether the object is a constraint whose kind Gatekeeper has not yet
// created. It does so a moment after its template was written.
func (e *ObjectError) IsKindPending() bool {
	return meta.IsNoMatchError(e.Err) && slices.Contains(GatekeeperConstraintKinds, e.GroupVersionKind)
}

// Unwrap implements errors' chain.
func (e *ObjectError) Unwrap() error { return e.Err }

// DialectError reports that a cluster does not serve the kind of the network policies'
// dialect.
type DialectError struct {
	Dialect v1alpha1.NetworkDialect
	Kind    schema.GroupVersionKind
	Err     error
}

// Error implements error.
func (e *DialectError) Error() string {
	if !meta.IsNoMatchError(e.Err) {
		return fmt.Sprintf("network.dialect %s: look up %s of %s: %v", e.Dialect, e.Kind.Kind, e.Kind.GroupVersion(), e.Err)
	}
	return fmt.Sprintf("network.dialect is %s, and this cluster does not serve its kind %s (%s): install it with your network plugin, or choose another dialect",
		e.Dialect, e.Kind.Kind, e.Kind.GroupVersion())
}

// Unwrap implements errors' chain.
func (e *DialectError) Unwrap() error { return e.Err }

// NamespaceNotOwnedError reports that a namespace exists and is not the tenant's. croft
// never takes over a namespace without an admin's annotation.
type NamespaceNotOwnedError struct {
	// Namespace is the namespace that Tenant does not get.
	Namespace, Tenant string
	// Owner is the tenant that owns the namespace, or "".
	Owner string
	// Created reports whether croft created it, for a tenant that no longer exists.
	Created bool
}

// Error implements error.
func (e *NamespaceNotOwnedError) Error() string {
	why := "exists already and croft did not create it"
	switch {
	case e.Owner != "":
		why = "belongs to tenant " + e.Owner
	case e.Created:
		why = "exists already, and its label " + v1alpha1.TenantLabel + " was removed"
	}
	return fmt.Sprintf("namespace %s %s: to give it to tenant %s, a platform admin runs `croft adopt tenant %s -f croft.yaml`, which first shows the changes",
		e.Namespace, why, e.Tenant, e.Tenant)
}

// NamespaceTerminatingError reports that a namespace is being deleted, so that nothing can
// be written to it until it is created again.
type NamespaceTerminatingError struct{ Namespace string }

// Error implements error.
func (e *NamespaceTerminatingError) Error() string {
	return fmt.Sprintf("namespace %s is being deleted: croft creates it again after the deletion", e.Namespace)
}

// isRoleRefChange reports whether the API server refused an object only because a binding's
// role is immutable.
func isRoleRefChange(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	causes := status.Status().Details.Causes
	for _, cause := range causes {
		if cause.Field != "roleRef" {
			return false
		}
	}
	return len(causes) > 0
}
