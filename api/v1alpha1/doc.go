// Package v1alpha1 holds croft's kinds.
//
// People write Platform, Pool, Tenant and SecondaryNetwork; croft alone writes
// TenantRules, which tell what differs between tenants; the admission policies read the
// same from annotations of namespaces. What a single object can get wrong is refused by the validation in
// its CRD; what only several objects together can get wrong (an unknown pool,
// two tenants with one domain) is checked by package estate.
//
// croft's commands read the same objects in a compact form, croft.yaml: one YAML
// document with these keys at its top, none of which has to be there. A file may
// hold several documents, of both forms.
//
// | Key | Holds |
// | --- | --- |
// | `platform` | the spec of the one Platform, named default: [PlatformSpec](#platformspec) |
// | `pools` | a mapping from names of Pools to what each one is: [PoolSpec](#poolspec) |
// | `tenants` | a mapping from names of Tenants to what each one is: [TenantSpec](#tenantspec) |
// | `secondaryNetworks` | a mapping from names of SecondaryNetworks to what each one is: [SecondaryNetworkSpec](#secondarynetworkspec) |
//
// A name with nothing behind it is an object that leaves every field to its default.
//
// +kubebuilder:object:generate=true
// +groupName=croft.dev
package v1alpha1
