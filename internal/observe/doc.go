// Package observe contains packages that evaluate objects of other projects, such as events,
// NetworkPolicies, PodDisruptionBudgets and certificates. They do no I/O and know nothing of
// tenants.
//
// It may import: rules.
package observe
