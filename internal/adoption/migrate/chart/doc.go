// Package chart reads the values file of a Helm chart that renders Provisioners, mutators and
// bindings from a list of pools and tenants.
package chart
