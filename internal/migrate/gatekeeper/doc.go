// Package gatekeeper reads Gatekeeper's mutators, which say what runs on which pool, and its
// constraints, which say who may serve which hosts.
package gatekeeper
