// Package me describes the tenant to its developer: namespaces, roles, quota and its
// use, domains, classes and pools. It reads with the developer's own rights, and needs
// no right that croft's viewer does not have.
package me

import (
	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/api/v1alpha1"
)

// Me is a user's view of a tenant.
type Me struct {
	User   string   `json:"user"`
	Groups []string `json:"groups,omitempty"`
	Tenant string   `json:"tenant"`
	// Namespaces are all of the tenant's, also those that may not be read.
	Namespaces []Namespace `json:"namespaces"`
	// Refused are the workloads whose pods the API server refuses.
	Refused []v1alpha1.RefusedWorkload `json:"refused,omitempty"`
	// Rules are the rules on the tenant's objects.
	Rules v1alpha1.TenantRulesSpec `json:"rules"`
	// Classes are the names behind a "*" in Rules, by kind, where they may be read.
	Classes map[string][]string `json:"classes,omitempty"`
	// MayNot are refusals that developers meet, in a line each.
	MayNot []string `json:"mayNot"`
}

// Namespace is one of the tenant's namespaces.
type Namespace struct {
	Name string `json:"name"`
	// Roles are the names of the roles that RoleBindings give to the caller.
	Roles []string `json:"roles"`
	// May are the abilities that the caller has, of Abilities.
	May []string `json:"may"`
	// Quota is the quota and its use.
	Quota []Use `json:"quota,omitempty"`
	// Unread are the kinds that the caller may not read.
	Unread []string `json:"unread,omitempty"`
}

// Use is one resource of a quota.
type Use struct {
	Resource corev1.ResourceName `json:"resource"`
	Used     string              `json:"used"`
	Hard     string              `json:"hard"`
	// Percent is the used part of it; 0 if the quota is zero.
	Percent int `json:"percent"`
}

// Counts reports a quota of a number of objects, and not of resources that
// workloads ask for.
func (u Use) Counts() bool {
	switch u.Resource {
	case corev1.ResourceServices, corev1.ResourceSecrets, corev1.ResourceConfigMaps,
		corev1.ResourceReplicationControllers, corev1.ResourcePersistentVolumeClaims:
		return true
	default:
		return len(u.Resource) > 6 && u.Resource[:6] == "count/"
	}
}
