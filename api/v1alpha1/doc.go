// Package v1alpha1 contains croft's kinds.
//
// Users write Platform, Pool, Tenant and SecondaryNetwork. Only croft writes TenantRules,
// which hold the differences between tenants; the admission policies read the same data
// from annotations of namespaces. The validation in a CRD refuses errors in a single
// object. Package estate checks for errors that involve several objects (an unknown pool,
// two tenants with one domain).
//
// croft's commands read the same objects in a compact form, croft.yaml: one YAML document
// with these top-level keys, all optional. A file may contain several documents, of both
// forms.
//
// | Key | Holds |
// | --- | --- |
// | `platform` | the spec of the one Platform, named default: [PlatformSpec](#platformspec) |
// | `pools` | a mapping from names of Pools to their specs: [PoolSpec](#poolspec) |
// | `tenants` | a mapping from names of Tenants to their specs: [TenantSpec](#tenantspec) |
// | `secondaryNetworks` | a mapping from names of SecondaryNetworks to their specs: [SecondaryNetworkSpec](#secondarynetworkspec) |
//
// A name without a value is an object with the default of every field.
//
// +kubebuilder:object:generate=true
// +groupName=croft.dev
package v1alpha1
