// Package me describes a tenant to its developers: namespaces, roles, quota and its usage,
// domains, classes and pools. It reads with the developer's own rights, and needs no right
// that croft's viewer lacks.
package me

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
)

// Me is a user's view of a tenant.
type Me struct {
	User   string   `json:"user"`
	Groups []string `json:"groups,omitempty"`
	Tenant string   `json:"tenant"`
	// Declared is the Tenant's spec, if the caller may read it: croft proxy shows teams their own.
	Declared *v1alpha1.TenantSpec `json:"declared,omitempty"`
	// Namespaces are all namespaces of the tenant, including unreadable ones.
	Namespaces []Namespace `json:"namespaces"`
	// Refused are the workloads whose pods the API server refuses.
	Refused []v1alpha1.RefusedWorkload `json:"refused,omitempty"`
	// Ending are the requested namespaces that end within 24 hours, the first to end first.
	Ending []Ending `json:"ending,omitempty"`
	// Rules are the rules for the tenant's objects.
	Rules v1alpha1.TenantRulesSpec `json:"rules"`
	// Classes are the existing names that a "*" in Rules allows, by kind, if the caller may
	// read them.
	Classes map[string][]string `json:"classes,omitempty"`
	// Restrictions lists the restrictions that developers may encounter, one line each.
	Restrictions []string `json:"mayNot"`
}

// Namespace is one of the tenant's namespaces.
type Namespace struct {
	Name string `json:"name"`
	// Roles are the names of the roles that RoleBindings give to the caller.
	Roles []string `json:"roles"`
	// Abilities lists the names of the Abilities that the caller has.
	Abilities []string `json:"may"`
	// Quota is the quota and its usage.
	Quota []Use `json:"quota,omitempty"`
	// Unreadable are the kinds that the caller may not read.
	Unreadable []string `json:"unreadable,omitempty"`
}

// Ending is a namespace that the tenant requested and that ends soon.
type Ending struct {
	Namespace string `json:"namespace"`
	// Request is the TenantNamespace, as NAMESPACE/NAME.
	Request string      `json:"request"`
	Until   metav1.Time `json:"until"`
}

// Use is the usage of one resource of a quota.
type Use struct {
	Resource corev1.ResourceName `json:"resource"`
	Used     string              `json:"used"`
	Hard     string              `json:"hard"`
	// Percent is the used percentage; 0 if the quota is zero.
	Percent int `json:"percent"`
}

// IsNearlyUsedUp reports whether little of the quota is free.
func (u Use) IsNearlyUsedUp() bool { return u.Percent >= 80 }

// IsObjectCount reports whether the quota limits a number of objects, and not resources that
// workloads request.
func (u Use) IsObjectCount() bool {
	switch u.Resource {
	case corev1.ResourceServices, corev1.ResourceSecrets, corev1.ResourceConfigMaps,
		corev1.ResourceReplicationControllers, corev1.ResourcePersistentVolumeClaims:
		return true
	default:
		return len(u.Resource) > 6 && u.Resource[:6] == "count/"
	}
}
