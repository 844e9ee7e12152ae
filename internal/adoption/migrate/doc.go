// Package migrate converts other tools' configuration (Karpenter's Provisioners and NodePools,
// Gatekeeper's mutators and constraints, the values file of a chart of tenants, Capsule's
// Tenants, HNC's trees, and the policies, bindings and quotas around them) into croft.yaml, and reports the
// outcome of every field: kept, changed, not kept, or out of croft's scope. Nothing is dropped
// silently.
//
// It does no I/O: the caller passes documents, or a reader of a cluster.
package migrate
