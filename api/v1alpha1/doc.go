// Package v1alpha1 holds croft's kinds.
//
// People write Platform, Pool, Tenant and SecondaryNetwork; croft alone writes
// TenantRules, from which the admission policies read what differs between
// tenants. What a single object can get wrong is refused by the validation in
// its CRD; what only several objects together can get wrong (an unknown pool,
// two tenants with one domain) is checked by package estate.
//
// +kubebuilder:object:generate=true
// +groupName=croft.dev
package v1alpha1
