// Package gatekeeper reads Gatekeeper's mutators, which place namespaces on pools, and its
// constraints, which list the hosts that namespaces may serve.
package gatekeeper
