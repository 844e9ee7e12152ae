// Package migrate turns what people run today (Karpenter's Provisioners and
// NodePools, Gatekeeper's mutators and constraints, the values file of a chart of
// tenants, Capsule's Tenants, and the policies, bindings and quotas around them)
// into croft.yaml, and says of every field that it read what became of it: kept,
// changed, not kept, or none of croft's business. Nothing is dropped silently.
//
// It does no I/O: whoever calls it hands it documents, or a reader of a cluster.
package migrate
