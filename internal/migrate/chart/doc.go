// Package chart reads the values file of a Helm chart that makes Provisioners, mutators and
// bindings of a list of pools and tenants.
package chart
